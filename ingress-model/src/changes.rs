//! What differs between two collections of objects.

use std::{cmp::Ordering, sync::Arc};

use crate::object::{ObjectMap, ObjectName};

/// The names under which the two maps have different objects, or only one of them has one.
///
/// Objects are compared by their shared pointers: one step a name, none at all when the maps are one.
pub(crate) fn changed<K>(old: &ObjectMap<K>, new: &ObjectMap<K>) -> Vec<ObjectName> {
    let mut names = Vec::new();
    if old.is_same(new) {
        return names;
    }
    let (mut olds, mut news) = (old.iter(), new.iter());
    let (mut left, mut right) = (olds.next(), news.next());
    loop {
        let order = match (left, right) {
            (None, None) => return names,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) if a == b => Ordering::Equal,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        match (order, left, right) {
            (Ordering::Less, Some((name, _)), _) => {
                names.push(name.clone());
                left = olds.next();
            }
            (Ordering::Greater, _, Some((name, _))) => {
                names.push(name.clone());
                right = news.next();
            }
            (_, Some((name, a)), Some((_, b))) => {
                if !Arc::ptr_eq(a, b) {
                    names.push(name.clone());
                }
                left = olds.next();
                right = news.next();
            }
            _ => return names,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &Arc<u8>)]) -> ObjectMap<u8> {
        entries
            .iter()
            .map(|(name, value)| (ObjectName::new("ns", name), Arc::clone(value)))
            .collect()
    }

    #[test]
    fn only_other_objects_count() {
        let (one, two) = (Arc::new(1), Arc::new(2));
        let another_one = Arc::new(1);
        let old = map(&[("a", &one), ("b", &one), ("c", &two), ("e", &two)]);
        let new = map(&[("b", &another_one), ("c", &two), ("d", &two), ("f", &one)]);
        let names: Vec<_> = changed(&old, &new)
            .iter()
            .map(|name| name.name().to_owned())
            .collect();
        assert_eq!(names, ["a", "b", "d", "e", "f"]);
        assert!(changed(&old, &old.clone()).is_empty());
        assert!(
            changed(
                &old,
                &map(&[("a", &one), ("b", &one), ("c", &two), ("e", &two)])
            )
            .is_empty()
        );
    }
}
