//! The notices that wait for being told: each once, warnings first, and one that repeats not too often.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::events::{Notice, Weight};

/// The least time between two times that the same thing is told.
const REPEAT: Duration = Duration::from_secs(10);

/// How long the first retry waits; each one after it twice as long as the one before.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The longest such wait.
const LONGEST_RETRY: Duration = Duration::from_secs(300);

/// How often it is tried to tell something that the API server refuses.
const MOST_TRIES: u32 = 8;

/// How many notices may wait.
const MOST_WAITING: usize = 20_000;

/// How long what was told is remembered: as long as API servers keep Events.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Notices that wait, and what is known of those that were told.
#[derive(Debug)]
pub(super) struct Backlog {
    known: HashMap<Arc<Notice>, Record>,
    warnings: VecDeque<Arc<Notice>>,
    others: VecDeque<Arc<Notice>>,
    /// Those whose time has not come, with a number that tells them apart.
    later: BTreeMap<(Instant, u64), Arc<Notice>>,
    numbers: u64,
    tidy_at: Instant,
}

#[derive(Debug, Default)]
struct Record {
    /// How often it happened, as the Event says; 0 before there is one.
    told: i32,
    told_at: Option<Instant>,
    /// How often it happened since.
    untold: i32,
    waits: bool,
    tries: u32,
}

/// Something to be told now.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub(super) notice: Arc<Notice>,
    /// How often it happened according to its Event; 0: there is none yet.
    pub(super) told: i32,
    /// How often it happened in all.
    pub(super) count: i32,
}

impl Backlog {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            known: HashMap::new(),
            warnings: VecDeque::new(),
            others: VecDeque::new(),
            later: BTreeMap::new(),
            numbers: 0,
            tidy_at: now + REMEMBERED,
        }
    }

    /// Takes in something that happened. Answers whether there is room for it.
    pub(super) fn report(&mut self, notice: Notice, now: Instant) -> bool {
        let waiting = self.warnings.len() + self.others.len() + self.later.len();
        let notice = Arc::new(notice);
        if waiting >= MOST_WAITING && !self.known.contains_key(&notice) {
            return false;
        }
        let record = self.known.entry(Arc::clone(&notice)).or_default();
        record.untold = record.untold.saturating_add(1);
        if record.waits {
            return true;
        }
        record.waits = true;
        match record.told_at.map(|told| told + REPEAT) {
            Some(due) if due > now => self.put_off(notice, due),
            _ => self.line_up(notice),
        }
        true
    }

    /// What is to be told next, if anything is.
    pub(super) fn next(&mut self, now: Instant) -> Option<Due> {
        self.tidy(now);
        while let Some(entry) = self.later.first_entry()
            && entry.key().0 <= now
        {
            let notice = entry.remove();
            self.line_up(notice);
        }
        let notice = self
            .warnings
            .pop_front()
            .or_else(|| self.others.pop_front())?;
        let record = self.known.get(&notice)?;
        Some(Due {
            told: record.told,
            count: record.told.saturating_add(record.untold),
            notice,
        })
    }

    /// When there is something to be told unless more happens.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.later.keys().next().map(|(due, _)| *due)
    }

    /// It was told: its Event says that it happened so often.
    pub(super) fn told(&mut self, due: &Due, count: i32, now: Instant) {
        let Some(record) = self.known.get_mut(&due.notice) else {
            return;
        };
        record.untold -= due.count - due.told;
        record.told = count;
        record.told_at = Some(now);
        record.tries = 0;
        record.waits = record.untold > 0;
        if record.waits {
            self.put_off(Arc::clone(&due.notice), now + REPEAT);
        }
    }

    /// It could not be told. Answers whether it is tried again.
    pub(super) fn failed(&mut self, due: &Due, refused: bool, now: Instant) -> bool {
        let Some(record) = self.known.get_mut(&due.notice) else {
            return false;
        };
        record.tries += 1;
        if refused && record.tries >= MOST_TRIES {
            self.give_up(due);
            return false;
        }
        let wait = FIRST_RETRY.saturating_mul(1 << (record.tries - 1).min(16));
        self.put_off(Arc::clone(&due.notice), now + wait.min(LONGEST_RETRY));
        true
    }

    /// It need not be told any more.
    pub(super) fn give_up(&mut self, due: &Due) {
        self.known.remove(&due.notice);
    }

    fn line_up(&mut self, notice: Arc<Notice>) {
        match notice.weight {
            Weight::Warning => self.warnings.push_back(notice),
            Weight::Normal => self.others.push_back(notice),
        }
    }

    fn put_off(&mut self, notice: Arc<Notice>, due: Instant) {
        self.numbers += 1;
        self.later.insert((due, self.numbers), notice);
    }

    fn tidy(&mut self, now: Instant) {
        if now < self.tidy_at {
            return;
        }
        self.tidy_at = now + REMEMBERED;
        self.known.retain(|_, record| {
            let recent = record.told_at.is_none_or(|told| told + REMEMBERED > now);
            record.waits || recent
        });
    }
}

#[cfg(test)]
mod tests {
    use ingress_model::{ObjectKind, ObjectName, ObjectRef};

    use super::*;
    use crate::publish::events::About;

    fn notice(weight: Weight, message: &str) -> Notice {
        let object = ObjectRef::new(ObjectKind::Ingress, ObjectName::new("a", "b"));
        Notice {
            about: About { object, uid: None },
            weight,
            reason: "Test",
            message: message.to_owned(),
        }
    }

    fn normal(message: &str) -> Notice {
        notice(Weight::Normal, message)
    }

    fn next(backlog: &mut Backlog, now: Instant) -> Option<(String, i32)> {
        let due = backlog.next(now)?;
        Some((due.notice.message.clone(), due.count))
    }

    #[test]
    fn warnings_come_first_and_each_thing_once() {
        let now = Instant::now();
        let mut backlog = Backlog::new(now);
        for message in ["x", "y", "x", "x"] {
            assert!(backlog.report(normal(message), now));
        }
        backlog.report(notice(Weight::Warning, "w"), now);
        let told: Vec<_> = std::iter::from_fn(|| next(&mut backlog, now)).collect();
        let want = [("w", 1), ("x", 3), ("y", 1)].map(|(text, count)| (text.to_owned(), count));
        assert_eq!(told, want);
        assert_eq!(backlog.wake(), None);
    }

    #[test]
    fn what_repeats_is_gathered_for_a_while() {
        let now = Instant::now();
        let mut backlog = Backlog::new(now);
        backlog.report(normal("x"), now);
        let due = backlog.next(now).unwrap();
        // It happens once more while it is being told.
        backlog.report(normal("x"), now);
        backlog.told(&due, 1, now);
        backlog.report(normal("x"), now);
        assert_eq!(next(&mut backlog, now), None);
        let wake = backlog.wake().unwrap();
        assert_eq!(wake, now + REPEAT);
        let due = backlog.next(wake).unwrap();
        assert_eq!((due.told, due.count), (1, 3));
        backlog.told(&due, 3, wake);
        assert_eq!(backlog.wake(), None);
        // After a quiet time it is told at once.
        let later = wake + 2 * REPEAT;
        backlog.report(normal("x"), later);
        assert_eq!(next(&mut backlog, later), Some(("x".to_owned(), 4)));
    }

    #[test]
    fn what_fails_is_tried_again_later_and_later() {
        let mut now = Instant::now();
        let mut backlog = Backlog::new(now);
        backlog.report(normal("x"), now);
        let mut waits = Vec::new();
        for _ in 0..12 {
            let due = backlog.next(now).unwrap();
            assert!(backlog.failed(&due, false, now));
            let wake = backlog.wake().unwrap();
            assert!(backlog.next(wake - Duration::from_millis(1)).is_none());
            waits.push((wake - now).as_secs());
            now = wake;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        let due = backlog.next(now).unwrap();
        backlog.told(&due, 1, now);
        assert_eq!(backlog.wake(), None);
    }

    #[test]
    fn what_is_refused_again_and_again_is_given_up() {
        let mut now = Instant::now();
        let mut backlog = Backlog::new(now);
        backlog.report(normal("x"), now);
        let mut tries = 1;
        while let Some(due) = backlog.next(now)
            && backlog.failed(&due, true, now)
        {
            tries += 1;
            now = backlog.wake().unwrap();
        }
        assert_eq!(
            (tries, backlog.wake(), backlog.known.len()),
            (MOST_TRIES, None, 0)
        );
    }

    #[test]
    fn there_is_room_for_so_many_and_what_is_known() {
        let now = Instant::now();
        let mut backlog = Backlog::new(now);
        for number in 0..MOST_WAITING {
            assert!(backlog.report(normal(&number.to_string()), now));
        }
        assert!(!backlog.report(normal("x"), now));
        assert!(backlog.report(normal("0"), now));
    }

    #[test]
    fn what_was_told_long_ago_is_forgotten() {
        let now = Instant::now();
        let mut backlog = Backlog::new(now);
        backlog.report(normal("x"), now);
        let due = backlog.next(now).unwrap();
        backlog.told(&due, 1, now);
        assert!(backlog.next(now + REMEMBERED / 2).is_none());
        assert_eq!(backlog.known.len(), 1);
        assert!(backlog.next(now + REMEMBERED).is_none());
        assert_eq!(backlog.known.len(), 0);
    }
}
