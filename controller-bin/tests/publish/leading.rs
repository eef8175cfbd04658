//! Of two replicas one leads, and the other one when that is gone.

use std::time::{Duration, Instant};

use super::*;
use crate::support::{Fault, Target, Verb};

const HOLD: Duration = Duration::from_secs(2);

/// Two replicas that would write different addresses; the first one leads.
async fn two(api: &ApiDouble) -> [Replica; 2] {
    let a = Replica::start(api, "a", &["--publish-status-address=10.9.0.1"]).await;
    api.wait_until("a leads", |state| holder(state) == Some("a"))
        .await;
    let b = Replica::start(api, "b", &["--publish-status-address=10.9.0.2"]).await;
    [a, b]
}

/// When the Lease was last written with that holder, and when it was first.
fn held(state: &State, name: &str) -> Option<(Instant, Instant)> {
    let writes: Vec<_> = state
        .requests()
        .iter()
        .filter(|request| {
            matches!(request.call.verb, Verb::Create | Verb::Update)
                && matches!(request.code, Some(200 | 201))
                && request
                    .body
                    .as_ref()
                    .is_some_and(|body| body["spec"]["holderIdentity"] == name)
        })
        .map(|request| request.at)
        .collect();
    Some((*writes.first()?, *writes.last()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn one_replica_writes_each_status_once() {
    let api = cluster().await;
    let _replicas = two(&api).await;
    for number in 0..20 {
        api.apply(&ingress(&format!("i{number}"), "nginx"));
    }
    api.wait_until("all are written", |state| {
        (0..20).all(|number| addresses(state, &format!("i{number}")) == ["10.9.0.1"])
    })
    .await;
    // The Lease is renewed some times more.
    let renewals = api.read(|state| state.count(Verb::Update, "leases"));
    api.wait_until("the Lease is renewed", |state| {
        state.count(Verb::Update, "leases") > renewals + 3
    })
    .await;
    api.read(|state| {
        assert_eq!(status_writes(state).len(), 20);
        assert_eq!(holder(state), Some("a"));
        assert!(held(state, "b").is_none(), "b never held the Lease");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_breaks_off_is_replaced_when_its_lease_ends() {
    let api = cluster().await;
    api.apply(&ingress("i", "nginx"));
    let [a, _b] = two(&api).await;
    api.wait_until("a writes", |state| addresses(state, "i") == ["10.9.0.1"])
        .await;
    drop(a);
    api.wait_until("b writes", |state| addresses(state, "i") == ["10.9.0.2"])
        .await;
    api.read(|state| {
        let ((_, last), (first, _)) = (held(state, "a").unwrap(), held(state, "b").unwrap());
        let gap = first - last;
        assert!(
            gap >= HOLD,
            "b waited until the Lease of a had ended: {gap:?}"
        );
        assert!(gap < HOLD * 5 / 4, "and no longer: {gap:?}");
        assert_eq!(status_writes(state).len(), 2);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_ends_makes_room_at_once() {
    let api = cluster().await;
    api.apply(&ingress("i", "nginx"));
    let [a, _b] = two(&api).await;
    api.wait_until("a writes", |state| addresses(state, "i") == ["10.9.0.1"])
        .await;
    a.end().await;
    api.wait_until("b writes", |state| addresses(state, "i") == ["10.9.0.2"])
        .await;
    api.read(|state| {
        let (_, last) = held(state, "a").unwrap();
        let (first, _) = held(state, "b").unwrap();
        assert!(first - last < HOLD, "the Lease was given up");
        // Nothing was taken back meanwhile.
        assert_eq!(status_writes(state).len(), 2);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_writes_only_while_the_lease_is_its_own() {
    let api = cluster().await;
    let _a = Replica::start(&api, "a", &["--publish-status-address=10.9.0.1"]).await;
    api.wait_until("a leads", |state| holder(state) == Some("a"))
        .await;
    api.edit("leases", OURS, LEASE, |lease| {
        lease["spec"]["holderIdentity"] = json!("x");
        lease["spec"]["leaseDurationSeconds"] = json!(3);
    });
    let taken = Instant::now();
    let looks = api.read(|state| state.count(Verb::Get, "leases"));
    api.wait_until("a has seen it", |state| {
        state.count(Verb::Get, "leases") > looks + 1
    })
    .await;
    api.apply(&ingress("i", "nginx"));
    api.wait_until("a writes again", |state| {
        addresses(state, "i") == ["10.9.0.1"]
    })
    .await;
    assert!(taken.elapsed() >= Duration::from_secs(3));
    api.read(|state| {
        assert_eq!(holder(state), Some("a"));
        let lease = state.get("leases", OURS, LEASE).unwrap();
        assert_eq!(lease["spec"]["leaseTransitions"], json!(1));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_renew_stops_before_another_one_could_lead() {
    let api = cluster().await;
    let _a = Replica::start(&api, "a", &["--publish-status-address=10.9.0.1"]).await;
    api.wait_until("a leads", |state| holder(state) == Some("a"))
        .await;
    api.inject(Target::any().on("leases"), Fault::internal(), usize::MAX);
    let broken = Instant::now();
    let failures = |state: &State| {
        let refused = |request: &&Request| request.code == Some(500);
        state.requests().iter().filter(refused).count()
    };
    // Three quarters of the time for which the Lease holds.
    api.wait_until("it must not trust in its Lease any more", |state| {
        broken.elapsed() > HOLD * 3 / 4 && failures(state) > 3
    })
    .await;
    api.apply(&ingress("i", "nginx"));
    let before = api.read(failures);
    api.wait_until("it tries again", |state| failures(state) > before + 2)
        .await;
    api.read(|state| assert!(status_writes(state).is_empty()));
    api.clear_faults();
    api.wait_until("a writes", |state| addresses(state, "i") == ["10.9.0.1"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_does_not_cost_the_lease() {
    let api = cluster().await;
    let _a = Replica::start(&api, "a", &["--publish-status-address=10.9.0.1"]).await;
    api.wait_until("a leads", |state| holder(state) == Some("a"))
        .await;
    api.inject(
        Target::any().verb(Verb::Update).on("leases"),
        Fault::LoseAnswer,
        2,
    );
    let renewals = api.read(|state| state.count(Verb::Update, "leases"));
    api.wait_until("the Lease is renewed", |state| {
        state.count(Verb::Update, "leases") > renewals + 4
    })
    .await;
    api.read(|state| {
        let lease = state.get("leases", OURS, LEASE).unwrap();
        assert_eq!(holder(state), Some("a"));
        assert_eq!(lease["spec"]["leaseTransitions"], json!(0));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flags_name_the_lease_or_forbid_it() {
    let api = cluster().await;
    api.apply(&ingress("i", "nginx"));
    let flags = [
        "--publish-status-address=10.9.0.1",
        "--election-id=chosen",
        "--update-status=false",
    ];
    let _leader = Replica::start(&api, "a", &flags).await;
    api.wait_until("a leads", |state| {
        state.get("leases", OURS, "chosen").is_some()
    })
    .await;
    let flags = [
        "--publish-status-address=10.9.0.2",
        "--disable-leader-election",
    ];
    let _other = Replica::start(&api, "b", &flags).await;
    api.wait_until("events are made and the Lease is renewed", |state| {
        !state.list("events").is_empty() && state.count(Verb::Update, "leases") > 3
    })
    .await;
    api.read(|state| {
        assert_eq!(state.list("leases").len(), 1);
        assert!(status_writes(state).is_empty());
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_default_flags_another_replica_writes_within_fifteen_seconds() {
    let api = cluster().await;
    api.apply(&ingress("i", "nginx"));
    let default = "--election-ttl=30s";
    let a = Replica::start(&api, "a", &["--publish-status-address=10.9.0.1", default]).await;
    api.wait_until("a writes", |state| addresses(state, "i") == ["10.9.0.1"])
        .await;
    let _b = Replica::start(&api, "b", &["--publish-status-address=10.9.0.2", default]).await;
    let looks = api.read(|state| state.count(Verb::Get, "leases"));
    api.wait_until("b has seen the Lease", |state| {
        state.count(Verb::Get, "leases") > looks + 1
    })
    .await;
    let broken = Instant::now();
    drop(a);
    api.wait_until_within(Duration::from_secs(20), "b writes", |state| {
        addresses(state, "i") == ["10.9.0.2"]
    })
    .await;
    let took = broken.elapsed();
    assert!(took <= Duration::from_secs(15), "{took:?}");
    // Each status has one writer after the other, never both.
    api.read(|state| assert_eq!(status_writes(state).len(), 2));
}
