//! Which NGINX there is, and what it can do.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Stdio,
};

use nginx_render::{Capabilities, syntax::Directives};
use tokio::process::Command;

/// Where distributions put NGINX, for a PATH without it.
const USUAL: &str = "/usr/sbin/nginx";

/// Why NGINX's program cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It cannot be run.
    #[error("cannot run {} to see what it can do; name another with --nginx-binary", binary.display())]
    Run {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else.
    #[error("{} does not say that it is nginx; name another program with --nginx-binary", binary.display())]
    NotNginx {
        /// The program.
        binary: PathBuf,
    },
}

/// The program: the one that was given, or `nginx` on the PATH, or where distributions put it.
#[must_use]
pub fn find(given: Option<&Path>) -> PathBuf {
    if let Some(given) = given {
        return given.to_owned();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join("nginx"))
        .find(|file| file.is_file())
        .unwrap_or_else(|| USUAL.into())
}

/// What the program can do: what `nginx -V` says, and which modules lie where it looks for them.
///
/// # Errors
///
/// When the program cannot be run, or is no NGINX.
pub async fn probe(binary: &Path) -> Result<Capabilities, ProgramError> {
    let said = version(binary).await?;
    if !said.contains("version:") {
        return Err(ProgramError::NotNginx {
            binary: binary.to_owned(),
        });
    }
    let modules = Capabilities::modules_path(&said).map(|directory| list(&directory));
    let modules = modules.unwrap_or_default();
    Ok(Capabilities::parse(
        &said,
        modules.iter().map(String::as_str),
    ))
}

/// The directives that the program and its modules know. What cannot be read is left out.
///
/// # Errors
///
/// When the program cannot be run.
pub async fn directives(binary: &Path) -> Result<Directives, ProgramError> {
    let directory = Capabilities::modules_path(&version(binary).await?).map(PathBuf::from);
    let modules = directory.iter().flat_map(|directory| {
        let names = list(&directory.to_string_lossy()).into_iter();
        names.map(|name| directory.join(name))
    });
    let programs = [binary.to_owned()].into_iter().chain(modules);
    let programs: Vec<_> = programs.filter_map(|path| fs::read(path).ok()).collect();
    Ok(Directives::of_programs(programs.iter().map(Vec::as_slice)))
}

/// The names of the files in a directory; one that is not there has none.
fn list(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// What `nginx -V` says: version, libraries and how it was built.
///
/// # Errors
///
/// When the program cannot be run.
pub async fn version(binary: &Path) -> Result<String, ProgramError> {
    let output = Command::new(binary)
        .arg("-V")
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|source| ProgramError::Run {
            binary: binary.to_owned(),
            source,
        })?;
    // It writes to standard error; wrappers may do otherwise.
    let text = [output.stderr, output.stdout].concat();
    Ok(String::from_utf8_lossy(&text).into_owned())
}
