//! What is told to the API server, by replicas of the controller without NGINX.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failure here fails the test; indexing a JSON value does not panic"
)]

#[allow(unused_imports, reason = "each test binary uses a part of it")]
mod support;

#[path = "publish/events.rs"]
mod events;
#[path = "publish/leading.rs"]
mod leading;
#[path = "publish/status.rs"]
mod status;

use std::{sync::Arc, time::Duration};

use controller_bin::{
    Args, cluster, observe::Observer, publish::Publisher, store::Store, watch as watches,
};
use ingress_model::{Merger, snapshot::LastGood};
use jiff::Timestamp;
use serde_json::{Value, json};
use support::{ApiDouble, Request, State};
use tokio::{sync::watch, task::JoinSet};

/// The namespace of the controller's pods.
const OURS: &str = "ours";

const LEASE: &str = "ingress-controller-leader";

/// Leases hold for 12 s, and are renewed every 1.5 s.
const TTL: &str = "--election-ttl=30s";

/// A replica of the controller: all of it that has to do with the API server. What it does breaks off when it is dropped.
struct Replica {
    observer: Arc<dyn Observer>,
    publisher: Publisher,
    ending: watch::Sender<bool>,
    _following: JoinSet<()>,
}

impl Replica {
    /// A replica in a pod of that name. Its Leases hold for longer than any machine keeps it waiting, unless flags say
    /// otherwise.
    async fn start(api: &ApiDouble, pod: &str, flags: &[&str]) -> Self {
        let host = format!("--apiserver-host={}", api.url());
        let pod = format!("--pod-name={pod}");
        let words = [
            "test",
            &host,
            &pod,
            "--pod-namespace=ours",
            TTL,
            "--configmap=ours/settings",
        ];
        let args = Args::try_parse_from(words.iter().chain(flags)).unwrap();
        let client = cluster::client(&args.kubernetes).await.unwrap();
        let lists = watches::lists(&args);
        let store = Arc::new(Store::awaiting(lists.iter().map(ToString::to_string)));
        let mut following = watches::start(&client, lists, &store);
        let (ending, ended) = watch::channel(false);
        let publisher = Publisher::start(&args, &client, &store, &ended);
        let observer = publisher.observer();
        following.spawn(merge(args, store, Arc::clone(&observer)));
        Self {
            observer,
            publisher,
            ending,
            _following: following,
        }
    }

    /// Ends it in good order.
    async fn end(self) {
        self.ending.send_replace(true);
        self.publisher.finish().await;
    }
}

/// Merges whenever something changes.
async fn merge(args: Args, store: Arc<Store>, observer: Arc<dyn Observer>) {
    let mut changed = store.subscribe();
    store.until_ready().await;
    let (mut merger, mut last_good) = (Merger::default(), LastGood::default());
    loop {
        let mut snapshot = store.snapshot();
        snapshot.last_good = last_good;
        let outcome = Arc::new(merger.merge(&snapshot, &args.options(), Timestamp::now()));
        last_good = outcome.last_good.clone();
        observer.merged(&outcome, Duration::ZERO);
        changed.changed().await.unwrap();
    }
}

/// A cluster with our class, another one, and pods for replicas `a` and `b`.
async fn cluster() -> ApiDouble {
    let api = ApiDouble::start().await;
    for (name, controller) in [
        ("nginx", "k8s.io/ingress-nginx"),
        ("other", "example.com/other"),
    ] {
        api.apply(&json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": name},
            "spec": {"controller": controller},
        }));
    }
    for (name, number) in [("a", 1), ("b", 2)] {
        api.apply(&pod(name, number));
        api.apply(&json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": format!("node-{number}")},
            "status": {"addresses": [
                {"type": "InternalIP", "address": format!("10.0.0.{number}")},
                {"type": "ExternalIP", "address": format!("192.0.2.{number}")},
            ]},
        }));
    }
    api
}

fn pod(name: &str, node: u8) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": OURS, "labels": {"app": "ingress", "pod-template-hash": "1"}},
        "spec": {"nodeName": format!("node-{node}"), "containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn ingress(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name},
        "spec": {"ingressClassName": class, "rules": [{"host": format!("{name}.test")}]},
    })
}

/// The IP addresses in the status of an Ingress.
fn addresses(state: &State, name: &str) -> Vec<String> {
    let ingress = state.get("ingresses", "default", name);
    let entries = ingress.map(|ingress| &ingress["status"]["loadBalancer"]["ingress"]);
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    entries
        .filter_map(|entry| entry["ip"].as_str().map(str::to_owned))
        .collect()
}

/// Writes of the status of Ingresses, but for those that were refused.
fn status_writes(state: &State) -> Vec<&Request> {
    let requests = state.requests().iter();
    requests
        .filter(|request| {
            request.writes_status("ingresses") && request.code.is_none_or(|code| code == 200)
        })
        .collect()
}

/// Who holds the Lease.
fn holder(state: &State) -> Option<&str> {
    state.get("leases", OURS, LEASE)?["spec"]["holderIdentity"].as_str()
}
