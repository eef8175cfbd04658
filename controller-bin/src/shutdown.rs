//! The end of the controller: asked for by a signal, hurried by a second one.

use std::{io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};
use tracing::{info, warn};

/// The signals that ask for the end: SIGTERM, from Kubernetes, and SIGINT, from a terminal.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hurried: bool,
}

impl Signals {
    /// Takes the signals from now on; they do not end the process any more.
    ///
    /// # Errors
    ///
    /// When the system does not let us.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
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
        }
    }
}
