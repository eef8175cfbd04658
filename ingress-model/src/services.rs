//! Services with the EndpointSlices that belong to them.

use std::sync::Arc;

use hashbrown::HashMap;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};

use crate::{
    changes::{Change, Changes},
    object::{NameKey, ObjectName},
};

/// The label that says to which Service of the namespace a slice belongs. Its own name does not count.
const SERVICE: &str = "kubernetes.io/service-name";

/// A Service, which may be missing, and its slices.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) slices: Vec<(ObjectName, Arc<EndpointSlice>)>,
}

impl Served {
    fn is_unknown(&self) -> bool {
        self.service.is_none() && self.slices.is_empty()
    }
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

    /// Takes changes.
    pub(crate) fn update(&mut self, changes: &Changes<'_>) {
        self.by_name.reserve(changes.services.len());
        for change in &changes.services {
            let served = self.by_name.entry_ref(change.name).or_default();
            served.service = change.new.cloned();
            if served.is_unknown() {
                self.by_name.remove(change.name);
            }
        }
        for change in &changes.endpoint_slices {
            self.take_slice(change);
        }
    }

    fn take_slice(&mut self, change: &Change<'_, EndpointSlice>) {
        let name = change.name;
        if let Some(service) = change.old.and_then(|slice| service_of(name, slice))
            && let Some(served) = self.by_name.get_mut(&service)
        {
            served.slices.retain(|(known, _)| known != name);
            if served.is_unknown() {
                self.by_name.remove(&service);
            }
        }
        if let Some(slice) = change.new
            && let Some(service) = service_of(name, slice)
        {
            self.add_slice(&service, (name.clone(), Arc::clone(slice)));
        }
    }

    fn add_slice(&mut self, service: &NameKey<'_>, slice: (ObjectName, Arc<EndpointSlice>)) {
        if let Some(served) = self.by_name.get_mut(service) {
            // Most Services have one.
            served.slices.reserve_exact(1);
            served.slices.push(slice);
        } else {
            let served = Served {
                service: None,
                slices: vec![slice],
            };
            self.by_name.insert(service.into(), served);
        }
    }
}

/// The Services that changes concern, which may be repeated.
pub(crate) fn concerned(changes: &Changes<'_>) -> impl Iterator<Item = ObjectName> {
    let services = changes.services.iter().map(|change| change.name.clone());
    let slices = changes.endpoint_slices.iter().flat_map(|change| {
        let versions = [change.old, change.new].into_iter().flatten();
        versions.filter_map(|slice| {
            service_of(change.name, slice)
                .as_ref()
                .map(ObjectName::from)
        })
    });
    services.chain(slices)
}

/// The Service that a slice belongs to: the one of its namespace that the label names, whatever the slice is called.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let slice = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, \
///              metadata: {name: by-hand, namespace: shop, labels: {kubernetes.io/service-name: web}}, \
///              ports: [{name: http, port: 8080}], endpoints: [{addresses: [10.0.0.7]}]}";
/// let served = Fixture::from_yaml(slice)?
///     .and_service("shop/web", 80, &["10.0.0.1"])
///     .and_ingress("shop/a", &[], &["a.test/ web:80"])
///     .merge();
/// served.assert_endpoints("a.test/", ["10.0.0.1:80", "10.0.0.7:8080"]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn service_of<'a>(name: &'a ObjectName, slice: &'a EndpointSlice) -> Option<NameKey<'a>> {
    let labels = slice.metadata.labels.as_ref()?;
    labels.get(SERVICE).map(|service| name.sibling_key(service))
}
