//! What ends the controller, and in which order its parts end.

use std::{sync::Arc, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinSet;
use tracing::info;

use crate::{
    args::Args, dataplane::DataPlane, nginx::process::Process, publish::Publisher,
    shutdown::Signals,
};

/// How much longer than its workers NGINX may take to end.
const QUIT_MARGIN: Duration = Duration::from_secs(5);

/// Ends NGINX when the controller goes down by a fault: nobody would look after it.
pub(super) struct EndedWithUs(pub(super) Arc<Process>);

impl Drop for EndedWithUs {
    fn drop(&mut self) {
        let pid = self.0.pid().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It fails when NGINX has just ended.
            let _gone = kill_process(pid, Signal::TERM);
        }
    }
}

impl Args {
    /// Waits between the end of NGINX and our own.
    pub(super) async fn rest(&self, signals: &mut Signals) {
        let rest = self.nginx.post_shutdown_grace_period();
        if !rest.is_zero() {
            info!(?rest, "waiting, as --post-shutdown-grace-period says");
        }
        signals.grace(rest).await;
    }
}

/// Waits until a queue ends although it was not closed, or another task panics.
pub(super) async fn broken_off(queues: &mut JoinSet<()>, tasks: &mut JoinSet<()>) {
    loop {
        tokio::select! {
            _ended = queues.join_next() => return,
            Some(ended) = tasks.join_next() => {
                if ended.is_err_and(|error| error.is_panic()) {
                    return;
                }
            }
        }
    }
}

/// Waits until the queues have ended.
pub(super) async fn drain(queues: &mut JoinSet<()>, signals: &mut Signals) {
    tokio::select! {
        () = async { while queues.join_next().await.is_some() {} } => {}
        () = signals.hurry() => {}
    }
}

async fn end_nginx(plane: &DataPlane, signals: &mut Signals) {
    let loaded = plane.loaded();
    let timeout = loaded.map_or(Duration::ZERO, |files| {
        let config = &files.outcome.model.layout.config;
        config.worker_shutdown_timeout.duration()
    });
    let within = timeout + QUIT_MARGIN;
    let process = plane.process();
    tokio::select! {
        () = process.quit(within) => {}
        () = signals.hurry() => process.quit(Duration::ZERO).await,
    }
}

/// Ends NGINX, and waits until the API server is told what is left to be told.
pub(super) async fn finish(plane: &DataPlane, publisher: Option<Publisher>, signals: &mut Signals) {
    end_nginx(plane, signals).await;
    let Some(publisher) = publisher else { return };
    tokio::select! {
        () = publisher.finish() => {}
        () = signals.hurry() => {}
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_breaks_work_off() {
        let mut queues = JoinSet::new();
        queues.spawn(pending());
        let mut tasks = JoinSet::new();
        tasks.spawn(async {});
        tasks.spawn(async { panic!("on purpose") });
        broken_off(&mut queues, &mut tasks).await;
    }

    #[tokio::test]
    async fn tasks_that_end_break_nothing_off() {
        let mut queues = JoinSet::new();
        queues.spawn(pending());
        let mut tasks = JoinSet::new();
        let (said, heard) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn(async {
            let _dropped = said;
        });
        assert!(heard.await.is_err());
        assert_eq!(broken_off(&mut queues, &mut tasks).now_or_never(), None);
    }
}
