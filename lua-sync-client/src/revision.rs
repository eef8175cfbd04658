//! Numbers for the states that NGINX is told.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// Names one state of the backends, or of the servers and their certificates.
///
/// Zero is the state of an NGINX that was told nothing. Lua keeps it as a double and writes at most 14 digits, so it
/// has to stay below 10^14; see [`RevisionSource`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(u64);

/// The revisions of both halves of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    /// That of the backends.
    pub backends: Revision,
    /// That of the servers and their certificates.
    pub servers: Revision,
}

/// Gives out revisions, each once.
#[derive(Debug)]
pub struct RevisionSource {
    next: u64,
}

impl Revision {
    /// A revision by its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl RevisionSource {
    /// Revisions a second of a controller's life may use before they meet those of its successor.
    const PER_SECOND: u64 = 10_000;

    /// Revisions that start at `first`.
    #[must_use]
    pub const fn starting_at(first: Revision) -> Self {
        Self { next: first.0 }
    }

    /// Revisions that start above those of earlier controllers, by the system's clock: an NGINX that outlived its
    /// controller never mistakes a new state for an old one.
    #[must_use]
    pub fn from_clock() -> Self {
        let age = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Self {
            next: age.as_secs().max(1).saturating_mul(Self::PER_SECOND),
        }
    }

    /// The next revision.
    pub fn draw(&mut self) -> Revision {
        let revision = Revision(self.next);
        self.next = self.next.saturating_add(1);
        revision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_revision_is_given_once() {
        let mut source = RevisionSource::starting_at(Revision::new(7));
        assert_eq!(
            [source.draw(), source.draw(), source.draw()].map(Revision::number),
            [7, 8, 9]
        );
    }

    #[test]
    fn revisions_from_the_clock_fit_into_14_digits() {
        let first = RevisionSource::from_clock().draw().number();
        // Well into the twenty-third century.
        assert!(first > 10_000 && first < 99_999_999_999_999, "{first}");
    }

    #[test]
    fn a_revision_is_a_plain_number_in_json() {
        assert_eq!(serde_json::to_string(&Revision::new(42)).unwrap(), "42");
        assert_eq!(
            serde_json::from_str::<Revision>("42").unwrap(),
            Revision::new(42)
        );
    }
}
