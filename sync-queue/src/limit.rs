//! The rate limit: `governor`'s algorithm driven by tokio's clock.

use std::fmt;
use std::num::NonZeroU16;
use std::ops::Add;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

/// The longest period of a [`Rate`]. With a burst of 16 bits no sum of periods can overflow.
const LONGEST_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// How often something may happen: once a period, and after a quiet time up to a burst at once.
///
/// ```
/// use std::time::Duration;
/// use sync_queue::Rate;
///
/// assert_eq!(Rate::per_second(0.25)?, Rate::every(Duration::from_secs(4))?);
/// # Ok::<(), sync_queue::RateError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// `None` when there is no limit.
    period: Option<Duration>,
    burst: NonZeroU16,
}

impl Rate {
    /// No limit at all.
    pub const UNLIMITED: Self = Self {
        period: None,
        burst: NonZeroU16::MIN,
    };

    /// Once a period, with a burst of one.
    ///
    /// # Errors
    ///
    /// [`RateError::Period`] when the period is zero or longer than a day.
    pub fn every(period: Duration) -> Result<Self, RateError> {
        if period.is_zero() || period > LONGEST_PERIOD {
            return Err(RateError::Period { period });
        }
        Ok(Self {
            period: Some(period),
            burst: NonZeroU16::MIN,
        })
    }

    /// So many times a second, with a burst of one; fractions are allowed.
    ///
    /// # Errors
    ///
    /// [`RateError::PerSecond`] when the number is not above zero, not finite, or its period is
    /// less than a nanosecond or longer than a day.
    pub fn per_second(times: f64) -> Result<Self, RateError> {
        // The error of the conversion would only speak of a duration that nobody asked for.
        Duration::try_from_secs_f64(times.recip())
            .ok()
            .and_then(|period| Self::every(period).ok())
            .ok_or(RateError::PerSecond { times })
    }

    /// The same rate, with up to `burst` permits at once after a quiet time.
    #[must_use]
    pub fn with_burst(mut self, burst: NonZeroU16) -> Self {
        self.burst = burst;
        self
    }
}

/// Why a [`Rate`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum RateError {
    /// Not a usable period.
    #[error("rate limit period {period:?} is not above zero and at most a day")]
    Period {
        /// The refused period.
        period: Duration,
    },
    /// Not a usable number of times a second.
    #[error(
        "rate limit of {times} per second is not a positive number with a period of at most a day"
    )]
    PerSecond {
        /// The refused number.
        times: f64,
    },
}

/// Gives out permits at a [`Rate`], measured by tokio's clock.
///
/// The first permit after a quiet time is there at once; the limit applies to those that follow.
/// Waits are rounded up to the millisecond of tokio's timer.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), sync_queue::RateError> {
/// use std::time::Duration;
/// use sync_queue::{Limiter, Rate};
/// use tokio::time::Instant;
///
/// let reloads = Limiter::new(Rate::every(Duration::from_millis(20))?);
/// let begun = Instant::now();
/// reloads.ready().await; // at once
/// reloads.ready().await; // 20 ms later
/// assert!(begun.elapsed() >= Duration::from_millis(20));
/// # Ok(())
/// # }
/// ```
pub struct Limiter {
    rate: Rate,
    permits: Option<Permits>,
    /// When all permits of a burst would be there again, given those that were taken.
    filled_at: Mutex<Option<Instant>>,
}

type Permits = RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Moment>>;

impl Limiter {
    /// A limiter that has been quiet so far.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        let permits = rate
            .period
            .and_then(Quota::with_period)
            .map(|quota| quota.allow_burst(rate.burst.into()))
            .map(|quota| RateLimiter::direct_with_clock(quota, TokioClock));
        Self {
            rate,
            permits,
            filled_at: Mutex::default(),
        }
    }

    /// Waits for a permit and takes it. Dropping the future before it is ready takes none.
    ///
    /// Any number of tasks may wait at once; which of them gets the next permit is not defined.
    pub async fn ready(&self) {
        while let Err(next) = self.take() {
            tokio::time::sleep_until(next).await;
        }
    }

    /// Takes a permit if there is one now; if not, returns when to ask again.
    ///
    /// # Errors
    ///
    /// The earliest time at which a permit can be had.
    pub fn take(&self) -> Result<(), Instant> {
        if let Some(permits) = &self.permits {
            permits
                .check()
                .map_err(|not_until| not_until.earliest_possible().0)?;
            self.note_taken();
        }
        Ok(())
    }

    /// The earliest time at which a permit can be had, if nobody takes one before. None is taken.
    #[must_use]
    pub fn next(&self) -> Instant {
        let now = Instant::now();
        let filled_at = *self.filled_at();
        let Some((filled_at, period)) = filled_at.zip(self.rate.period) else {
            return now;
        };
        let others = u32::from(self.rate.burst.get()) - 1;
        let next = filled_at.checked_sub(period.saturating_mul(others));
        next.map_or(now, |next| next.max(now))
    }

    fn note_taken(&self) {
        let now = Instant::now();
        let mut filled_at = self.filled_at();
        let from = filled_at.map_or(now, |filled_at| filled_at.max(now));
        *filled_at = self.rate.period.and_then(|period| from.checked_add(period));
    }

    fn filled_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.filled_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter")
            .field("rate", &self.rate)
            .finish_non_exhaustive()
    }
}

/// Tokio's clock as `governor` wants it, so that paused time governs the limit as well.
#[derive(Debug, Clone, Copy)]
struct TokioClock;

impl Clock for TokioClock {
    type Instant = Moment;

    fn now(&self) -> Moment {
        Moment(Instant::now())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(Instant);

impl Add<Nanos> for Moment {
    type Output = Self;

    fn add(self, nanos: Nanos) -> Self {
        Self(self.0.checked_add(nanos.into()).unwrap_or(self.0))
    }
}

impl Reference for Moment {
    fn duration_since(&self, earlier: Self) -> Nanos {
        let elapsed = self.0.saturating_duration_since(earlier.0);
        u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).into()
    }

    fn saturating_sub(&self, duration: Nanos) -> Self {
        Self(self.0.checked_sub(duration.into()).unwrap_or(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn burst(size: u16) -> NonZeroU16 {
        NonZeroU16::new(size).unwrap()
    }

    /// When each of `permits` requests made one after the other was granted.
    async fn grants(limiter: &Limiter, permits: usize) -> Vec<u128> {
        let begun = Instant::now();
        let mut grants = Vec::new();
        for _ in 0..permits {
            limiter.ready().await;
            grants.push(begun.elapsed().as_millis());
        }
        grants
    }

    #[tokio::test(start_paused = true)]
    async fn permits_come_at_the_rate_after_the_first_burst() {
        let every_second = Rate::every(SECOND).unwrap();
        for (rate, expected) in [
            (Rate::UNLIMITED, [0, 0, 0, 0]),
            (every_second, [0, 1_000, 2_000, 3_000]),
            (every_second.with_burst(burst(3)), [0, 0, 0, 1_000]),
            // 1 / 0.3 s, rounded up to the timer's millisecond.
            (Rate::per_second(0.3).unwrap(), [0, 3_334, 6_668, 10_002]),
        ] {
            assert_eq!(grants(&Limiter::new(rate), 4).await, expected, "{rate:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_time_fills_the_burst_but_no_more() {
        let limiter = Limiter::new(Rate::every(SECOND).unwrap().with_burst(burst(2)));
        assert_eq!(grants(&limiter, 3).await, [0, 0, 1_000]);
        tokio::time::advance(SECOND * 60).await;
        assert_eq!(grants(&limiter, 4).await, [0, 0, 1_000, 2_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_given_up_takes_no_permit() {
        let limiter = Limiter::new(Rate::every(SECOND).unwrap());
        limiter.ready().await;
        let begun = Instant::now();
        for _ in 0..5 {
            let wait = tokio::time::timeout(Duration::from_millis(100), limiter.ready());
            assert!(wait.await.is_err());
        }
        limiter.ready().await;
        assert_eq!(begun.elapsed(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_names_the_next_permit() {
        let limiter = Limiter::new(Rate::every(SECOND).unwrap());
        let begun = Instant::now();
        assert_eq!(limiter.take(), Ok(()));
        assert_eq!(limiter.take(), Err(begun + SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_permit_is_known_without_taking_it() {
        let begun = Instant::now();
        assert_eq!(Limiter::new(Rate::UNLIMITED).next(), begun);
        let limiter = Limiter::new(Rate::every(SECOND).unwrap().with_burst(burst(2)));
        for (taken, next) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)] {
            if taken > 0 {
                limiter.ready().await;
            }
            assert_eq!(
                limiter.next().duration_since(begun).as_secs(),
                next,
                "{taken}"
            );
        }
        tokio::time::advance(SECOND * 60).await;
        assert_eq!(limiter.next(), Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_rate_with_the_largest_burst_does_not_overflow() {
        let limiter = Limiter::new(
            Rate::every(LONGEST_PERIOD)
                .unwrap()
                .with_burst(NonZeroU16::MAX),
        );
        let permits = usize::from(u16::MAX) + 1;
        let last = grants(&limiter, permits).await.pop();
        assert_eq!(last, Some(LONGEST_PERIOD.as_millis()));
    }

    #[test]
    fn unusable_rates_are_refused() {
        for times in [
            0.0,
            -0.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e-9,
            1e-300,
            1e12,
        ] {
            assert!(
                matches!(Rate::per_second(times), Err(RateError::PerSecond { .. })),
                "{times}"
            );
        }
        for period in [Duration::ZERO, LONGEST_PERIOD + SECOND, Duration::MAX] {
            assert_eq!(Rate::every(period), Err(RateError::Period { period }));
        }
    }
}
