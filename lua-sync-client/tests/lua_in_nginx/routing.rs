//! What becomes of requests: the peer they are sent to, and 503 when there is none.

use std::{collections::BTreeSet, thread};

use serde_json::json;

use crate::support::{
    http,
    nginx::{Nginx, Setup},
    upstream::{Upstream, backend},
};

#[test]
fn a_change_holds_for_the_very_next_request_of_every_worker() {
    let nginx = Nginx::start_with(Setup {
        workers: 2,
        ..Setup::default()
    });
    let upstreams = [Upstream::start("one"), Upstream::start("two")];
    let mut workers = BTreeSet::new();
    for flip in 0..30 {
        let (name, upstream) = (["one", "two"][flip % 2], upstreams[flip % 2]);
        nginx.upsert_backends(&[
            backend("flip", &[upstream]),
            json!({"name": format!("other-{flip}")}),
        ]);
        for _ in 0..10 {
            let response = nginx.get("flip");
            assert_eq!(
                (response.status, response.body.as_str()),
                (200, name),
                "flip {flip}"
            );
            workers.insert(response.header("X-Worker").to_owned());
        }
    }
    assert_eq!(workers.len(), 2, "not every worker was asked");
}

#[test]
fn of_two_lists_within_a_second_the_later_holds() {
    let nginx = Nginx::start();
    let (one, two) = (Upstream::start("one"), Upstream::start("two"));
    for _ in 0..3 {
        nginx.post_backends(&[backend("a", &[one])]);
        assert_eq!(nginx.get("a").body, "one");
        nginx.post_backends(&[backend("a", &[two])]);
        assert_eq!(nginx.get("a").body, "two");
    }
}

#[test]
fn endpoints_take_turns() {
    let nginx = Nginx::start();
    let names = ["one", "two", "three"];
    nginx.post_backends(&[backend("a", &names.map(Upstream::start))]);
    let bodies: Vec<String> = (0..30).map(|_| nginx.get("a").body).collect();
    for name in names {
        assert_eq!(
            bodies.iter().filter(|body| *body == name).count(),
            10,
            "{bodies:?}"
        );
    }
}

#[test]
fn without_endpoints_it_is_503() {
    let nginx = Nginx::start();
    let upstream = Upstream::start("up");
    assert_eq!(nginx.get("a").status, 503);
    nginx.post_backends(&[
        backend("a", &[upstream]),
        backend("empty", &[]),
        json!({"name": "none"}),
        json!({"name": "null", "endpoints": null}),
        json!({"name": "names", "endpoints": [{"address": "db.test", "port": "80"}]}),
    ]);
    assert_eq!(nginx.get("a").status, 200);
    for name in ["empty", "none", "null", "names", "unknown"] {
        assert_eq!(nginx.get(name).status, 503, "{name}");
    }
    nginx.post_backends(&[]);
    assert_eq!(nginx.get("a").status, 503);
    nginx.post_backends(&[backend("a", &[upstream])]);
    assert_eq!(nginx.get("a").status, 200);
}

#[test]
fn the_status_port_cannot_be_reached_through_a_backend() {
    let nginx = Nginx::start();
    let to = |address: &str| json!({"address": address, "port": nginx.status.to_string()});
    for address in [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "::ffff:127.0.0.1",
        "::1",
    ] {
        nginx.post_backends(&[json!({"name": "status", "endpoints": [to(address)]})]);
        assert_eq!(nginx.get("status").status, 503, "{address}");
    }
    let upstream = Upstream::start("up").endpoint();
    nginx.post_backends(&[json!({"name": "status", "endpoints": [to("127.0.0.1"), upstream]})]);
    for _ in 0..4 {
        assert_eq!(nginx.get("status").body, "up");
    }
}

#[test]
fn a_failed_peer_is_followed_by_another_one() {
    let nginx = Nginx::start();
    let peers = [
        Upstream::closed(),
        Upstream::closed(),
        Upstream::start("up"),
    ];
    nginx.post_backends(&[backend("a", &peers), backend("closed", &peers[..1])]);
    let mut attempts = BTreeSet::new();
    for _ in 0..9 {
        let response = nginx.get("a");
        assert_eq!((response.status, response.body.as_str()), (200, "up"));
        let tried: Vec<&str> = response.header("X-Upstream").split(", ").collect();
        let different: BTreeSet<&&str> = tried.iter().collect();
        assert_eq!(different.len(), tried.len(), "{tried:?}");
        attempts.insert(tried.len());
    }
    assert_eq!(attempts.into_iter().max(), Some(3));
    // With one peer the retries go to that one.
    let response = nginx.get("closed");
    assert_eq!(response.status, 502);
    assert_eq!(
        response.header("X-Upstream").split(", ").count(),
        3,
        "{response:?}"
    );
}

#[test]
fn a_retry_avoids_the_failed_peer_even_if_it_is_its_turn() {
    let nginx = Nginx::start();
    let (silent, connections) = Upstream::silent();
    nginx.post_backends(&[backend("a", &[silent, Upstream::start("up")])]);
    let request = || http::request(nginx.http, "GET", "/hesitant", &[("X-Backend", "a")], "");
    // Whichever peer this begins with, it ends at the other one, and the silent peer is next.
    assert_eq!(request().body, "up");
    connections.try_iter().for_each(drop);
    let response = thread::scope(|scope| {
        let waiting = scope.spawn(request);
        let _held = connections.recv().unwrap();
        // While it waits, another request is answered, after which it is the silent peer's turn again.
        assert_eq!(nginx.get("a").body, "up");
        waiting.join().unwrap()
    });
    assert_eq!(response.body, "up");
    let tried: Vec<&str> = response.header("X-Upstream").split(", ").collect();
    assert_eq!(tried.len(), 2, "{tried:?}");
    assert_eq!(tried[0], silent.address.to_string());
}

#[test]
fn a_retry_does_not_go_to_a_peer_that_is_gone_by_then() {
    let nginx = Nginx::start();
    let (silent, connections) = Upstream::silent();
    let (gone, new) = (Upstream::start("gone"), Upstream::start("new"));
    nginx.post_backends(&[backend("a", &[silent, gone])]);
    let request = || http::request(nginx.http, "GET", "/hesitant", &[("X-Backend", "a")], "");
    // Whichever peer this begins with, it ends at the other one, and the silent peer is next.
    assert_eq!(request().body, "gone");
    connections.try_iter().for_each(drop);
    let response = thread::scope(|scope| {
        let waiting = scope.spawn(request);
        let _held = connections.recv().unwrap();
        // No other request of the worker looks the backend up meanwhile.
        nginx.post_backends(&[backend("a", &[silent, new])]);
        waiting.join().unwrap()
    });
    assert_eq!(response.body, "new");
}

#[test]
fn ipv6_endpoints() {
    let nginx = Nginx::start();
    let upstream = Upstream::start_v6("six");
    nginx.post_backends(&[backend("six", &[upstream])]);
    let response = nginx.get("six");
    assert_eq!(response.body, "six");
    assert_eq!(response.header("X-Upstream"), upstream.address.to_string());
    // A retry recognises the peer however its address was written.
    let closed = json!({"address": "0:0:0:0:0:0:0:1", "port": Upstream::closed().address.port().to_string()});
    nginx.post_backends(&[json!({"name": "six", "endpoints": [closed, upstream.endpoint()]})]);
    for _ in 0..4 {
        assert_eq!(nginx.get("six").body, "six");
    }
}

#[test]
fn unknown_algorithms_are_round_robin() {
    let nginx = Nginx::start();
    let mut spec = backend("a", &["one", "two"].map(Upstream::start));
    spec["load-balance"] = json!("fastest_first");
    nginx.post_backends(&[spec]);
    let bodies: BTreeSet<String> = (0..4).map(|_| nginx.get("a").body).collect();
    assert_eq!(bodies.len(), 2);
    assert!(
        nginx
            .log()
            .contains("balancing algorithm fastest_first is not available")
    );
}

#[test]
fn locations_without_a_backend_are_left_alone() {
    let nginx = Nginx::start();
    assert_eq!(
        http::request(nginx.http, "GET", "/unbalanced", &[], "").body,
        "unbalanced"
    );
    // "-" and "internal" mean so too: nothing is looked up, and a proxy_pass to the balancer has no peer.
    for name in ["-", "internal", ""] {
        assert_eq!(nginx.get(name).status, 502, "{name}");
    }
}

#[test]
fn an_error_page_has_a_backend_of_its_own() {
    let nginx = Nginx::start();
    let get = |name| http::request(nginx.http, "GET", "/fallback", &[("X-Backend", name)], "");
    assert_eq!(get("unknown").status, 503);
    nginx.post_backends(&[
        backend("a", &[Upstream::start("up")]),
        backend("fallback", &[Upstream::start("fallback")]),
    ]);
    assert_eq!(get("unknown").body, "fallback");
    assert_eq!(get("a").body, "up");
}

#[test]
fn a_default_backend_stands_in_while_there_are_no_endpoints() {
    let nginx = Nginx::start();
    let get = |name| {
        let headers = [
            ("X-Backend", name),
            ("Accept", "text/html"),
            ("X-Code", "7"),
        ];
        http::request(nginx.http, "GET", "/standing-in?a=1", &headers, "")
    };
    assert_eq!(get("empty").status, 503);
    let errors = backend("errors", &[Upstream::start("errors")]);
    let full = backend("full", &[Upstream::start("full")]);
    nginx.post_backends(&[backend("empty", &[]), full.clone(), errors]);
    let response = get("empty");
    assert_eq!(response.body, "errors");
    assert_eq!(
        response.header("X-Told"),
        "503 text/html /standing-in?a=1 shop front web 80"
    );
    let response = get("full");
    assert_eq!(response.body, "full");
    assert_eq!(response.header("X-Told").trim(), "7");
    nginx.post_backends(&[backend("empty", &[]), full]);
    assert_eq!(get("empty").status, 503);
}

#[test]
fn a_redirect_needs_no_endpoints() {
    let nginx = Nginx::start();
    let response = http::request(nginx.http, "GET", "/redirect", &[], "");
    assert_eq!(response.status, 308);
}

#[test]
fn a_subrequest_does_not_change_the_backend() {
    let nginx = Nginx::start();
    nginx.post_backends(&[backend("a", &[Upstream::start("up")])]);
    let response = http::request(nginx.http, "GET", "/guarded", &[("X-Backend", "a")], "");
    assert_eq!((response.status, response.body.as_str()), (200, "up"));
}

#[test]
fn a_service_decides_without_seeing_the_variables_of_the_request() {
    let nginx = Nginx::start();
    nginx.post_backends(&[backend("a", &[Upstream::start("up")])]);
    let ask = |wanted, body| {
        let headers = [("X-Backend", "a"), ("X-Wanted", wanted), ("X-User", "mira")];
        http::request(nginx.http, "POST", "/asking", &headers, body)
    };
    for wanted in ["200", "204", "299"] {
        let response = ask(wanted, "some text");
        assert_eq!((response.status, response.body.as_str()), (200, "up"));
        assert_eq!(response.header("X-Auth"), "mira|seen=");
        assert_eq!(response.header("X-Cookie"), "session=1");
    }
    for (wanted, status) in [("401", 401), ("403", 403), ("302", 500), ("404", 500)] {
        let response = ask(wanted, "");
        assert_eq!(response.status, status);
        assert_eq!(response.header("X-Auth"), "|");
        assert_eq!(response.header("X-Cookie"), "session=1");
    }
    let asked = ask("401", "").header("WWW-Authenticate").to_owned();
    assert_eq!(asked, "Basic realm=\"x\"");
}

#[test]
fn requests_get_an_identifier_unless_they_have_one() {
    let nginx = Nginx::start();
    nginx.post_backends(&[backend("a", &[Upstream::start("up")])]);
    let identifier = |headers: &[(&str, &str)]| {
        let answer = nginx.get_with("a", headers);
        answer.header("X-Identifier").to_owned()
    };
    assert_eq!(identifier(&[("X-Request-ID", "own")]), "own");
    let (one, two) = (identifier(&[]), identifier(&[]));
    assert_ne!(one, two);
    for text in [one, two] {
        assert!(text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
