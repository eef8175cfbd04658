//! NGINX's directory: `nginx.conf` and what it refers to.
//!
//! ```text
//! nginx.conf          in force, or about to be        lua/      the Lua modules
//! nginx.conf.test     being tested                    ssl/ …    files that nginx.conf names
//! nginx.conf.refused  what was refused last           stream/   endpoints of TCP and UDP services
//! lua.json            settings of the Lua modules     run/      process ID, sockets, temporary files
//!                                                     logs/     links to our standard output and error
//! ```

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Mutex,
};

use lua_sync_client::lua_modules;
use nginx_render::{FileContent, Rendered};
use tracing::{debug, info, warn};

use super::{
    files::{self, Access, WriteError},
    test::{self, Refusal, TestError},
};

/// The start of each file that a controller of our kind has written.
const OURS: &str = "# Configuration checksum:";

/// The file that NGINX runs with.
const MAIN: &str = "nginx.conf";

/// The settings of the Lua modules. They name the checksum of the `nginx.conf` that they are for.
const LUA_SETTINGS: &str = "lua.json";

/// Why NGINX's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// There is a file of somebody else's.
    #[error(
        "{} was not written by this controller and would be overwritten; name another directory with --nginx-dir",
        .0.display()
    )]
    Foreign(PathBuf),
    /// Another controller runs NGINX there.
    #[error(
        "another controller uses the directory {}; end it, or name another directory with --nginx-dir",
        .0.display()
    )]
    InUse(PathBuf),
    /// A file that may be somebody else's cannot be read.
    #[error("cannot read {} to see whose it is; name another directory with --nginx-dir, or run as its owner", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory cannot be laid out.
    #[error("cannot prepare the directory {}", path.display())]
    Prepare {
        /// What could not be made.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The Lua modules cannot be written.
    #[error("cannot write the Lua modules")]
    Lua(#[from] lua_modules::WriteError),
    /// NGINX cannot be asked.
    #[error(transparent)]
    Test(#[from] TestError),
}

/// NGINX's directory.
#[derive(Debug)]
pub struct Configuration {
    directory: PathBuf,
    binary: PathBuf,
    /// The group of NGINX's workers, where it is another one than ours.
    workers_group: Option<u32>,
    /// Held while we live: two controllers would take NGINX's files from each other.
    _lock: File,
    /// Files beside `nginx.conf` that were written, so that they can be removed when nothing names them any more.
    beside: Mutex<BTreeSet<PathBuf>>,
}

/// Files beside `nginx.conf` that were replaced for a test, with what they held before.
struct Staged(Vec<(PathBuf, Option<Vec<u8>>)>);

impl Configuration {
    /// Lays out the directory and writes the Lua modules.
    ///
    /// # Errors
    ///
    /// When the directory cannot be written, another controller uses it, or it holds the `nginx.conf` of somebody else
    /// and `overwrite` is not set.
    pub fn prepare(
        directory: &Path,
        binary: &Path,
        workers_group: Option<u32>,
        overwrite: bool,
    ) -> Result<Self, ConfigurationError> {
        let main = directory.join(MAIN);
        if !overwrite {
            refuse_foreign(&main)?;
        }
        let configuration = Self {
            directory: directory.to_owned(),
            binary: binary.to_owned(),
            workers_group,
            _lock: lock(directory)?,
            beside: Mutex::default(),
        };
        for below in ["run", "logs"] {
            let path = directory.join(below);
            fs::create_dir_all(&path)
                .map_err(|source| ConfigurationError::Prepare { path, source })?;
        }
        for (name, to) in [("access.log", "/dev/stdout"), ("error.log", "/dev/stderr")] {
            let path = directory.join("logs").join(name);
            link_log(&path, Path::new(to))
                .map_err(|source| ConfigurationError::Prepare { path, source })?;
        }
        let written = lua_modules::write_modules(&directory.join("lua"))?;
        info!(directory = %directory.display(), lua_modules = written.written, "prepared nginx's directory");
        Ok(configuration)
    }

    /// The file that NGINX runs with.
    #[must_use]
    pub fn main(&self) -> PathBuf {
        self.directory.join(MAIN)
    }

    /// Where all of it is.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Asks NGINX whether it takes these files. What it has refused is kept as `nginx.conf.refused`.
    ///
    /// # Errors
    ///
    /// When the files cannot be written, or NGINX cannot be asked.
    pub async fn test(
        &self,
        rendered: &Rendered,
    ) -> Result<Result<(), Refusal>, ConfigurationError> {
        self.try_out(rendered, false).await
    }

    /// [`Self::test`] for files that are not to be put in place: whatever NGINX says, those beside its main file are as
    /// they were.
    ///
    /// # Errors
    ///
    /// As [`Self::test`].
    pub async fn test_apart(
        &self,
        rendered: &Rendered,
    ) -> Result<Result<(), Refusal>, ConfigurationError> {
        self.try_out(rendered, true).await
    }

    async fn try_out(
        &self,
        rendered: &Rendered,
        apart: bool,
    ) -> Result<Result<(), Refusal>, ConfigurationError> {
        let candidate = self.directory.join("nginx.conf.test");
        files::write(&candidate, rendered.main.as_bytes(), Access::Private)?;
        let staged = self.stage(rendered)?;
        match test::test(&self.binary, &candidate).await {
            Ok(()) => {
                if apart {
                    staged.restore();
                }
                Ok(Ok(()))
            }
            Err(error) => {
                staged.restore();
                let TestError::Refused(mut refusal) = error else {
                    return Err(error.into());
                };
                debug!(reason = refusal.reason, "nginx refuses a configuration");
                // Only lines of the main file can be told apart.
                refusal.place = refusal.place.filter(|(file, _)| *file == candidate);
                let kept = self.directory.join("nginx.conf.refused");
                if let Err(error) = fs::rename(&candidate, &kept) {
                    warn!(%error, file = %kept.display(), "cannot keep what nginx refused");
                }
                Ok(Err(refusal))
            }
        }
    }

    /// Makes these files the ones that NGINX loads next.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub fn put_in_place(&self, rendered: &Rendered) -> Result<(), WriteError> {
        for (path, file) in self.files(rendered) {
            files::write(&path, &file.bytes, self.access(file))?;
        }
        files::write(&self.main(), rendered.main.as_bytes(), Access::Private)?;
        files::remove(&self.directory.join("nginx.conf.test"))?;
        let mut beside = self
            .beside
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        beside.extend(self.files(rendered).map(|(path, _)| path));
        Ok(())
    }

    /// Removes files that the configuration in force does not name any more.
    pub fn tidy(&self, rendered: &Rendered) {
        let named: BTreeSet<_> = self.files(rendered).map(|(path, _)| path).collect();
        let mut beside = self
            .beside
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        beside.retain(|path| {
            if named.contains(path) {
                return true;
            }
            match files::remove(path) {
                Ok(()) => false,
                Err(error) => {
                    warn!(%error, "cannot remove a file that nothing needs any more");
                    true
                }
            }
        });
    }

    /// Writes the files that a test needs, keeping what they held.
    fn stage(&self, rendered: &Rendered) -> Result<Staged, WriteError> {
        let mut staged = Staged(Vec::new());
        for (path, file) in self.files(rendered) {
            let before = fs::read(&path).ok();
            // A test reads the settings of the Lua modules, but does not mind which: those in force stay.
            let kept = before.is_some() && path.ends_with(LUA_SETTINGS);
            if kept || before.as_ref() == Some(&file.bytes) {
                continue;
            }
            if let Err(error) = files::write(&path, &file.bytes, self.access(file)) {
                staged.restore();
                return Err(error);
            }
            staged.0.push((path, before));
        }
        Ok(staged)
    }

    /// Private files are for workers too: they read passwords when a request comes.
    fn access(&self, file: &FileContent) -> Access {
        match self.workers_group {
            _ if !file.private => Access::Public,
            Some(group) => Access::Group(group),
            None => Access::Private,
        }
    }

    fn files<'a>(
        &self,
        rendered: &'a Rendered,
    ) -> impl Iterator<Item = (PathBuf, &'a FileContent)> {
        let files = rendered.files.iter();
        files.map(|(path, file)| (self.directory.join(path.as_str()), file))
    }
}

impl Staged {
    /// Undoes what was written for a test.
    fn restore(self) {
        for (path, before) in self.0 {
            let restored = match before {
                // The mode is that of the new file, which is the same sort of file.
                Some(before) => fs::write(&path, before),
                None => fs::remove_file(&path),
            };
            if let Err(error) = restored {
                warn!(%error, file = %path.display(), "cannot restore a file after nginx has refused its successor");
            }
        }
    }
}

/// Sees that there is no file that no controller has written.
fn refuse_foreign(main: &Path) -> Result<(), ConfigurationError> {
    let path = || main.to_owned();
    match fs::read(main) {
        Ok(text) if text.is_empty() || text.starts_with(OURS.as_bytes()) => Ok(()),
        Ok(_) => Err(ConfigurationError::Foreign(path())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ConfigurationError::Unreadable {
            path: path(),
            source,
        }),
    }
}

/// Takes the directory for this process. The system gives it back when the process ends, however it ends.
fn lock(directory: &Path) -> Result<File, ConfigurationError> {
    let run = directory.join("run");
    let path = run.join("controller.lock");
    let failed = |path: &Path, source| ConfigurationError::Prepare {
        path: path.to_owned(),
        source,
    };
    fs::create_dir_all(&run).map_err(|source| failed(&run, source))?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = options
        .open(&path)
        .map_err(|source| failed(&path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ConfigurationError::InUse(directory.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(&path, source)),
    }
}

/// Has a log go to one of our own streams, or to a file where NGINX could not open that (it may be a socket).
fn link_log(path: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        fs::remove_file(path)?;
    }
    let openable = OpenOptions::new().append(true).open(to).is_ok();
    if openable && !path.exists() {
        std::os::unix::fs::symlink(to, path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_not_overwritten_unasked() {
        let directory = tempfile::tempdir().unwrap();
        let prepare = |overwrite| {
            Configuration::prepare(directory.path(), Path::new("/bin/true"), None, overwrite)
        };
        let main = directory.path().join("nginx.conf");
        fs::write(&main, "user www-data;\n").unwrap();
        let error = prepare(false).unwrap_err();
        assert!(
            matches!(&error, ConfigurationError::Foreign(path) if *path == main),
            "{error}"
        );
        assert!(error.to_string().contains("--nginx-dir"));
        assert!(!directory.path().join("lua").exists(), "nothing is written");
        assert!(prepare(true).is_ok());
        fs::write(&main, "# Configuration checksum: 12\n").unwrap();
        assert!(prepare(false).is_ok());
        fs::remove_file(&main).unwrap();
        assert!(prepare(false).is_ok());
    }

    #[test]
    fn two_controllers_do_not_share_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let prepare =
            || Configuration::prepare(directory.path(), Path::new("/bin/true"), None, false);
        let first = prepare().unwrap();
        let error = prepare().unwrap_err();
        assert!(matches!(error, ConfigurationError::InUse(_)), "{error}");
        drop(first);
        assert!(prepare().is_ok());
    }

    #[test]
    fn a_log_that_cannot_be_opened_becomes_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        link_log(&path, Path::new("/dev/null")).unwrap();
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("/dev/null"));
        link_log(&path, &directory.path().join("none/such")).unwrap();
        assert!(fs::symlink_metadata(&path).is_err(), "nginx makes it");
    }
}
