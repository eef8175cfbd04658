//! Which objects a merge depended on: those that it read and those that it looked for in vain.

use std::{collections::BTreeSet, fmt, sync::Arc};

use hashbrown::HashMap;

use crate::{object::ObjectRef, upstream::Edits};

/// The Services, Secrets and ConfigMaps that the configuration depends on. A change of another one changes nothing.
///
/// Ingresses, IngressClasses, Namespaces and Nodes are not listed: any of them may matter. An EndpointSlice matters if
/// the Service that its label `kubernetes.io/service-name` names does.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// How many Ingresses refer to an object.
    counted: Arc<HashMap<ObjectRef, i64>>,
    /// What flags and ConfigMaps refer to.
    fixed: Arc<BTreeSet<ObjectRef>>,
}

impl Dependencies {
    /// Whether the object matters.
    #[must_use]
    pub fn contains(&self, object: &ObjectRef) -> bool {
        self.counted.contains_key(object) || self.fixed.contains(object)
    }

    /// All of them, sorted.
    #[must_use]
    pub fn to_set(&self) -> BTreeSet<&ObjectRef> {
        self.counted.keys().chain(self.fixed.iter()).collect()
    }

    /// Takes what definitions refer to that came, and forgets what those did that went.
    pub(crate) fn update(&mut self, edits: &Edits) {
        let mut counts: HashMap<ObjectRef, i64> = HashMap::with_capacity(edits.added.len());
        for object in edits.added.iter().flat_map(|added| added.dependencies()) {
            *counts.entry(object).or_default() += 1;
        }
        for object in edits
            .removed
            .iter()
            .flat_map(|removed| removed.dependencies())
        {
            *counts.entry(object).or_default() -= 1;
        }
        // A changed Ingress mostly refers to what it did, and to change the map may be to copy it.
        counts.retain(|_, count| *count != 0);
        if counts.is_empty() {
            return;
        }
        if self.counted.is_empty() {
            self.counted = Arc::new(counts);
            return;
        }
        let counted = Arc::make_mut(&mut self.counted);
        for (object, count) in counts.into_iter().collect::<Vec<_>>() {
            let known = counted.entry_ref(&object).or_default();
            *known += count;
            if *known == 0 {
                counted.remove(&object);
            }
        }
    }

    pub(crate) fn set_fixed(&mut self, fixed: BTreeSet<ObjectRef>) {
        if *self.fixed != fixed {
            self.fixed = Arc::new(fixed);
        }
    }
}

impl fmt::Debug for Dependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.to_set()).finish()
    }
}
