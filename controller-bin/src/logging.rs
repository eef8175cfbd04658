//! Where log lines go, and how many of them there are.

use std::{io, os::fd::AsFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tracing::Level;
use tracing_subscriber::{EnvFilter, filter::Directive, fmt::time::SystemTime};

use crate::args::{LogFormat, LoggingArgs};

/// Starts to write log lines to standard error. A second call does nothing.
///
/// `-v` counts as in ingress-nginx: from 2 on what changes is told, from 5 on everything. The environment variable
/// `RUST_LOG` says it more finely.
pub fn start(args: &LoggingArgs) {
    append(io::stdout());
    append(io::stderr());
    let own: Directive = match args.verbosity {
        ..2 => Level::INFO,
        2..5 => Level::DEBUG,
        5.. => Level::TRACE,
    }
    .into();
    let filter = EnvFilter::builder()
        .with_default_directive(own)
        .from_env_lossy();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(SystemTime)
        .with_writer(io::stderr)
        .with_target(args.verbosity >= 2);
    // The error is that a program around us has started already.
    let _started = match args.log_format {
        LogFormat::Human => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}

/// Has writes to one of our streams go to its end. Where it is a file, NGINX writes to the same one, and the two would
/// overwrite each other.
fn append(stream: impl AsFd) {
    // Where this does not work there is nothing to append to.
    let _appends =
        fcntl_getfl(&stream).and_then(|flags| fcntl_setfl(&stream, flags | OFlags::APPEND));
}
