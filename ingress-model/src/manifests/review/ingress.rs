//! Ingresses and IngressClasses (Kubernetes docs: "Ingress"; API reference: `IngressSpec`, `IngressClassSpec`).

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, Ingress, IngressBackend, IngressClass, IngressServiceBackend,
};

use super::names::{Values, host, port, port_name, service_name, subdomain};

/// The annotation that `ingressClassName` has replaced.
const CLASS: &str = "kubernetes.io/ingress.class";

/// Parts that a path of type Exact or Prefix must not have.
const ODD: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];

/// What is refused of an Ingress.
pub(super) fn ingress(ingress: &Ingress, values: &mut Values) {
    let Some(spec) = &ingress.spec else {
        return values.missing("spec");
    };
    let rules = spec.rules.as_deref().unwrap_or_default();
    if rules.is_empty() && spec.default_backend.is_none() {
        values.refuse("spec", "it has neither rules nor defaultBackend");
    }
    if let Some(default) = &spec.default_backend {
        backend("spec.defaultBackend", default, values);
    }
    if let Some(class) = &spec.ingress_class_name {
        values.check("spec.ingressClassName", subdomain(class));
        let annotations = ingress.metadata.annotations.as_ref();
        let annotated = annotations.and_then(|all| all.get(CLASS));
        if annotated.is_some_and(|annotated| annotated != class) {
            let message = "it differs from spec.ingressClassName";
            values.refuse(format!("metadata.annotations.{CLASS}"), message);
        }
    }
    for (i, rule) in rules.iter().enumerate() {
        let field = format!("spec.rules[{i}]");
        if let Some(name) = rule.host.as_deref().filter(|host| !host.is_empty()) {
            values.check(format!("{field}.host"), host(name));
        }
        let Some(http) = &rule.http else {
            continue;
        };
        if http.paths.is_empty() {
            values.missing(format!("{field}.http.paths"));
        }
        for (j, entry) in http.paths.iter().enumerate() {
            path(&format!("{field}.http.paths[{j}]"), entry, values);
        }
    }
    for (i, entry) in spec.tls.iter().flatten().enumerate() {
        for (j, name) in entry.hosts.iter().flatten().enumerate() {
            values.check(format!("spec.tls[{i}].hosts[{j}]"), host(name));
        }
        let secret = entry.secret_name.as_deref();
        if let Some(secret) = secret.filter(|secret| !secret.is_empty()) {
            values.check(format!("spec.tls[{i}].secretName"), subdomain(secret));
        }
    }
}

fn path(field: &str, entry: &HTTPIngressPath, values: &mut Values) {
    let path = entry.path.as_deref().unwrap_or_default();
    let at = format!("{field}.path");
    match entry.path_type.as_str() {
        "Exact" | "Prefix" => {
            if !path.starts_with('/') {
                values.refuse(&*at, format!("{path:?} does not begin with '/'"));
            }
            let odd = ODD.into_iter().find(|odd| path.contains(odd));
            let odd = odd.or_else(|| ["/..", "/."].into_iter().find(|odd| path.ends_with(odd)));
            if let Some(odd) = odd {
                values.refuse(at, format!("{path:?} has {odd:?} in it"));
            }
        }
        "ImplementationSpecific" => {
            if !path.is_empty() && !path.starts_with('/') {
                values.refuse(at, format!("{path:?} does not begin with '/'"));
            }
        }
        "" => values.refuse(
            format!("{field}.pathType"),
            "it is missing: it is Exact, Prefix or ImplementationSpecific",
        ),
        other => values.refuse(
            format!("{field}.pathType"),
            format!("{other:?} is none of Exact, Prefix and ImplementationSpecific"),
        ),
    }
    backend(&format!("{field}.backend"), &entry.backend, values);
}

fn backend(field: &str, backend: &IngressBackend, values: &mut Values) {
    match (&backend.service, &backend.resource) {
        (None, None) => values.refuse(field, "it names neither a service nor a resource"),
        (Some(_), Some(_)) => values.refuse(field, "it names both a service and a resource"),
        (Some(named), None) => service(&format!("{field}.service"), named, values),
        (None, Some(_)) => {}
    }
}

fn service(field: &str, service: &IngressServiceBackend, values: &mut Values) {
    if service.name.is_empty() {
        values.missing(format!("{field}.name"));
    } else {
        values.check(format!("{field}.name"), service_name(&service.name));
    }
    let at = format!("{field}.port");
    let given = service.port.as_ref();
    let name = given.and_then(|port| port.name.as_deref());
    let name = name.filter(|name| !name.is_empty());
    match (name, given.and_then(|port| port.number)) {
        (None, None) => values.refuse(at, "it has neither a name nor a number"),
        (Some(_), Some(_)) => values.refuse(at, "it has both a name and a number"),
        (Some(name), None) => values.check(format!("{at}.name"), port_name(name)),
        (None, Some(number)) => values.check(format!("{at}.number"), port(number)),
    }
}

/// What is refused of an IngressClass.
pub(super) fn class(class: &IngressClass, values: &mut Values) {
    let controller = class.spec.as_ref();
    let controller = controller.and_then(|spec| spec.controller.as_deref());
    match controller.unwrap_or_default() {
        "" => values.missing("spec.controller"),
        named => {
            let is_good = named.len() <= 250
                && named
                    .split_once('/')
                    .is_some_and(|(domain, path)| subdomain(domain).is_ok() && !path.is_empty());
            if !is_good {
                let message =
                    format!("{named:?} is no domain with a path, such as k8s.io/ingress-nginx");
                values.refuse("spec.controller", message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The fields that are refused, in order.
    fn refused(spec: &Value) -> Vec<String> {
        let ingress = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": spec}));
        let mut values = Values::default();
        super::ingress(&ingress.unwrap(), &mut values);
        let refused = values.refused.into_iter();
        refused.map(|wrong| wrong.field).collect()
    }

    fn with_path(path: &Value) -> Value {
        let mut whole = json!({
            "path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "web", "port": {"number": 80}}},
        });
        for (key, value) in path.as_object().unwrap() {
            whole[key] = value.clone();
        }
        json!({"rules": [{"http": {"paths": [whole]}}]})
    }

    #[test]
    fn paths_are_taken_or_not() {
        let service = |service: Value| json!({"backend": {"service": service}});
        for (path, want) in [
            (json!({}), None),
            (json!({"path": "/a/..b"}), None),
            (
                json!({"path": "/(a|b)//", "pathType": "ImplementationSpecific"}),
                None,
            ),
            (
                json!({"path": "", "pathType": "ImplementationSpecific"}),
                None,
            ),
            (
                json!({"path": "a", "pathType": "ImplementationSpecific"}),
                Some("path"),
            ),
            (json!({"path": ""}), Some("path")),
            (json!({"path": "a", "pathType": "Exact"}), Some("path")),
            (json!({"path": "/a//b"}), Some("path")),
            (json!({"path": "/a/.."}), Some("path")),
            (json!({"path": "/a%2Fb"}), Some("path")),
            (json!({"pathType": ""}), Some("pathType")),
            (json!({"pathType": "prefix"}), Some("pathType")),
            (json!({"backend": {}}), Some("backend")),
            (
                service(json!({"name": "web", "port": {"name": "http"}})),
                None,
            ),
            (
                service(json!({"name": "", "port": {"number": 80}})),
                Some("backend.service.name"),
            ),
            (
                service(json!({"name": "Web", "port": {"number": 80}})),
                Some("backend.service.name"),
            ),
            (
                service(json!({"name": "web"})),
                Some("backend.service.port"),
            ),
            (
                service(json!({"name": "web", "port": {}})),
                Some("backend.service.port"),
            ),
            (
                service(json!({"name": "web", "port": {"name": "a", "number": 80}})),
                Some("backend.service.port"),
            ),
            (
                service(json!({"name": "web", "port": {"name": "80"}})),
                Some("backend.service.port.name"),
            ),
            (
                service(json!({"name": "web", "port": {"number": 65536}})),
                Some("backend.service.port.number"),
            ),
        ] {
            let want = want.map(|field| format!("spec.rules[0].http.paths[0].{field}"));
            assert_eq!(refused(&with_path(&path)), Vec::from_iter(want), "{path}");
        }
    }

    #[test]
    fn the_rest_is_taken_or_not() {
        let resource = json!({"resource": {"apiGroup": "a.test", "kind": "Bucket", "name": "b"}});
        for (spec, want) in [
            (json!({"defaultBackend": resource}), &[][..]),
            (json!({}), &["spec"]),
            (json!({"rules": []}), &["spec"]),
            (json!({"rules": [{"host": "a.test"}]}), &[]),
            (
                json!({"rules": [{"host": "A.test"}]}),
                &["spec.rules[0].host"],
            ),
            (
                json!({"rules": [{"http": {"paths": []}}]}),
                &["spec.rules[0].http.paths"],
            ),
            (
                json!({
                    "ingressClassName": "Ours", "defaultBackend": resource,
                    "tls": [{"hosts": ["*.a.test", "a.test:443"], "secretName": "a_b"}],
                }),
                &[
                    "spec.ingressClassName",
                    "spec.tls[0].hosts[1]",
                    "spec.tls[0].secretName",
                ],
            ),
        ] {
            assert_eq!(refused(&spec), want, "{spec}");
        }
    }

    #[test]
    fn classes_name_a_controller() {
        for (controller, want) in [
            ("k8s.io/ingress-nginx", true),
            ("", false),
            ("nginx", false),
            ("K8s.io/x", false),
            ("k8s.io/", false),
        ] {
            let class = json!({"metadata": {"name": "a"}, "spec": {"controller": controller}});
            let mut values = Values::default();
            super::class(&serde_json::from_value(class).unwrap(), &mut values);
            assert_eq!(values.refused.is_empty(), want, "{controller:?}");
        }
    }

    #[test]
    fn the_annotation_and_the_field_name_one_class() {
        for (annotated, want) in [("ours", true), ("theirs", false)] {
            let ingress = json!({
                "metadata": {"name": "a", "annotations": {CLASS: annotated}},
                "spec": {"ingressClassName": "ours", "rules": [{"host": "a.test"}]},
            });
            let mut values = Values::default();
            super::ingress(&serde_json::from_value(ingress).unwrap(), &mut values);
            assert_eq!(values.refused.is_empty(), want, "{annotated}");
        }
    }
}
