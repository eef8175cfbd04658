//! What the queue hands out: the task a sync is given, and what the queue says about itself.

use std::time::Duration;

use tokio::time::Instant;

/// Whether an entry may be dropped without a run of its own.
///
/// Must-run entries are served before skippable ones: the sync they need anyway often makes the
/// skippable ones unnecessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Gets a run of its own, and further ones until it succeeds.
    MustRun,
    /// Dropped when a sync that began after the latest enqueue has succeeded.
    Skippable,
}

/// One run of the sync: why it runs, and what has happened to that cause so far.
#[derive(Debug, Clone)]
pub struct Task<K> {
    /// The key that was enqueued.
    pub key: K,
    /// 1 on the first run, one more after each failure since the last success of this key.
    pub attempt: u32,
    /// Whether the entry could have been skipped; a retry never could.
    pub kind: Kind,
    /// When the oldest enqueue that this run answers was made.
    pub enqueued_at: Instant,
    /// Time between [`enqueued_at`](Self::enqueued_at) and the start of this run, backoff and rate
    /// limit included.
    pub waited: Duration,
    /// The run's place in the order of all enqueues and starts.
    pub(crate) started: u64,
}

/// How many entries are in the queue; the one that is running is not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Entries that run as soon as the worker and the rate limit allow.
    pub ready: usize,
    /// Entries that have failed and wait for their backoff to pass.
    pub delayed: usize,
}

/// How [`Queue::run`](crate::Queue::run) ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Drain {
    /// Keys whose last try, made after the close, failed.
    pub failed: usize,
    /// Syncs that the deadline prevented: entries still queued, and the run that it cut short.
    pub unfinished: usize,
}

impl Drain {
    /// Whether everything that was enqueued has been synced.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self == Self::default()
    }
}
