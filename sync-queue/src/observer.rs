//! Hooks for metrics.

use std::time::Duration;

use crate::{Depth, Kind, Task};

/// Is told what happens in a queue; every method does nothing unless overridden.
///
/// The methods are called with the queue's lock held, so they are told everything in the order in
/// which it happened and a gauge set in [`depth`](Self::depth) is never left at an old value. They
/// must therefore be quick, and must not call back into the queue: that would deadlock. `()` is the
/// observer that ignores everything.
pub trait Observer<K>: Send + Sync {
    /// A key that was not queued has been.
    fn enqueued(&self, key: &K, kind: Kind) {
        let _ = (key, kind);
    }

    /// A key was enqueued while it was queued already, and `kind` is that of the new enqueue.
    fn merged(&self, key: &K, kind: Kind) {
        let _ = (key, kind);
    }

    /// A skippable entry was dropped, since a sync that began after it was enqueued has succeeded.
    fn skipped(&self, key: &K) {
        let _ = key;
    }

    /// A run begins; [`Task::waited`] says how long it was queued.
    fn started(&self, task: &Task<K>) {
        let _ = task;
    }

    /// A run succeeded after `took`.
    fn succeeded(&self, task: &Task<K>, took: Duration) {
        let _ = (task, took);
    }

    /// A run failed after `took`. The next one is due in `retry_in`, as backoff and rate limit have it;
    /// `None` when the queue is closed and gives the key up.
    fn failed(&self, task: &Task<K>, took: Duration, retry_in: Option<Duration>) {
        let _ = (task, took, retry_in);
    }

    /// The number of queued entries has changed or may have.
    fn depth(&self, depth: Depth) {
        let _ = depth;
    }
}

impl<K> Observer<K> for () {}
