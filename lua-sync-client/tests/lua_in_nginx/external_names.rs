//! Backends of Services of type `ExternalName`, whose endpoints are host names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::support::{
    dns::NameServer,
    eventually,
    nginx::{Nginx, Setup},
    upstream::Upstream,
};

const HOME: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// A loopback address where no upstream of these tests listens.
const AWAY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn start(server: &NameServer, rest: &str, workers: usize) -> Nginx {
    Nginx::start_with(Setup {
        resolv_conf: server.resolv_conf(rest),
        workers,
        ..Setup::default()
    })
}

fn external(name: &str, target: &str, port: u16) -> Value {
    json!({"name": name, "service": {"spec": {"type": "ExternalName"}},
        "endpoints": [{"address": target, "port": port.to_string()}]})
}

#[test]
fn the_first_request_waits_for_the_address() {
    let server = NameServer::start();
    server.set("db.example.test", HOME, 60);
    let nginx = start(
        &server,
        "search nowhere.test example.test\noptions edns0 ndots:2",
        2,
    );
    let port = Upstream::start("db").address.port();
    nginx.post_backends(&[
        external("qualified", "db.example.test.", port),
        external("searched", "db", port),
        external("dotted", "db.example.test", port),
        external("unknown", "gone.example.test", port),
        external("literal", "127.0.0.1", port),
    ]);
    for _ in 0..6 {
        for name in ["qualified", "searched", "dotted", "literal"] {
            let response = nginx.get(name);
            assert_eq!(
                (response.status, response.body.as_str()),
                (200, "db"),
                "{name}"
            );
        }
        assert_eq!(nginx.get("unknown").status, 503);
    }
}

#[test]
fn a_name_with_nothing_but_ipv6_addresses() {
    let server = NameServer::start();
    server.set("six.test", Ipv6Addr::LOCALHOST, 60);
    let nginx = start(&server, "", 1);
    let upstream = Upstream::start_v6("six");
    nginx.post_backends(&[external("six", "six.test", upstream.address.port())]);
    let response = nginx.get("six");
    assert_eq!(response.body, "six");
    assert_eq!(response.header("X-Upstream"), upstream.address.to_string());
}

#[test]
fn all_addresses_are_peers_and_their_order_means_nothing() {
    let server = NameServer::start();
    let addresses = [IpAddr::from(HOME), IpAddr::from(AWAY)];
    server.set_all("db.test", &addresses, 1);
    let nginx = start(&server, "", 1);
    let port = Upstream::start("db").address.port();
    let mut sets = external("sets", "db.test", port);
    sets["upstreamHashByConfig"] = json!({"upstream-hash-by": "$http_x_user",
        "upstream-hash-by-subset": true, "upstream-hash-by-subset-size": 1});
    nginx.post_backends(&[external("db", "db.test", port), sets]);
    for _ in 0..4 {
        assert_eq!(nginx.get("db").body, "db");
    }
    let firsts = || {
        let users = (0..20).map(|user| {
            let response = nginx.get_with("sets", &[("X-User", &user.to_string())]);
            let mut tried = response.header("X-Upstream").split(", ");
            tried.next().unwrap().to_owned()
        });
        users.collect::<Vec<String>>()
    };
    let before = firsts();
    assert!(before.iter().any(|first| *first != before[0]), "{before:?}");
    server.set_all("db.test", &[addresses[1], addresses[0]], 1);
    let questions = server.questions();
    eventually("the other order to be known", || {
        (server.questions() >= questions + 3).then_some(())
    });
    assert_eq!(firsts(), before);
}

#[test]
fn the_status_port_is_out_of_reach_by_name_too() {
    let server = NameServer::start();
    server.set("self.test", HOME, 60);
    let nginx = start(&server, "", 1);
    nginx.post_backends(&[
        external("name", "self.test", nginx.status),
        external("literal", "127.0.0.1", nginx.status),
    ]);
    assert_eq!(nginx.get("name").status, 503);
    assert_eq!(nginx.get("literal").status, 503);
}

#[test]
fn an_address_is_asked_for_again_after_its_ttl() {
    let server = NameServer::start();
    server.set("db.test", AWAY, 1);
    let nginx = start(&server, "", 1);
    let port = Upstream::start("db").address.port();
    nginx.post_backends(&[external("db", "db.test", port)]);
    assert_eq!(nginx.get("db").status, 502);
    server.set("db.test", HOME, 60);
    eventually("the new address", || {
        (nginx.get("db").body == "db").then_some(())
    });
    // Now it holds for a minute: no request asks again.
    let questions = server.questions();
    for _ in 0..20 {
        assert_eq!(nginx.get("db").body, "db");
    }
    // Nor does another backend with the same name.
    nginx.upsert_backends(&[external("same", "db.test", port)]);
    assert_eq!(nginx.get("same").body, "db");
    assert_eq!(server.questions(), questions);
}

#[test]
fn the_last_answer_stays_while_dns_fails() {
    let server = NameServer::start();
    server.set("db.test", HOME, 1);
    let nginx = start(&server, "", 1);
    nginx.post_backends(&[external(
        "db",
        "db.test",
        Upstream::start("db").address.port(),
    )]);
    assert_eq!(nginx.get("db").body, "db");
    server.fail(true);
    let questions = server.questions();
    eventually("failed lookups", || {
        (server.questions() >= questions + 4).then_some(())
    });
    assert_eq!(nginx.get("db").body, "db");
    server.fail(false);
    server.set("db.test", AWAY, 60);
    eventually("the new address", || {
        (nginx.get("db").status == 502).then_some(())
    });
}

#[test]
fn a_backend_that_stops_being_external_is_no_longer_followed() {
    let server = NameServer::start();
    server.set("db.test", AWAY, 1);
    let nginx = start(&server, "", 1);
    let upstream = Upstream::start("pod");
    nginx.post_backends(&[external("db", "db.test", upstream.address.port())]);
    assert_eq!(nginx.get("db").status, 502);
    nginx.post_backends(&[json!({"name": "db", "endpoints": [upstream.endpoint()]})]);
    assert_eq!(nginx.get("db").body, "pod");
    // Another name is followed meanwhile, so that time is seen to pass for the worker.
    server.set("other.test", HOME, 1);
    nginx.upsert_backends(&[external("other", "other.test", upstream.address.port())]);
    assert_eq!(nginx.get("other").body, "pod");
    let questions = server.questions();
    eventually("later lookups", || {
        (server.questions() >= questions + 2).then_some(())
    });
    assert_eq!(nginx.get("db").body, "pod");
}
