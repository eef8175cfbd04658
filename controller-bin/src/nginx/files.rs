//! Files that are always whole: each is written next to its place, made durable, and renamed into it.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner only.
    Private,
    /// Its owner and that group.
    Group(u32),
    /// Everybody.
    Public,
}

impl Access {
    fn mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Group(_) => 0o640,
            Self::Public => 0o644,
        }
    }
}

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} {}", path.display())]
pub struct WriteError {
    act: &'static str,
    path: PathBuf,
    source: io::Error,
}

fn failed(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    move |source| WriteError {
        act,
        path: path.to_owned(),
        source,
    }
}

/// Makes the file hold `content`, unless it does already. Answers whether it was written.
///
/// # Errors
///
/// When the file, or the directory it lies in, cannot be written; the file is as it was then.
pub fn write(path: &Path, content: &[u8], access: Access) -> Result<bool, WriteError> {
    if holds(path, content, access) {
        return Ok(false);
    }
    let directory = path.parent().unwrap_or_else(|| Path::new("/"));
    fs::create_dir_all(directory).map_err(failed("create the directory", directory))?;
    let unfinished = unfinished(path);
    write_durably(&unfinished, content, access).map_err(failed("write", &unfinished))?;
    fs::rename(&unfinished, path).map_err(failed("put in place", path))?;
    // The rename has happened; only after this does it outlive a power failure.
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed("make durable", directory))?;
    Ok(true)
}

/// Removes a file; one that is not there is fine.
///
/// # Errors
///
/// When the file is there and cannot be removed.
pub fn remove(path: &Path) -> Result<(), WriteError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The name that a file has while it is written.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    path.with_file_name(name)
}

fn holds(path: &Path, content: &[u8], access: Access) -> bool {
    let allows = |metadata: fs::Metadata| {
        let same_group = match access {
            Access::Group(group) => metadata.gid() == group,
            Access::Private | Access::Public => true,
        };
        same_group && metadata.permissions().mode() & 0o777 == access.mode()
    };
    fs::metadata(path).is_ok_and(allows) && fs::read(path).is_ok_and(|present| present == content)
}

fn write_durably(path: &Path, content: &[u8], access: Access) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(access.mode())
        .open(path)?;
    // The mode above is cut by the umask, and does not touch a file that a crash left.
    if let Access::Group(group) = access {
        fchown(&file, None, Some(group))?;
    }
    file.set_permissions(Permissions::from_mode(access.mode()))?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_written_only_when_it_differs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("below/a.conf");
        assert!(write(&path, b"one", Access::Public).unwrap());
        assert!(!write(&path, b"one", Access::Public).unwrap());
        assert!(write(&path, b"two", Access::Public).unwrap());
        assert_eq!(
            (fs::read(&path).unwrap().as_slice(), mode(&path)),
            (&b"two"[..], 0o644)
        );
        let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn private_files_are_private_whatever_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        write(&path, b"secret", Access::Public).unwrap();
        assert!(write(&path, b"secret", Access::Private).unwrap());
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_leftover_of_a_crash_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        fs::write(
            unfinished(&path),
            "a longer leftover, readable by everybody",
        )
        .unwrap();
        write(&path, b"k", Access::Private).unwrap();
        assert_eq!(
            (fs::read(&path).unwrap().as_slice(), mode(&path)),
            (&b"k"[..], 0o600)
        );
    }

    #[test]
    fn an_error_names_act_and_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("occupied");
        fs::create_dir(&path).unwrap();
        let error = write(&path, b"", Access::Public).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot put in place {}", path.display())
        );
    }

    #[test]
    fn removing_what_is_not_there_is_fine() {
        let directory = tempfile::tempdir().unwrap();
        assert!(remove(&directory.path().join("none")).is_ok());
        assert!(remove(directory.path()).is_err());
    }
}
