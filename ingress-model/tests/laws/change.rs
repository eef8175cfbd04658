//! One change of one field of one object.

use std::sync::Arc;

use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{ConfigMap, Secret, Service},
        discovery::v1::EndpointSlice,
        networking::v1::Ingress,
    },
};

use crate::{
    cluster::{Object, Words, ingress, other},
    dice::Dice,
};

/// Another object of the same name and kind, which differs in one field.
pub(crate) fn change(dice: &mut Dice, object: &Object, words: Words) -> Object {
    match object {
        Object::Ingress(old) => Object::Ingress(Arc::new(change_ingress(dice, old, words))),
        Object::Service(old) => Object::Service(Arc::new(change_service(dice, old))),
        Object::EndpointSlice(old) => Object::EndpointSlice(Arc::new(change_slice(dice, old))),
        Object::Secret(old) => Object::Secret(Arc::new(change_secret(dice, old))),
        Object::ConfigMap(old) => Object::ConfigMap(Arc::new(change_config_map(dice, old))),
    }
}

/// A field of another object of that kind.
fn donor<T>(
    dice: &mut Dice,
    make: impl Fn(&mut Dice) -> Object,
    get: impl Fn(Object) -> Option<T>,
) -> T {
    loop {
        if let Some(donor) = get(make(dice)) {
            return donor;
        }
    }
}

fn change_ingress(dice: &mut Dice, old: &Ingress, words: Words) -> Ingress {
    let mut new = old.clone();
    let make = |dice: &mut Dice| ingress(dice, words);
    let donor = donor(dice, make, |object| match object {
        Object::Ingress(donor) => Some(donor.as_ref().clone()),
        Object::Service(_)
        | Object::EndpointSlice(_)
        | Object::Secret(_)
        | Object::ConfigMap(_) => None,
    });
    let annotations = new.metadata.annotations.get_or_insert_default();
    let spec = new.spec.get_or_insert_default();
    let given = donor.spec.unwrap_or_default();
    match dice.below(10) {
        0 => new.metadata.creation_timestamp = donor.metadata.creation_timestamp,
        1..4 => {
            let (key, value) = dice.pick(words.annotations);
            let key = format!("nginx.ingress.kubernetes.io/{key}");
            if annotations.remove(&key).is_none() {
                annotations.insert(key, (*value).to_owned());
            }
        }
        4 => spec.default_backend = given.default_backend,
        5 => spec.tls = given.tls,
        6 => spec.ingress_class_name = Some("other".to_owned()),
        7 => {
            let labels = new.metadata.labels.get_or_insert_default();
            labels.insert("touched".to_owned(), "yes".to_owned());
        }
        _ => {
            let rules = spec.rules.get_or_insert_default();
            let mut given = given.rules.unwrap_or_default();
            match (rules.is_empty(), given.pop()) {
                (false, Some(rule)) => {
                    let place = dice.below(rules.len());
                    change_rule(dice, &mut rules[place], rule);
                }
                (_, rule) => *rules = rule.into_iter().collect(),
            }
        }
    }
    new
}

fn change_rule(
    dice: &mut Dice,
    rule: &mut k8s_openapi::api::networking::v1::IngressRule,
    given: k8s_openapi::api::networking::v1::IngressRule,
) {
    let old = rule.http.as_mut().and_then(|http| http.paths.first_mut());
    let new = given
        .http
        .clone()
        .and_then(|http| http.paths.into_iter().next());
    match (dice.below(4), old, new) {
        (0, Some(old), Some(new)) => old.path = new.path,
        (1, Some(old), Some(new)) => old.path_type = new.path_type,
        (2, Some(old), Some(new)) => old.backend = new.backend,
        (3, ..) => rule.host = given.host,
        _ => rule.http = given.http,
    }
}

fn change_service(dice: &mut Dice, old: &Service) -> Service {
    let mut new = old.clone();
    let spec = new.spec.get_or_insert_default();
    let ports = spec.ports.get_or_insert_default();
    match (dice.below(6), ports.first_mut()) {
        (0, Some(port)) => port.port = *dice.pick(&[80, 81, 82]),
        (1, Some(port)) => port.name = None,
        (2, Some(port)) => port.protocol = Some("UDP".to_owned()),
        (3, _) => spec.cluster_ip = Some("10.96.0.2".to_owned()),
        (4, _) => spec.external_name = Some("near.test".to_owned()),
        _ => {
            let labels = new.metadata.labels.get_or_insert_default();
            labels.insert("touched".to_owned(), "yes".to_owned());
        }
    }
    new
}

fn change_slice(dice: &mut Dice, old: &EndpointSlice) -> EndpointSlice {
    let mut new = old.clone();
    let donor = donor(dice, other, |object| match object {
        Object::EndpointSlice(donor) => Some(donor.as_ref().clone()),
        Object::Ingress(_) | Object::Service(_) | Object::Secret(_) | Object::ConfigMap(_) => None,
    });
    match dice.below(4) {
        0 => new.endpoints = donor.endpoints,
        1 => new.metadata.labels = donor.metadata.labels,
        2 => new.metadata.resource_version = Some("2".to_owned()),
        _ => {
            for port in new.ports.iter_mut().flatten() {
                port.port = Some(9090);
            }
        }
    }
    new
}

fn change_secret(dice: &mut Dice, old: &Secret) -> Secret {
    let mut new = old.clone();
    let data = new.data.get_or_insert_default();
    match dice.below(4) {
        0 => drop(data.pop_first()),
        1 => drop(data.insert("auth".to_owned(), ByteString(b"lin:$apr1$z".to_vec()))),
        2 => new.metadata.uid = Some("another".to_owned()),
        _ => new.metadata.resource_version = Some("2".to_owned()),
    }
    new
}

fn change_config_map(dice: &mut Dice, old: &ConfigMap) -> ConfigMap {
    let mut new = old.clone();
    let data = new.data.get_or_insert_default();
    match dice.below(4) {
        0 => drop(data.pop_first()),
        1 => drop(data.insert("X-Team".to_owned(), "green".to_owned())),
        2 => drop(data.insert("9000".to_owned(), "shop/web:81".to_owned())),
        _ => drop(data.insert("server-tokens".to_owned(), "false".to_owned())),
    }
    new
}
