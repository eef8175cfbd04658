//! Services with the EndpointSlices that belong to them.

use std::sync::Arc;

use hashbrown::{HashMap, hash_map::EntryRef};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};

use crate::{
    changes::{Change, Changes},
    object::ObjectName,
};

/// The label that says to which Service of the namespace a slice belongs. Its own name does not count.
const SERVICE: &str = "kubernetes.io/service-name";

/// A Service, which may be missing, and its slices.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) slices: Vec<(ObjectName, Arc<EndpointSlice>)>,
}

/// All Services.
#[derive(Debug, Default)]
pub(crate) struct Services {
    by_name: HashMap<ObjectName, Served>,
}

impl Services {
    /// The Service of that name, if it is there or slices name it.
    pub(crate) fn get(&self, name: &ObjectName) -> Option<&Served> {
        self.by_name.get(name)
    }

    /// Takes changes; answers the Services that they concern, which may be repeated.
    pub(crate) fn update(&mut self, changes: &Changes<'_>) -> Vec<ObjectName> {
        let count = changes.services.len() + changes.endpoint_slices.len();
        self.by_name.reserve(changes.services.len());
        let mut touched = Vec::with_capacity(count);
        for change in &changes.services {
            self.edit(change.name, |served| served.service = change.new.cloned());
            touched.push(change.name.clone());
        }
        for change in &changes.endpoint_slices {
            self.take_slice(change, &mut touched);
        }
        touched
    }

    fn take_slice(&mut self, change: &Change<'_, EndpointSlice>, touched: &mut Vec<ObjectName>) {
        let name = change.name;
        if let Some(service) = change.old.and_then(|slice| service_of(name, slice)) {
            self.edit(&service, |served| {
                served.slices.retain(|(known, _)| known != name);
            });
            touched.push(service);
        }
        if let Some(slice) = change.new
            && let Some(service) = service_of(name, slice)
        {
            self.edit(&service, |served| {
                served.slices.push((name.clone(), Arc::clone(slice)));
            });
            touched.push(service);
        }
    }

    /// Changes what is known of a Service, and forgets it when nothing is.
    fn edit(&mut self, name: &ObjectName, change: impl FnOnce(&mut Served)) {
        let mut entry = match self.by_name.entry_ref(name) {
            EntryRef::Occupied(entry) => entry,
            EntryRef::Vacant(entry) => entry.insert_entry(Served::default()),
        };
        change(entry.get_mut());
        if entry.get().service.is_none() && entry.get().slices.is_empty() {
            entry.remove();
        }
    }
}

fn service_of(name: &ObjectName, slice: &EndpointSlice) -> Option<ObjectName> {
    let labels = slice.metadata.labels.as_ref()?;
    labels.get(SERVICE).map(|service| name.sibling(service))
}
