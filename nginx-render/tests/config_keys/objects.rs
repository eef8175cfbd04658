//! The objects that the keys act on.

use std::sync::LazyLock;

use super::support::certificate;

/// The objects besides the ConfigMap.
pub(crate) static OBJECTS: LazyLock<String> = LazyLock::new(objects);

/// An Ingress that changes what many keys show.
#[allow(dead_code, reason = "not every test has it")]
pub(crate) static GRPC: LazyLock<String> =
    LazyLock::new(|| ingress("grpc.test", &[("backend-protocol", "GRPC")], ""));

fn ingress(host: &str, annotations: &[(&str, &str)], more: &str) -> String {
    let annotations: Vec<_> = annotations
        .iter()
        .map(|(name, value)| format!("nginx.ingress.kubernetes.io/{name}: '{value}'"))
        .collect();
    let annotations = annotations.join(", ");
    format!(
        "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {host}, namespace: shop, annotations: {{{annotations}}}}}
spec:
  ingressClassName: nginx
  {more}
  rules:
  - host: {host}
    http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}
---"
    )
}

fn objects() -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    [
        ingress("web.test", &[("limit-rps", "5")], ""),
        ingress("tls.test", &[], "tls: [{hosts: [tls.test]}]"),
        ingress("word.test", &[("upstream-vhost", "harmful")], ""),
        ingress("snippet.test", &[("configuration-snippet", "add_header X-Own own;")], ""),
        ingress(
            "cross.test",
            &[("auth-type", "basic"), ("auth-secret", "other/users"), ("auth-realm", "cross")],
            "",
        ),
        ingress("password.test", &[("auth-type", "basic"), ("auth-secret", "users")], ""),
        ingress("headers.test", &[("custom-headers", "shop/response")], ""),
        ingress(
            "endpoint-tls.test",
            &[
                ("backend-protocol", "HTTPS"),
                ("proxy-ssl-secret", "shop/authority"),
                ("proxy-ssl-verify-depth", "2"),
            ],
            "",
        ),
        format!(
            "
{{apiVersion: v1, kind: Secret, metadata: {{name: users, namespace: shop}}, stringData: {{auth: 'a:{{PLAIN}}b'}}}}
---
{{apiVersion: v1, kind: Secret, metadata: {{name: users, namespace: other}}, stringData: {{auth: 'a:{{PLAIN}}b'}}}}
---
{{apiVersion: v1, kind: Secret, metadata: {{name: authority, namespace: shop}}, stringData: {{ca.crt: {}}}}}
---
{{apiVersion: v1, kind: Secret, metadata: {{name: dh, namespace: ingress}}, stringData: {{dhparam.pem: {}}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: response, namespace: shop}}, data: {{X-Team: shop}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: headers, namespace: ingress}}, data: {{X-Named: from $host}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: tcp, namespace: ingress}}, data: {{'9000': 'shop/web:80:PROXY'}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: udp, namespace: ingress}}, data: {{'9001': 'shop/web:53'}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec:
  clusterIP: 10.96.0.1
  ports: [{{name: http, port: 80}}, {{name: dns, port: 53, protocol: UDP}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-1, namespace: shop, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}, {{name: dns, port: 53, protocol: UDP}}]
endpoints: [{{addresses: [10.0.0.1]}}]
---
",
            text(&certificate()),
            text(include_str!("../dhparam.pem")),
        ),
    ]
    .concat()
}
