//! Random interleavings of enqueues, syncs and failures, judged by a journal of what happened.
//!
//! The stand-in for the outside world is a version that each enqueue raises. A sync takes a
//! snapshot of the version as it starts, as a real one would read its objects; so "nothing is lost"
//! means that successful syncs have seen the version of every enqueue.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a set-up that fails fails its test"
)]

use std::cell::RefCell;
use std::num::NonZeroU16;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngAlgorithm;
use sync_queue::{Backoff, Depth, Drain, Kind, Rate, Settings, Task, channel};
use tokio::time::{Instant, sleep};

const BACKOFF_FIRST: u64 = 4;
const BACKOFF_CAP: u64 = 50;
const JITTER_PERCENT: u8 = 50;

#[derive(Debug, Clone)]
struct Plan {
    limit: Limit,
    seed: u64,
    steps: Vec<Step>,
    /// What the first syncs do; all later ones succeed at once.
    syncs: Vec<Sync>,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    /// In ms; 0 is no limit.
    period: u64,
    burst: u16,
}

/// Something the outside world does.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// How long after the step before (ms).
    after: u64,
    key: u8,
    kind: Kind,
}

#[derive(Debug, Clone)]
struct Sync {
    takes: u64,
    succeeds: bool,
    /// What the sync itself enqueues, right after it has taken its snapshot.
    causes: Vec<(u8, Kind)>,
}

/// What happened, in order.
#[derive(Debug, Clone, Copy)]
enum Event {
    Enqueued {
        key: u8,
        kind: Kind,
        version: u64,
        at: Duration,
    },
    Started {
        key: u8,
        kind: Kind,
        attempt: u32,
        snapshot: u64,
        at: Duration,
    },
    Ended {
        succeeded: bool,
        at: Duration,
    },
}

/// A run, by its places in the journal.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: usize,
    key: u8,
    kind: Kind,
    attempt: u32,
    snapshot: u64,
    started_at: Duration,
    end: usize,
    ended_at: Duration,
    succeeded: bool,
}

#[derive(Debug)]
struct Journal {
    begun: Instant,
    version: u64,
    events: Vec<Event>,
}

impl Journal {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            version: 0,
            events: Vec::new(),
        }
    }

    fn enqueued(&mut self, key: u8, kind: Kind) {
        self.version += 1;
        self.events.push(Event::Enqueued {
            key,
            kind,
            version: self.version,
            at: self.begun.elapsed(),
        });
    }

    fn started(&mut self, task: &Task<u8>) {
        self.events.push(Event::Started {
            key: task.key,
            kind: task.kind,
            attempt: task.attempt,
            snapshot: self.version,
            at: self.begun.elapsed(),
        });
    }

    fn ended(&mut self, succeeded: bool) {
        self.events.push(Event::Ended {
            succeeded,
            at: self.begun.elapsed(),
        });
    }

    fn enqueues(&self) -> impl Iterator<Item = (usize, u8, Kind, u64)> {
        self.events
            .iter()
            .enumerate()
            .filter_map(|(place, event)| match *event {
                Event::Enqueued {
                    key, kind, version, ..
                } => Some((place, key, kind, version)),
                Event::Started { .. } | Event::Ended { .. } => None,
            })
    }

    /// Pairs starts with ends; fails when two syncs overlap.
    fn runs(&self) -> Result<Vec<Run>, TestCaseError> {
        let mut runs: Vec<Run> = Vec::new();
        let mut running: Option<Run> = None;
        for (place, event) in self.events.iter().enumerate() {
            match *event {
                Event::Enqueued { .. } => {}
                Event::Started {
                    key,
                    kind,
                    attempt,
                    snapshot,
                    at,
                } => {
                    prop_assert!(running.is_none(), "two syncs at once");
                    running = Some(Run {
                        start: place,
                        key,
                        kind,
                        attempt,
                        snapshot,
                        started_at: at,
                        end: place,
                        ended_at: at,
                        succeeded: false,
                    });
                }
                Event::Ended { succeeded, at } => {
                    let run = running.take().unwrap();
                    runs.push(Run {
                        end: place,
                        ended_at: at,
                        succeeded,
                        ..run
                    });
                }
            }
        }
        prop_assert!(running.is_none(), "a sync was cut short");
        Ok(runs)
    }

    /// Whether anything was enqueued for the key between two places.
    fn news(&self, key: u8, from: usize, to: usize) -> bool {
        self.first_news(key, from, to).is_some()
    }

    /// The start of the last sync that covered what had been enqueued for the key since `from`;
    /// `from` if none did.
    fn last_cover(&self, runs: &[Run], key: u8, from: usize) -> usize {
        runs.iter()
            .filter(|run| run.succeeded && run.start > from)
            .fold(from, |from, run| {
                let covered =
                    self.events[from..run.end]
                        .iter()
                        .enumerate()
                        .all(|(offset, event)| {
                            !matches!(*event, Event::Enqueued { key: enqueued, kind, .. }
                        if enqueued == key && (kind == Kind::MustRun || from + offset > run.start))
                        });
                if covered { run.start } else { from }
            })
    }

    /// When something was first enqueued for the key between two places.
    fn first_news(&self, key: u8, from: usize, to: usize) -> Option<Duration> {
        self.events[from..to].iter().find_map(|event| match *event {
            Event::Enqueued {
                key: enqueued, at, ..
            } if enqueued == key => Some(at),
            Event::Enqueued { .. } | Event::Started { .. } | Event::Ended { .. } => None,
        })
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::MustRun), Just(Kind::Skippable)]
}

/// Many things happen at the same instant.
fn gap() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 3 => 1..6_u64, 1 => 6..80_u64]
}

fn plan() -> impl Strategy<Value = Plan> {
    let step = (gap(), 0..4_u8, kind()).prop_map(|(after, key, kind)| Step { after, key, kind });
    let sync = (
        gap(),
        prop::bool::weighted(0.6),
        vec((0..4_u8, kind()), 0..2),
    )
        .prop_map(|(takes, succeeds, causes)| Sync {
            takes,
            succeeds,
            causes,
        });
    let limit = (prop_oneof![Just(0), 1..30_u64], 1..4_u16)
        .prop_map(|(period, burst)| Limit { period, burst });
    (limit, any::<u64>(), vec(step, 0..20), vec(sync, 0..12)).prop_map(
        |(limit, seed, steps, syncs)| Plan {
            limit,
            seed,
            steps,
            syncs,
        },
    )
}

fn settings(plan: &Plan) -> Settings {
    let rate = match plan.limit.period {
        0 => Rate::UNLIMITED,
        period => Rate::every(Duration::from_millis(period))
            .unwrap()
            .with_burst(NonZeroU16::new(plan.limit.burst).unwrap()),
    };
    Settings {
        work: "sync",
        rate,
        retry: Backoff::new(
            Duration::from_millis(BACKOFF_FIRST),
            Duration::from_millis(BACKOFF_CAP),
        )
        .with_jitter_percent(JITTER_PERCENT)
        .with_seed(plan.seed),
        shutdown_within: None,
    }
}

/// The delay after this many failures, before jitter.
fn backoff(failures: u32) -> Duration {
    Duration::from_millis((BACKOFF_FIRST << (failures - 1)).min(BACKOFF_CAP))
}

/// Carries out a plan. The queue is closed right after the last step, or once everything has come
/// to rest.
fn carry_out(plan: &Plan, rest: bool) -> Result<(Journal, Drain), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (handle, queue) = channel(settings(plan));
        let journal = RefCell::new(Journal::new());
        let enqueue = |key, kind| {
            let accepted = match kind {
                Kind::MustRun => handle.enqueue(key),
                Kind::Skippable => handle.enqueue_skippable(key),
            };
            if accepted {
                journal.borrow_mut().enqueued(key, kind);
            }
        };
        let world = async {
            for step in &plan.steps {
                sleep(Duration::from_millis(step.after)).await;
                enqueue(step.key, step.kind);
            }
            if rest {
                sleep(Duration::from_secs(60)).await;
            }
            let left = handle.depth();
            handle.close();
            left
        };
        let mut syncs = plan.syncs.iter();
        let worker = queue.run(async |task: Task<u8>| {
            journal.borrow_mut().started(&task);
            let sync = syncs.next();
            for (key, kind) in sync.iter().flat_map(|sync| &sync.causes) {
                enqueue(*key, *kind);
            }
            if let Some(takes) = sync.map(|sync| sync.takes).filter(|takes| *takes > 0) {
                sleep(Duration::from_millis(takes)).await;
            }
            let succeeded = sync.is_none_or(|sync| sync.succeeds);
            journal.borrow_mut().ended(succeeded);
            if succeeded { Ok(()) } else { Err("refused") }
        });
        let (left, drain) = tokio::join!(world, worker);
        if rest {
            prop_assert_eq!(left, Depth::default(), "the queue never came to rest");
        }
        prop_assert_eq!(drain.unfinished, 0);
        Ok((journal.into_inner(), drain))
    })
}

/// Every enqueue was seen by a successful sync: a must-run one by a sync for its key.
fn nothing_is_lost(journal: &Journal, runs: &[Run]) -> Result<(), TestCaseError> {
    for (place, key, kind, version) in journal.enqueues() {
        let seen = runs.iter().any(|run| {
            run.succeeded
                && run.start > place
                && run.snapshot >= version
                && (kind == Kind::Skippable || run.key == key)
        });
        prop_assert!(seen, "{kind:?} enqueue {version} of key {key} was lost");
    }
    let last = runs.iter().rev().find(|run| run.succeeded);
    prop_assert_eq!(last.map_or(0, |run| run.snapshot), journal.version);
    Ok(())
}

/// Between its close and its end the queue tried everything that it had accepted.
fn everything_is_tried(journal: &Journal, runs: &[Run], drain: Drain) -> Result<(), TestCaseError> {
    for (place, key, kind, version) in journal.enqueues() {
        let mut tries = runs.iter().filter(|run| {
            run.start > place && (run.key == key || (kind == Kind::Skippable && run.succeeded))
        });
        prop_assert!(
            tries.next().is_some(),
            "{kind:?} enqueue {version} of key {key} was not tried"
        );
    }
    let last_run = |key| runs.iter().rfind(|run| run.key == key);
    let failed = (0..4).filter_map(last_run).filter(|run| !run.succeeded);
    prop_assert_eq!(drain.failed, failed.count());
    Ok(())
}

/// No window of time has more starts than the burst and the periods in it allow.
fn the_rate_holds(limit: Limit, runs: &[Run]) -> Result<(), TestCaseError> {
    let burst = usize::from(limit.burst);
    for (first, run) in runs.iter().enumerate() {
        for (periods, later) in (1..).zip(runs.iter().skip(first + burst)) {
            let least = Duration::from_millis(limit.period) * periods;
            prop_assert!(
                later.started_at >= run.started_at + least,
                "started too fast"
            );
        }
    }
    Ok(())
}

/// Every run has a reason: an enqueue or a failure of its key since its last start. And no
/// skippable run was covered.
fn nothing_runs_in_vain(journal: &Journal, runs: &[Run]) -> Result<(), TestCaseError> {
    for (index, run) in runs.iter().enumerate() {
        let last = runs[..index].iter().rfind(|earlier| earlier.key == run.key);
        let from = last.map_or(0, |last| last.start);
        let failed = last.is_some_and(|last| !last.succeeded);
        prop_assert!(
            failed || journal.news(run.key, from, run.start),
            "a run without a reason"
        );
        if run.kind == Kind::Skippable {
            prop_assert!(!failed, "a retry that could have been skipped");
            let covered = runs[..index].iter().any(|earlier| {
                earlier.succeeded && !journal.news(run.key, earlier.start, run.start)
            });
            prop_assert!(!covered, "a covered run was not skipped");
        }
    }
    Ok(())
}

/// Attempts count the failures since the last success, and without news a retry waits for its
/// backoff.
fn retries_back_off(
    journal: &Journal,
    runs: &[Run],
    close_ends_backoff: bool,
) -> Result<(), TestCaseError> {
    for (index, run) in runs.iter().enumerate() {
        let last = runs[..index].iter().rfind(|earlier| earlier.key == run.key);
        let failed = last.filter(|last| !last.succeeded);
        prop_assert_eq!(run.attempt, failed.map_or(1, |last| last.attempt + 1));
        let Some(last) = failed else { continue };
        if close_ends_backoff || journal.news(run.key, last.start, run.start) {
            continue;
        }
        let shortest = backoff(last.attempt) * (100 - u32::from(JITTER_PERCENT)) / 100;
        prop_assert!(
            run.started_at >= last.ended_at + shortest,
            "a retry came too soon"
        );
    }
    Ok(())
}

/// Nothing waits longer than for its event or backoff, the sync before it and the rate limit.
fn nothing_is_late(journal: &Journal, limit: Limit, runs: &[Run]) -> Result<(), TestCaseError> {
    let period = Duration::from_millis(limit.period);
    let tolerance = period * u32::from(limit.burst - 1);
    // When the permits taken so far are all given back.
    let mut paid_back = Duration::ZERO;
    for (index, run) in runs.iter().enumerate() {
        let worker_free = runs[..index]
            .last()
            .map_or(Duration::ZERO, |before| before.ended_at);
        let permit = paid_back.saturating_sub(tolerance);
        let last = runs[..index].iter().rfind(|earlier| earlier.key == run.key);
        let from = match last {
            Some(last) if !last.succeeded => last.start,
            _ => journal.last_cover(&runs[..index], run.key, last.map_or(0, |last| last.start)),
        };
        let news = journal.first_news(run.key, from, run.start);
        let retry = last.map(|last| last.ended_at + backoff(last.attempt));
        let reason = news.or(retry).unwrap();
        // The timer rounds up to the millisecond.
        let latest = reason.max(worker_free).max(permit) + Duration::from_millis(1);
        prop_assert!(
            run.started_at <= latest,
            "started at {:?} instead of {latest:?}",
            run.started_at
        );
        paid_back = paid_back.max(run.started_at) + period;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 10_000,
        // The default generator takes most of the time in a debug build.
        rng_algorithm: RngAlgorithm::XorShift,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn once_at_rest_everything_has_been_seen(plan in plan()) {
        let (journal, drain) = carry_out(&plan, true)?;
        let runs = journal.runs()?;
        prop_assert_eq!(drain, Drain::default());
        nothing_is_lost(&journal, &runs)?;
        nothing_runs_in_vain(&journal, &runs)?;
        the_rate_holds(plan.limit, &runs)?;
        retries_back_off(&journal, &runs, false)?;
        nothing_is_late(&journal, plan.limit, &runs)?;
    }

    #[test]
    fn a_close_drains_what_was_accepted(plan in plan()) {
        let (journal, drain) = carry_out(&plan, false)?;
        let runs = journal.runs()?;
        everything_is_tried(&journal, &runs, drain)?;
        nothing_runs_in_vain(&journal, &runs)?;
        the_rate_holds(plan.limit, &runs)?;
        retries_back_off(&journal, &runs, true)?;
        nothing_is_late(&journal, plan.limit, &runs)?;
    }
}
