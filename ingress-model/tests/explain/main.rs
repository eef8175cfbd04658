//! What is told about requests, hosts and the ConfigMap.

#![expect(clippy::unwrap_used, reason = "malformed manifests fail the test")]

mod objects;
mod requests;
mod settings;
mod tls;

use std::fmt::Write;

use ingress_model::{
    ObjectName, Options,
    explain::{Explanation, Setting},
    live::{Certificate, CertificateId},
    testing::{Fixture, Served},
};

/// An Ingress of the namespace `shop`: annotations without prefix, and what follows `spec:`.
pub(crate) fn ingress(name: &str, annotations: &[(&str, &str)], spec: &str) -> String {
    let mut text = format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  namespace: shop\n"
    );
    if !annotations.is_empty() {
        text.push_str("  annotations:\n");
    }
    for (name, value) in annotations {
        let value = serde_json::to_string(value).unwrap();
        writeln!(text, "    nginx.ingress.kubernetes.io/{name}: {value}").unwrap();
    }
    let class = if spec.contains("ingressClassName") {
        ""
    } else {
        "  ingressClassName: nginx\n"
    };
    text + "spec:\n" + class + spec + "\n"
}

/// A rule of a host with one path.
pub(crate) fn rule(host: &str, path: &str, service: &str) -> String {
    format!(
        "  rules: [{{host: '{host}', http: {{paths: [{{path: '{path}', pathType: Prefix, \
         backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}]}}}}]\n"
    )
}

pub(crate) fn web(name: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop}}
spec: {{ports: [{{name: http, port: 80, targetPort: 8080}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: shop, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{{addresses: [10.0.0.1, 10.0.0.2]}}]
"
    )
}

pub(crate) fn config(data: &[(&str, &str)]) -> String {
    let mut text = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: ingress}\ndata:\n".to_owned();
    for (key, value) in data {
        writeln!(text, "  {key}: {value:?}").unwrap();
    }
    text
}

pub(crate) fn options() -> Options {
    Options {
        config_map: Some(ObjectName::new("ingress", "config")),
        generated_certificate: Some(Certificate {
            id: CertificateId::new(CertificateId::GENERATED),
            pem: "".into(),
        }),
        ssl_passthrough: true,
        ..Options::default()
    }
}

pub(crate) fn served(manifests: &[String]) -> Served {
    let fixture = Fixture::from_yaml(&manifests.concat()).unwrap();
    fixture.with_options(options()).merge()
}

pub(crate) fn explain(served: &Served, host: &str, path: &str) -> Explanation {
    served.explainer().request(host, path).unwrap()
}

pub(crate) fn setting<'a>(settings: &'a [Setting], name: &str) -> &'a Setting {
    settings
        .iter()
        .find(|setting| setting.name == name)
        .unwrap()
}
