//! Trying a request again after failures that may pass.

use std::{
    future::Future,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::error::Error;

/// When and how often a failed request is tried again.
///
/// Only failures that may pass are tried again ([`Error::is_transient`]). The delay doubles from `first` up to `cap`,
/// less a random part of at most `jitter_percent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The delay after the first failure.
    pub first: Duration,
    /// The longest delay.
    pub cap: Duration,
    /// How much a delay may be shortened, in percent; above 100 counts as 100.
    pub jitter_percent: u8,
    /// No attempt begins later than this after the first one began.
    pub budget: Duration,
}

impl Default for Retry {
    /// 20 ms doubling up to 500 ms, less at most 20 %, for 15 s.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(20),
            cap: Duration::from_millis(500),
            jitter_percent: 20,
            budget: Duration::from_secs(15),
        }
    }
}

impl Retry {
    /// One attempt only.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            first: Duration::ZERO,
            cap: Duration::ZERO,
            jitter_percent: 0,
            budget: Duration::ZERO,
        }
    }

    /// The delay after this many failures in a row (1 or more), before jitter.
    #[must_use]
    pub fn delay(&self, failures: u32) -> Duration {
        2u32.checked_pow(failures.saturating_sub(1))
            .and_then(|factor| self.first.checked_mul(factor))
            .map_or(self.cap, |delay| delay.min(self.cap))
    }

    /// Runs `attempt` until it succeeds, fails for good, or the budget is spent; then its last error is returned.
    pub(crate) async fn run<T, F>(&self, mut attempt: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let started = Instant::now();
        let mut failures = 0u32;
        loop {
            let error = match attempt().await {
                Err(error) if error.is_transient() => error,
                done => return done,
            };
            failures = failures.saturating_add(1);
            let delay = self.shortened(self.delay(failures));
            if self.budget.is_zero() || started.elapsed() + delay > self.budget {
                return Err(error);
            }
            sleep(delay).await;
        }
    }

    fn shortened(&self, delay: Duration) -> Duration {
        // Jitter needs no better randomness than the seed of a hash map.
        let drawn = RandomState::new().hash_one(()) % 101;
        let percent = drawn * u64::from(self.jitter_percent.min(100)) / 100;
        let less = delay / 100 * u32::try_from(percent).unwrap_or(0);
        delay.saturating_sub(less)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::{error::Call, revision::Revision};

    const CALL: Call = Call::new("GET", "/configuration/revision");

    fn transient() -> Error {
        Error::Status {
            call: CALL,
            code: 503,
            excerpt: String::new(),
        }
    }

    fn without_jitter() -> Retry {
        Retry {
            first: Duration::from_millis(100),
            cap: Duration::from_millis(400),
            jitter_percent: 0,
            budget: Duration::from_secs(2),
        }
    }

    /// Runs `retry` over attempts that fail until `succeed_at`, and gives the result and when each attempt began.
    async fn attempts(retry: &Retry, succeed_at: usize) -> (Result<(), Error>, Vec<u128>) {
        let began = RefCell::new(Vec::new());
        let start = Instant::now();
        let result = retry
            .run(|| {
                began.borrow_mut().push(start.elapsed().as_millis());
                let succeed = began.borrow().len() == succeed_at;
                async move { if succeed { Ok(()) } else { Err(transient()) } }
            })
            .await;
        (result, began.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_the_cap() {
        let (result, began) = attempts(&without_jitter(), 6).await;
        assert!(result.is_ok());
        assert_eq!(began, [0, 100, 300, 700, 1100, 1500]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_budget_ends_it_with_the_last_error() {
        let (result, began) = attempts(&without_jitter(), usize::MAX).await;
        assert!(matches!(result, Err(Error::Status { code: 503, .. })));
        assert_eq!(began.last(), Some(&1900));
    }

    #[tokio::test(start_paused = true)]
    async fn never_means_one_attempt() {
        let (result, began) = attempts(&Retry::never(), 2).await;
        assert!(result.is_err());
        assert_eq!(began, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_pass_is_not_tried_again() {
        for make in [
            || Error::Stale {
                call: CALL,
                have: Revision::new(3),
            },
            || Error::DictionaryFull {
                dictionary: "configuration_data".to_owned(),
                needed: 2,
                capacity: 1,
            },
            || Error::Status {
                call: CALL,
                code: 400,
                excerpt: String::new(),
            },
        ] {
            let count = RefCell::new(0);
            let result: Result<(), _> = without_jitter()
                .run(|| {
                    *count.borrow_mut() += 1;
                    async { Err(make()) }
                })
                .await;
            assert!(result.is_err());
            assert_eq!(count.into_inner(), 1);
        }
    }

    #[test]
    fn jitter_only_shortens_and_stays_within_its_share() {
        let retry = Retry {
            jitter_percent: 20,
            ..without_jitter()
        };
        let drawn: Vec<Duration> = (0..2_000)
            .map(|_| retry.shortened(Duration::from_secs(1)))
            .collect();
        let range = Duration::from_millis(800)..=Duration::from_secs(1);
        assert!(drawn.iter().all(|delay| range.contains(delay)));
        assert!(
            drawn
                .iter()
                .any(|delay| *delay < Duration::from_millis(850))
        );
        assert!(
            drawn
                .iter()
                .any(|delay| *delay > Duration::from_millis(950))
        );
    }

    #[test]
    fn delays_do_not_overflow() {
        assert_eq!(without_jitter().delay(u32::MAX), Duration::from_millis(400));
        let endless = Retry {
            first: Duration::MAX,
            cap: Duration::MAX,
            ..without_jitter()
        };
        assert_eq!(endless.delay(9), Duration::MAX);
    }
}
