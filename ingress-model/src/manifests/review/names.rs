//! Names, and what objects of all kinds have (Kubernetes docs: "Object Names and IDs", "Labels and Selectors",
//! "Annotations", "Secrets", "ConfigMaps").

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::{super::object::Object, fields::Wrong};

/// The most bytes that all annotations of an object have, with their keys.
const ANNOTATIONS: usize = 256 << 10;

/// The most bytes that a Secret or a ConfigMap holds.
const DATA: usize = 1 << 20;

/// Values that are refused.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) refused: Vec<Wrong>,
}

impl Values {
    /// Notes what is wrong with a field.
    pub(super) fn refuse(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.refused.push(Wrong {
            field: field.into(),
            message: message.into(),
        });
    }

    /// Notes a field that has to be there.
    pub(super) fn missing(&mut self, field: impl Into<String>) {
        self.refuse(field, "it is missing");
    }

    /// Notes a field that breaks a rule.
    pub(super) fn check(&mut self, field: impl Into<String>, rule: Result<(), String>) {
        if let Err(message) = rule {
            self.refuse(field, message);
        }
    }
}

/// A name of several parts, as hosts have them: lower case letters, digits and hyphens between dots (RFC 1123).
pub(super) fn subdomain(name: &str) -> Result<(), String> {
    let is_part =
        |part: &str| is_hyphenated(part, |c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.len() <= 253 && name.split('.').all(is_part) {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no DNS name: it has lower case letters, digits, '-' and '.', begins and ends each part with a letter or digit, and has at most 253 characters"
    ))
}

/// A name of one part (RFC 1123).
pub(super) fn label(name: &str) -> Result<(), String> {
    if name.len() <= 63 && !name.contains('.') && subdomain(name).is_ok() {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no DNS label: it has lower case letters, digits and '-', begins and ends with a letter or digit, and has at most 63 characters"
    ))
}

/// The name of a Service, which begins with a letter (RFC 1035).
pub(super) fn service_name(name: &str) -> Result<(), String> {
    if label(name).is_ok() && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no name of a Service: it has lower case letters, digits and '-', begins with a letter, ends with a letter or digit, and has at most 63 characters"
    ))
}

/// A host of a rule or of TLS: a name, or `*.` and a name.
pub(super) fn host(host: &str) -> Result<(), String> {
    if host.parse::<std::net::IpAddr>().is_ok() {
        return Err(format!("{host:?} is an IP address, and hosts are names"));
    }
    if host.contains('*') {
        let below = host.strip_prefix("*.");
        let is_good = below.is_some_and(|below| subdomain(below).is_ok());
        let refused = || format!("{host:?} is no wildcard: it is '*.' and a name in lower case");
        return if is_good { Ok(()) } else { Err(refused()) };
    }
    if host.contains(':') {
        return Err(format!("{host:?} names a port, and hosts have none"));
    }
    subdomain(host)
}

/// The number of a port.
pub(super) fn port(number: i32) -> Result<(), String> {
    if (1..=65535).contains(&number) {
        return Ok(());
    }
    Err(format!("{number} is no port: ports are 1 to 65535"))
}

/// The name of a port of a pod (IANA service names, RFC 6335).
pub(super) fn port_name(name: &str) -> Result<(), String> {
    let is_good = name.len() <= 15
        && !name.contains("--")
        && name.contains(|c: char| c.is_ascii_lowercase())
        && is_hyphenated(name, |c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if is_good {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no name of a port: it has lower case letters, at least one, digits and single '-' between them, and at most 15 characters"
    ))
}

/// A key of labels or annotations: a name, maybe behind a domain and a slash.
fn qualified(key: &str) -> Result<(), String> {
    let (domain, name) = match key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    let is_name = name.len() <= 63 && is_word(name);
    if is_name && domain.is_none_or(|domain| subdomain(domain).is_ok()) {
        return Ok(());
    }
    Err(format!(
        "{key:?} is no key: it is a name of letters, digits, '-', '_' and '.', maybe behind a DNS name and one '/'"
    ))
}

/// Letters, digits, `-`, `_` and `.`, a letter or digit at both ends.
fn is_word(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let outer = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(outer) && text.ends_with(outer) && text.chars().all(inner)
}

/// Characters of a kind, and hyphens that neither begin nor end it.
fn is_hyphenated(text: &str, kind: impl Fn(char) -> bool) -> bool {
    text.starts_with(&kind) && text.ends_with(&kind) && text.chars().all(|c| c == '-' || kind(c))
}

/// What objects of all kinds have.
pub(super) fn metadata(object: &Object, values: &mut Values) {
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    values.check(
        "metadata.name",
        match object {
            Object::Service(_) => service_name(name),
            Object::Namespace(_) => label(name),
            Object::Ingress(_)
            | Object::IngressClass(_)
            | Object::EndpointSlice(_)
            | Object::Secret(_)
            | Object::ConfigMap(_)
            | Object::Node(_) => subdomain(name),
        },
    );
    if let Some(namespace) = meta.namespace.as_deref().filter(|name| !name.is_empty()) {
        values.check("metadata.namespace", label(namespace));
    }
    let annotations = meta.annotations.iter().flatten();
    for (key, _) in annotations.clone() {
        // An API server looks at keys of annotations, not of labels, as if they were in lower case.
        let field = format!("metadata.annotations.{key}");
        values.check(field, qualified(&key.to_ascii_lowercase()));
    }
    let size: usize = annotations.map(|(key, text)| key.len() + text.len()).sum();
    if size > ANNOTATIONS {
        let message = format!("all annotations have {size} bytes, and may have {ANNOTATIONS}");
        values.refuse("metadata.annotations", message);
    }
    for (key, value) in meta.labels.iter().flatten() {
        let field = format!("metadata.labels.{key}");
        values.check(&*field, qualified(key));
        if !value.is_empty() && (value.len() > 63 || !is_word(value)) {
            let message = format!(
                "{value:?} is no label's value: it has letters, digits, '-', '_' and '.', begins and ends with a letter or digit, and has at most 63 characters"
            );
            values.refuse(field, message);
        }
    }
}

/// What a Secret holds, and what its type asks for.
pub(super) fn secret(secret: &Secret, values: &mut Values) {
    let data = secret.data.iter().flatten();
    let data: BTreeMap<&str, usize> = data
        .map(|(key, value)| (key.as_str(), value.0.len()))
        .collect();
    let texts = secret.string_data.iter().flatten();
    let texts: BTreeMap<&str, usize> = texts
        .map(|(key, value)| (key.as_str(), value.len()))
        .collect();
    entries("data", &data, values);
    entries("stringData", &texts, values);
    size(data.values().chain(texts.values()).sum(), values);
    if secret.type_.as_deref() == Some("kubernetes.io/tls") {
        for key in ["tls.crt", "tls.key"] {
            if !data.contains_key(key) && !texts.contains_key(key) {
                let message = "it is missing, and Secrets of type kubernetes.io/tls have it";
                values.refuse(format!("data.{key}"), message);
            }
        }
    }
}

/// What a ConfigMap holds.
pub(super) fn config_map(map: &ConfigMap, values: &mut Values) {
    let data = map.data.iter().flatten();
    let data: BTreeMap<&str, usize> = data
        .map(|(key, value)| (key.as_str(), value.len()))
        .collect();
    let binary = map.binary_data.iter().flatten();
    let binary: BTreeMap<&str, usize> = binary
        .map(|(key, value)| (key.as_str(), value.0.len()))
        .collect();
    entries("data", &data, values);
    entries("binaryData", &binary, values);
    for key in binary.keys().filter(|key| data.contains_key(*key)) {
        values.refuse(format!("binaryData.{key}"), "data has the same key");
    }
    size(data.values().chain(binary.values()).sum(), values);
}

fn entries(field: &str, entries: &BTreeMap<&str, usize>, values: &mut Values) {
    for key in entries.keys() {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_good = !key.is_empty()
            && key.len() <= 253
            && !key.starts_with("..")
            && *key != "."
            && key.chars().all(good);
        if !is_good {
            let message = format!(
                "{key:?} is no key: it has letters, digits, '-', '_' and '.', and at most 253 characters"
            );
            values.refuse(format!("{field}.{key}"), message);
        }
    }
}

fn size(size: usize, values: &mut Values) {
    if size > DATA {
        let message = format!("it holds {size} bytes, and may hold {DATA}");
        values.refuse("data", message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_good_or_bad() {
        type Rule = fn(&str) -> Result<(), String>;
        let long = "a".repeat(64);
        for (rule, name, want) in [
            (subdomain as Rule, "a.b-c.0", true),
            (subdomain, &long, true),
            (subdomain, "a..b", false),
            (subdomain, "-a", false),
            (subdomain, "a_b", false),
            (subdomain, "A", false),
            (subdomain, "", false),
            (label, "0-a", true),
            (label, "a.b", false),
            (label, &long, false),
            (service_name, "a-1", true),
            (service_name, "1-a", false),
            (host, "*.a.test", true),
            (host, "a.*.test", false),
            (host, "*", false),
            (host, "*.A.test", false),
            (host, "a.test:80", false),
            (host, "a_b.test", false),
            (host, "10.0.0.1", false),
            (port_name, "http-1", true),
            (port_name, "80", false),
            (port_name, "a--b", false),
            (port_name, "HTTP", false),
            (port_name, "longer-than-that", false),
            (qualified, "example.com/A_b.c", true),
            (qualified, "a/b/c", false),
            (qualified, "/b", false),
            (qualified, "b c", false),
        ] {
            assert_eq!(rule(name).is_ok(), want, "{name:?}: {:?}", rule(name));
        }
        for (number, want) in [(0, false), (1, true), (65535, true), (65536, false)] {
            assert_eq!(port(number).is_ok(), want, "{number}");
        }
    }
}
