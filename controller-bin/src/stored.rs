//! The kinds of objects that the store holds: what is kept of each, and which changes of it matter.

use std::fmt;

use ingress_model::{ObjectKind, ObjectMap, ObjectName, Snapshot};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Namespace, Node, NodeStatus, Secret, Service},
        discovery::v1::EndpointSlice,
        networking::v1::{Ingress, IngressClass},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Resource;
use serde::de::DeserializeOwned;

/// A kind of object that the store holds.
pub trait Stored:
    Resource<DynamicType = ()>
    + DeserializeOwned
    + Clone
    + PartialEq
    + fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// The kind.
    const KIND: ObjectKind;

    /// The snapshot's objects of the kind.
    fn of(snapshot: &Snapshot) -> &ObjectMap<Self>;

    /// The snapshot's objects of the kind, to be changed.
    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self>;

    /// Whether the rules may tell `newer` from `self`.
    fn matters(&self, newer: &Self) -> bool;

    /// Whether the object is none of our business.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Drops what of this kind nobody reads.
    fn strip(&mut self) {}

    /// Drops what nobody reads, so that it takes no memory.
    fn prune(&mut self) {
        let meta = self.meta_mut();
        meta.managed_fields = None;
        if let Some(annotations) = &mut meta.annotations {
            // The whole object once more.
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
            if annotations.is_empty() {
                meta.annotations = None;
            }
        }
        self.strip();
    }

    /// The object's name; `None` when it has none, which no API server lets happen.
    fn object_name(&self) -> Option<ObjectName> {
        let meta = self.meta();
        let name = meta.name.as_deref().filter(|name| !name.is_empty())?;
        Some(ObjectName::new(
            meta.namespace.as_deref().unwrap_or_default(),
            name,
        ))
    }
}

/// Types of Secrets that no Ingress can use.
const UNUSABLE_SECRETS: &[&str] = &[
    "bootstrap.kubernetes.io/token",
    "kubernetes.io/dockercfg",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/service-account-token",
];

/// The type of Secrets in which Helm keeps its history.
pub(crate) const HELM_RELEASE: &str = "helm.sh/release.v1";

impl Stored for Ingress {
    const KIND: ObjectKind = ObjectKind::Ingress;

    fn of(snapshot: &Snapshot) -> &ObjectMap<Self> {
        &snapshot.ingresses
    }

    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self> {
        &mut snapshot.ingresses
    }

    /// The status does not matter: the controller writes it itself.
    fn matters(&self, newer: &Self) -> bool {
        identity_differs(&self.metadata, &newer.metadata) || self.spec != newer.spec
    }
}

impl Stored for IngressClass {
    const KIND: ObjectKind = ObjectKind::IngressClass;

    fn of(snapshot: &Snapshot) -> &ObjectMap<Self> {
        &snapshot.ingress_classes
    }

    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self> {
        &mut snapshot.ingress_classes
    }

    fn matters(&self, newer: &Self) -> bool {
        identity_differs(&self.metadata, &newer.metadata) || self.spec != newer.spec
    }
}

impl Stored for Service {
    const KIND: ObjectKind = ObjectKind::Service;

    fn of(snapshot: &Snapshot) -> &ObjectMap<Self> {
        &snapshot.services
    }

    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self> {
        &mut snapshot.services
    }

    fn matters(&self, newer: &Self) -> bool {
        identity_differs(&self.metadata, &newer.metadata) || self.spec != newer.spec
    }
}

impl Stored for EndpointSlice {
    const KIND: ObjectKind = ObjectKind::EndpointSlice;

    fn of(snapshot: &Snapshot) -> &ObjectMap<Self> {
        &snapshot.endpoint_slices
    }

    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self> {
        &mut snapshot.endpoint_slices
    }

    fn matters(&self, newer: &Self) -> bool {
        self.metadata.labels != newer.metadata.labels
            || self.address_type != newer.address_type
            || self.endpoints != newer.endpoints
            || self.ports != newer.ports
    }

    fn strip(&mut self) {
        for endpoint in &mut self.endpoints {
            // It names the pod's version, which changes when its endpoint does not.
            endpoint.target_ref = None;
        }
    }
}

impl Stored for Secret {
    const KIND: ObjectKind = ObjectKind::Secret;

    fn of(snapshot: &Snapshot) -> &ObjectMap<Self> {
        &snapshot.secrets
    }

    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self> {
        &mut snapshot.secrets
    }

    fn matters(&self, newer: &Self) -> bool {
        self.metadata.uid != newer.metadata.uid
            || self.type_ != newer.type_
            || self.data != newer.data
    }

    fn is_foreign(&self) -> bool {
        self.type_.as_deref() == Some(HELM_RELEASE)
    }

    fn strip(&mut self) {
        if self
            .type_
            .as_deref()
            .is_some_and(|type_| UNUSABLE_SECRETS.contains(&type_))
        {
            self.data = None;
        }
    }
}

impl Stored for ConfigMap {
    const KIND: ObjectKind = ObjectKind::ConfigMap;

    fn of(snapshot: &Snapshot) -> &ObjectMap<Self> {
        &snapshot.config_maps
    }

    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self> {
        &mut snapshot.config_maps
    }

    fn matters(&self, newer: &Self) -> bool {
        self.data != newer.data || self.binary_data != newer.binary_data
    }

    /// Helm's second version kept its history in such ConfigMaps.
    fn is_foreign(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get("OWNER"))
            .is_some_and(|owner| owner == "TILLER")
    }
}

impl Stored for Namespace {
    const KIND: ObjectKind = ObjectKind::Namespace;

    fn of(snapshot: &Snapshot) -> &ObjectMap<Self> {
        &snapshot.namespaces
    }

    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self> {
        &mut snapshot.namespaces
    }

    fn matters(&self, newer: &Self) -> bool {
        self.metadata.labels != newer.metadata.labels
    }
}

impl Stored for Node {
    const KIND: ObjectKind = ObjectKind::Node;

    fn of(snapshot: &Snapshot) -> &ObjectMap<Self> {
        &snapshot.nodes
    }

    fn of_mut(snapshot: &mut Snapshot) -> &mut ObjectMap<Self> {
        &mut snapshot.nodes
    }

    fn matters(&self, newer: &Self) -> bool {
        self.metadata.labels != newer.metadata.labels
    }

    /// Only labels and addresses are read; a node's status is large and changes often.
    fn strip(&mut self) {
        self.spec = None;
        self.status = self.status.take().map(|status| NodeStatus {
            addresses: status.addresses,
            ..NodeStatus::default()
        });
    }
}

/// Whether metadata differ in what rules read.
fn identity_differs(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.uid != b.uid
        || a.creation_timestamp != b.creation_timestamp
        || a.deletion_timestamp.is_some() != b.deletion_timestamp.is_some()
        || a.labels != b.labels
        || a.annotations != b.annotations
}
