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
    /// What was served before, from the [`Outcome`](crate::Outcome) of the merge before: an Ingress whose current version
    /// is refused goes on being served as it was, and a host with the certificate that its Secret held.
    pub last_good: LastGood,
}

/// Versions of Ingresses that are or were served, and of Secrets whose certificates could be used. Cloning is cheap.
///
/// Two are equal when the Ingresses are.
#[derive(Clone, Debug, Default)]
pub struct LastGood {
    ingresses: ObjectMap<Ingress>,
    /// Of Secrets that were looked at; which ones these are is left to how the merge goes about it.
    pub(crate) secrets: ObjectMap<Secret>,
}

impl LastGood {
    /// The version of an Ingress that is or was served.
    #[must_use]
    pub fn get(&self, name: &ObjectName) -> Option<&Arc<Ingress>> {
        self.ingresses.get(name)
    }

    pub(crate) fn objects(&self) -> &ObjectMap<Ingress> {
        &self.ingresses
    }

    pub(crate) fn with_secrets(mut self, secrets: ObjectMap<Secret>) -> Self {
        self.secrets = secrets;
        self
    }

    /// Takes the versions that are served now; `None`: the Ingress is not.
    pub(crate) fn update(&mut self, served: Vec<(ObjectName, Option<Arc<Ingress>>)>) {
        if self.ingresses.is_empty() {
            let served = served.into_iter();
            self.ingresses = served
                .filter_map(|(name, ingress)| Some((name, ingress?)))
                .collect();
            return;
        }
        for (name, ingress) in served {
            match ingress {
                None => {
                    self.ingresses.remove(&name);
                }
                Some(ingress) => {
                    let known = self.ingresses.get(&name);
                    if !known.is_some_and(|known| Arc::ptr_eq(known, &ingress)) {
                        self.ingresses.insert(name, ingress);
                    }
                }
            }
        }
    }
}

impl PartialEq for LastGood {
    fn eq(&self, other: &Self) -> bool {
        self.ingresses.is_same(&other.ingresses)
            || self.ingresses.len() == other.ingresses.len()
                && self.ingresses.iter().eq(other.ingresses.iter())
    }
}

impl Eq for LastGood {}
