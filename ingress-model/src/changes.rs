//! What differs between two collections of objects.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret, Service},
    discovery::v1::EndpointSlice,
    networking::v1::Ingress,
};

use crate::{
    object::{ObjectMap, ObjectName},
    shared_map::Pair,
    snapshot::Snapshot,
};

/// What is different in a newer snapshot.
#[derive(Debug)]
pub(crate) struct Changes<'a> {
    pub(crate) ingresses: Vec<Change<'a, Ingress>>,
    pub(crate) last_good: Vec<Change<'a, Ingress>>,
    pub(crate) services: Vec<Change<'a, Service>>,
    pub(crate) endpoint_slices: Vec<Change<'a, EndpointSlice>>,
    pub(crate) secrets: Vec<Change<'a, Secret>>,
    last_good_secrets: Vec<Change<'a, Secret>>,
    pub(crate) config_maps: Vec<Change<'a, ConfigMap>>,
}

impl<'a> Changes<'a> {
    /// The changes that lead from one snapshot to the other.
    pub(crate) fn between(old: &'a Snapshot, new: &'a Snapshot) -> Self {
        Self {
            ingresses: between(&old.ingresses, &new.ingresses),
            last_good: between(old.last_good.objects(), new.last_good.objects()),
            services: between(&old.services, &new.services),
            endpoint_slices: between(&old.endpoint_slices, &new.endpoint_slices),
            secrets: between(&old.secrets, &new.secrets),
            last_good_secrets: between(&old.last_good.secrets, &new.last_good.secrets),
            config_maps: between(&old.config_maps, &new.config_maps),
        }
    }

    /// Counts a Secret as changed whose last good version is another one, where that one is used instead.
    pub(crate) fn let_secrets_count(&mut self, is_unusable: impl Fn(&ObjectName) -> bool) {
        for change in self.last_good_secrets.drain(..) {
            let known = self
                .secrets
                .binary_search_by(|known| known.name.cmp(change.name));
            if let Err(place) = known
                && is_unusable(change.name)
            {
                self.secrets.insert(place, change);
            }
        }
    }
}

/// An object that is new, gone or another one.
#[derive(Debug)]
pub(crate) struct Change<'a, K> {
    pub(crate) name: &'a ObjectName,
    pub(crate) old: Option<&'a Arc<K>>,
    pub(crate) new: Option<&'a Arc<K>>,
}

/// The changes that lead from one map to the other, by name. Objects are compared by their shared pointers.
fn between<'a, K>(old: &'a ObjectMap<K>, new: &'a ObjectMap<K>) -> Vec<Change<'a, K>> {
    let pointer = |object: Option<&'a Arc<K>>| object.map(Arc::as_ptr);
    let differences = old.differences(new);
    let changes = differences.filter(|(_, (old, new))| pointer(*old) != pointer(*new));
    let changes = changes.map(|(name, (old, new))| Change { name, old, new });
    // At first all objects are new, later few are.
    let mut all = Vec::with_capacity(if old.is_empty() { new.len() } else { 0 });
    all.extend(changes);
    all
}

/// The keys of both maps, each once and in order, with their values.
pub(crate) fn pairs<'a, K: Ord, V>(
    old: &'a BTreeMap<K, V>,
    new: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, Pair<'a, V>)> {
    let mut left = old.iter().peekable();
    let mut right = new.iter().peekable();
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            // Keys are mostly the same pointer, which is soon told.
            (Some((a, _)), Some((b, _))) if a == b => Ordering::Equal,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let old = left.next_if(|_| order.is_le());
        let new = right.next_if(|_| order.is_ge());
        let (key, _) = old.or(new)?;
        Some((
            key,
            (old.map(|(_, value)| value), new.map(|(_, value)| value)),
        ))
    })
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
        let changes: Vec<_> = between(&old, &new)
            .iter()
            .map(|change| {
                let value = |object: Option<&Arc<u8>>| object.map(|object| **object);
                (
                    change.name.name().to_owned(),
                    value(change.old),
                    value(change.new),
                )
            })
            .collect();
        let expected = [
            ("a", Some(1), None),
            ("b", Some(1), Some(1)),
            ("d", None, Some(2)),
            ("e", Some(2), None),
            ("f", None, Some(1)),
        ];
        assert_eq!(
            changes,
            expected.map(|(name, old, new)| (name.to_owned(), old, new))
        );
        assert!(between(&old, &old.clone()).is_empty());
        let copy = map(&[("a", &one), ("b", &one), ("c", &two), ("e", &two)]);
        assert!(between(&old, &copy).is_empty());
    }
}
