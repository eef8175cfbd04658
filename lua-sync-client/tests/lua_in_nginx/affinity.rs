//! Clients that stay on their peer by a cookie.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{
    http::{self, Response},
    nginx::{Nginx, Setup},
    upstream::{Upstream, backend},
};

const MODES: [&str; 2] = ["balanced", "persistent"];

/// A backend with affinity, whose cookie `lane` may be set at all locations of the tests that proxy.
fn sticky(name: &str, mode: &str, peers: &[Upstream]) -> Value {
    let mut spec = backend(name, peers);
    let cookie = json!({"name": "lane", "locations": {"127.0.0.1": ["/", "/impatient"]}});
    spec["sessionAffinityConfig"] =
        json!({"name": "cookie", "mode": mode, "cookieSessionAffinity": cookie});
    spec
}

/// The cookie a response sets, as a client sends it back.
fn cookie(response: &Response) -> String {
    let lines: Vec<&str> = response.all("Set-Cookie").collect();
    assert_eq!(lines.len(), 1, "{response:?}");
    lines[0].split("; ").next().unwrap().to_owned()
}

/// The peers of the attempts.
fn tried(response: &Response) -> Vec<&str> {
    response.header("X-Upstream").split(", ").collect()
}

#[test]
fn a_client_stays_and_others_are_spread() {
    let nginx = Nginx::start_with(Setup {
        workers: 2,
        ..Setup::default()
    });
    let peers = ["one", "two", "three"].map(Upstream::start);
    for mode in MODES {
        nginx.post_backends(&[sticky("a", mode, &peers)]);
        let mut served = BTreeSet::new();
        for _ in 0..30 {
            let first = nginx.get("a");
            let line = first.header("Set-Cookie");
            assert!(line.ends_with("; Path=/; HttpOnly"), "{line}");
            let cookie = cookie(&first);
            served.insert(first.body.clone());
            for _ in 0..3 {
                let again = nginx.get_with("a", &[("Cookie", &cookie)]);
                assert_eq!(again.body, first.body, "{mode}");
                assert_eq!(again.all("Set-Cookie").count(), 0, "{mode}");
            }
        }
        assert_eq!(served.len(), 3, "{mode}: {served:?}");
    }
}

#[test]
fn the_cookie_outlives_a_reload_and_a_change_of_balancing() {
    let nginx = Nginx::start();
    let peers = ["one", "two", "three", "four"].map(Upstream::start);
    for mode in MODES {
        let spec = sticky("a", mode, &peers);
        nginx.post_backends(std::slice::from_ref(&spec));
        let first = nginx.get("a");
        let cookie = cookie(&first);
        nginx.reload(mode);
        assert_eq!(nginx.get_with("a", &[("Cookie", &cookie)]).body, first.body);
        nginx.post_backends(&[backend("a", &peers)]);
        assert_eq!(nginx.get("a").all("Set-Cookie").count(), 0, "{mode}");
        nginx.post_backends(&[spec]);
        assert_eq!(nginx.get_with("a", &[("Cookie", &cookie)]).body, first.body);
    }
}

#[test]
fn a_peer_that_is_gone_gets_nothing_more() {
    let nginx = Nginx::start();
    let peers = ["one", "two", "three"].map(Upstream::start);
    for mode in MODES {
        nginx.post_backends(&[sticky("a", mode, &peers)]);
        let cookies: Vec<String> = (0..20).map(|_| cookie(&nginx.get("a"))).collect();
        nginx.post_backends(&[sticky("a", mode, &peers[1..])]);
        for cookie in &cookies {
            let response = nginx.get_with("a", &[("Cookie", cookie)]);
            assert_ne!(response.body, "one", "{mode}");
            assert_eq!(response.status, 200, "{mode}");
        }
    }
}

#[test]
fn the_first_answer_of_a_client_names_the_peer_that_gave_it() {
    let nginx = Nginx::start();
    let peers = [
        Upstream::closed(),
        Upstream::closed(),
        Upstream::start("up"),
    ];
    for mode in MODES {
        nginx.post_backends(&[sticky("a", mode, &peers)]);
        let mut attempts = 0;
        for _ in 0..12 {
            let first = nginx.get("a");
            assert_eq!((first.status, first.body.as_str()), (200, "up"), "{mode}");
            let different: BTreeSet<&str> = tried(&first).into_iter().collect();
            assert_eq!(different.len(), tried(&first).len(), "{first:?}");
            attempts = attempts.max(different.len());
            // One cookie, whatever was tried before.
            let again = nginx.get_with("a", &[("Cookie", &cookie(&first))]);
            assert_eq!((again.body.as_str(), tried(&again).len()), ("up", 1));
        }
        assert!(attempts > 1, "{mode}: nothing had to be tried again");
    }
}

#[test]
fn only_change_on_failure_moves_a_client() {
    let nginx = Nginx::start();
    let (silent, connections) = Upstream::silent();
    let peers = [silent, Upstream::start("up")];
    // A client of the silent peer: it has its cookie although there was no answer in time.
    let bound_to_silent = |spec: &Value| {
        let mut alone = spec.clone();
        alone["endpoints"] = json!([silent.endpoint()]);
        nginx.post_backends(&[alone]);
        let response = http::request(nginx.http, "GET", "/impatient", &[("X-Backend", "a")], "");
        assert_eq!(response.status, 504);
        nginx.post_backends(std::slice::from_ref(spec));
        cookie(&response)
    };
    let mut spec = sticky("a", "persistent", &peers);
    let request = |cookie: &str| {
        let headers = [("X-Backend", "a"), ("Cookie", cookie)];
        http::request(nginx.http, "GET", "/impatient", &headers, "")
    };

    let bound = bound_to_silent(&spec);
    let response = request(&bound);
    assert_eq!(response.status, 504);
    assert_eq!(tried(&response), vec![silent.address.to_string(); 3]);
    assert_eq!(response.all("Set-Cookie").count(), 0);

    spec["sessionAffinityConfig"]["cookieSessionAffinity"]["change_on_failure"] = json!(true);
    let bound = bound_to_silent(&spec);
    let response = request(&bound);
    assert_eq!((response.status, response.body.as_str()), (200, "up"));
    assert_eq!(tried(&response)[0], silent.address.to_string());
    assert_eq!(tried(&request(&cookie(&response))).len(), 1);
    drop(connections);
}

#[test]
fn cookies_of_the_application_stay() {
    let nginx = Nginx::start();
    let app = Upstream::start_with("app", "Set-Cookie: session=1; Path=/\r\n");
    nginx.post_backends(&[sticky("a", "balanced", &[app])]);
    let lines: Vec<String> = nginx
        .get("a")
        .all("Set-Cookie")
        .map(str::to_owned)
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines.iter().any(|line| line == "session=1; Path=/"),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.starts_with("lane=")),
        "{lines:?}"
    );
}

#[test]
fn elsewhere_the_cookie_is_read_but_not_set() {
    let nginx = Nginx::start();
    let peers = ["one", "two", "three"].map(Upstream::start);
    let spec = sticky("a", "balanced", &peers);
    let mut elsewhere = spec.clone();
    elsewhere["sessionAffinityConfig"]["cookieSessionAffinity"]["locations"] =
        json!({"other.test": ["/"], "127.0.0.1": ["/shop"]});
    nginx.post_backends(&[spec]);
    let first = nginx.get("a");
    nginx.post_backends(&[elsewhere]);
    assert_eq!(nginx.get("a").all("Set-Cookie").count(), 0);
    for _ in 0..5 {
        let again = nginx.get_with("a", &[("Cookie", &cookie(&first))]);
        assert_eq!(again.body, first.body);
    }
}

#[test]
fn a_client_stays_on_the_canary_or_off_it() {
    let nginx = Nginx::start();
    let post = |weight: u32| {
        let mut main = sticky("main", "balanced", &[Upstream::start("main")]);
        main["alternativeBackends"] = json!(["canary"]);
        let mut canary = sticky("canary", "balanced", &[Upstream::start("canary")]);
        canary["noServer"] = json!(true);
        canary["trafficShapingPolicy"] = json!({"weight": weight, "header": "X-Canary"});
        nginx.post_backends(&[canary, main]);
    };
    post(0);
    let on_canary = cookie(&nginx.get_with("main", &[("X-Canary", "always")]));
    let on_main = cookie(&nginx.get("main"));
    for weight in [0, 100] {
        post(weight);
        for (cookie, expected) in [(&on_canary, "canary"), (&on_main, "main")] {
            for header in ["always", "never", ""] {
                let headers = [("Cookie", cookie.as_str()), ("X-Canary", header)];
                let response = nginx.get_with("main", &headers);
                assert_eq!(response.body, expected, "{weight} {header}");
                assert_eq!(response.all("Set-Cookie").count(), 0);
            }
        }
    }
}

#[test]
fn a_canary_without_affinity_does_not_hold_clients() {
    let nginx = Nginx::start();
    let mut main = sticky("main", "balanced", &[Upstream::start("main")]);
    main["alternativeBackends"] = json!(["canary"]);
    let mut canary = backend("canary", &[Upstream::start("canary")]);
    canary["trafficShapingPolicy"] = json!({"weight": 0, "header": "X-Canary"});
    nginx.post_backends(&[canary, main]);
    let response = nginx.get_with("main", &[("X-Canary", "always")]);
    assert_eq!(response.body, "canary");
    assert_eq!(response.all("Set-Cookie").count(), 0);
    let on_main = cookie(&nginx.get("main"));
    let response = nginx.get_with("main", &[("X-Canary", "always"), ("Cookie", &on_main)]);
    assert_eq!(response.body, "main");
}
