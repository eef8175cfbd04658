#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! * [`channel`] makes a queue; [`Handle`] fills it, [`Queue::run`] empties it.
//! * [`Settings`] holds the [`Rate`], the [`Backoff`] and the time a shutdown may take.
//! * [`Observer`] is told what happens, for metrics.
//! * [`Limiter`] is the same rate limit for other things, such as reloads.

mod backoff;
mod limit;
mod observer;
mod queue;
mod schedule;
mod settings;
mod task;

pub use backoff::Backoff;
pub use limit::{Limiter, Rate, RateError};
pub use observer::Observer;
pub use queue::{Handle, Queue, channel, channel_with_observer};
pub use settings::Settings;
pub use task::{Depth, Drain, Kind, Task};
