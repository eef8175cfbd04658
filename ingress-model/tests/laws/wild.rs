//! Objects such as no API server lets through, and such as it hardly does.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, Service, ServicePort, ServiceSpec},
        discovery::v1::{Endpoint, EndpointPort, EndpointSlice},
        networking::v1::{
            HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule,
            IngressServiceBackend, IngressSpec, IngressTLS, ServiceBackendPort,
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
        ingress_class_name: None,
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
            paths: if dice.below(4000) == 0 {
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
