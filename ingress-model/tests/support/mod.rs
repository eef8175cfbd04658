//! Cluster objects for tests, written in short.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "malformed objects fail the test"
)]

use ingress_model::{ObjectMap, ObjectName, Snapshot};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads objects. They are Kubernetes objects, with `metadata.created` as short form of `creationTimestamp` (seconds)
/// and `shop` as the usual namespace, or one of these:
///
/// * `{kind: Web, name, namespace, port, target, pods}`: a Service, its port `http`, and a slice with its endpoints,
/// * `{kind: Tls, name, namespace, hosts, common_name, until}`: a Secret with a certificate,
/// * `{kind: Authority, name, namespace}`: a Secret with a certificate for those of clients.
///
/// # Panics
/// When an object is of an unknown kind, or is not what its kind asks for.
pub(crate) fn snapshot(objects: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for object in objects {
        add(&mut snapshot, object.clone());
    }
    snapshot
}

/// Adds or replaces an object.
///
/// # Panics
/// As [`snapshot`] does.
pub(crate) fn add(snapshot: &mut Snapshot, object: Value) {
    let object = normalise(object);
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "Ingress" => put(&mut snapshot.ingresses, object),
        "IngressClass" => put(&mut snapshot.ingress_classes, object),
        "Service" => put(&mut snapshot.services, object),
        "EndpointSlice" => put(&mut snapshot.endpoint_slices, object),
        "Secret" => put(&mut snapshot.secrets, object),
        "ConfigMap" => put(&mut snapshot.config_maps, object),
        "Namespace" => put(&mut snapshot.namespaces, object),
        "Node" => put(&mut snapshot.nodes, object),
        "Web" => {
            for object in web(&object) {
                add(snapshot, object);
            }
        }
        "Tls" | "Authority" => {
            let (name, secret) = certificate(&object);
            snapshot.secrets.insert(name, secret);
        }
        _ => panic!("unknown kind in {object}"),
    }
}

fn normalise(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        if let Some(created) = metadata.remove("created") {
            let created = jiff::Timestamp::from_second(created.as_i64().unwrap()).unwrap();
            metadata.insert("creationTimestamp".into(), created.to_string().into());
        }
        let kind = object["kind"].as_str().unwrap_or_default();
        let cluster_wide = ["IngressClass", "Namespace", "Node"].contains(&kind);
        if !cluster_wide {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.entry("namespace").or_insert("shop".into());
        }
    }
    object
}

fn put<K: DeserializeOwned>(map: &mut ObjectMap<K>, object: Value) {
    let text = |key: &str| {
        object["metadata"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let name = ObjectName::new(&text("namespace"), &text("name"));
    let mut object = object;
    // The types of Kubernetes objects know their kinds by themselves.
    let fields = object.as_object_mut().unwrap();
    fields.remove("kind");
    fields.remove("apiVersion");
    let parsed: K =
        serde_json::from_value(object).unwrap_or_else(|error| panic!("{name}: {error}"));
    map.insert(name, parsed);
}

fn short(object: &Value, key: &str, default: Value) -> Value {
    object.get(key).cloned().unwrap_or(default)
}

fn web(object: &Value) -> [Value; 2] {
    let name = &object["name"];
    let namespace = short(object, "namespace", "shop".into());
    let port = short(object, "port", 80.into());
    let target = short(object, "target", 8080.into());
    let pods = short(object, "pods", json!([]));
    let metadata = json!({"name": name, "namespace": namespace});
    let labels = json!({"kubernetes.io/service-name": name});
    [
        json!({"kind": "Service", "metadata": metadata, "spec": {
            "clusterIP": "10.96.0.1",
            "ports": [{"name": "http", "port": port, "targetPort": target}],
        }}),
        json!({"kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": target, "protocol": "TCP"}],
            "endpoints": [{"addresses": pods, "conditions": {"ready": true}}],
        }),
    ]
}

fn certificate(object: &Value) -> (ObjectName, Secret) {
    let text = |key: &str| object[key].as_str().map(str::to_owned);
    let namespace = text("namespace").unwrap_or_else(|| "shop".into());
    let name = text("name").unwrap();
    let hosts = object["hosts"].as_array().cloned().unwrap_or_default();
    let hosts: Vec<_> = hosts
        .iter()
        .map(|host| host.as_str().unwrap().to_owned())
        .collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    let common_name = text("common_name").unwrap_or_else(|| name.clone());
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    let until = object["until"].as_i64().unwrap_or(2050);
    params.not_after = rcgen::date_time_ymd(i32::try_from(until).unwrap(), 1, 1);
    let key = KeyPair::generate().unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    let entries = match object["kind"].as_str() {
        Some("Tls") => vec![("tls.crt", chain), ("tls.key", key.serialize_pem())],
        _ => vec![("ca.crt", chain)],
    };
    let data = entries.into_iter();
    let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())));
    let mut secret = Secret {
        data: Some(data.collect()),
        ..Secret::default()
    };
    secret.metadata.uid = Some(format!("uid-{name}"));
    (ObjectName::new(&namespace, &name), secret)
}
