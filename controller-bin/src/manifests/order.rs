//! When Ingresses without date count as created: in the order of the files, and as before where that order allows it. So
//! an Ingress that comes or goes changes none of those behind it.

use std::collections::BTreeMap;

use ingress_model::{ObjectRef, manifests::Placed};
use jiff::Timestamp;

/// Seconds between two neighbours at first, in which others find room. All of them are long before those with a date.
const GAP: i64 = 1000;

/// Gives the undated objects the times that they were told with, or times between those of their neighbours.
pub(super) fn keep(told: &BTreeMap<ObjectRef, Placed>, now: &mut BTreeMap<ObjectRef, Placed>) {
    let mut undated: Vec<_> = now
        .iter_mut()
        .filter_map(|(object, placed)| Some((placed.created?, object, &mut placed.created)))
        .collect();
    undated.sort_unstable_by_key(|(position, ..)| *position);
    let before = undated.iter().map(|(_, object, _)| {
        let created = told.get(*object)?.created?;
        Some(created.as_second())
    });
    let places = places(before.collect());
    for ((_, _, created), place) in undated.into_iter().zip(places) {
        *created = Timestamp::from_second(place).ok();
    }
}

/// Ascending places for objects in their order, given those that some of them had.
fn places(before: Vec<Option<i64>>) -> Vec<i64> {
    let mut last = 0;
    let keeps = before.into_iter().map(|place| {
        let kept = place.filter(|place| *place > last);
        last = kept.unwrap_or(last);
        kept
    });
    let keeps: Vec<_> = keeps.collect();
    let mut places: Vec<i64> = Vec::with_capacity(keeps.len());
    for run in keeps.split_inclusive(Option::is_some) {
        let low = places.last().copied().unwrap_or_default();
        let high = run.last().copied().flatten();
        let step = high.map_or(GAP, |high| (high - low) / steps(run.len()));
        if step == 0 {
            return (1..=steps(keeps.len()))
                .map(|number| number * GAP)
                .collect();
        }
        let count = run.len() - usize::from(high.is_some());
        places.extend((1..=steps(count)).map(|number| low + number * step));
        places.extend(high);
    }
    places
}

fn steps(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_kept_where_their_order_is() {
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
            (&[Some(1000), None, Some(1001)], &[1000, 2000, 3000]),
            (&[], &[]),
        ] {
            assert_eq!(places(before.to_vec()), want, "{before:?}");
        }
    }
}
