//! The API double against real clients: kube's, its watcher and its reflector.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failure here fails the test"
)]

mod support;

#[path = "api_double/failing.rs"]
mod failing;
#[path = "api_double/listing.rs"]
mod listing;
#[path = "api_double/watching.rs"]
mod watching;
#[path = "api_double/writing.rs"]
mod writing;

use std::fmt::Debug;

use kube::Error;
use serde_json::{Value, json};

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": []}})
}

fn ingress(name: &str, host: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name},
        "spec": {"rules": [{"host": host}]},
    })
}

/// The code and reason a request was refused with.
fn refused<T: Debug>(result: Result<T, Error>) -> (u16, String) {
    match result {
        Err(Error::Api(status)) => (status.code, status.reason),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn refusal(code: u16, reason: &str) -> (u16, String) {
    (code, reason.to_owned())
}
