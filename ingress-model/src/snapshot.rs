//! The cluster objects that one merge may read.

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Node, Secret, Service},
    discovery::v1::EndpointSlice,
    networking::v1::{Ingress, IngressClass},
};

use crate::object::{ObjectMap, ObjectName};

/// The objects of a cluster at one moment. Cloning shares them all.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Ingresses of every class; the rules select.
    pub ingresses: ObjectMap<Ingress>,
    /// IngressClasses, named without namespace.
    pub ingress_classes: ObjectMap<IngressClass>,
    /// Services.
    pub services: ObjectMap<Service>,
    /// EndpointSlices; they belong to the Service that their label `kubernetes.io/service-name` names.
    pub endpoint_slices: ObjectMap<EndpointSlice>,
    /// Secrets.
    pub secrets: ObjectMap<Secret>,
    /// ConfigMaps: the controller's own and those that annotations refer to.
    pub config_maps: ObjectMap<ConfigMap>,
    /// Namespaces, for `--watch-namespace-selector`.
    pub namespaces: ObjectMap<Namespace>,
    /// Nodes, for topology-aware routing.
    pub nodes: ObjectMap<Node>,
    /// The versions of Ingresses that were served before, from the [`Outcome`](crate::Outcome) of the merge before: an
    /// Ingress whose current version is refused goes on being served as it was.
    pub last_good: LastGood,
}

/// Versions of Ingresses that are or were served. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct LastGood(ObjectMap<Ingress>);

impl LastGood {
    /// The version of an Ingress that is or was served.
    #[must_use]
    pub fn get(&self, name: &ObjectName) -> Option<&Arc<Ingress>> {
        self.0.get(name)
    }

    pub(crate) fn objects(&self) -> &ObjectMap<Ingress> {
        &self.0
    }

    /// Takes the versions that are served now; `None`: the Ingress is not.
    pub(crate) fn update(&mut self, served: Vec<(ObjectName, Option<Arc<Ingress>>)>) {
        if self.0.is_empty() {
            let served = served.into_iter();
            self.0 = served
                .filter_map(|(name, ingress)| Some((name, ingress?)))
                .collect();
            return;
        }
        for (name, ingress) in served {
            match ingress {
                None => {
                    self.0.remove(&name);
                }
                Some(ingress) => {
                    let known = self.0.get(&name);
                    if !known.is_some_and(|known| Arc::ptr_eq(known, &ingress)) {
                        self.0.insert(name, ingress);
                    }
                }
            }
        }
    }
}

impl PartialEq for LastGood {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
            || self.0.len() == other.0.len() && self.0.iter().eq(other.0.iter())
    }
}

impl Eq for LastGood {}
