//! The rules of the queue as a value: what is queued, what runs next, what is dropped.
//!
//! No lock, no task and no clock in here: the time comes in as an argument, and what is to be done
//! comes out. Every enqueue and every start takes the next number of one sequence. "Began after it
//! was enqueued" is decided by these numbers, since two events may well share an instant.

use std::collections::BTreeMap;
use std::hash::Hash;

use hashbrown::HashMap;
use tokio::time::Instant;

use crate::backoff::Delays;
use crate::{Depth, Drain, Kind, Task};

/// The entries of a queue.
#[derive(Debug)]
pub(crate) struct Schedule<K> {
    entries: HashMap<K, Entry>,
    ready: BTreeMap<Turn, K>,
    delayed: BTreeMap<Due, K>,
    running: bool,
    /// The last number given to an enqueue, a start or the close.
    sequence: u64,
    closed: Option<Closed>,
    given_up: usize,
}

/// What the worker has to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Get a permit, then [`Schedule::begin`].
    Run,
    /// Wait for an enqueue or for this time.
    WaitUntil(Instant),
    /// Wait for an enqueue.
    Wait,
    /// Stop: the queue is closed and empty.
    Stop,
}

#[derive(Debug)]
struct Entry {
    /// Number of the latest enqueue.
    stamp: u64,
    /// Time of the oldest enqueue that no successful run has answered.
    since: Instant,
    failures: u32,
    place: Place,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Ready(Turn),
    Delayed(Due),
}

/// Order of the ready entries: the must-run ones first, each kind in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    kind: Kind,
    number: u64,
}

/// Order of the delayed entries; all of them are must-run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    number: u64,
}

#[derive(Debug, Clone, Copy)]
struct Closed {
    at: Instant,
    number: u64,
}

impl<K: Eq + Hash + Clone> Schedule<K> {
    pub(crate) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            ready: BTreeMap::new(),
            delayed: BTreeMap::new(),
            running: false,
            sequence: 0,
            closed: None,
            given_up: 0,
        }
    }

    /// Merges an enqueue into the entry that the key has already. Returns whether it has one.
    pub(crate) fn merge(&mut self, key: &K, kind: Kind) -> bool {
        let number = self.number();
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        entry.stamp = number;
        match entry.place {
            Place::Ready(turn) => {
                let kind = turn.kind.min(kind);
                self.move_turn(turn, Turn { kind, ..turn });
            }
            // News end the backoff, but not the memory of the failures.
            Place::Delayed(due) => self.end_backoff(due, number),
        }
        true
    }

    /// Queues a key that has no entry.
    pub(crate) fn insert(&mut self, key: K, kind: Kind, now: Instant) {
        let number = self.number();
        let turn = Turn { kind, number };
        self.ready.insert(turn, key.clone());
        let entry = Entry {
            stamp: number,
            since: now,
            failures: 0,
            place: Place::Ready(turn),
        };
        self.entries.insert(key, entry);
    }

    /// What to do now. Entries whose backoff has passed become ready.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        self.end_due_backoffs(now);
        if !self.ready.is_empty() {
            return Next::Run;
        }
        match self.delayed.first_key_value() {
            Some((due, _)) => Next::WaitUntil(due.at),
            None if self.closed.is_some() => Next::Stop,
            None => Next::Wait,
        }
    }

    /// Takes out the entry whose turn it is.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Task<K>> {
        self.end_due_backoffs(now);
        let (turn, key) = self.ready.pop_first()?;
        let entry = self.entries.remove(&key)?;
        self.running = true;
        Some(Task {
            key,
            attempt: entry.failures.saturating_add(1),
            kind: turn.kind,
            enqueued_at: entry.since,
            waited: now.saturating_duration_since(entry.since),
            started: self.number(),
        })
    }

    /// Notes that a run succeeded, and drops and returns the skippable entries that it has covered.
    pub(crate) fn succeeded(&mut self, task: &Task<K>) -> Vec<K> {
        self.running = false;
        let mut covered = Vec::new();
        let entries = &mut self.entries;
        self.ready.retain(|turn, key| {
            let keep = turn.kind == Kind::MustRun
                || entries
                    .get(key)
                    .is_none_or(|entry| entry.stamp > task.started);
            if !keep {
                entries.remove(key);
                covered.push(key.clone());
            }
            keep
        });
        covered
    }

    /// Notes that a run failed and queues its key again. Returns when it may run, or `None` when it
    /// had its last try.
    pub(crate) fn failed(
        &mut self,
        task: &Task<K>,
        now: Instant,
        delays: &mut Delays,
    ) -> Option<Instant> {
        self.running = false;
        if let Some(entry) = self.entries.get_mut(&task.key) {
            // Enqueued again during the run: there are news, so it does not wait.
            entry.failures = task.attempt;
            entry.since = entry.since.min(task.enqueued_at);
            if let Place::Ready(turn) = entry.place {
                let kind = Kind::MustRun;
                self.move_turn(turn, Turn { kind, ..turn });
            }
            return Some(now);
        }
        let at = match self.closed {
            Some(closed) if task.started > closed.number => {
                self.given_up += 1;
                return None;
            }
            Some(_) => now,
            None => now.checked_add(delays.after(task.attempt)).unwrap_or(now),
        };
        let number = self.number();
        let due = Due { at, number };
        self.delayed.insert(due, task.key.clone());
        let entry = Entry {
            stamp: number,
            since: task.enqueued_at,
            failures: task.attempt,
            place: Place::Delayed(due),
        };
        self.entries.insert(task.key.clone(), entry);
        Some(at)
    }

    /// Accepts nothing more. What waits for its backoff gets its last try now.
    pub(crate) fn close(&mut self, now: Instant) {
        if self.closed.is_some() {
            return;
        }
        let number = self.number();
        self.closed = Some(Closed { at: now, number });
        while let Some((due, _)) = self.delayed.first_key_value() {
            let due = *due;
            let number = self.number();
            self.end_backoff(due, number);
        }
    }

    /// When the queue was closed.
    pub(crate) fn closed_at(&self) -> Option<Instant> {
        self.closed.map(|closed| closed.at)
    }

    /// Closes the queue and drops all that is in it.
    pub(crate) fn abandon(&mut self, now: Instant) -> Drain {
        self.close(now);
        let drain = Drain {
            failed: self.given_up,
            unfinished: self.entries.len() + usize::from(self.running),
        };
        self.running = false;
        self.entries.clear();
        self.ready.clear();
        self.delayed.clear();
        drain
    }

    pub(crate) fn depth(&self) -> Depth {
        Depth {
            ready: self.ready.len(),
            delayed: self.delayed.len(),
        }
    }

    fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn end_due_backoffs(&mut self, now: Instant) {
        while let Some((due, _)) = self.delayed.first_key_value()
            && due.at <= now
        {
            let due = *due;
            let number = self.number();
            self.end_backoff(due, number);
        }
    }

    /// Moves a delayed entry behind the must-run entries that are ready.
    fn end_backoff(&mut self, due: Due, number: u64) {
        if let Some(key) = self.delayed.remove(&due) {
            let kind = Kind::MustRun;
            self.place(key, Turn { kind, number });
        }
    }

    fn move_turn(&mut self, from: Turn, to: Turn) {
        if from != to
            && let Some(key) = self.ready.remove(&from)
        {
            self.place(key, to);
        }
    }

    fn place(&mut self, key: K, turn: Turn) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.place = Place::Ready(turn);
        }
        self.ready.insert(turn, key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Backoff;

    const MILLI: Duration = Duration::from_millis(1);

    /// A schedule at one instant, with a backoff of 10 ms.
    struct Fixture {
        schedule: Schedule<&'static str>,
        delays: Delays,
        now: Instant,
    }

    impl Fixture {
        fn new() -> Self {
            Self {
                schedule: Schedule::new(),
                delays: Delays::new(Backoff::new(10 * MILLI, 1_000 * MILLI)),
                now: Instant::now(),
            }
        }

        fn must_run(&mut self, key: &'static str) {
            self.enqueue(key, Kind::MustRun);
        }

        fn skippable(&mut self, key: &'static str) {
            self.enqueue(key, Kind::Skippable);
        }

        fn enqueue(&mut self, key: &'static str, kind: Kind) {
            if !self.schedule.merge(&key, kind) {
                self.schedule.insert(key, kind, self.now);
            }
        }

        fn begin(&mut self) -> Task<&'static str> {
            self.schedule.begin(self.now).expect("an entry is ready")
        }

        fn fail(&mut self, task: &Task<&'static str>) -> Option<Instant> {
            self.schedule.failed(task, self.now, &mut self.delays)
        }

        /// The keys in the order in which they run when every run succeeds.
        fn runs(&mut self) -> Vec<&'static str> {
            let mut runs = Vec::new();
            while let Some(task) = self.schedule.begin(self.now) {
                self.schedule.succeeded(&task);
                runs.push(task.key);
            }
            runs
        }
    }

    #[test]
    fn a_queued_key_is_merged() {
        let mut fixture = Fixture::new();
        fixture.must_run("a");
        fixture.must_run("b");
        fixture.must_run("a");
        assert_eq!(fixture.runs(), ["a", "b"]);
    }

    #[test]
    fn must_run_entries_come_first_and_cover_the_skippable_ones() {
        let mut fixture = Fixture::new();
        fixture.skippable("a");
        fixture.must_run("b");
        fixture.must_run("c");
        assert_eq!(fixture.runs(), ["b", "c"]);
    }

    #[test]
    fn what_is_enqueued_at_the_instant_of_a_start_but_after_it_stays() {
        let mut fixture = Fixture::new();
        fixture.skippable("before");
        fixture.must_run("cause");
        let task = fixture.begin();
        fixture.skippable("after");
        assert_eq!(fixture.schedule.succeeded(&task), ["before"]);
        assert_eq!(fixture.runs(), ["after"]);
    }

    #[test]
    fn enqueuing_a_skippable_key_again_renews_its_stamp() {
        let mut fixture = Fixture::new();
        fixture.skippable("a");
        fixture.must_run("cause");
        let task = fixture.begin();
        fixture.skippable("a");
        assert!(fixture.schedule.succeeded(&task).is_empty());
        assert_eq!(fixture.runs(), ["a"]);
    }

    #[test]
    fn a_must_run_enqueue_upgrades_a_skippable_entry_for_good() {
        let mut fixture = Fixture::new();
        fixture.skippable("a");
        fixture.must_run("a");
        fixture.skippable("a");
        fixture.must_run("b");
        assert_eq!(fixture.runs(), ["a", "b"]);
    }

    #[test]
    fn a_failure_covers_nothing_and_returns_as_must_run() {
        let mut fixture = Fixture::new();
        fixture.skippable("a");
        fixture.skippable("b");
        let task = fixture.begin();
        assert_eq!(task.kind, Kind::Skippable);
        let due = fixture.fail(&task).expect("is retried");
        assert_eq!(due, fixture.now + 10 * MILLI);
        assert_eq!(
            fixture.schedule.depth(),
            Depth {
                ready: 1,
                delayed: 1
            }
        );
        assert_eq!(fixture.runs(), ["b"]);

        assert_eq!(fixture.schedule.next(fixture.now), Next::WaitUntil(due));
        fixture.now = due;
        assert_eq!(fixture.schedule.next(fixture.now), Next::Run);
        let task = fixture.begin();
        assert_eq!(
            (task.attempt, task.kind, task.waited),
            (2, Kind::MustRun, 10 * MILLI)
        );
    }

    #[test]
    fn news_end_a_backoff_but_not_the_count_of_failures() {
        let mut fixture = Fixture::new();
        fixture.must_run("a");
        for attempt in 1..=3 {
            let task = fixture.begin();
            assert_eq!(task.attempt, attempt);
            fixture.fail(&task);
            fixture.skippable("a");
        }
        let task = fixture.begin();
        fixture.schedule.succeeded(&task);
        fixture.must_run("a");
        assert_eq!(fixture.begin().attempt, 1);
    }

    #[test]
    fn news_during_a_failing_run_make_the_retry_immediate() {
        let mut fixture = Fixture::new();
        fixture.must_run("a");
        let task = fixture.begin();
        fixture.skippable("a");
        assert_eq!(fixture.fail(&task), Some(fixture.now));
        let task = fixture.begin();
        assert_eq!((task.attempt, task.kind), (2, Kind::MustRun));
    }

    #[test]
    fn after_the_close_each_key_has_one_last_try() {
        let mut fixture = Fixture::new();
        fixture.must_run("delayed");
        let task = fixture.begin();
        fixture.fail(&task);
        fixture.must_run("running");
        let running = fixture.begin();
        fixture.must_run("queued");

        fixture.schedule.close(fixture.now);
        assert_eq!(fixture.fail(&running), Some(fixture.now));
        let mut tried = Vec::new();
        while fixture.schedule.next(fixture.now) == Next::Run {
            let task = fixture.begin();
            assert_eq!(fixture.fail(&task), None);
            tried.push(task.key);
        }
        assert_eq!(tried, ["queued", "delayed", "running"]);
        assert_eq!(fixture.schedule.next(fixture.now), Next::Stop);
        let drain = fixture.schedule.abandon(fixture.now);
        assert_eq!(
            drain,
            Drain {
                failed: 3,
                unfinished: 0
            }
        );
    }

    #[test]
    fn abandoning_counts_what_is_left() {
        let mut fixture = Fixture::new();
        fixture.must_run("running");
        fixture.begin();
        fixture.must_run("queued");
        fixture.skippable("skippable");
        let drain = fixture.schedule.abandon(fixture.now);
        assert_eq!(
            drain,
            Drain {
                failed: 0,
                unfinished: 3
            }
        );
        assert_eq!(fixture.schedule.next(fixture.now), Next::Stop);
        assert_eq!(fixture.schedule.depth(), Depth::default());
    }
}
