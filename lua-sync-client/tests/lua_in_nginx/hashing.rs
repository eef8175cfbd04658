//! Peers picked by the hash of a text of the request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{
    nginx::{Nginx, Setup},
    upstream::{Upstream, backend},
};

const USERS: u32 = 60;

fn hashed(key: &str, peers: &[Upstream]) -> Value {
    let mut spec = backend("a", peers);
    spec["upstreamHashByConfig"] = json!({"upstream-hash-by": key});
    spec
}

/// The peer that each of the users is served by; every one is asked for twice.
fn served(nginx: &Nginx) -> BTreeMap<u32, String> {
    let users = (0..USERS).map(|user| {
        let name = format!("user-{user}");
        let body = nginx.get_with("a", &[("X-User", &name)]).body;
        assert_eq!(nginx.get_with("a", &[("X-User", &name)]).body, body);
        (user, body)
    });
    users.collect()
}

#[test]
fn a_text_has_its_peer_in_every_worker() {
    let nginx = Nginx::start_with(Setup {
        workers: 2,
        ..Setup::default()
    });
    let peers = ["one", "two", "three", "four"].map(Upstream::start);
    nginx.post_backends(&[hashed("v1-${host}-$http_x_user", &peers)]);
    let before = served(&nginx);
    let bodies: BTreeSet<&String> = before.values().collect();
    assert_eq!(bodies.len(), 4);
    // New workers agree with those before.
    nginx.reload("second");
    assert_eq!(served(&nginx), before);
}

#[test]
fn only_the_texts_of_a_peer_that_goes_move() {
    let nginx = Nginx::start();
    let peers = ["one", "two", "three", "four"].map(Upstream::start);
    nginx.post_backends(&[hashed("$http_x_user", &peers)]);
    let before = served(&nginx);
    nginx.post_backends(&[hashed("$http_x_user", &peers[1..])]);
    let after = served(&nginx);
    for (user, body) in &before {
        if body == "one" {
            assert_ne!(after[user], "one");
        } else {
            assert_eq!(after[user], *body);
        }
    }
    nginx.post_backends(&[hashed("$http_x_user", &peers)]);
    assert_eq!(served(&nginx), before);
}

#[test]
fn another_text_to_hash_counts_at_once() {
    let nginx = Nginx::start();
    let peers = ["one", "two", "three", "four"].map(Upstream::start);
    nginx.post_backends(&[hashed("$http_x_user", &peers)]);
    assert!(served(&nginx).values().collect::<BTreeSet<_>>().len() > 1);
    nginx.post_backends(&[hashed("$host", &peers)]);
    assert_eq!(served(&nginx).values().collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn a_failed_peer_is_followed_by_the_next_one_of_the_ring() {
    let nginx = Nginx::start();
    let peers = [
        Upstream::closed(),
        Upstream::closed(),
        Upstream::start("one"),
        Upstream::start("two"),
        Upstream::start("three"),
    ];
    nginx.post_backends(&[hashed("$http_x_user", &peers)]);
    let failing_over = served(&nginx);
    nginx.post_backends(&[hashed("$http_x_user", &peers[2..])]);
    assert_eq!(served(&nginx), failing_over);
}

#[test]
fn a_text_is_spread_over_its_subset() {
    let nginx = Nginx::start();
    let peers = ["one", "two", "three", "four", "five"].map(Upstream::start);
    let mut spec = hashed("$http_x_user", &peers);
    spec["upstreamHashByConfig"]["upstream-hash-by-subset"] = json!(true);
    spec["upstreamHashByConfig"]["upstream-hash-by-subset-size"] = json!(2);
    nginx.post_backends(&[spec]);
    let mut sets = BTreeSet::new();
    for user in 0..30 {
        let name = format!("user-{user}");
        let set: BTreeSet<String> = (0..30)
            .map(|_| nginx.get_with("a", &[("X-User", &name)]).body)
            .collect();
        sets.insert(set);
    }
    let wanted = [["one", "two"], ["three", "four"], ["five", "one"]];
    assert_eq!(sets, wanted.map(|set| set.map(str::to_owned).into()).into(),);
}

#[test]
fn by_name_alone_it_is_round_robin() {
    let nginx = Nginx::start();
    let peers = ["one", "two"].map(Upstream::start);
    for name in ["chash", "chashsubset"] {
        let mut spec = backend("a", &peers);
        spec["load-balance"] = json!(name);
        nginx.post_backends(&[spec]);
        let bodies: BTreeSet<String> = (0..2).map(|_| nginx.get("a").body).collect();
        assert_eq!(bodies.len(), 2, "{name}");
    }
}
