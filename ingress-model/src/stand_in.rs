//! Services that answer while others cannot (`default-backend`), and who names them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{definition::Definition, live::UpstreamName, object::ObjectName, upstream::Edits};

/// A Service, and the Ingresses that name it.
#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) service: ObjectName,
    pub(crate) ingresses: BTreeSet<ObjectName>,
}

/// The Services by the name of their backend.
#[derive(Debug, Default)]
pub(crate) struct StandIns {
    by_name: BTreeMap<UpstreamName, StandIn>,
}

impl StandIns {
    /// The Service behind a backend's name.
    pub(crate) fn get(&self, name: &UpstreamName) -> Option<&StandIn> {
        self.by_name.get(name)
    }

    /// The backend of a Service, if an Ingress names it.
    pub(crate) fn of_service(&self, service: &ObjectName) -> Option<UpstreamName> {
        if self.by_name.is_empty() {
            return None;
        }
        let name = UpstreamName::stand_in(service);
        self.by_name.contains_key(&name).then_some(name)
    }

    /// Takes edits; answers the backends that come, go or are named by others.
    pub(crate) fn update(&mut self, edits: &Edits) -> BTreeSet<UpstreamName> {
        let mut touched = BTreeSet::new();
        for (name, _, definition) in edits.removed.iter().filter_map(|it| named(it)) {
            if let Some(known) = self.by_name.get_mut(&name) {
                known.ingresses.remove(&definition.name);
                touched.insert(name);
            }
        }
        for (name, service, definition) in edits.added.iter().filter_map(|it| named(it)) {
            let known = self.by_name.entry(name.clone());
            let known = known.or_insert_with(|| StandIn {
                service: service.clone(),
                ingresses: BTreeSet::new(),
            });
            known.ingresses.insert(definition.name.clone());
            touched.insert(name);
        }
        self.by_name.retain(|_, known| !known.ingresses.is_empty());
        touched
    }
}

/// The backend and Service that a definition names. A canary has no locations, and so no use for one.
fn named(definition: &Definition) -> Option<(UpstreamName, &ObjectName, &Definition)> {
    let settings = &definition.settings;
    let service = settings.default_backend.as_ref()?;
    let is_used = settings.canary.is_none();
    is_used.then(|| (UpstreamName::stand_in(service), service, definition))
}
