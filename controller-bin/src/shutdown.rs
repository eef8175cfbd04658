//! The signals that the controller takes. Most ask for its end, and a second one hurries it.

use std::{fs, io, sync::Arc, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use tracing::{info, warn};

use crate::nginx::process::Process;

/// The signals that ask for the end: SIGTERM, from Kubernetes; SIGINT and SIGQUIT, from a terminal, and SIGHUP when it is
/// closed, unless the controller was started so that it does not mind that (nohup(1)).
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Option<Signal>,
    hurried: bool,
}

impl Signals {
    /// Takes the signals from now on; they do not end the process any more.
    ///
    /// # Errors
    ///
    /// When the system does not let us.
    pub fn listen() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let minds = !is_ignored(&status, SignalKind::hangup());
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: minds.then(|| signal(SignalKind::hangup())).transpose()?,
            hurried: false,
        })
    }

    /// Waits for the first signal.
    pub async fn asked(&mut self) {
        let name = self.next().await;
        info!(signal = name, "shutting down");
    }

    /// Waits for that time, or until a second signal says that there is none.
    pub async fn grace(&mut self, period: Duration) {
        if self.hurried || period.is_zero() {
            return;
        }
        tokio::select! {
            () = sleep(period) => {}
            () = self.hurry() => {}
        }
    }

    /// Waits for a second signal.
    pub async fn hurry(&mut self) {
        if !self.hurried {
            let name = self.next().await;
            warn!(signal = name, "shutting down at once");
            self.hurried = true;
        }
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.quit.recv() => "SIGQUIT",
            () = received(self.hang_up.as_mut()) => "SIGHUP",
        }
    }
}

/// Has NGINX open its logs anew whenever SIGUSR1 comes, as one does after log files were moved away (NGINX docs:
/// controlling nginx).
///
/// # Errors
///
/// When the system does not let us take the signal.
pub fn reopen_logs(process: Arc<Process>) -> io::Result<impl Future<Output = ()>> {
    let mut user = signal(SignalKind::user_defined1())?;
    Ok(async move {
        while user.recv().await.is_some() {
            match process.reopen_logs().await {
                Ok(()) => info!(signal = "SIGUSR1", "nginx opens its logs anew"),
                Err(error) => warn!(%error, "cannot have nginx open its logs anew"),
            }
        }
    })
}

/// Waits for a signal, for ever if it is not taken.
async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => {
            let _received = signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether a process ignores a signal, as its status in /proc says (proc(5), `SigIgn`: a bit a signal, in hexadecimal).
fn is_ignored(status: &str, signal: SignalKind) -> bool {
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or_default() >> (signal.as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_are_ignored_are_told_from_the_others() {
        let status = "Name:\tx\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, SignalKind::hangup()));
        assert!(is_ignored(status, SignalKind::pipe()));
        assert!(!is_ignored(status, SignalKind::interrupt()));
        assert!(!is_ignored("", SignalKind::hangup()));
    }
}
