//! Trying a configuration before it is used (`nginx -t`).

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

/// Why a configuration is not to be used.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The test could not be made.
    #[error("cannot run {} to test a configuration", binary.display())]
    Run {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// NGINX does not take it.
    #[error("nginx refuses the configuration: {}", .0.reason)]
    Refused(Refusal),
}

/// What NGINX says about a configuration that it does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub reason: String,
    /// The line that it names, from 1, if it names one.
    pub place: Option<(PathBuf, usize)>,
    /// All that it said.
    pub output: String,
}

impl Refusal {
    /// One that names no line.
    pub(crate) fn of(reason: String) -> Self {
        Self {
            output: reason.clone(),
            reason,
            place: None,
        }
    }
}

/// Has NGINX read a configuration without using it.
///
/// # Errors
///
/// [`TestError::Refused`] when NGINX does not take it.
pub async fn test(binary: &Path, configuration: &Path) -> Result<(), TestError> {
    let output = Command::new(binary)
        .args(["-t", "-q", "-c"])
        .arg(configuration)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .process_group(0)
        .output()
        .await
        .map_err(|source| TestError::Run {
            binary: binary.to_owned(),
            source,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(TestError::Refused(refusal(said.trim())))
}

/// Reads what NGINX says: the line marked `[emerg]` tells the reason, and its end mostly the place.
pub(crate) fn refusal(output: &str) -> Refusal {
    const SIGN: &str = "[emerg] ";
    let line = output.lines().find_map(|line| line.split_once(SIGN));
    let message = line.map_or(output, |(_, message)| without_process(message));
    let place = message.rsplit_once(" in ").and_then(|(reason, place)| {
        let (file, line) = place.rsplit_once(':')?;
        let place = (PathBuf::from(file), line.parse().ok()?);
        file.starts_with('/').then_some((reason, place))
    });
    let (reason, place) = match place {
        Some((reason, place)) => (reason, Some(place)),
        None => (message, None),
    };
    let reason = match reason.trim() {
        "" => "it says nothing",
        reason => reason,
    };
    Refusal {
        reason: reason.to_owned(),
        place,
        output: output.to_owned(),
    }
}

/// The message without the `12#12: ` that log files have before it.
fn without_process(message: &str) -> &str {
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    message
        .split_once(": ")
        .filter(|(process, _)| {
            process
                .split_once('#')
                .is_some_and(|(pid, tid)| number(pid) && number(tid))
        })
        .map_or(message, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_and_place_are_read_from_what_nginx_says() {
        for (output, reason, place) in [
            (
                "nginx: [emerg] unknown directive \"foo\" in /x/nginx.conf:12\nnginx: configuration file test failed",
                "unknown directive \"foo\"",
                Some(("/x/nginx.conf", 12)),
            ),
            (
                "nginx: [warn] the \"user\" directive makes sense only if in /x/nginx.conf:1\n\
                 nginx: [emerg] pcre2_compile() failed: missing ) in \"^/(a\" at \"\" in /x/nginx.conf:7",
                "pcre2_compile() failed: missing ) in \"^/(a\" at \"\"",
                Some(("/x/nginx.conf", 7)),
            ),
            (
                "nginx: [emerg] could not build map_hash, you should increase map_hash_bucket_size: 64",
                "could not build map_hash, you should increase map_hash_bucket_size: 64",
                None,
            ),
            (
                "2026/11/30 06:23:00 [emerg] 51#51: unknown \"x\" variable\nnginx: [emerg] unknown \"x\" variable",
                "unknown \"x\" variable",
                None,
            ),
            ("killed", "killed", None),
            ("", "it says nothing", None),
        ] {
            let read = refusal(output);
            assert_eq!(read.reason, reason);
            assert_eq!(
                read.place,
                place.map(|(file, line)| (PathBuf::from(file), line))
            );
        }
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_no_refusal() {
        let error = test(Path::new("/nowhere/nginx"), Path::new("/x"))
            .await
            .unwrap_err();
        assert!(matches!(error, TestError::Run { .. }), "{error}");
    }
}
