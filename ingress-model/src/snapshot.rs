//! The cluster objects that one merge may read.

use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Node, Secret, Service},
    discovery::v1::EndpointSlice,
    networking::v1::{Ingress, IngressClass},
};

use crate::object::ObjectMap;

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
}
