//! EndpointSlices by the Service to which they belong.

use std::{collections::BTreeSet, sync::Arc};

use hashbrown::HashMap;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::object::{ObjectMap, ObjectName};

/// The label that says to which Service of the namespace a slice belongs. Its own name does not count.
const SERVICE: &str = "kubernetes.io/service-name";

/// Slices of Services.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    by_service: HashMap<ObjectName, Vec<(ObjectName, Arc<EndpointSlice>)>>,
}

impl Slices {
    /// The slices of a Service, by name.
    pub(crate) fn of(&self, service: &ObjectName) -> &[(ObjectName, Arc<EndpointSlice>)] {
        self.by_service.get(service).map_or(&[], |slices| slices)
    }

    /// Takes the named slices as they are now; answers the Services that they belong or belonged to.
    pub(crate) fn update(
        &mut self,
        changed: &[ObjectName],
        old: &ObjectMap<EndpointSlice>,
        new: &ObjectMap<EndpointSlice>,
    ) -> BTreeSet<ObjectName> {
        let mut touched = BTreeSet::new();
        for name in changed {
            if let Some(service) = old.get(name).and_then(|slice| service_of(name, slice)) {
                if let Some(slices) = self.by_service.get_mut(&service) {
                    slices.retain(|(known, _)| known != name);
                    if slices.is_empty() {
                        self.by_service.remove(&service);
                    }
                }
                touched.insert(service);
            }
        }
        for name in changed {
            let Some(slice) = new.get(name) else {
                continue;
            };
            if let Some(service) = service_of(name, slice) {
                let slices = self.by_service.entry_ref(&service).or_default();
                slices.push((name.clone(), Arc::clone(slice)));
                touched.insert(service);
            }
        }
        for service in &touched {
            if let Some(slices) = self.by_service.get_mut(service) {
                slices.sort_by(|a, b| a.0.cmp(&b.0));
            }
        }
        touched
    }
}

fn service_of(name: &ObjectName, slice: &EndpointSlice) -> Option<ObjectName> {
    let labels = slice.metadata.labels.as_ref()?;
    labels.get(SERVICE).map(|service| name.sibling(service))
}
