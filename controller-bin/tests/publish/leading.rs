//! Of two replicas one leads, and the other one when that is gone.

use std::time::{Duration, Instant};

use controller_bin::publish::election::Terms;

use super::*;
use crate::support::{Fault, Target, Verb};

/// Leases that end soon: after 6 s.
const SHORT: &str = "--election-ttl=15s";

/// Those of 2 s, where it does no harm that they may end before they are renewed.
const SHORTEST: &str = "--election-ttl=5s";

fn terms(seconds: u64) -> Terms {
    Terms::from_ttl(Duration::from_secs(seconds))
}

/// Two replicas that would write different addresses; the first one leads.
async fn two(api: &ApiDouble, ttl: &str) -> [Replica; 2] {
    let flags = ["--publish-status-address=10.9.0.1", ttl];
    let a = Replica::start(api, "a", &flags).await;
    api.wait_until("a leads", |state| holder(state) == Some("a"))
        .await;
    let flags = ["--publish-status-address=10.9.0.2", ttl];
    let b = Replica::start(api, "b", &flags).await;
    [a, b]
}

/// How often somebody looked at the Lease between two points in time.
fn looks(state: &State, after: Instant, before: Instant) -> u32 {
    let looks = state.requests().iter().filter(|request| {
        request.is(Verb::Get, "leases") && request.at > after && request.at < before
    });
    u32::try_from(looks.count()).unwrap()
}

/// The most looks that a replica needs at a Lease that its holder does not renew: one that shows it, one after each wait
/// until its end, and perhaps one that was on its way when the holder wrote last. A machine that is slow makes them fewer.
fn most_looks(terms: Terms) -> u32 {
    let waits = terms.hold.as_millis().div_ceil(terms.retry.as_millis());
    u32::try_from(waits).unwrap() + 2
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
    let _replicas = two(&api, TTL).await;
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
        state.count(Verb::Update, "leases") > renewals + 1
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
    let [a, _b] = two(&api, SHORT).await;
    api.wait_until("a writes", |state| addresses(state, "i") == ["10.9.0.1"])
        .await;
    drop(a);
    api.wait_until("b writes", |state| addresses(state, "i") == ["10.9.0.2"])
        .await;
    api.read(|state| {
        let ((_, last), (first, _)) = (held(state, "a").unwrap(), held(state, "b").unwrap());
        let (gap, looks, terms) = (first - last, looks(state, last, first), terms(15));
        assert!(
            gap >= terms.hold,
            "b waited until the Lease of a had ended: {gap:?}"
        );
        assert!(looks <= most_looks(terms), "and no longer: {looks} looks");
        assert_eq!(status_writes(state).len(), 2);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_ends_makes_room_at_once() {
    let api = cluster().await;
    api.apply(&ingress("i", "nginx"));
    let [a, _b] = two(&api, TTL).await;
    api.wait_until("a writes", |state| addresses(state, "i") == ["10.9.0.1"])
        .await;
    a.end().await;
    let ended = Instant::now();
    api.wait_until("b writes", |state| addresses(state, "i") == ["10.9.0.2"])
        .await;
    api.read(|state| {
        let (first, _) = held(state, "b").unwrap();
        // One look may have been on its way.
        let looks = looks(state, ended, first);
        assert!(looks <= 2, "the Lease was given up: {looks} looks");
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
    let taken = Instant::now();
    api.edit("leases", OURS, LEASE, |lease| {
        lease["spec"]["holderIdentity"] = json!("x");
        lease["spec"]["leaseDurationSeconds"] = json!(3);
    });
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
    let flags = ["--publish-status-address=10.9.0.1", SHORTEST];
    let _a = Replica::start(&api, "a", &flags).await;
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
        broken.elapsed() > terms(5).hold * 3 / 4 && failures(state) > 3
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
        state.count(Verb::Update, "leases") > renewals + 3
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
        !state.list("events").is_empty() && state.count(Verb::Update, "leases") > 1
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
    let [a, _b] = two(&api, "--election-ttl=30s").await;
    api.wait_until("a writes", |state| addresses(state, "i") == ["10.9.0.1"])
        .await;
    let seen = api.read(|state| state.count(Verb::Get, "leases"));
    api.wait_until("b has seen the Lease", |state| {
        state.count(Verb::Get, "leases") > seen + 1
    })
    .await;
    drop(a);
    api.wait_until("b writes", |state| addresses(state, "i") == ["10.9.0.2"])
        .await;
    api.read(|state| {
        let ((_, last), (first, _)) = (held(state, "a").unwrap(), held(state, "b").unwrap());
        // Where requests take no time to speak of, so many looks do not take longer.
        let (looks, terms) = (looks(state, last, first), terms(30));
        assert!(looks <= most_looks(terms), "{looks} looks");
        assert!(most_looks(terms) * terms.retry <= Duration::from_secs(15));
        // Each status has one writer after the other, never both.
        assert_eq!(status_writes(state).len(), 2);
    });
}
