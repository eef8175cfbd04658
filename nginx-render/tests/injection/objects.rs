//! Whatever stands in annotations, hosts, paths, and in the Secrets and ConfigMaps that they refer to, the configuration
//! has the directives that the program means to have.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use ingress_model::{ObjectName, Options, Snapshot, annotation::annotations, config::Risk, merge};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{ConfigMap, Secret},
        networking::v1::Ingress,
    },
};
use proptest::prelude::*;
use serde_json::json;

use crate::{
    hostile::hostile,
    places::{Place, assert_known, assert_plain_names, places_of},
    rows::{self, ROWS, Served},
};

/// What values that are accepted lead to: each by itself, and nearly all at once for each protocol of endpoints.
pub(crate) static KNOWN: LazyLock<BTreeSet<Place>> = LazyLock::new(|| {
    const APART: &[&str] = &["canary", "redirect", "global-auth", "backend-protocol"];
    let mut known = BTreeSet::new();
    for location in ["location", "location/if"] {
        known.insert((format!("/http/server/{location}/return"), 1));
    }
    known.insert(("/http/server/return".into(), 1));
    let mut all: Vec<(&str, &str)> = vec![("key:global-allowed-response-headers", "X-Team")];
    for (name, value, _, _, companions) in ROWS {
        if name.ends_with("-snippet") {
            continue;
        }
        let set = [*companions, &[(*name, *value)]].concat();
        known.extend(places_of(&Served::new(&set)));
        // The server of all hosts that have none has paths of its own beside.
        let plain: Vec<_> = set
            .iter()
            .copied()
            .filter(|(name, _)| !name.contains(':'))
            .collect();
        let everybodys = Given {
            host: String::new(),
            ..Given::new(&plain)
        };
        known.extend(places_of(&everybodys.served()));
        if !APART.iter().any(|part| name.contains(part)) {
            all.extend(companions.iter().filter(|(name, _)| !name.contains(':')));
            all.push((name, value));
        }
    }
    all.retain(|(name, _)| *name != "backend-protocol");
    for protocol in ["HTTP", "HTTPS", "AUTO_HTTP", "GRPC", "GRPCS", "FCGI"] {
        for further in [
            ("with:tls", ""),
            ("key:use-http2", "false"),
            ("denylist-source-range", ""),
        ] {
            let set = [all.as_slice(), &[("backend-protocol", protocol), further]].concat();
            known.extend(places_of(&Served::new(&set)));
        }
    }
    known
});

/// What an Ingress and what it refers to say.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) path_type: String,
    pub(crate) service: String,
    /// The name of the Service's port.
    pub(crate) port: Option<String>,
    pub(crate) tls_host: Option<String>,
    pub(crate) tls_secret: Option<String>,
    /// What a ConfigMap and a Secret that annotations name hold.
    pub(crate) data: Vec<(String, String)>,
    /// Keys of the controller's ConfigMap.
    pub(crate) keys: BTreeMap<&'static str, &'static str>,
    pub(crate) validation: bool,
}

impl Given {
    /// An Ingress with these annotations, and nothing else out of the ordinary.
    pub(crate) fn new(annotations: &[(&str, &str)]) -> Self {
        let annotations = annotations.iter();
        Self {
            annotations: annotations
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            name: "web".into(),
            host: "shop.test".into(),
            path: "/".into(),
            path_type: "Prefix".into(),
            service: "web".into(),
            port: None,
            tls_host: None,
            tls_secret: None,
            data: Vec::new(),
            keys: BTreeMap::from([
                ("annotations-risk-level", "High"),
                ("strict-validate-path-type", "false"),
                ("global-allowed-response-headers", "X-Team,X-Other"),
            ]),
            validation: true,
        }
    }

    pub(crate) fn annotated(annotations: &[(&str, &str)]) -> Served {
        Self::new(annotations).served()
    }

    pub(crate) fn served(&self) -> Served {
        let options = Options {
            annotation_validation: self.validation,
            ..rows::options()
        };
        Served::of(merge(&self.snapshot(), &options, Timestamp::UNIX_EPOCH))
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = rows::snapshot(&self.keys);
        let name = ObjectName::new("shop", &self.name);
        snapshot.ingresses.insert(name, self.ingress());
        if !self.data.is_empty() {
            let data = self.data.iter().cloned().collect();
            let bytes = self.data.iter().cloned();
            let bytes = bytes.map(|(key, value)| (key, ByteString(value.into_bytes())));
            let config_map = ConfigMap {
                data: Some(data),
                ..ConfigMap::default()
            };
            let secret = Secret {
                data: Some(bytes.collect()),
                ..Secret::default()
            };
            let name = |name| ObjectName::new("shop", name);
            snapshot.config_maps.insert(name("headers"), config_map);
            snapshot.secrets.insert(name("users"), secret);
        }
        snapshot
    }

    fn ingress(&self) -> Ingress {
        let annotations = self.annotations.iter();
        let annotations: BTreeMap<_, _> = annotations
            .map(|(name, value)| (format!("nginx.ingress.kubernetes.io/{name}"), value))
            .collect();
        let tls = (self.tls_host.is_some() || self.tls_secret.is_some()).then(|| {
            let host = self.tls_host.as_ref().unwrap_or(&self.host);
            json!([{"hosts": [host], "secretName": self.tls_secret}])
        });
        let port = self.port.as_ref();
        let port = port.map_or_else(|| json!({"number": 80}), |name| json!({"name": name}));
        let backend = json!({"service": {"name": self.service, "port": port}});
        let path = json!({"path": self.path, "pathType": self.path_type, "backend": backend});
        let ingress = json!({
            "metadata": {
                "name": self.name,
                "namespace": "shop",
                "uid": "../../uid;",
                "annotations": annotations,
            },
            "spec": {
                "ingressClassName": "nginx",
                "tls": tls,
                "rules": [{"host": self.host, "http": {"paths": [path]}}],
            },
        });
        serde_json::from_value(ingress).unwrap()
    }
}

/// A value that is accepted, one that is not, or something in between.
fn value() -> impl Strategy<Value = (String, String)> {
    let values: Vec<(&str, &str)> = annotations()
        .filter(|info| info.risk < Risk::Critical)
        .map(|info| (info.name, info.example))
        .collect();
    let chosen = prop::sample::select(values);
    (chosen, hostile(), 0..4_u8).prop_map(|((name, example), hostile, kind)| {
        let value = match kind {
            0 => hostile,
            1 => format!("{example}{hostile}"),
            2 => format!("{hostile}{example}"),
            _ => example.to_owned(),
        };
        (name.to_owned(), value)
    })
}

fn given() -> impl Strategy<Value = Given> {
    let host = prop_oneof![3 => Just("shop.test".to_owned()), 1 => hostile()];
    let path = prop_oneof![
        1 => Just("/".to_owned()),
        1 => hostile().prop_map(|text| format!("/{text}")),
    ];
    let path_type = prop_oneof![
        8 => prop::sample::select(vec!["Exact", "Prefix", "ImplementationSpecific"])
            .prop_map(str::to_owned),
        1 => hostile(),
    ];
    let service = prop_oneof![5 => Just("web".to_owned()), 1 => hostile()];
    let port = prop::option::weighted(0.2, hostile());
    let tls = (prop::option::of(hostile()), prop::option::of(hostile()));
    let key = prop_oneof![
        1 => hostile(),
        2 => prop::sample::select(vec!["X-Team", "X-Other", "auth", "mira", "ca.crt", "tls.crt", "tls.key"])
            .prop_map(str::to_owned),
    ];
    let data = prop::collection::vec((key, hostile()), 0..3);
    let annotations = prop::collection::vec(value(), 0..10);
    let ingress = (annotations, host, path, path_type, service, port, tls);
    (ingress, data, any::<bool>()).prop_map(|(ingress, data, validation)| {
        let (annotations, host, path, path_type, service, port, tls) = ingress;
        let (tls_host, tls_secret) = tls;
        Given {
            annotations: annotations.into_iter().collect(),
            host,
            path,
            path_type,
            service,
            port,
            tls_host,
            tls_secret,
            data,
            validation,
            ..Given::new(&[])
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_directive_or_names_another_file(given in given()) {
        let served = given.served();
        assert_known(&places_of(&served), &KNOWN, "");
        assert_plain_names(&served, "");
    }
}
