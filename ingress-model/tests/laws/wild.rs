//! Objects such as no API server lets through, and such as it hardly does.

use std::{collections::BTreeMap, sync::Arc};

use ingress_model::{ConflictPolicy, ObjectName, Options, Snapshot, selector::LabelSelector};
use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{ConfigMap, Namespace, Node, Secret, Service, ServicePort, ServiceSpec},
        discovery::v1::{
            Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, ForZone,
        },
        networking::v1::{
            HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressClass,
            IngressClassSpec, IngressRule, IngressServiceBackend, IngressSpec, IngressTLS,
            ServiceBackendPort,
        },
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use crate::{
    cluster::{ALL, Object},
    dice::Dice,
};

const TEXTS: &[&str] = &[
    "",
    "/",
    "//",
    "a",
    "web",
    "http",
    "a.test",
    "*.a.test",
    "*",
    "_",
    "$",
    "${x}",
    "\"",
    "\\",
    "\n",
    "\0",
    "{",
    "};",
    "ä",
    "\u{85}",
    "\u{202e}",
    "a b",
    "-",
    ".",
    "..",
    "/../",
    "%00",
    "/a/",
    "~^",
    "(",
    "(?i)",
    "[",
    "+",
    "shop/web:80",
    "0",
    "-1",
    "65536",
    "99999999999999999999",
    "1e9",
    "true",
    "localhost",
    "127.0.0.1",
    "::1",
    "fe80::1%eth0",
    "None",
    "ExternalName",
    "TCP",
    "UDP",
];

const NUMBERS: &[i32] = &[0, 1, -1, 80, 8080, 65_535, 65_536, i32::MAX, i32::MIN];

/// Flags that have the rules look at everything.
pub(crate) fn options(dice: &mut Dice, policy: ConflictPolicy) -> Options {
    let selector = dice.percent(20).then(|| LabelSelector::parse("x").unwrap());
    Options {
        namespace_selector: selector,
        node: maybe(dice, text),
        default_backend_service: maybe(dice, |dice| ObjectName::new(&text(dice), "web")),
        default_ssl_certificate: maybe(dice, |dice| ObjectName::new(&text(dice), &text(dice))),
        udp_services: ObjectName::parse("shop/tcp"),
        annotation_validation: dice.percent(70),
        deep_inspect: dice.percent(70),
        ssl_passthrough: true,
        ..crate::options(policy)
    }
}

/// Adds objects of the other kinds.
pub(crate) fn furnish(dice: &mut Dice, snapshot: &mut Snapshot) {
    for _ in 0..dice.below(3) {
        let name = ObjectName::new(&text(dice), &text(dice));
        let mut secret = Secret {
            data: maybe(dice, |dice| {
                let keys = ["tls.crt", "tls.key", "ca.crt", "ca.crl", "auth"];
                let entries = keys.map(|key| (key.to_owned(), ByteString(pem(dice))));
                entries.into_iter().collect()
            }),
            ..Secret::default()
        };
        secret.metadata.uid = maybe(dice, text);
        snapshot.secrets.insert(name, secret);
    }
    let labels = |dice: &mut Dice| {
        let zone = "topology.kubernetes.io/zone".to_owned();
        maybe(dice, |dice| {
            [(zone, text(dice)), (text(dice), text(dice))].into()
        })
    };
    let mut node = Node::default();
    node.metadata.labels = labels(dice);
    snapshot
        .nodes
        .insert(ObjectName::cluster(&text(dice)), node);
    let mut namespace = Namespace::default();
    namespace.metadata.labels = labels(dice);
    snapshot
        .namespaces
        .insert(ObjectName::cluster(&text(dice)), namespace);
    let class = IngressClass {
        spec: maybe(dice, |dice| IngressClassSpec {
            controller: maybe(dice, text),
            parameters: None,
        }),
        ..IngressClass::default()
    };
    snapshot
        .ingress_classes
        .insert(ObjectName::cluster(&text(dice)), class);
}

/// What is hardly PEM.
fn pem(dice: &mut Dice) -> Vec<u8> {
    let label = *dice.pick(&[
        "CERTIFICATE",
        "PRIVATE KEY",
        "X509 CRL",
        "",
        "EC PRIVATE KEY",
    ]);
    let body = *dice.pick(&["", "AAAA", "MIIB", "ä", "MAMCAQE="]);
    match dice.below(4) {
        0 => vec![0xff, 0xfe, 0],
        1 => text(dice).into_bytes(),
        _ => format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into_bytes(),
    }
}

/// A few objects that belong together.
pub(crate) fn objects(dice: &mut Dice) -> Vec<Object> {
    let mut objects = dice.several(3, ingress);
    objects.push(service(dice));
    objects.push(slice(dice));
    objects.push(config_map(dice));
    objects
}

fn text(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => (*dice.pick(&["x", "ä", ".", "/", "a."]))
            .repeat(*dice.pick(&[62, 63, 64, 253, 254, 5000])),
        1..3 => [text(dice), text(dice)]
            .concat()
            .chars()
            .take(6000)
            .collect(),
        _ => (*dice.pick(TEXTS)).to_owned(),
    }
}

fn number(dice: &mut Dice) -> i32 {
    *dice.pick(NUMBERS)
}

/// Nothing in one of four cases.
fn maybe<T>(dice: &mut Dice, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
    dice.percent(75).then(|| make(dice))
}

fn backend(dice: &mut Dice) -> IngressBackend {
    IngressBackend {
        service: maybe(dice, |dice| IngressServiceBackend {
            name: text(dice),
            port: maybe(dice, |dice| ServiceBackendPort {
                number: maybe(dice, number),
                name: maybe(dice, text),
            }),
        }),
        resource: None,
    }
}

fn ingress(dice: &mut Dice) -> Object {
    let annotations: BTreeMap<_, _> = dice
        .several(4, |dice| {
            let (key, _) = dice.pick(ALL.annotations);
            (format!("nginx.ingress.kubernetes.io/{key}"), text(dice))
        })
        .into_iter()
        .collect();
    let tls = |dice: &mut Dice| IngressTLS {
        hosts: maybe(dice, |dice| dice.several(2, text)),
        secret_name: maybe(dice, text),
    };
    let spec = maybe(dice, |dice| IngressSpec {
        default_backend: maybe(dice, backend),
        ingress_class_name: dice.percent(10).then(|| text(dice)),
        rules: maybe(dice, |dice| dice.several(3, rule)),
        tls: maybe(dice, |dice| dice.several(2, tls)),
    });
    let mut ingress = Ingress {
        spec,
        ..Ingress::default()
    };
    ingress.metadata.name = maybe(dice, text);
    ingress.metadata.namespace = maybe(dice, text);
    ingress.metadata.annotations = maybe(dice, |_| annotations);
    Object::Ingress(Arc::new(ingress))
}

fn rule(dice: &mut Dice) -> IngressRule {
    let path = |dice: &mut Dice| HTTPIngressPath {
        path: maybe(dice, text),
        path_type: text(dice),
        backend: backend(dice),
    };
    let many = |dice: &mut Dice| {
        let backend = backend(dice);
        let paths = (0..3000).map(|i| HTTPIngressPath {
            path: Some(format!("/{i}")),
            path_type: "Prefix".to_owned(),
            backend: backend.clone(),
        });
        paths.collect()
    };
    IngressRule {
        host: maybe(dice, text),
        http: maybe(dice, |dice| HTTPIngressRuleValue {
            paths: if dice.below(2000) == 0 {
                many(dice)
            } else {
                dice.several(3, path)
            },
        }),
    }
}

fn service(dice: &mut Dice) -> Object {
    let port = |dice: &mut Dice| ServicePort {
        name: maybe(dice, text),
        port: number(dice),
        protocol: maybe(dice, text),
        target_port: maybe(dice, |dice| {
            if dice.percent(50) {
                IntOrString::Int(number(dice))
            } else {
                IntOrString::String(text(dice))
            }
        }),
        ..ServicePort::default()
    };
    let mut service = Service {
        spec: maybe(dice, |dice| ServiceSpec {
            type_: maybe(dice, text),
            external_name: maybe(dice, text),
            cluster_ip: maybe(dice, text),
            ports: maybe(dice, |dice| dice.several(3, port)),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    };
    service.metadata.name = Some("web".to_owned());
    service.metadata.namespace = Some(text(dice));
    Object::Service(Arc::new(service))
}

fn slice(dice: &mut Dice) -> Object {
    let port = |dice: &mut Dice| EndpointPort {
        name: maybe(dice, text),
        port: maybe(dice, number),
        protocol: maybe(dice, text),
        ..EndpointPort::default()
    };
    let mut slice = EndpointSlice {
        address_type: text(dice),
        endpoints: dice.several(3, |dice| Endpoint {
            addresses: dice.several(2, text),
            conditions: maybe(dice, |dice| EndpointConditions {
                ready: maybe(dice, |dice| dice.percent(80)),
                ..EndpointConditions::default()
            }),
            hints: maybe(dice, |dice| EndpointHints {
                for_zones: maybe(dice, |dice| {
                    dice.several(2, |dice| ForZone { name: text(dice) })
                }),
                ..EndpointHints::default()
            }),
            ..Endpoint::default()
        }),
        ports: maybe(dice, |dice| dice.several(3, port)),
        ..EndpointSlice::default()
    };
    let label = "kubernetes.io/service-name".to_owned();
    slice.metadata.labels = maybe(dice, |_| [(label, "web".to_owned())].into());
    slice.metadata.name = Some(text(dice));
    slice.metadata.namespace = Some(text(dice));
    Object::EndpointSlice(Arc::new(slice))
}

fn config_map(dice: &mut Dice) -> Object {
    let data = dice.several(4, |dice| (text(dice), text(dice)));
    let mut map = ConfigMap {
        data: Some(data.into_iter().collect()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some((*dice.pick(&["tcp", "settings"])).to_owned());
    map.metadata.namespace = Some("shop".to_owned());
    Object::ConfigMap(Arc::new(map))
}
