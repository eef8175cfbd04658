//! Tiny back ends.

use std::net::SocketAddr;

use axum::{Router, http::Uri};
use tokio::{net::TcpListener, task::JoinHandle};

use super::Site;

/// Headers of every answer of a [`Backend`].
pub(crate) const HEADERS: [&str; 2] = ["x-a", "x-b"];

/// A back end that answers every request with its name and the path, and with the headers [`HEADERS`]. It ends when it
/// is dropped.
#[derive(Debug)]
pub(crate) struct Backend {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Backend {
    pub(crate) async fn start(name: &'static str) -> Self {
        let answer = async move |uri: Uri| {
            (
                HEADERS.map(|name| (name, "1")),
                format!("{name} {}", uri.path()),
            )
        };
        let router = Router::new().fallback(answer);
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("it serves until it is aborted");
        });
        Self { address, serving }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A Service of that name, and its EndpointSlice with this back end.
    pub(crate) fn service(&self, name: &str) -> String {
        service(name, self.address.port())
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Site {
    /// A site whose host `a.test` is answered by one back end, `one`. Its Ingress `a` is in `a.yaml`, its Service, which is
    /// called as given, in `service.yaml`.
    pub(crate) async fn with_one(service: &str) -> (Self, Backend) {
        let one = Backend::start("one").await;
        let site = Self::with_manifests(&[
            ("service.yaml", &one.service(service)),
            ("a.yaml", &ingress("a", "a.test", service, "")),
        ])
        .await;
        site.answers("a.test", "/", 200, "one").await;
        (site, one)
    }
}

/// A Service of that name, and its EndpointSlice with one endpoint at that port.
pub(crate) fn service(name: &str, port: u16) -> String {
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec: {{ports: [{{name: http, port: 80, targetPort: {port}, protocol: TCP}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: default, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: http, port: {port}, protocol: TCP}}]
endpoints: [{{addresses: [127.0.0.1], conditions: {{ready: true}}}}]
"
    )
}

/// An Ingress that sends a host to a Service; `extra` is further lines of `spec`.
pub(crate) fn ingress(name: &str, host: &str, service: &str, extra: &str) -> String {
    annotated(name, host, service, "{}", "/", extra)
}

/// An Ingress with annotations and a path.
pub(crate) fn annotated(
    name: &str,
    host: &str,
    service: &str,
    annotations: &str,
    path: &str,
    extra: &str,
) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: default, annotations: {annotations}}}
spec:
  ingressClassName: nginx
  rules:
  - host: {host}
    http:
      paths:
      - {{path: '{path}', pathType: ImplementationSpecific, backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}
  {extra}
"
    )
}
