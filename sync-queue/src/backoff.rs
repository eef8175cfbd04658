//! How long a failed key waits for its next try.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::time::Duration;

/// The longest delay. No time that a program lives to see plus a day overflows.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Exponential backoff: the first delay, doubled by each further failure up to a cap, less a random
/// share.
///
/// The defaults are 5 ms, doubling up to 30 s, less at most 10 %. The cap is low on purpose: a sync
/// that keeps failing usually waits for something outside that gives no event when it is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    jitter_percent: u8,
    seed: Option<u64>,
}

impl Backoff {
    /// Delays that start at `first` and never exceed `cap`, without jitter. A cap above a day
    /// counts as a day.
    #[must_use]
    pub fn new(first: Duration, cap: Duration) -> Self {
        Self {
            first,
            cap: cap.min(LONGEST_DELAY),
            jitter_percent: 0,
            seed: None,
        }
    }

    /// Shortens each delay by a random part of at most `percent` of it, so that what failed
    /// together is not retried together. Values above 100 count as 100.
    #[must_use]
    pub fn with_jitter_percent(mut self, percent: u8) -> Self {
        self.jitter_percent = percent.min(100);
        self
    }

    /// Makes the jitter a function of `seed`, for tests. Without a seed it differs from queue to
    /// queue.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The delay after this many failures in a row (1 or more), before jitter.
    #[must_use]
    pub fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1);
        2u32.checked_pow(doublings)
            .and_then(|factor| self.first.checked_mul(factor))
            .map_or(self.cap, |delay| delay.min(self.cap))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(30)).with_jitter_percent(10)
    }
}

/// A backoff together with the source of its jitter.
#[derive(Debug)]
pub(crate) struct Delays {
    backoff: Backoff,
    seed: u64,
    drawn: u64,
}

impl Delays {
    pub(crate) fn new(backoff: Backoff) -> Self {
        let seed = backoff
            .seed
            .unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Self {
            backoff,
            seed,
            drawn: 0,
        }
    }

    /// The delay after this many failures in a row, less jitter.
    pub(crate) fn after(&mut self, failures: u32) -> Duration {
        let delay = self.backoff.delay(failures);
        let whole = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let share = whole / 100 * u64::from(self.backoff.jitter_percent);
        let less = self.draw() % share.saturating_add(1);
        delay.saturating_sub(Duration::from_nanos(less))
    }

    /// The next number of a sequence fixed by the seed. Jitter needs no better randomness than a
    /// hash.
    fn draw(&mut self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, self.drawn).hash(&mut hasher);
        self.drawn = self.drawn.wrapping_add(1);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap() {
        let backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(100));
        for (failures, millis) in [
            (0, 5),
            (1, 5),
            (2, 10),
            (3, 20),
            (5, 80),
            (6, 100),
            (32, 100),
            (33, 100),
            (u32::MAX, 100),
        ] {
            assert_eq!(
                backoff.delay(failures),
                Duration::from_millis(millis),
                "{failures} failures"
            );
        }
    }

    #[test]
    fn a_cap_below_the_first_delay_wins() {
        let backoff = Backoff::new(Duration::from_secs(9), Duration::from_secs(2));
        assert_eq!(backoff.delay(1), Duration::from_secs(2));
    }

    #[test]
    fn an_endless_delay_is_cut_to_the_longest() {
        let backoff = Backoff::new(Duration::MAX, Duration::MAX).with_jitter_percent(200);
        assert_eq!(backoff.delay(3), LONGEST_DELAY);
        let mut delays = Delays::new(backoff);
        assert!((Duration::ZERO..=LONGEST_DELAY).contains(&delays.after(u32::MAX)));
    }

    #[test]
    fn jitter_only_shortens_and_stays_within_its_share() {
        let mut delays = Delays::new(
            Backoff::new(Duration::from_secs(1), Duration::from_secs(1)).with_jitter_percent(20),
        );
        let drawn: Vec<Duration> = (0..1_000).map(|_| delays.after(1)).collect();
        assert!(
            drawn
                .iter()
                .all(|delay| (Duration::from_millis(800)..=Duration::from_secs(1)).contains(delay))
        );
        // A thousand draws reach both ends of the range.
        assert!(
            drawn
                .iter()
                .any(|delay| *delay < Duration::from_millis(820))
        );
        assert!(
            drawn
                .iter()
                .any(|delay| *delay > Duration::from_millis(980))
        );
    }

    #[test]
    fn a_seed_fixes_the_jitter() {
        let draw = |seed| {
            let mut delays = Delays::new(Backoff::default().with_seed(seed));
            (1..=8)
                .map(|failures| delays.after(failures))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
