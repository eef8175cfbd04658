//! What a webhook says about Ingresses.

#![expect(clippy::unwrap_used, reason = "malformed objects fail the test")]

mod annotations;
mod overlaps;
mod texts;
mod verdict;

use std::collections::BTreeMap;

use ingress_model::{ObjectName, Options, Snapshot, Verdict, admit, diagnostic::Reason};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Service},
    networking::v1::Ingress,
};
use serde_json::{Value, json};

const UID: &str = "d0c5b0c2-1f5c-4b8e-9f0e-3a6b1f6f2f11";

/// An Ingress for everybody, of the namespace `shop`: its annotations, with the usual prefix unless they have one, and
/// its specification.
fn ingress(name: &str, annotations: &[(&str, &str)], spec: &Value) -> Ingress {
    let key = |name: &str| match name.split_once('/') {
        Some(_) => name.to_owned(),
        None => format!("nginx.ingress.kubernetes.io/{name}"),
    };
    let annotations: BTreeMap<_, _> = annotations
        .iter()
        .map(|(name, value)| (key(name), *value))
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"namespace": "shop", "name": name, "uid": UID, "annotations": annotations},
        "spec": spec,
    }))
    .unwrap()
}

fn backend() -> Value {
    json!({"service": {"name": "web", "port": {"number": 80}}})
}

/// One rule with these paths; the type stands in front of the path.
fn rule(host: &str, paths: &[&str]) -> Value {
    let paths = paths.iter().map(|text| {
        let (path_type, path) = text.split_once(' ').unwrap();
        json!({"path": path, "pathType": path_type, "backend": backend()})
    });
    json!({"host": host, "http": {"paths": paths.collect::<Vec<_>>()}})
}

/// An Ingress of one host with these annotations and paths.
fn of_host(name: &str, host: &str, annotations: &[(&str, &str)], paths: &[&str]) -> Ingress {
    ingress(name, annotations, &json!({"rules": [rule(host, paths)]}))
}

/// An Ingress without peculiarities but these annotations.
fn annotated(annotations: &[(&str, &str)]) -> Ingress {
    of_host("new", "new.test", annotations, &["Prefix /"])
}

fn options() -> Options {
    Options {
        watch_ingress_without_class: true,
        config_map: Some(ObjectName::new("ingress", "config")),
        ..Options::default()
    }
}

fn snapshot(config: &[(&str, &str)], stored: Vec<Ingress>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let data = config.iter();
    let data = data.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let config = ConfigMap {
        data: Some(data.collect()),
        ..ConfigMap::default()
    };
    snapshot
        .config_maps
        .insert(ObjectName::new("ingress", "config"), config);
    let service = json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}});
    let service: Service = serde_json::from_value(service).unwrap();
    snapshot
        .services
        .insert(ObjectName::new("shop", "web"), service);
    for ingress in stored {
        let name = ingress.metadata.name.clone().unwrap();
        snapshot
            .ingresses
            .insert(ObjectName::new("shop", &name), ingress);
    }
    snapshot
}

fn with(config: &[(&str, &str)], candidate: &Ingress) -> Verdict {
    admit(candidate, &snapshot(config, Vec::new()), &options())
}

fn alone(candidate: &Ingress) -> Verdict {
    with(&[], candidate)
}

/// Whether it is refused for that reason alone, in words that include these.
#[track_caller]
fn assert_refused(verdict: &Verdict, reason: Reason, words: &[&str]) {
    let reasons: Vec<_> = verdict.faults.iter().map(|fault| fault.reason).collect();
    assert_eq!(reasons, [reason], "{verdict:?}");
    let text = verdict.refusal().unwrap();
    for words in words {
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }
}

#[track_caller]
fn assert_fine(verdict: &Verdict) {
    assert!(verdict.is_allowed(), "{verdict:?}");
    assert_eq!(verdict.refusal(), None);
    assert_eq!(verdict.warnings, []);
}
