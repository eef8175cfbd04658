//! Objects of manifests on their way into the store.

use ingress_model::{ObjectKind, ObjectRef, manifests::Object};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Node, Secret, Service},
    discovery::v1::EndpointSlice,
    networking::v1::{Ingress, IngressClass},
};

use crate::store::Batch;

/// Puts the object into the store.
pub(super) fn apply(object: Object, store: &mut Batch<'_>) {
    match object {
        Object::Ingress(object) => store.apply(object),
        Object::IngressClass(object) => store.apply(object),
        Object::Service(object) => store.apply(object),
        Object::EndpointSlice(object) => store.apply(object),
        Object::Secret(object) => store.apply(object),
        Object::ConfigMap(object) => store.apply(object),
        Object::Namespace(object) => store.apply(object),
        Object::Node(object) => store.apply(object),
    }
}

/// Takes an object out of the store.
pub(super) fn delete(object: &ObjectRef, store: &mut Batch<'_>) {
    let name = &object.name;
    match object.kind {
        ObjectKind::Ingress => store.delete::<Ingress>(name),
        ObjectKind::IngressClass => store.delete::<IngressClass>(name),
        ObjectKind::Service => store.delete::<Service>(name),
        ObjectKind::EndpointSlice => store.delete::<EndpointSlice>(name),
        ObjectKind::Secret => store.delete::<Secret>(name),
        ObjectKind::ConfigMap => store.delete::<ConfigMap>(name),
        ObjectKind::Namespace => store.delete::<Namespace>(name),
        ObjectKind::Node => store.delete::<Node>(name),
        ObjectKind::Pod => {}
    }
}
