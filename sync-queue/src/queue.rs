//! The two ends of the queue: handles that fill it, and the worker that empties it.

use std::fmt::{self, Debug, Display};
use std::future::{pending, poll_fn};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::backoff::Delays;
use crate::schedule::{Next, Schedule};
use crate::{Depth, Drain, Kind, Limiter, Observer, Settings, Task};

/// Makes a queue: a [`Handle`] to fill it and a [`Queue`] to run.
#[must_use]
pub fn channel<K: Eq + Hash + Clone>(settings: Settings) -> (Handle<K>, Queue<K>) {
    channel_with_observer(settings, ())
}

/// Makes a queue whose `observer` is told what happens in it.
#[must_use]
pub fn channel_with_observer<K: Eq + Hash + Clone>(
    settings: Settings,
    observer: impl Observer<K> + 'static,
) -> (Handle<K>, Queue<K>) {
    let shared = Arc::new(Shared {
        schedule: Mutex::new(Schedule::new()),
        observer: Box::new(observer),
        work: Notify::new(),
        closing: Notify::new(),
    });
    let queue = Queue {
        shared: Arc::clone(&shared),
        limiter: Limiter::new(settings.rate),
        delays: Delays::new(settings.retry),
        shutdown_within: settings.shutdown_within,
        work: settings.work,
    };
    let open = Arc::new(Open { shared });
    (Handle { open }, queue)
}

/// Fills a queue. Clones fill the same queue; dropping the last of them closes it.
pub struct Handle<K: Eq + Hash + Clone> {
    open: Arc<Open<K>>,
}

impl<K: Eq + Hash + Clone> Handle<K> {
    /// Queues a key for a sync of its own, which is retried until it succeeds.
    ///
    /// A key that is queued already is not queued twice. Never waits. Returns whether the key was
    /// accepted: a closed queue, and one whose [`Queue`] is gone, accepts nothing.
    pub fn enqueue(&self, key: K) -> bool {
        self.enqueue_as(key, Kind::MustRun)
    }

    /// Queues a key for a sync that may be skipped: the entry is dropped when a sync for any key
    /// that began after this call succeeds.
    ///
    /// Otherwise like [`enqueue`](Self::enqueue). A key that is queued as must-run remains so.
    pub fn enqueue_skippable(&self, key: K) -> bool {
        self.enqueue_as(key, Kind::Skippable)
    }

    /// Closes the queue for all handles: what is queued still runs, then [`Queue::run`] returns.
    pub fn close(&self) {
        self.open.shared.close();
    }

    /// Whether the queue accepts nothing more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.open.shared.schedule().closed_at().is_some()
    }

    /// How many entries are queued now.
    #[must_use]
    pub fn depth(&self) -> Depth {
        self.open.shared.schedule().depth()
    }

    fn enqueue_as(&self, key: K, kind: Kind) -> bool {
        let shared = &self.open.shared;
        let mut schedule = shared.schedule();
        if schedule.closed_at().is_some() {
            return false;
        }
        if schedule.merge(&key, kind) {
            shared.observer.merged(&key, kind);
        } else {
            shared.observer.enqueued(&key, kind);
            schedule.insert(key, kind, Instant::now());
        }
        shared.observer.depth(schedule.depth());
        drop(schedule);
        shared.work.notify_one();
        true
    }
}

impl<K: Eq + Hash + Clone> Clone for Handle<K> {
    fn clone(&self) -> Self {
        Self {
            open: Arc::clone(&self.open),
        }
    }
}

impl<K: Eq + Hash + Clone> Debug for Handle<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("depth", &self.depth())
            .finish_non_exhaustive()
    }
}

/// The end of a queue that runs the syncs. Dropping it closes the queue and forgets what is in it.
pub struct Queue<K: Eq + Hash + Clone> {
    shared: Arc<Shared<K>>,
    limiter: Limiter,
    delays: Delays,
    shutdown_within: Option<Duration>,
    /// What one piece of work is called.
    work: &'static str,
}

impl<K: Eq + Hash + Clone + Debug> Queue<K> {
    /// Runs `sync` for what is enqueued, one at a time, until the queue is closed and drained.
    ///
    /// A sync that returns an error is retried; the error is logged as a warning. After the close
    /// each key that is queued, delayed by its backoff or running without success gets one last
    /// try, without backoff but within the rate limit. When [`Settings::shutdown_within`] has
    /// passed since the close, nothing more starts and a running sync is cut short: its future is
    /// dropped at its current `await`.
    ///
    /// # Panics
    ///
    /// A panic of `sync` is not caught: it unwinds through this call, and the queue is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cuts a running sync short and closes the queue.
    pub async fn run<E: Display>(
        mut self,
        mut sync: impl AsyncFnMut(Task<K>) -> Result<(), E>,
    ) -> Drain {
        let shared = Arc::clone(&self.shared);
        tokio::select! {
            biased;
            () = shared.deadline(self.shutdown_within) => {}
            () = self.work(&mut sync) => {}
        }
        let drain = shared.abandon();
        let Drain {
            failed, unfinished, ..
        } = drain;
        if failed > 0 {
            tracing::warn!(
                failed,
                unfinished,
                "the queue was closed before every sync succeeded"
            );
        } else if unfinished > 0 {
            tracing::debug!(
                unfinished,
                "the queue was closed before every sync was made"
            );
        }
        drain
    }

    async fn work<E: Display>(&mut self, sync: &mut impl AsyncFnMut(Task<K>) -> Result<(), E>) {
        loop {
            let next = self.shared.schedule().next(Instant::now());
            match next {
                Next::Run => {
                    // The entry stays queued during the wait, so that what arrives meanwhile is
                    // merged into it.
                    self.limiter.ready().await;
                    self.run_one(sync).await;
                    // A sync that never waits must not keep the shutdown deadline from being looked
                    // at.
                    give_way().await;
                }
                Next::WaitUntil(due) => tokio::select! {
                    () = self.shared.work.notified() => {}
                    () = sleep_until(due) => {}
                },
                Next::Wait => self.shared.work.notified().await,
                Next::Stop => return,
            }
        }
    }

    async fn run_one<E: Display>(&mut self, sync: &mut impl AsyncFnMut(Task<K>) -> Result<(), E>) {
        let Some(task) = self.shared.begin() else {
            return;
        };
        let began = Instant::now();
        match sync(task.clone()).await {
            Ok(()) => self.shared.succeeded(&task, began.elapsed()),
            Err(error) => {
                let next = self.limiter.next();
                let took = began.elapsed();
                let retry_in = self.shared.failed(&task, took, &mut self.delays, next);
                let Task { key, attempt, .. } = task;
                // The alternate form shows the whole chain of error types that have one.
                let retry_in = retry_in.map(tracing::field::debug);
                tracing::warn!(?key, attempt, retry_in, "{} failed: {error:#}", self.work);
            }
        }
    }
}

impl<K: Eq + Hash + Clone> Drop for Queue<K> {
    fn drop(&mut self) {
        let _ = self.shared.abandon();
    }
}

impl<K: Eq + Hash + Clone> Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("depth", &self.shared.schedule().depth())
            .field("limiter", &self.limiter)
            .field("shutdown_within", &self.shutdown_within)
            .finish_non_exhaustive()
    }
}

/// What all clones of a handle own together: while it lives the queue is open.
struct Open<K: Eq + Hash + Clone> {
    shared: Arc<Shared<K>>,
}

impl<K: Eq + Hash + Clone> Drop for Open<K> {
    fn drop(&mut self) {
        self.shared.close();
    }
}

struct Shared<K> {
    schedule: Mutex<Schedule<K>>,
    observer: Box<dyn Observer<K>>,
    /// Wakes the worker. It is the only one to wait, so a single stored permit is enough.
    work: Notify,
    /// Wakes the wait for the close.
    closing: Notify,
}

impl<K: Eq + Hash + Clone> Shared<K> {
    fn schedule(&self) -> MutexGuard<'_, Schedule<K>> {
        // Only a panic of an observer or of a key's `Eq` or `Hash` can poison the lock. Losing
        // events over it would be worse than what it may have left undone.
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Option<Task<K>> {
        let mut schedule = self.schedule();
        let task = schedule.begin(Instant::now())?;
        self.observer.started(&task);
        self.observer.depth(schedule.depth());
        Some(task)
    }

    fn succeeded(&self, task: &Task<K>, took: Duration) {
        let mut schedule = self.schedule();
        let covered = schedule.succeeded(task);
        self.observer.succeeded(task, took);
        for key in &covered {
            self.observer.skipped(key);
        }
        self.observer.depth(schedule.depth());
    }

    /// Answers in how long it is tried again: not before the backoff has passed, nor before the rate limit gives the
    /// `next` permit.
    fn failed(
        &self,
        task: &Task<K>,
        took: Duration,
        delays: &mut Delays,
        next: Instant,
    ) -> Option<Duration> {
        let now = Instant::now();
        let mut schedule = self.schedule();
        let retry_in = schedule
            .failed(task, now, delays)
            .map(|at| at.max(next).saturating_duration_since(now));
        self.observer.failed(task, took, retry_in);
        self.observer.depth(schedule.depth());
        retry_in
    }

    fn close(&self) {
        let mut schedule = self.schedule();
        schedule.close(Instant::now());
        self.observer.depth(schedule.depth());
        drop(schedule);
        self.work.notify_one();
        self.closing.notify_one();
    }

    fn abandon(&self) -> Drain {
        let mut schedule = self.schedule();
        let drain = schedule.abandon(Instant::now());
        self.observer.depth(schedule.depth());
        drain
    }

    /// Ends `within` after the close, or never.
    async fn deadline(&self, within: Option<Duration>) {
        let closed_at = loop {
            let closed_at = self.schedule().closed_at();
            match closed_at {
                Some(closed_at) => break closed_at,
                None => self.closing.notified().await,
            }
        };
        match within.and_then(|within| closed_at.checked_add(within)) {
            Some(deadline) => sleep_until(deadline).await,
            None => pending().await,
        }
    }
}

/// Lets everything else that shares this task or thread be polled once.
async fn give_way() {
    let mut polled = false;
    poll_fn(|context| {
        if polled {
            return Poll::Ready(());
        }
        polled = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
