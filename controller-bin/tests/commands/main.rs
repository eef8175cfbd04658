//! The subcommands beside `explain`, as users run them.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a failure here fails the test"
)]

#[path = "../site/mod.rs"]
mod site;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod diff;
mod lint;
mod lint_manifests;
mod listing;
mod migrate;
mod readme;
mod refused;
mod render;
mod running;
mod shell;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::Value;
use site::{controller, open_directory};
use tempfile::TempDir;

/// Two Ingresses of one host and path, the later one with faults.
const SHOP: &str = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespace: shop
  creationTimestamp: '2026-01-01T00:00:00Z'
spec:
  ingressClassName: nginx
  rules:
  - host: shop.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
      - {path: /cart, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  ports: [{port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 9001}]
endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec:
  ports: [{port: 80}]
";

/// An Ingress that takes a path from the one of [`SHOP`], and does other things wrong.
const FAULTY: &str = "\
# The second of them.
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: late
  namespace: shop
  creationTimestamp: '2026-01-02T00:00:00Z'
  annotations:
    nginx.ingress.kubernetes.io/proxy-body-sice: 8m
    nginx.ingress.kubernetes.io/whitelist-source-range: 10.0.0.0/8
    nginx.ingress.kubernetes.io/auth-type: basic
    nginx.ingress.kubernetes.io/auth-secret: none
spec:
  ingressClassName: nginx
  rules:
  - host: shop.test
    http:
      paths:
      - {path: /cart, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
";

/// A directory of manifests.
fn manifests(files: &[(&str, &str)]) -> TempDir {
    let directory = open_directory();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("it is writable");
    }
    directory
}

/// The flag that names a directory of manifests.
fn from(directory: &TempDir) -> String {
    format!("--manifests={}", directory.path().display())
}

/// What the program said and how it ended.
#[derive(Debug)]
struct Said {
    code: i32,
    text: String,
    errors: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that some line holds all of these texts, in this order.
    fn has_line(&self, parts: &[&str]) {
        let holds = |line: &str| {
            let rest = parts
                .iter()
                .try_fold(line, |rest, part| Some(rest.split_once(part)?.1));
            rest.is_some()
        };
        assert!(self.text.lines().any(holds), "{parts:?}\n{}", self.text);
    }
}

/// Runs the program.
fn run(words: &[&str]) -> Said {
    let output = controller()
        .args(words)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .expect("it can be run");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    Said {
        code: output.status.code().expect("it ends by itself"),
        text: text(output.stdout),
        errors: text(output.stderr),
    }
}

/// The top of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
