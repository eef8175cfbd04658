//! Peers picked by how fast they answered before.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    eventually,
    nginx::{Nginx, Setup},
    upstream::{Upstream, backend},
};

fn spec(peers: &[Upstream]) -> Value {
    let mut spec = backend("a", peers);
    spec["load-balance"] = json!("ewma");
    spec
}

#[test]
fn the_faster_peer_gets_the_requests() {
    let nginx = Nginx::start_with(Setup {
        workers: 2,
        ..Setup::default()
    });
    // Slower than the other one can be, however busy the machine is.
    let slow = Upstream::start_slow("slow", Duration::from_secs(3));
    nginx.post_backends(&[spec(&[slow, Upstream::start("fast")])]);
    // A peer of which nothing is known is asked first; what one worker learns, both know.
    eventually("the slow peer to have been asked", || {
        (nginx.get("a").body == "slow").then_some(())
    });
    // The figures are taken in after the response has gone out.
    eventually("the response time to be known", || {
        (nginx.get("a").body == "fast").then_some(())
    });
    let bodies: Vec<String> = (0..20).map(|_| nginx.get("a").body).collect();
    let fast = bodies.iter().filter(|body| *body == "fast").count();
    assert_eq!(fast, 20, "{bodies:?}");
    let score: f64 = nginx.get("a").header("X-Score").parse().unwrap();
    assert!((0.0..3.0).contains(&score), "{score}");
}

#[test]
fn a_peer_that_failed_is_not_tried_twice() {
    let nginx = Nginx::start();
    let peers = [
        Upstream::closed(),
        Upstream::closed(),
        Upstream::start("up"),
    ];
    nginx.post_backends(&[spec(&peers)]);
    for _ in 0..10 {
        let response = nginx.get("a");
        assert_eq!((response.status, response.body.as_str()), (200, "up"));
    }
}

#[test]
fn one_peer_has_no_score() {
    let nginx = Nginx::start();
    nginx.post_backends(&[spec(&[Upstream::start("up")])]);
    let response = nginx.get("a");
    assert_eq!(
        (response.body.as_str(), response.header("X-Score")),
        ("up", "-1")
    );
}
