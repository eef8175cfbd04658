//! Which of several replicas leads: how a Lease is read, and what is written to it.
//!
//! The replica that the Lease names leads as long as it renews it. The others never compare clocks of different
//! machines: each measures with its own monotonic clock how long the Lease has not changed, and takes it over when that
//! is as long as its holder asked for. The holder itself stops to trust in its Lease before that. Every write carries the
//! version that was read, so that of several replicas that take over at the same moment one succeeds.
//!
//! The record is the one that client-go writes, so that replicas of ingress-nginx and of this controller agree.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use tokio::time::Instant;

/// The times of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long the others wait after the last renewal that they saw. Whole seconds, as a Lease says it.
    pub hold: Duration,
    /// How long the holder leads after its last renewal. Shorter than `hold`, so that what it is about to write arrives
    /// before another replica leads.
    pub trust: Duration,
    /// Time between two renewals, and between two looks of the others.
    pub retry: Duration,
}

impl Terms {
    /// The times for `--election-ttl`: another replica leads within half of it after the leader is gone.
    ///
    /// ```
    /// use std::time::Duration;
    /// use controller_bin::publish::election::Terms;
    ///
    /// let terms = Terms::from_ttl(Duration::from_secs(30));
    /// assert_eq!(terms.hold, Duration::from_secs(12));
    /// assert!(terms.hold + terms.retry < Duration::from_secs(15));
    /// ```
    #[must_use]
    pub fn from_ttl(ttl: Duration) -> Self {
        let hold = ttl / 5 * 2;
        let whole = hold.as_secs() + u64::from(hold.subsec_nanos() > 0);
        let hold = Duration::from_secs(whole.max(1));
        Self {
            hold,
            trust: hold / 3 * 2,
            retry: hold / 8,
        }
    }
}

/// What is to be done about a Lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create it; who succeeds leads.
    Create(Lease),
    /// Write it back like this; who succeeds leads.
    Replace(Lease),
    /// Another replica leads; look again after that time at the latest.
    Wait(Duration),
}

/// What a replica knows of an election.
#[derive(Debug)]
pub struct Election {
    name: String,
    identity: String,
    terms: Terms,
    /// The version of the Lease that was seen last, and when it was first seen.
    seen: Option<(Option<String>, Instant)>,
}

impl Election {
    /// A candidate of that identity for the Lease `name`.
    #[must_use]
    pub fn new(name: &str, identity: &str, terms: Terms) -> Self {
        Self {
            name: name.to_owned(),
            identity: identity.to_owned(),
            terms,
            seen: None,
        }
    }

    /// The times.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// What to do about the Lease as it is; `time` is what people are told.
    pub fn step(&mut self, lease: Option<&Lease>, now: Instant, time: Timestamp) -> Step {
        let Some(lease) = lease else {
            return Step::Create(self.first(time));
        };
        let spec = lease.spec.clone().unwrap_or_default();
        if self.is_holder(&spec) {
            return Step::Replace(with_spec(lease, self.renewed(spec, time)));
        }
        let version = &lease.metadata.resource_version;
        let since = match &self.seen {
            Some((seen, since)) if seen == version => *since,
            _ => {
                self.seen = Some((version.clone(), now));
                now
            }
        };
        let expires = since + self.held_for(&spec);
        if !is_held(&spec) || expires <= now {
            return Step::Replace(with_spec(lease, self.taken(spec, time)));
        }
        Step::Wait((expires - now).min(self.terms.retry))
    }

    /// The Lease given up; `None` if it is not ours.
    #[must_use]
    pub fn release(&self, lease: &Lease, time: Timestamp) -> Option<Lease> {
        let spec = lease.spec.clone().unwrap_or_default();
        self.is_holder(&spec).then(|| {
            let spec = LeaseSpec {
                holder_identity: Some(String::new()),
                lease_duration_seconds: Some(1),
                renew_time: Some(MicroTime(time)),
                ..spec
            };
            with_spec(lease, spec)
        })
    }

    fn is_holder(&self, spec: &LeaseSpec) -> bool {
        spec.holder_identity.as_deref() == Some(&self.identity)
    }

    /// How long a Lease of another replica holds.
    fn held_for(&self, spec: &LeaseSpec) -> Duration {
        let seconds = spec.lease_duration_seconds.unwrap_or_default();
        match u64::try_from(seconds) {
            Ok(seconds @ 1..) => Duration::from_secs(seconds),
            _ => self.terms.hold,
        }
    }

    fn first(&self, time: Timestamp) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.name = Some(self.name.clone());
        let spec = LeaseSpec {
            acquire_time: Some(MicroTime(time)),
            lease_transitions: Some(0),
            ..LeaseSpec::default()
        };
        with_spec(&lease, self.renewed(spec, time))
    }

    fn taken(&self, spec: LeaseSpec, time: Timestamp) -> LeaseSpec {
        let transitions = spec.lease_transitions.unwrap_or_default();
        let spec = LeaseSpec {
            acquire_time: Some(MicroTime(time)),
            lease_transitions: Some(transitions.saturating_add(1)),
            ..spec
        };
        self.renewed(spec, time)
    }

    fn renewed(&self, spec: LeaseSpec, time: Timestamp) -> LeaseSpec {
        let seconds = i32::try_from(self.terms.hold.as_secs()).unwrap_or(i32::MAX);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(seconds),
            renew_time: Some(MicroTime(time)),
            ..spec
        }
    }
}

fn is_held(spec: &LeaseSpec) -> bool {
    spec.holder_identity
        .as_deref()
        .is_some_and(|holder| !holder.is_empty())
}

fn with_spec(lease: &Lease, spec: LeaseSpec) -> Lease {
    Lease {
        metadata: lease.metadata.clone(),
        spec: Some(spec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TIME: Timestamp = Timestamp::UNIX_EPOCH;

    fn election(identity: &str) -> Election {
        Election::new("leader", identity, Terms::from_ttl(Duration::from_secs(30)))
    }

    /// The Lease as the API server has it after a step.
    fn written(step: Step, version: u32) -> Lease {
        let (Step::Create(mut lease) | Step::Replace(mut lease)) = step else {
            panic!("nothing is written: {step:?}");
        };
        lease.metadata.resource_version = Some(version.to_string());
        lease
    }

    fn spec(lease: &Lease) -> &LeaseSpec {
        lease.spec.as_ref().unwrap()
    }

    fn holder(lease: &Lease) -> &str {
        spec(lease).holder_identity.as_deref().unwrap()
    }

    #[test]
    fn who_comes_first_creates_the_lease_and_renews_it() {
        let (mut a, now) = (election("a"), Instant::now());
        let lease = written(a.step(None, now, TIME), 1);
        assert_eq!(lease.metadata.name.as_deref(), Some("leader"));
        assert_eq!(
            (holder(&lease), spec(&lease).lease_transitions),
            ("a", Some(0))
        );
        assert_eq!(spec(&lease).lease_duration_seconds, Some(12));
        let later = Timestamp::from_second(5).unwrap();
        let renewed = written(a.step(Some(&lease), now + SECOND, later), 2);
        assert_eq!(spec(&renewed).renew_time, Some(MicroTime(later)));
        assert_eq!(spec(&renewed).acquire_time, Some(MicroTime(TIME)));
        assert_eq!(spec(&renewed).lease_transitions, Some(0));
    }

    #[test]
    fn a_lease_that_is_renewed_is_left_alone() {
        let (mut a, mut b, mut now) = (election("a"), election("b"), Instant::now());
        let mut lease = written(a.step(None, now, TIME), 1);
        for version in 2..20 {
            assert_eq!(b.step(Some(&lease), now, TIME), Step::Wait(b.terms.retry));
            now += 10 * SECOND;
            lease = written(a.step(Some(&lease), now, TIME), version);
        }
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_taken_over_at_its_end() {
        let (mut a, mut b, start) = (election("a"), election("b"), Instant::now());
        let lease = written(a.step(None, start, TIME), 1);
        assert_eq!(b.step(Some(&lease), start, TIME), Step::Wait(b.terms.retry));
        let nearly = start + 12 * SECOND - Duration::from_millis(10);
        let wait = b.step(Some(&lease), nearly, TIME);
        assert_eq!(wait, Step::Wait(Duration::from_millis(10)));
        let taken = written(b.step(Some(&lease), start + 12 * SECOND, TIME), 2);
        assert_eq!(
            (holder(&taken), spec(&taken).lease_transitions),
            ("b", Some(1))
        );
        // The version that was read goes along; a race is lost by whoever comes second.
        let Step::Replace(raced) = b.step(Some(&lease), start + 12 * SECOND, TIME) else {
            panic!("the Lease has ended");
        };
        assert_eq!(raced.metadata.resource_version.as_deref(), Some("1"));
    }

    #[test]
    fn the_holder_gives_up_before_another_replica_takes_over() {
        for seconds in [1, 2, 5, 30, 600] {
            let terms = Terms::from_ttl(seconds * SECOND);
            assert!(terms.trust + 2 * terms.retry < terms.hold, "{terms:?}");
        }
        assert_eq!(Terms::from_ttl(Duration::ZERO).hold, SECOND);
    }

    #[test]
    fn the_wait_is_as_long_as_the_holder_asked_for() {
        let (mut b, now) = (election("b"), Instant::now());
        for (asked, end) in [(Some(40), 40), (Some(0), 12), (Some(-3), 12), (None, 12)] {
            let mut lease = written(election("a").step(None, now, TIME), 1);
            lease.spec.as_mut().unwrap().lease_duration_seconds = asked;
            b.seen = None;
            b.step(Some(&lease), now, TIME);
            let early = b.step(Some(&lease), now + end * SECOND - SECOND, TIME);
            assert!(matches!(early, Step::Wait(_)), "{asked:?}");
            let late = b.step(Some(&lease), now + end * SECOND, TIME);
            assert!(matches!(late, Step::Replace(_)), "{asked:?}");
        }
    }

    #[test]
    fn a_lease_that_was_given_up_is_taken_at_once() {
        let (mut a, mut b, now) = (election("a"), election("b"), Instant::now());
        let lease = written(a.step(None, now, TIME), 1);
        assert_eq!(b.release(&lease, TIME), None);
        let mut released = a.release(&lease, TIME).unwrap();
        assert_eq!(released.metadata.resource_version.as_deref(), Some("1"));
        released.metadata.resource_version = Some("2".into());
        assert_eq!(holder(&written(b.step(Some(&released), now, TIME), 3)), "b");
        let blank = Lease {
            spec: None,
            ..lease
        };
        assert_eq!(holder(&written(b.step(Some(&blank), now, TIME), 4)), "b");
    }
}
