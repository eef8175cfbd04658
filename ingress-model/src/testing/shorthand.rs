//! Objects in a line, where a whole manifest would hide what a test is about.

#![expect(
    clippy::panic,
    reason = "a test whose objects are malformed has to end"
)]

use serde_json::{Map, Value, json};

use crate::object::ObjectName;

use super::Fixture;

impl Fixture {
    /// Adds an Ingress of the class that `--ingress-class` names, created after those before: its name, its annotations
    /// without prefix, and its paths, each as `host/path service:port`, with `= ` in front for pathType Exact.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let served = Fixture::default()
    ///     .and_ingress("shop/cart", &[("upstream-hash-by", "$request_uri")], &["shop.test/cart cart:80", "= shop.test/c cart:http"])
    ///     .and_service("shop/cart", 80, &["10.0.0.1", "10.0.0.2"])
    ///     .merge();
    /// served.assert_request("shop.test/cart/7", "/cart/ shop/cart shop-cart-80");
    /// served.assert_request("shop.test/c", "= /c shop/cart shop-cart-http");
    /// served.assert_endpoints("shop.test/cart/7", ["10.0.0.1:80", "10.0.0.2:80"]);
    /// ```
    ///
    /// # Panics
    /// When the name is not `namespace/name`, or a path is malformed.
    #[track_caller]
    #[must_use]
    pub fn and_ingress(self, name: &str, annotations: &[(&str, &str)], paths: &[&str]) -> Self {
        let prefix = &self.options.annotations_prefix;
        let annotations: Map<_, _> = annotations
            .iter()
            .map(|(name, value)| (format!("{prefix}/{name}"), Value::from(*value)))
            .collect();
        let metadata = metadata(name, "annotations", &annotations.into());
        let rules: Vec<_> = paths.iter().map(|line| rule(line)).collect();
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata,
            "spec": {"ingressClassName": self.options.ingress_class, "rules": rules},
        });
        self.and_object(&ingress)
    }

    /// Adds a Service with one port, `http`, and an EndpointSlice with these addresses.
    ///
    /// # Panics
    /// When the name is not `namespace/name`.
    #[track_caller]
    #[must_use]
    pub fn and_service(self, name: &str, port: u16, addresses: &[&str]) -> Self {
        let service = name.rsplit('/').next();
        let labels = json!({"kubernetes.io/service-name": service});
        let ports = json!([{"name": "http", "port": port, "protocol": "TCP"}]);
        let endpoints: Vec<_> = addresses
            .iter()
            .map(|address| json!({"addresses": [address]}))
            .collect();
        self.and_object(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata(name, "labels", &json!({})),
            "spec": {"clusterIP": "10.96.0.1", "ports": ports},
        }))
        .and_object(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata(name, "labels", &labels),
            "addressType": "IPv4", "ports": ports, "endpoints": endpoints,
        }))
    }

    #[track_caller]
    fn and_object(self, object: &Value) -> Self {
        match self.and_yaml(&object.to_string()) {
            Ok(fixture) => fixture,
            Err(error) => panic!("{object}: {error}"),
        }
    }
}

#[track_caller]
fn metadata(name: &str, key: &str, value: &Value) -> Value {
    let Some(name) = ObjectName::parse(name) else {
        panic!("{name:?} is not namespace/name");
    };
    json!({"namespace": name.namespace(), "name": name.name(), key: value})
}

#[track_caller]
fn rule(line: &str) -> Value {
    let (path_type, place) = match line.strip_prefix("= ") {
        Some(place) => ("Exact", place),
        None => ("Prefix", line),
    };
    let parts = place.rsplit_once(' ').and_then(|(place, backend)| {
        let (service, port) = backend.rsplit_once(':')?;
        let (host, path) = place.split_at(place.find('/')?);
        Some((host, path, service, port))
    });
    let Some((host, path, service, port)) = parts else {
        panic!("{line:?} is not host/path service:port");
    };
    let port = match port.parse::<u16>() {
        Ok(number) => json!({"number": number}),
        Err(_) => json!({"name": port}),
    };
    let backend = json!({"service": {"name": service, "port": port}});
    let path = json!({"path": path, "pathType": path_type, "backend": backend});
    json!({"host": host, "http": {"paths": [path]}})
}
