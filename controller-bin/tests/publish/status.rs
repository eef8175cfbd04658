//! The status of Ingresses: what is written, to which, and what is taken back.

use std::time::Instant;

use super::*;
use crate::support::{Fault, Target, Verb};

const GIVEN: &str = "--publish-status-address=10.9.0.1";

async fn written(api: &ApiDouble, name: &str, want: &[&str]) {
    let what = format!("the status of {name} is {want:?}");
    api.wait_until(&what, |state| addresses(state, name) == want)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_addresses_are_touched_and_only_where_they_differ() {
    let api = cluster().await;
    let mut first = ingress("first", "nginx");
    first["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    first["metadata"]["finalizers"] = json!(["example.com/x"]);
    first["status"] = json!({"other": 1});
    let first = api.apply(&first);
    let mut right = ingress("right", "nginx");
    right["status"] = json!({"loadBalancer": {"ingress": [{"ip": "10.9.0.1", "ports": [{"port": 80, "protocol": "TCP"}]}]}});
    api.apply(&right);
    api.apply(&ingress("foreign", "other"));
    api.apply(&ingress("unknown", "missing"));
    let _a = Replica::start(&api, "a", &[GIVEN]).await;
    written(&api, "first", &["10.9.0.1"]).await;
    api.apply(&ingress("late", "nginx"));
    written(&api, "late", &["10.9.0.1"]).await;
    api.read(|state| {
        assert_eq!(status_writes(state).len(), 2);
        let mut now = state.get("ingresses", "default", "first").unwrap().clone();
        assert_eq!(now["status"]["other"], json!(1));
        for field in ["status", "metadata"] {
            let (was, is) = (&first[field], &mut now[field]);
            if field == "metadata" {
                is["resourceVersion"] = was["resourceVersion"].clone();
                assert_eq!(*is, *was);
            }
        }
        assert_eq!(now["spec"], first["spec"]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_come_from_the_published_service() {
    let api = cluster().await;
    api.apply(&ingress("i", "nginx"));
    let service = |entries: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "front", "namespace": OURS},
            "spec": {"type": "LoadBalancer", "ports": []},
            "status": {"loadBalancer": {"ingress": entries}},
        })
    };
    let flags = ["--publish-service=ours/front", "--status-update-interval=5"];
    let _a = Replica::start(&api, "a", &flags).await;
    api.wait_until("the Service is looked for", |state| {
        state.count(Verb::Get, "services") > 0
    })
    .await;
    api.apply(&service(json!([{"ip": "192.0.2.9"}, {"ip": "192.0.2.1"}])));
    written(&api, "i", &["192.0.2.1", "192.0.2.9"]).await;
    // Without a change of any Ingress, by the clock.
    api.apply(&service(json!([{"ip": "192.0.2.3"}])));
    written(&api, "i", &["192.0.2.3"]).await;
    // A Service that cannot be read is no reason to take addresses back.
    api.inject(
        Target::any().on("services").verb(Verb::Get),
        Fault::forbidden(),
        usize::MAX,
    );
    api.apply(&ingress("late", "nginx"));
    written(&api, "late", &["192.0.2.3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_come_from_the_nodes_of_the_pods() {
    for (flags, want) in [
        (&[] as &[&str], ["192.0.2.1", "192.0.2.2"]),
        (
            &["--report-node-internal-ip-address"],
            ["10.0.0.1", "10.0.0.2"],
        ),
    ] {
        let api = cluster().await;
        let mut waiting = pod("waiting", 3);
        waiting["status"]["conditions"] = json!([]);
        api.apply(&waiting);
        let mut stranger = pod("stranger", 3);
        stranger["metadata"]["labels"] = json!({"app": "ingress"});
        api.apply(&stranger);
        api.apply(&ingress("i", "nginx"));
        let _a = Replica::start(&api, "a", flags).await;
        written(&api, "i", &want).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_write_is_put_right() {
    let api = cluster().await;
    api.apply(&ingress("i", "nginx"));
    let conflict = Target::any().on("ingresses").subresource("status");
    api.inject(conflict.clone(), Fault::LoseAnswer, 1);
    let _a = Replica::start(&api, "a", &[GIVEN, "--status-update-interval=5"]).await;
    written(&api, "i", &["10.9.0.1"]).await;
    api.edit("ingresses", "default", "i", |ingress| {
        ingress["status"] = json!({"loadBalancer": {"ingress": [{"ip": "10.9.9.9"}]}});
    });
    written(&api, "i", &["10.9.0.1"]).await;
    api.inject(conflict, Fault::forbidden(), 1);
    api.apply(&ingress("late", "nginx"));
    written(&api, "late", &["10.9.0.1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_replica_takes_the_addresses_back() {
    let api = cluster().await;
    // It was told to end as well.
    api.edit("pods", OURS, "b", |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod["metadata"]["finalizers"] = json!(["example.com/x"]);
    });
    api.apply(&ingress("i", "nginx"));
    let mut foreign = ingress("foreign", "other");
    foreign["status"] = json!({"loadBalancer": {"ingress": [{"ip": "10.9.0.1"}]}});
    api.apply(&foreign);
    let a = Replica::start(&api, "a", &[GIVEN]).await;
    written(&api, "i", &["10.9.0.1"]).await;
    a.end().await;
    api.read(|state| {
        assert!(addresses(state, "i").is_empty());
        assert_eq!(addresses(state, "foreign"), ["10.9.0.1"]);
        assert_eq!(holder(state), Some(""));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_stay_where_they_are_not_to_be_taken_back() {
    let two = "--publish-status-address=10.9.0.1,10.9.0.2";
    for (flags, alone, why) in [
        (&[GIVEN] as &[&str], false, "another replica runs"),
        (
            &[GIVEN, "--update-status-on-shutdown=false"],
            true,
            "by flag",
        ),
        (&[two], true, "several addresses"),
    ] {
        let api = cluster().await;
        if alone {
            api.delete("pods", OURS, "b");
        }
        api.apply(&ingress("i", "nginx"));
        let a = Replica::start(&api, "a", flags).await;
        api.wait_until("it is written", |state| !addresses(state, "i").is_empty())
            .await;
        a.end().await;
        api.read(|state| {
            assert!(!addresses(state, "i").is_empty(), "{why}");
            assert_eq!(holder(state), Some(""), "{why}");
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_lead_takes_nothing_back() {
    let api = cluster().await;
    api.delete("pods", OURS, "b");
    api.apply(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": OURS},
        "spec": {"holderIdentity": "x", "leaseDurationSeconds": 3600},
    }));
    let mut written = ingress("i", "nginx");
    written["status"] = json!({"loadBalancer": {"ingress": [{"ip": "10.9.0.1"}]}});
    api.apply(&written);
    let a = Replica::start(&api, "a", &[GIVEN]).await;
    api.wait_until("it has looked", |state| {
        state.count(Verb::Get, "leases") > 1
    })
    .await;
    a.end().await;
    api.read(|state| {
        assert!(status_writes(state).is_empty());
        assert_eq!(holder(state), Some("x"));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_new_ingresses_are_written_soon() {
    const COUNT: usize = 1000;
    let api = cluster().await;
    api.limit_history(10 * COUNT);
    let _a = Replica::start(&api, "a", &[GIVEN, "--disable-sync-events"]).await;
    api.wait_until("a leads", |state| holder(state) == Some("a"))
        .await;
    let began = Instant::now();
    for number in 0..COUNT {
        api.apply(&ingress(&format!("i{number}"), "nginx"));
    }
    api.wait_until("all are written", |state| {
        status_writes(state).len() >= COUNT
    })
    .await;
    api.read(|state| {
        let writes: Vec<_> = status_writes(state).iter().map(|write| write.at).collect();
        assert_eq!(writes.len(), COUNT, "each once");
        // The API server is spared: a hundred a second, but for a burst. A machine that is slow spares it more.
        for (write, number) in writes.iter().zip(0_u32..) {
            let earliest = Duration::from_millis(10) * number.saturating_sub(20);
            let at = *write - began;
            assert!(at >= earliest, "write {number} after {at:?}");
        }
    });
}
