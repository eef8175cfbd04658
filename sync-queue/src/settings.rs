//! The settings of a queue.

use std::time::Duration;

use crate::{Backoff, Rate};

/// How fast a queue runs, how it retries and how it ends.
///
/// ```
/// use std::time::Duration;
/// use sync_queue::{Rate, Settings};
///
/// let settings = Settings {
///     rate: Rate::per_second(0.3)?,
///     shutdown_within: Some(Duration::from_secs(10)),
///     ..Settings::default()
/// };
/// # let _ = settings;
/// # Ok::<(), sync_queue::RateError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    /// What its log lines call one piece of work, in the singular. Default: `sync`.
    pub work: &'static str,
    /// How often a sync may start. Default: [`Rate::UNLIMITED`].
    pub rate: Rate,
    /// How long a failed key waits for its next try.
    pub retry: Backoff,
    /// How long after its close the queue may go on. Then nothing more starts, and the future of a
    /// sync that is still running is dropped. `None` waits for as long as it takes. Default: 30 s.
    pub shutdown_within: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            work: "sync",
            rate: Rate::UNLIMITED,
            retry: Backoff::default(),
            shutdown_within: Some(Duration::from_secs(30)),
        }
    }
}
