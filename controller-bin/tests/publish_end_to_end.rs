//! What the whole controller tells the API server, with a real NGINX.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a failure here fails the test; indexing a JSON value does not panic"
)]

mod site;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
mod support;

use rustix::process::Signal;
use serde_json::{Value, json};
use site::{Site, backend::Backend, backend::ingress, open_directory};
use support::{ApiDouble, State};

const OBJECTS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ours}
data: {allow-snippet-annotations: 'true', annotations-risk-level: Critical}
---
apiVersion: v1
kind: Pod
metadata: {name: only, namespace: ours, labels: {app: ingress}}
spec: {containers: []}
";

fn status(state: &State, name: &str) -> Value {
    let ingress = state.get("ingresses", "default", name).unwrap();
    ingress["status"]["loadBalancer"].clone()
}

/// The messages of Events with that reason about that object.
fn messages(state: &State, name: &str, reason: &str) -> Vec<String> {
    let about =
        |event: &&Value| event["involvedObject"]["name"] == name && event["reason"] == reason;
    let events = state.list("events").into_iter().filter(about);
    events
        .filter_map(|event| event["message"].as_str().map(str::to_owned))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_tells_its_cluster_what_it_does() {
    let api = ApiDouble::start().await;
    let backend = Backend::start("one").await;
    api.apply_yaml(OBJECTS);
    api.apply_yaml(&backend.service("one"));
    api.apply_yaml(&ingress("a", "a.test", "one", ""));
    let host = format!("--apiserver-host={}", api.url());
    let flags = [
        host.as_str(),
        "--pod-name=only",
        "--pod-namespace=ours",
        "--configmap=ours/settings",
        "--publish-status-address=192.0.2.1",
    ];
    let mut site = Site::start(open_directory(), &flags);
    site.ready().await;
    let address = json!({"ingress": [{"ip": "192.0.2.1"}]});
    api.wait_until("the address is written", |state| {
        status(state, "a") == address
    })
    .await;
    api.wait_until("the reload is told", |state| {
        !messages(state, "only", "RELOAD").is_empty()
    })
    .await;

    let mut refused = api.get("ingresses", "default", "a").unwrap();
    refused["metadata"]["annotations"] =
        json!({"nginx.ingress.kubernetes.io/configuration-snippet": "no_such_directive on;"});
    api.apply(&refused);
    api.wait_until("what NGINX says is told", |state| {
        let messages = messages(state, "a", "Isolated");
        messages
            .iter()
            .any(|message| message.contains("no_such_directive"))
    })
    .await;
    refused["metadata"]["annotations"] = Value::Null;
    api.apply(&refused);
    api.wait_until("the recovery is told", |state| {
        !messages(state, "a", "Recovered").is_empty()
    })
    .await;
    site.answers("a.test", "/", 200, "one").await;

    site.signal(Signal::TERM);
    assert!(site.ended().await.success());
    api.read(|state| {
        assert_eq!(status(state, "a"), json!({}));
        let lease = state.get("leases", "ours", "ingress-controller-leader");
        assert_eq!(lease.unwrap()["spec"]["holderIdentity"], "");
    });
}
