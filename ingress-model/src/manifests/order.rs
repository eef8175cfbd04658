//! When Ingresses without date count as created: in the order of the files, and as before where that order allows it. So
//! an Ingress that comes or goes changes none of those behind it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::object::ObjectRef;

/// Seconds between two neighbours at first, in which others find room. All of them are long before those with a date.
const GAP: i64 = 1000;

/// Undated Ingresses, in the order of their places in files.
#[derive(Debug)]
pub(super) struct Order<P> {
    slots: BTreeMap<P, Slot>,
    /// Places that are new, with the times that their objects had elsewhere.
    unsettled: BTreeMap<P, Option<i64>>,
}

#[derive(Debug)]
struct Slot {
    object: ObjectRef,
    /// In seconds; of no meaning while it is unsettled.
    created: i64,
}

impl<P> Default for Order<P> {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
            unsettled: BTreeMap::new(),
        }
    }
}

impl<P: Ord + Clone> Order<P> {
    /// Takes an object away; answers its time.
    pub(super) fn remove(&mut self, place: &P) -> Option<i64> {
        self.unsettled.remove(place);
        self.slots.remove(place).map(|slot| slot.created)
    }

    /// Adds an object at a place that is free, with the time that it had before.
    pub(super) fn insert(&mut self, place: P, object: ObjectRef, before: Option<i64>) {
        let slot = Slot { object, created: 0 };
        self.slots.insert(place.clone(), slot);
        self.unsettled.insert(place, before);
    }

    /// When the object at a place counts as created.
    pub(super) fn created(&self, place: &P) -> Option<Timestamp> {
        let slot = self.slots.get(place)?;
        Timestamp::from_second(slot.created).ok()
    }

    /// Finds times for new places between those of their neighbours; answers the objects whose time is another one
    /// besides. Where there is no room, all get new times.
    pub(super) fn settle(&mut self) -> Vec<ObjectRef> {
        let mut unsettled = std::mem::take(&mut self.unsettled);
        while let Some(first) = unsettled.keys().next().cloned() {
            let earlier = self.slots.range(..&first).next_back();
            let low = earlier.map_or(0, |(_, slot)| slot.created);
            let mut high = None;
            let mut run = Vec::new();
            let mut before = Vec::new();
            for (place, slot) in self.slots.range_mut(&first..) {
                let Some(time) = unsettled.remove(place) else {
                    high = Some(slot.created);
                    break;
                };
                run.push(slot);
                before.push(time);
            }
            let Some(times) = times(low, before, high) else {
                return self.renumber();
            };
            for (slot, created) in run.into_iter().zip(times) {
                slot.created = created;
            }
        }
        Vec::new()
    }

    fn renumber(&mut self) -> Vec<ObjectRef> {
        let times = (1..).map(|number: i64| number.saturating_mul(GAP));
        let renumbered = self.slots.values_mut().zip(times).map(|(slot, created)| {
            slot.created = created;
            slot.object.clone()
        });
        renumbered.collect()
    }
}

/// Ascending times between two for objects in their order, given those that some of them had. `None` where there is no
/// room.
fn times(low: i64, before: Vec<Option<i64>>, high: Option<i64>) -> Option<Vec<i64>> {
    let mut last = low;
    let fits = |time: i64, last| time > last && high.is_none_or(|high| time < high);
    let keeps = before.into_iter().map(|time| {
        let kept = time.filter(|time| fits(*time, last));
        last = kept.unwrap_or(last);
        kept
    });
    let mut keeps: Vec<_> = keeps.collect();
    let count = keeps.len();
    keeps.extend(high.map(Some));
    let mut times: Vec<i64> = Vec::with_capacity(keeps.len());
    for run in keeps.split_inclusive(Option::is_some) {
        let low = times.last().copied().unwrap_or(low);
        let high = run.last().copied().flatten();
        let step = high.map_or(GAP, |high| (high - low) / steps(run.len()));
        if step == 0 {
            return None;
        }
        let new = run.len() - usize::from(high.is_some());
        times.extend((1..=steps(new)).map(|number| low + number * step));
        times.extend(high);
    }
    times.truncate(count);
    Some(times)
}

fn steps(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::object::{ObjectKind, ObjectName};

    use super::*;

    #[test]
    fn times_are_kept_where_their_order_is() {
        for (before, want) in [
            (&[None, None][..], &[1000, 2000][..]),
            (&[Some(1000), Some(3000)], &[1000, 3000]),
            (&[None, Some(1000), Some(2000)], &[500, 1000, 2000]),
            (
                &[Some(1000), None, None, Some(2000)],
                &[1000, 1333, 1666, 2000],
            ),
            (&[Some(1000), None], &[1000, 2000]),
            (&[Some(2000), Some(1000), Some(3000)], &[2000, 2500, 3000]),
            (&[], &[]),
        ] {
            assert_eq!(times(0, before.to_vec(), None).unwrap(), want, "{before:?}");
        }
        assert_eq!(times(0, vec![Some(1000), None, Some(1001)], None), None);
        assert_eq!(
            times(1000, vec![None, Some(5)], Some(2000)).unwrap(),
            [1333, 1666]
        );
        assert_eq!(times(1000, vec![Some(2000)], Some(2000)).unwrap(), [1500]);
        assert_eq!(times(1, vec![None], Some(2)), None);
    }

    #[test]
    fn only_new_places_get_times_while_there_is_room() {
        let object =
            |name: &str| ObjectRef::new(ObjectKind::Ingress, ObjectName::new("shop", name));
        let mut order = Order::default();
        for (place, name) in [(100, "a"), (200, "b")] {
            order.insert(place, object(name), None);
        }
        assert_eq!(order.settle(), []);
        let mut place = 200;
        let mut renumbered = Vec::new();
        while renumbered.is_empty() {
            place -= 1;
            order.insert(place, object("new"), None);
            renumbered = order.settle();
            assert!(place > 101, "no room is never found out");
            let times = order.slots.values().map(|slot| slot.created);
            assert!(times.is_sorted_by(|a, b| a < b), "{order:?}");
        }
        assert_eq!(order.created(&100), Timestamp::from_second(1000).ok());
        assert_eq!(renumbered.len(), order.slots.len());
        let former = order.remove(&200);
        order.insert(250, object("b"), former);
        assert_eq!(order.settle(), []);
        assert_eq!(order.created(&250).map(Timestamp::as_second), former);
    }
}
