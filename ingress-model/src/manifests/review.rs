//! What an API server would refuse of manifests, or drop without a word: fields that do not exist, and values that the rules
//! of its API forbid (Kubernetes docs: API reference, "Object Names and IDs", "Ingress", "Service").
//!
//! Who follows a directory serves such objects as well as it can. Who checks manifests before they are applied wants to
//! know, since `kubectl apply` will not take them.
//!
//! ```text
//!  text ──▶ [written]: what it says, with places ──▶ [fields]: an object, and fields that it does not have
//!                                                         └──▶ [ingress], [service], [names]: values that are refused
//! ```

mod fields;
mod ingress;
mod names;
mod places;
mod service;
mod written;

use std::path::Path;

use crate::object::ObjectRef;

pub use self::places::FieldPlaces;
use self::{fields::Wrong, names::Values, written::Written};
use super::object::Object;

/// One thing that an API server would not take as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The object it is about.
    pub object: ObjectRef,
    /// The field, such as `spec.rules[0].host`.
    pub field: String,
    /// What kind of slip it is.
    pub kind: SlipKind,
    /// What is wrong with it.
    pub message: String,
    /// The line, from 1; `None` in JSON.
    pub line: Option<u64>,
    /// The column, from 1; `None` in JSON.
    pub column: Option<u64>,
}

/// What kind of slip it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlipKind {
    /// There is no such field: `kubectl` refuses it, other clients have it dropped.
    UnknownField,
    /// The value is refused.
    RefusedValue,
}

/// Looks for slips in the text of a file, which [`parse()`](super::parse()) can read; nothing is said of what it cannot.
///
/// ```
/// use std::path::Path;
///
/// use ingress_model::manifests::review;
///
/// let text = "apiVersion: networking.k8s.io/v1
/// kind: Ingress
/// metadata: {name: shop}
/// spec:
///   ingressClasName: nginx
///   defaultBackend: {service: {name: web, port: {number: 0}}}
/// ";
/// let slips = review(Path::new("shop.yaml"), text);
/// let told: Vec<_> = slips.iter().map(|slip| format!("{:?} {}: {}", slip.line, slip.field, slip.message)).collect();
/// assert_eq!(told, [
///     "Some(5) spec.ingressClasName: there is no such field; did you mean ingressClassName?",
///     "Some(6) spec.defaultBackend.service.port.number: 0 is no port: ports are 1 to 65535",
/// ]);
/// ```
#[must_use]
pub fn review(file: &Path, text: &str) -> Vec<Slip> {
    let documents = written::documents(file, text);
    let mut slips = Vec::new();
    for document in &documents {
        let kind = document.text_at("kind").unwrap_or_default();
        let api_version = document.text_at("apiVersion").unwrap_or_default();
        let Some(kind) = kind.strip_suffix("List") else {
            object(document, api_version, kind, &mut slips);
            continue;
        };
        for item in document.items() {
            let own_kind = item.text_at("kind").unwrap_or(kind);
            let own_version = item.text_at("apiVersion").unwrap_or(api_version);
            object(item, own_version, own_kind, &mut slips);
        }
    }
    slips
}

/// Looks at an object.
fn object(document: &Written, api_version: &str, kind: &str, slips: &mut Vec<Slip>) {
    let (read, wrong) = fields::read(document, api_version, kind);
    let object = match read {
        // Nodes are not written by hand.
        None | Some(Ok(Object::Node(_))) => return,
        Some(Ok(object)) => Some(object),
        Some(Err(_)) => None,
    };
    let kind = Object::kind_called(kind);
    let Some(reference) = kind.and_then(|kind| document.reference(kind)) else {
        return;
    };
    let mut slip = |kind, Wrong { field, message }: Wrong| {
        let place = document.place_of(&field);
        slips.push(Slip {
            object: reference.clone(),
            kind,
            message,
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            field,
        });
    };
    for unknown in wrong.unknown {
        slip(SlipKind::UnknownField, unknown);
    }
    for of_wrong_type in wrong.refused {
        slip(SlipKind::RefusedValue, of_wrong_type);
    }
    let Some(object) = &object else {
        return;
    };
    let mut values = Values::default();
    names::metadata(object, &mut values);
    match object {
        Object::Ingress(it) => ingress::ingress(it, &mut values),
        Object::IngressClass(it) => ingress::class(it, &mut values),
        Object::Service(it) => service::service(it, &mut values),
        Object::EndpointSlice(it) => service::slice(it, &mut values),
        Object::Secret(it) => names::secret(it, &mut values),
        Object::ConfigMap(it) => names::config_map(it, &mut values),
        Object::Namespace(_) | Object::Node(_) => {}
    }
    for refused in values.refused {
        slip(SlipKind::RefusedValue, refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line, field and message of each slip.
    fn told(file: &str, text: &str) -> Vec<String> {
        let slips = review(Path::new(file), text).into_iter();
        let told = slips.map(|slip| {
            let line = slip.line.map(|line| line.to_string()).unwrap_or_default();
            format!("{line} {}: {}", slip.field, slip.message)
        });
        told.collect()
    }

    #[test]
    fn unknown_fields_are_found_at_any_depth() {
        let text = "\
# A comment.
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespase: shop
  annotations: {example.com/anything: x}
spec:
  rules:
  - host: shop.test
    http:
      path:
      - path: /
  - host: b.test
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          serviceName: web
          service: {name: web, port: {number: 80}}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: web}
  spec:
    ports:
    - {port: 80, targetport: 8080}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
dota: {anything: x}
";
        assert_eq!(
            told("a.yaml", text),
            [
                "6 metadata.namespase: there is no such field; did you mean namespace?",
                "12 spec.rules[0].http.path: there is no such field; did you mean paths?",
                "20 spec.rules[1].http.paths[0].backend.serviceName: there is no such field; resource and service are known",
                "11 spec.rules[0].http.paths: it is missing",
                "31 spec.ports[0].targetport: there is no such field; did you mean targetPort?",
                "36 dota: there is no such field; did you mean data?",
            ]
        );
    }

    #[test]
    fn values_of_the_wrong_type_are_found() {
        let text = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  annotations:
    nginx.ingress.kubernetes.io/ssl-redirect: true
    nginx.ingress.kubernetes.io/proxy-read-timeout: 60
    nginx.ingress.kubernetes.io/proxy-body-size: '8'
spec: {defaultBackend: {service: {name: web, port: {number: '80'}}}}
";
        assert_eq!(
            told("a.yaml", text),
            [
                "6 metadata.annotations.nginx.ingress.kubernetes.io/ssl-redirect: true is no text unless it stands in quotes",
                "7 metadata.annotations.nginx.ingress.kubernetes.io/proxy-read-timeout: 60 is no text unless it stands in quotes",
                "9 spec.defaultBackend.service.port.number: invalid type: string \"80\", expected i32",
            ]
        );
    }

    #[test]
    fn a_name_without_quotes_hides_nothing_else() {
        let text = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: 7, namespace: on, labels: {weight: 1}}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}, rulez: []}
";
        let names = [
            "3 metadata.name: 7 is no text unless it stands in quotes",
            "3 metadata.labels.weight: 1 is no text unless it stands in quotes",
            "4 spec.rulez: there is no such field; did you mean rules?",
        ];
        let said = told("a.yaml", text);
        for name in names {
            assert!(said.iter().any(|said| said == name), "{name}: {said:?}");
        }
        let slips = review(Path::new("a.yaml"), text);
        assert_eq!(slips[0].object.name.name(), "7");
    }

    #[test]
    fn json_has_no_places() {
        let text =
            r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spek": {}}"#;
        assert_eq!(
            told("a.json", text),
            [
                " spek: there is no such field; did you mean spec?",
                " spec.ports: it is missing",
            ]
        );
    }

    #[test]
    fn nothing_is_said_of_what_is_right_or_of_other_kinds() {
        let text = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: 'NOT A NAME'}
spek: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: tcp-services, annotations: {}}
data: {9000: 'shop/web:80', yes: 'true'}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {name: web, port: 80, targetPort: 8080}
  - {name: dns, port: 53, protocol: UDP, targetPort: dns}
";
        assert_eq!(told("a.yaml", text), [""; 0]);
        assert_eq!(told("a.yaml", "kind: ["), [""; 0]);
    }
}
