//! Clusters out of few names, so that conflicts are frequent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use ingress_model::{ObjectKind, ObjectName, Snapshot};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{
            ConfigMap, Secret, Service, ServicePort, ServiceSpec, TypedLocalObjectReference,
        },
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
        networking::v1::{
            HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule,
            IngressServiceBackend, IngressSpec, IngressTLS, ServiceBackendPort,
        },
    },
    apimachinery::pkg::{apis::meta::v1::Time, util::intstr::IntOrString},
};
use serde_json::json;

use crate::{dice::Dice, support};

/// An object of a cluster.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Ingress(Arc<Ingress>),
    Service(Arc<Service>),
    EndpointSlice(Arc<EndpointSlice>),
    Secret(Arc<Secret>),
    ConfigMap(Arc<ConfigMap>),
}

impl Object {
    pub(crate) fn name(&self) -> ObjectName {
        let metadata = match self {
            Self::Ingress(object) => &object.metadata,
            Self::Service(object) => &object.metadata,
            Self::EndpointSlice(object) => &object.metadata,
            Self::Secret(object) => &object.metadata,
            Self::ConfigMap(object) => &object.metadata,
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        ObjectName::new(&text(&metadata.namespace), &text(&metadata.name))
    }

    pub(crate) fn kind(&self) -> ObjectKind {
        match self {
            Self::Ingress(_) => ObjectKind::Ingress,
            Self::Service(_) => ObjectKind::Service,
            Self::EndpointSlice(_) => ObjectKind::EndpointSlice,
            Self::Secret(_) => ObjectKind::Secret,
            Self::ConfigMap(_) => ObjectKind::ConfigMap,
        }
    }

    pub(crate) fn put(&self, snapshot: &mut Snapshot) {
        let name = self.name();
        match self {
            Self::Ingress(object) => drop(snapshot.ingresses.insert(name, Arc::clone(object))),
            Self::Service(object) => drop(snapshot.services.insert(name, Arc::clone(object))),
            Self::EndpointSlice(object) => {
                drop(snapshot.endpoint_slices.insert(name, Arc::clone(object)));
            }
            Self::Secret(object) => drop(snapshot.secrets.insert(name, Arc::clone(object))),
            Self::ConfigMap(object) => drop(snapshot.config_maps.insert(name, Arc::clone(object))),
        }
    }

    pub(crate) fn take(&self, snapshot: &mut Snapshot) {
        let name = self.name();
        match self {
            Self::Ingress(_) => drop(snapshot.ingresses.remove(&name)),
            Self::Service(_) => drop(snapshot.services.remove(&name)),
            Self::EndpointSlice(_) => drop(snapshot.endpoint_slices.remove(&name)),
            Self::Secret(_) => drop(snapshot.secrets.remove(&name)),
            Self::ConfigMap(_) => drop(snapshot.config_maps.remove(&name)),
        }
    }
}

/// Certificates are slow to make, so that all clusters share these.
static SECRETS: LazyLock<Vec<Object>> = LazyLock::new(|| {
    let snapshot = support::snapshot(&[
        json!({"kind": "Tls", "name": "one", "hosts": ["a.test", "alias.test"]}),
        json!({"kind": "Tls", "name": "two", "hosts": ["a.test", "*.b.test"], "until": 2000}),
        json!({"kind": "Authority", "name": "ca"}),
    ]);
    let secrets = snapshot.secrets.iter().map(|(name, secret)| {
        let mut secret = secret.as_ref().clone();
        secret.metadata.namespace = Some(name.namespace().to_owned());
        secret.metadata.name = Some(name.name().to_owned());
        Object::Secret(Arc::new(secret))
    });
    secrets.collect()
});

pub(crate) fn snapshot(objects: &[Object]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for object in objects {
        object.put(&mut snapshot);
    }
    snapshot
}

/// What Ingresses of a cluster may say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) annotations: &'static [(&'static str, &'static str)],
    pub(crate) hosts: &'static [&'static str],
    pub(crate) paths: &'static [&'static str],
}

/// Everything.
pub(crate) const ALL: Words = Words {
    annotations: &[
        ("rewrite-target", "/x"),
        ("use-regex", "true"),
        ("server-alias", "alias.test,b.test"),
        ("server-alias", "alias.test"),
        ("server-snippet", "one;"),
        ("server-snippet", "two;"),
        ("ssl-ciphers", "AES128-SHA"),
        ("ssl-ciphers", "AES256-SHA"),
        ("ssl-prefer-server-ciphers", "true"),
        ("auth-tls-secret", "shop/ca"),
        ("auth-tls-secret", "shop/missing"),
        ("auth-type", "basic"),
        ("auth-secret", "users"),
        ("custom-headers", "shop/headers"),
        ("default-backend", "web"),
        ("from-to-www-redirect", "true"),
        ("ssl-passthrough", "true"),
        ("affinity", "cookie"),
        ("load-balance", "ewma"),
        ("upstream-hash-by", "$host"),
        ("service-upstream", "true"),
        ("canary", "true"),
        ("canary-weight", "20"),
        ("proxy-read-timeout", "7"),
        ("permanent-redirect", "bad value;"),
        ("stream-snippet", "three;"),
    ],
    hosts: &[
        "",
        "a.test",
        "A.test",
        "b.test",
        "*.b.test",
        "alias.test",
        "www.a.test",
        "bad host",
    ],
    paths: &[
        "/",
        "",
        "/a",
        "/a/",
        "/A",
        "/a//",
        "/b(.*)",
        "/etc/nginx",
        "x",
    ],
};

/// What is served as written, no two paths being alike.
pub(crate) const PLAIN: Words = Words {
    annotations: &[
        ("server-alias", "alias.test"),
        ("server-alias", "other.test"),
        ("server-snippet", "one;"),
        ("server-snippet", "two;"),
        ("ssl-ciphers", "AES128-SHA"),
        ("ssl-ciphers", "AES256-SHA"),
        ("ssl-prefer-server-ciphers", "true"),
        ("auth-tls-secret", "shop/ca"),
        ("proxy-read-timeout", "7"),
        ("load-balance", "ewma"),
    ],
    hosts: &["a.test", "b.test", "*.b.test"],
    paths: &["/", "/a", "/a/b", "/c"],
};

/// Objects under distinct names.
pub(crate) fn objects(dice: &mut Dice, words: Words) -> Vec<Object> {
    let mut objects = dice.several(6, |dice| ingress(dice, words));
    objects.extend(dice.several(5, other));
    objects.extend(SECRETS.iter().filter(|_| dice.percent(80)).cloned());
    let mut seen = BTreeSet::new();
    objects.retain(|object| seen.insert((object.kind(), object.name())));
    objects
}

pub(crate) fn ingress(dice: &mut Dice, words: Words) -> Object {
    let annotations = dice.several(3, |dice| *dice.pick(words.annotations));
    let annotations: BTreeMap<_, _> = annotations
        .into_iter()
        .map(|(key, value)| {
            (
                format!("nginx.ingress.kubernetes.io/{key}"),
                value.to_owned(),
            )
        })
        .collect();
    let created = dice.percent(90).then(|| {
        let seconds = i64::try_from(dice.below(3)).unwrap();
        Time(Timestamp::from_second(seconds).unwrap())
    });
    let spec = IngressSpec {
        default_backend: dice.percent(20).then(|| backend(dice)),
        tls: Some(dice.several(1, tls)),
        rules: Some(dice.several(3, |dice| rule(dice, words))),
        ingress_class_name: None,
    };
    let mut ingress = Ingress {
        spec: Some(spec),
        ..Ingress::default()
    };
    ingress.metadata.name = Some((*dice.pick(&["a", "b", "c", "d"])).to_owned());
    ingress.metadata.namespace = Some((*dice.pick(&["shop", "bank"])).to_owned());
    ingress.metadata.creation_timestamp = created;
    ingress.metadata.annotations = Some(annotations);
    Object::Ingress(Arc::new(ingress))
}

fn backend(dice: &mut Dice) -> IngressBackend {
    if dice.percent(8) {
        return IngressBackend {
            service: None,
            resource: Some(TypedLocalObjectReference::default()),
        };
    }
    IngressBackend {
        service: Some(IngressServiceBackend {
            name: (*dice.pick(&["web", "api", "missing", "far"])).to_owned(),
            port: Some(ServiceBackendPort {
                number: Some(*dice.pick(&[80, 81, 0])),
                name: Some("http".to_owned()),
            }),
        }),
        resource: None,
    }
}

fn rule(dice: &mut Dice, words: Words) -> IngressRule {
    let http = dice.percent(90).then(|| HTTPIngressRuleValue {
        paths: dice.several(3, |dice| HTTPIngressPath {
            path: Some((*dice.pick(words.paths)).to_owned()),
            path_type: (*dice.pick(&["Exact", "Prefix", "ImplementationSpecific"])).to_owned(),
            backend: backend(dice),
        }),
    });
    IngressRule {
        host: Some((*dice.pick(words.hosts)).to_owned()),
        http,
    }
}

fn tls(dice: &mut Dice) -> IngressTLS {
    let hosts = dice.several(2, |dice| {
        (*dice.pick(&["a.test", "B.test", "*.b.test"])).to_owned()
    });
    IngressTLS {
        hosts: Some(hosts),
        secret_name: Some((*dice.pick(&["one", "two", "ca", "missing", ""])).to_owned()),
    }
}

/// Anything but Ingresses.
pub(crate) fn other(dice: &mut Dice) -> Object {
    match dice.below(8) {
        0..2 => service(dice),
        2..4 => slice(dice),
        4 => config_map(
            dice,
            "tcp",
            &[("9000", "shop/web:80"), ("9001", "bank/api:http:PROXY")],
        ),
        5 => config_map(
            dice,
            "settings",
            &[
                ("server-tokens", "true"),
                ("ssl-redirect", "false"),
                ("allow-snippet-annotations", "true"),
                ("annotations-risk-level", "Critical"),
                ("global-allowed-response-headers", "X-Team"),
            ],
        ),
        6 => config_map(dice, "headers", &[("X-Team", "blue"), ("X-Other", "red")]),
        _ => users(dice),
    }
}

fn service(dice: &mut Dice) -> Object {
    let port = ServicePort {
        name: Some("http".to_owned()),
        port: *dice.pick(&[80, 81]),
        target_port: Some(IntOrString::Int(8080)),
        ..ServicePort::default()
    };
    let mut service = Service {
        spec: Some(ServiceSpec {
            cluster_ip: Some((*dice.pick(&["10.96.0.1", "None"])).to_owned()),
            ports: Some(vec![port]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    };
    let name = *dice.pick(&["web", "api", "far"]);
    if name == "far" {
        service.spec = Some(ServiceSpec {
            type_: Some("ExternalName".to_owned()),
            external_name: Some((*dice.pick(&["far.test", "localhost"])).to_owned()),
            ..ServiceSpec::default()
        });
    }
    service.metadata.name = Some(name.to_owned());
    service.metadata.namespace = Some((*dice.pick(&["shop", "bank"])).to_owned());
    Object::Service(Arc::new(service))
}

fn slice(dice: &mut Dice) -> Object {
    let endpoints = dice.several(3, |dice| Endpoint {
        addresses: vec![(*dice.pick(&["10.0.0.1", "10.0.0.2", "10.0.0.3"])).to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(dice.percent(80)),
            ..EndpointConditions::default()
        }),
        ..Endpoint::default()
    });
    let mut slice = EndpointSlice {
        address_type: "IPv4".to_owned(),
        endpoints,
        ports: Some(vec![EndpointPort {
            name: Some("http".to_owned()),
            port: Some(8080),
            ..EndpointPort::default()
        }]),
        ..EndpointSlice::default()
    };
    let service = (*dice.pick(&["web", "api"])).to_owned();
    let label = "kubernetes.io/service-name".to_owned();
    slice.metadata.labels = Some([(label, service)].into());
    slice.metadata.name = Some((*dice.pick(&["x", "y", "z"])).to_owned());
    slice.metadata.namespace = Some((*dice.pick(&["shop", "bank"])).to_owned());
    Object::EndpointSlice(Arc::new(slice))
}

fn config_map(dice: &mut Dice, name: &str, data: &[(&str, &str)]) -> Object {
    let data = data.iter().filter(|_| dice.percent(60));
    let data = data.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let mut map = ConfigMap {
        data: Some(data.collect()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(name.to_owned());
    map.metadata.namespace = Some("shop".to_owned());
    Object::ConfigMap(Arc::new(map))
}

fn users(dice: &mut Dice) -> Object {
    let text = dice
        .pick(&["mira:$apr1$x", "noor:$apr1$y"])
        .as_bytes()
        .to_vec();
    let mut secret = Secret {
        data: Some([("auth".to_owned(), k8s_openapi::ByteString(text))].into()),
        ..Secret::default()
    };
    secret.metadata.name = Some("users".to_owned());
    secret.metadata.namespace = Some((*dice.pick(&["shop", "bank"])).to_owned());
    Object::Secret(Arc::new(secret))
}
