//! Which objects a merge depended on: those that it read and those that it looked for in vain.

use std::{collections::BTreeSet, fmt, sync::Arc};

use hashbrown::HashMap;

use crate::{definition::Definition, object::ObjectRef};

/// The Services, Secrets and ConfigMaps that the configuration depends on. A change of another one changes nothing.
///
/// Ingresses, IngressClasses, Namespaces and Nodes are not listed: any of them may matter. An EndpointSlice matters if
/// the Service that its label `kubernetes.io/service-name` names does.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// How many Ingresses refer to an object.
    counted: Arc<HashMap<ObjectRef, u32>>,
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

    pub(crate) fn add(&mut self, definition: &Definition) {
        let counted = Arc::make_mut(&mut self.counted);
        for object in definition.dependencies() {
            *counted.entry(object).or_default() += 1;
        }
    }

    pub(crate) fn remove(&mut self, definition: &Definition) {
        let counted = Arc::make_mut(&mut self.counted);
        for object in definition.dependencies() {
            if let Some(count) = counted.get_mut(&object) {
                *count -= 1;
                if *count == 0 {
                    counted.remove(&object);
                }
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
