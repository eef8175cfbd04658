//! What comes from outside, given to the code that reads it. Whatever it is, each target has to return, and no value may
//! have become a directive of NGINX's configuration.
//!
//! Each target answers a number that stands for what has come of the input, so that a fuzzer without instrumentation can
//! tell inputs that lead somewhere new from those that do not.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::{Arc, LazyLock},
};

use controller_bin::{
    admission::{Inspector, Reviewer, answer},
    metrics::RequestRecord,
    store::Store,
};
use ingress_model::{
    ObjectName, Options, Snapshot,
    manifests::{AssumedClass, parse, together},
    merge,
};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{ConfigMap, Secret, Service},
        networking::v1::Ingress,
    },
};
use nginx_render::{
    Capabilities, Environment, Renderer,
    syntax::{Directives, names},
};
use serde_json::json;

/// No configuration of ours has a directive of this name. Inputs that try to smuggle one in use it.
pub const INJECTED: &str = "injected";

/// What is to be tried, and its name. It answers what stands for the outcome.
pub type Target = (&'static str, fn(&[u8]) -> u64);

/// All targets.
pub const TARGETS: &[Target] = &[
    ("manifests", manifests),
    ("annotations", annotations),
    ("admission_review", admission_review),
    ("certificates", certificates),
    ("config_map", config_map),
    ("request_records", request_records),
];

/// The separator of an input that has several parts.
const SEPARATOR: u8 = b'\n';

static CAPABILITIES: LazyLock<Capabilities> = LazyLock::new(|| {
    Capabilities::parse(
        "nginx version: nginx/1.22.1\nconfigure arguments: --with-http_v2_module --with-http_realip_module \
         --add-module=/src/lua-nginx-module --add-module=/src/headers-more-nginx-module",
        [],
    )
});

/// A file of manifests.
pub fn manifests(data: &[u8]) -> u64 {
    let file = Path::new("fuzz.yaml");
    let Ok(content) = parse(file, &String::from_utf8_lossy(data)) else {
        return 0;
    };
    let objects: Vec<_> = content.objects.into_iter().map(Arc::new).collect();
    let class = Arc::new(AssumedClass::ours(&options()).object());
    let snapshot = together([(file, &objects[..])], &class).snapshot();
    outcome(&snapshot)
}

/// Annotations of an Ingress, each a line `name: value` with the name's prefix left out; `\n` in values stands for a line
/// break.
pub fn annotations(data: &[u8]) -> u64 {
    let pairs = pairs(data).into_iter();
    let annotations: BTreeMap<_, _> = pairs
        .map(|(name, value)| (format!("nginx.ingress.kubernetes.io/{name}"), value))
        .collect();
    let mut snapshot = cluster();
    let mut ingress = ingress();
    ingress.metadata.annotations = Some(annotations);
    let name = ObjectName::new("shop", "cart");
    snapshot.ingresses.insert(name, ingress);
    outcome(&snapshot)
}

/// What the webhook is sent.
pub fn admission_review(data: &[u8]) -> u64 {
    static REVIEWER: LazyLock<Reviewer> = LazyLock::new(|| {
        let store = Arc::new(Store::awaiting([]));
        store.apply(ingress());
        Reviewer::new(store, options()).with_inspector(Inspector {
            capabilities: CAPABILITIES.clone(),
            environment: Environment::default(),
            directives: Directives::documented(),
        })
    });
    match answer(data, &*REVIEWER) {
        Ok(answer) => hash(&answer),
        Err(error) => hash(&error.to_string()),
    }
}

/// `tls.crt`, `tls.key` and `ca.crt` of a Secret, with empty lines between them.
pub fn certificates(data: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(data);
    let parts = text.split("\n\n").map(|part| format!("{part}\n"));
    let keys = ["tls.crt", "tls.key", "ca.crt"].map(str::to_owned);
    let data: BTreeMap<_, _> = keys
        .into_iter()
        .zip(parts.map(|part| ByteString(part.into_bytes())))
        .collect();
    let mut snapshot = cluster();
    let secret = Secret {
        data: Some(data),
        ..Secret::default()
    };
    snapshot
        .secrets
        .insert(ObjectName::new("shop", "pair"), secret);
    let mut ingress = ingress();
    let of_clients = "nginx.ingress.kubernetes.io/auth-tls-secret".to_owned();
    let annotations = BTreeMap::from([(of_clients, "shop/pair".to_owned())]);
    ingress.metadata.annotations = Some(annotations);
    let name = ObjectName::new("shop", "cart");
    snapshot.ingresses.insert(name, ingress);
    outcome(&snapshot)
}

/// The ConfigMap of settings, each a line `key: value`. Snippets are configuration and are left out.
pub fn config_map(data: &[u8]) -> u64 {
    let pairs = pairs(data).into_iter();
    let data = pairs.filter(|(key, _)| !key.ends_with("-snippet"));
    let config_map = ConfigMap {
        data: Some(data.collect()),
        ..ConfigMap::default()
    };
    let mut snapshot = cluster();
    let name = ObjectName::new("ingress", "settings");
    snapshot.config_maps.insert(name, config_map);
    let name = ObjectName::new("shop", "cart");
    snapshot.ingresses.insert(name, ingress());
    outcome(&snapshot)
}

/// What NGINX's workers report of requests.
pub fn request_records(data: &[u8]) -> u64 {
    match serde_json::from_slice::<Vec<RequestRecord>>(data) {
        Ok(records) => hash(&records.len()),
        Err(error) => hash(&(error.classify() as u8, error.line())),
    }
}

fn options() -> Options {
    Options {
        watch_ingress_without_class: true,
        config_map: Some(ObjectName::new("ingress", "settings")),
        ..Options::default()
    }
}

/// What Ingresses may refer to.
fn cluster() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let service = json!({"spec": {"ports": [{"name": "http", "port": 80}]}});
    let service: Service = serde_json::from_value(service).unwrap_or_default();
    snapshot
        .services
        .insert(ObjectName::new("shop", "app"), service);
    snapshot
}

fn ingress() -> Ingress {
    let backend = json!({"service": {"name": "app", "port": {"number": 80}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
    let ingress = json!({
        "metadata": {
            "namespace": "shop", "name": "cart", "uid": "00000000-0000-4000-8000-000000000001",
        },
        "spec": {
            "rules": [{"host": "a.test", "http": {"paths": paths}}],
            "tls": [{"hosts": ["a.test"], "secretName": "pair"}],
        },
    });
    serde_json::from_value(ingress).unwrap_or_default()
}

/// Lines as pairs; `\n` in a value stands for a line break.
fn pairs(data: &[u8]) -> Vec<(String, String)> {
    let lines = data.split(|byte| *byte == SEPARATOR);
    let pairs = lines.filter_map(|line| {
        let line = String::from_utf8_lossy(line);
        let (name, value) = line.split_once(':')?;
        Some((
            name.trim().to_owned(),
            value.trim_start().replace("\\n", "\n"),
        ))
    });
    pairs.collect()
}

/// What the rules and the renderer make of objects.
fn outcome(snapshot: &Snapshot) -> u64 {
    let outcome = merge(snapshot, &options(), Timestamp::UNIX_EPOCH);
    let mut renderer = Renderer::new(CAPABILITIES.clone(), Environment::default());
    let mut hasher = DefaultHasher::new();
    for diagnostic in &outcome.diagnostics {
        diagnostic.reason.hash(&mut hasher);
        diagnostic.key.hash(&mut hasher);
    }
    if let Ok(rendered) = renderer.render(&outcome.model.layout) {
        let names = names(&rendered.main);
        let names = names.unwrap_or_else(|broken| panic!("{broken}\n{}", rendered.main));
        let injected = names.iter().any(|name| name == INJECTED);
        assert!(!injected, "a value became a directive:\n{}", rendered.main);
        names.hash(&mut hasher);
    }
    hasher.finish()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
