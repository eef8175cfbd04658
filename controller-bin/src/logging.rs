//! Where log lines go, and how many of them there are.

use std::{env, io, os::fd::AsFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tracing_subscriber::{EnvFilter, fmt::time::SystemTime};

use crate::args::{LogFormat, LoggingArgs};

/// Starts to write log lines to standard error. A second call does nothing.
///
/// `-v` counts as in ingress-nginx: from 2 on what changes is told, from 5 on everything. The environment variable
/// `RUST_LOG` says it more finely.
pub fn start(args: &LoggingArgs) {
    append(io::stdout());
    append(io::stderr());
    let given = env::var("RUST_LOG").ok().filter(|given| !given.is_empty());
    let filter = given.unwrap_or_else(|| directives(args.verbosity));
    let filter = EnvFilter::builder().parse_lossy(filter);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(SystemTime)
        .with_writer(io::stderr)
        // Whoever read standard error may have gone. To say there that nothing can be said there would be a panic.
        .log_internal_errors(false)
        .with_target(args.verbosity >= 2);
    // The error is that a program around us has started already.
    let _started = match args.log_format {
        LogFormat::Human => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}

/// What is logged, as `RUST_LOG` would say it. Of libraries that is less, unless more is asked for: faults of which they
/// speak are told by us as well.
fn directives(verbosity: i32) -> String {
    match verbosity {
        ..2 => "info,kube_client::client::builder=off,notify=warn",
        2..5 => {
            "info,controller_bin=debug,ingress_model=debug,lua_sync_client=debug,nginx_render=debug,\
             nginx_ingress_controller=debug,sync_queue=debug,kube_client::client::builder=off,notify=warn"
        }
        5.. => "trace",
    }
    .to_owned()
}

/// Has writes to one of our streams go to its end. Where it is a file, NGINX writes to the same one, and the two would
/// overwrite each other.
fn append(stream: impl AsFd) {
    // Where this does not work there is nothing to append to.
    let _appends =
        fcntl_getfl(&stream).and_then(|flags| fcntl_setfl(&stream, flags | OFlags::APPEND));
}

#[cfg(test)]
mod tests {
    use tracing::{Level, enabled, subscriber::with_default};

    use super::*;

    #[test]
    fn libraries_say_less_than_we_do() {
        for (verbosity, ours, of_libraries) in
            [(0, false, false), (2, true, false), (5, true, true)]
        {
            let filter = EnvFilter::builder().parse_lossy(directives(verbosity));
            let lines = tracing_subscriber::fmt().with_env_filter(filter);
            with_default(lines.finish(), || {
                let said = enabled!(target: "controller_bin::sync", Level::DEBUG);
                assert_eq!(said, ours, "{verbosity}");
                let said = enabled!(target: "hyper_util::client::legacy", Level::DEBUG);
                assert_eq!(said, of_libraries, "{verbosity}");
                assert!(enabled!(target: "kube_runtime", Level::INFO));
            });
        }
    }
}
