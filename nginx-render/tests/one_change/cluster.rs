//! The objects of a cluster, as JSON to be changed and as what the rules read.

use std::sync::{Arc, LazyLock};

use ingress_model::{ObjectKind, ObjectName, ObjectRef, Snapshot, testing::Fixture};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Node, Secret, Service},
    discovery::v1::EndpointSlice,
    networking::v1::{Ingress, IngressClass},
};
use serde_json::Value;

/// The objects that stories begin with, and the snapshot of them.
pub(crate) static START: LazyLock<(Vec<(ObjectRef, Value)>, Snapshot)> = LazyLock::new(|| {
    let mut text = include_str!("cluster.yaml").to_owned();
    for (name, hosts) in [
        ("one", &["shop.test", "old.test"][..]),
        ("two", &["guarded.test", "*.bank.test"]),
    ] {
        let key = rcgen::KeyPair::generate().unwrap();
        let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
        let certificate = rcgen::CertificateParams::new(hosts)
            .unwrap()
            .self_signed(&key)
            .unwrap();
        text += &secret(
            name,
            &[
                ("tls.crt", certificate.pem()),
                ("tls.key", key.serialize_pem()),
            ],
        );
    }
    text += &secret("authority", &[("ca.crt", crate::support::certificate())]);
    let snapshot = Fixture::from_yaml(&text).unwrap().snapshot();
    (objects(&snapshot), snapshot)
});

fn secret(name: &str, data: &[(&str, String)]) -> String {
    let data: serde_json::Map<_, _> = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())))
        .collect();
    let data = Value::from(data);
    format!(
        "---\n{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: shop, uid: uid-{name}}}, stringData: {data}}}\n"
    )
}

fn objects(snapshot: &Snapshot) -> Vec<(ObjectRef, Value)> {
    let mut objects = Vec::new();
    macro_rules! take {
        ($($map:ident: $kind:ident),*) => {$(
            for (name, object) in snapshot.$map.iter() {
                let object = serde_json::to_value(&**object).unwrap();
                objects.push((ObjectRef::new(ObjectKind::$kind, name.clone()), object));
            }
        )*};
    }
    take!(
        ingresses: Ingress, ingress_classes: IngressClass, services: Service, endpoint_slices: EndpointSlice,
        secrets: Secret, config_maps: ConfigMap, namespaces: Namespace, nodes: Node
    );
    objects
}

/// Puts an object into a snapshot, or takes it out; answers whether the kind can be like that.
pub(crate) fn put(snapshot: &mut Snapshot, object: &ObjectRef, value: Option<&Value>) -> bool {
    let name: &ObjectName = &object.name;
    macro_rules! put {
        ($map:ident: $kind:ty) => {
            match value.map(|value| serde_json::from_value::<$kind>(value.clone())) {
                None => drop(snapshot.$map.remove(name)),
                Some(Ok(typed)) => drop(snapshot.$map.insert(name.clone(), Arc::new(typed))),
                Some(Err(_)) => return false,
            }
        };
    }
    match object.kind {
        ObjectKind::Ingress => put!(ingresses: Ingress),
        ObjectKind::IngressClass => put!(ingress_classes: IngressClass),
        ObjectKind::Service => put!(services: Service),
        ObjectKind::EndpointSlice => put!(endpoint_slices: EndpointSlice),
        ObjectKind::Secret => put!(secrets: Secret),
        ObjectKind::ConfigMap => put!(config_maps: ConfigMap),
        ObjectKind::Namespace => put!(namespaces: Namespace),
        ObjectKind::Node => put!(nodes: Node),
        ObjectKind::Pod => return false,
    }
    true
}
