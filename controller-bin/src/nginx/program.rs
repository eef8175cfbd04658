//! Which NGINX there is, and what it can do.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::Stdio,
};

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

/// What `nginx -V` says: version, libraries and how it was built.
///
/// # Errors
///
/// When the program cannot be run.
pub async fn build(binary: &Path) -> Result<String, ProgramError> {
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
