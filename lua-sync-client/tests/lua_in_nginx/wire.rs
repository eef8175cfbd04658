//! The HTTP interface of the status port.

use std::thread;

use serde_json::{Value, json};

use crate::support::{
    http,
    nginx::{Nginx, Setup},
    upstream::{Upstream, backend},
};

const BACKENDS: &str = "/configuration/backends";
const SERVERS: &str = "/configuration/servers";
const INITIALIZED: &str = "/is-dynamic-lb-initialized";

fn status(nginx: &Nginx, method: &str, path: &str, body: &str) -> u16 {
    nginx.configure(method, path, body).status
}

fn patch(nginx: &Nginx, path: &str, body: &Value) -> (u16, Value) {
    let response = nginx.configure("PATCH", path, &body.to_string());
    (response.status, response.json())
}

#[test]
fn backends_are_given_back_as_they_were_posted() {
    let nginx = Nginx::start();
    assert_eq!(nginx.configure("GET", BACKENDS, "").body, "nil");
    assert_eq!(status(&nginx, "GET", INITIALIZED, ""), 500);

    // Empty arrays and objects, escapes, odd spacing within an element, a name twice.
    let posted = concat!(
        r#"[{"name":"a","endpoints":[],"upstreamHashByConfig":{},"x":"]}\"\\"},"#,
        r#"{ "port":0, "name":"b" },{"name":"dup","n":1},{"name":"dup","n":2}]"#
    );
    let created = nginx.configure("POST", BACKENDS, posted);
    assert_eq!((created.status, created.body.as_str()), (201, ""));
    assert_eq!(nginx.configure("GET", BACKENDS, "").body, posted);
    let initialized = nginx.configure("GET", INITIALIZED, "");
    assert_eq!(
        (initialized.status, initialized.body.as_str()),
        (200, "OK\n")
    );

    // A shorter list, the same again, an empty one.
    for list in [
        r#"[{"name":"dup","n":1}]"#,
        r#"[{"name":"dup","n":1}]"#,
        "[]",
    ] {
        assert_eq!(status(&nginx, "POST", BACKENDS, list), 201);
        assert_eq!(nginx.configure("GET", BACKENDS, "").body, list);
    }
    assert_eq!(status(&nginx, "POST", BACKENDS, "null"), 201);
    assert_eq!(nginx.configure("GET", BACKENDS, "").body, "[]");
}

#[test]
fn a_wrong_list_changes_nothing() {
    let nginx = Nginx::start();
    let good = r#"[{"name":"a"}]"#;
    assert_eq!(status(&nginx, "POST", BACKENDS, good), 201);
    for wrong in [
        "",
        "{}",
        "[",
        r#"[{"name":"b"}"#,
        r#"[{"name":"b"},]"#,
        r#"[{"name":"b"},{"name":}]"#,
        r#"[{"name":"b"},{"name":""}]"#,
        r#"[{"name":"b"},{"name":7}]"#,
        r#"[{"name":"b"},{"name":"c\u0000"}]"#,
        r#"[{"name":"b"},5]"#,
        r#"[{"name":"b"},null]"#,
    ] {
        assert_eq!(status(&nginx, "POST", BACKENDS, wrong), 400, "{wrong}");
        assert_eq!(nginx.configure("GET", BACKENDS, "").body, good, "{wrong}");
    }
}

#[test]
fn paths_and_methods() {
    let nginx = Nginx::start();
    for (method, path, body, expected) in [
        ("GET", "/configuration/backends?x", "", 404),
        ("POST", "/configuration/servers?x", "{}", 404),
        ("GET", "/configuration//general", "", 404),
        ("GET", "/configuration", "", 404),
        ("POST", "/configuration/other", "x", 404),
        ("DELETE", "/configuration/other", "", 400),
        ("DELETE", BACKENDS, "", 400),
        ("PUT", SERVERS, "{}", 400),
        ("PATCH", "/configuration/general", "{}", 400),
        ("POST", "/configuration/revision", "{}", 400),
        ("GET", SERVERS, "", 400),
        ("POST", SERVERS, "{", 400),
        ("POST", SERVERS, r#"{"servers":[1]}"#, 400),
        ("POST", SERVERS, r#"{"certificates":{"u":1}}"#, 400),
        ("GET", "/configuration/certs", "", 400),
        ("GET", "/configuration/certs?hostname=", "", 400),
        ("GET", "/configuration/certs?hostname=x.test", "", 404),
        ("GET", "/configuration/./certs", "", 400),
        ("POST", "/configuration/certs?hostname=x.test", "x", 400),
        ("GET", "/other", "", 404),
    ] {
        let answer = status(&nginx, method, path, body);
        assert_eq!(answer, expected, "{method} {path}");
    }
}

#[test]
fn the_general_text() {
    let nginx = Nginx::start_with(Setup {
        configuration_size: "64k",
        ..Setup::default()
    });
    let general = "/configuration/general";
    assert_eq!(nginx.configure("GET", general, "").body, "nil");
    assert_eq!(status(&nginx, "POST", general, "{\"a\": []}"), 201);
    assert_eq!(status(&nginx, "POST", general, &"x".repeat(70_000)), 500);
    assert_eq!(status(&nginx, "POST", general, ""), 400);
    assert_eq!(status(&nginx, "POST", general, "anything"), 201);
    assert_eq!(nginx.configure("GET", general, "").body, "anything");
}

#[test]
fn what_nginx_relays_is_refused() {
    let nginx = Nginx::start();
    assert_eq!(status(&nginx, "POST", BACKENDS, r#"[{"name":"a"}]"#), 201);
    for sender in ["nginx-ingress-controller", ""] {
        for (method, path, body) in [
            ("POST", BACKENDS, "[]"),
            ("GET", BACKENDS, ""),
            ("POST", SERVERS, "{}"),
        ] {
            let sent = [("X-Sent-From", sender)];
            let response = http::request(nginx.status, method, path, &sent, body);
            assert_eq!(response.status, 403, "{sender:?} {method} {path}");
        }
    }
    assert_eq!(
        nginx.configure("GET", BACKENDS, "").body,
        r#"[{"name":"a"}]"#
    );
}

#[test]
fn only_local_names_are_served() {
    let nginx = Nginx::start();
    let with_host =
        |host: &str| http::request(nginx.status, "GET", BACKENDS, &[("Host", host)], "").status;
    for host in [
        "127.0.0.1",
        "127.0.0.1:10246",
        "127.8.8.8",
        "localhost",
        "LocalHost:1",
        "[::1]",
        "[::1]:2",
    ] {
        assert_eq!(with_host(host), 200, "{host}");
    }
    for host in [
        "evil.test",
        "127.0.0.1.evil.test",
        "localhost.evil.test",
        "10.0.0.1",
        "[::2]",
        "127.0.0.1:x",
    ] {
        assert!([400, 403].contains(&with_host(host)), "{host}");
    }
    assert_eq!(with_host("evil.test"), 403);
}

#[test]
fn bodies_too_large_and_bodies_in_a_file() {
    let nginx = Nginx::start_with(Setup {
        body_size: "600k",
        ..Setup::default()
    });
    let upstream = Upstream::start("up");
    // The template's buffer is 16 KiB, so this body passes through a temporary file.
    let backends: Vec<Value> = (0..2000)
        .map(|index| backend(&format!("backend-{index}"), &[upstream]))
        .collect();
    let body = Value::from(backends).to_string();
    assert!(body.len() > 100_000);
    assert_eq!(status(&nginx, "POST", BACKENDS, &body), 201);
    assert_eq!(nginx.configure("GET", BACKENDS, "").body, body);
    assert_eq!(nginx.get("backend-1999").body, "up");

    let too_large = format!("[{}]", " ".repeat(700_000));
    assert_eq!(status(&nginx, "POST", BACKENDS, &too_large), 413);
    assert_eq!(nginx.configure("GET", BACKENDS, "").body, body);
}

#[test]
fn changes_build_on_a_revision() {
    let nginx = Nginx::start();
    let list = r#"[{"name":"b","x":[]},{"name":"d"}]"#;
    let posted = http::request(
        nginx.status,
        "POST",
        BACKENDS,
        &[("X-Revision", "9007199254740992")],
        list,
    );
    assert_eq!(posted.status, 201);
    assert_eq!(nginx.revision()["backends"], 9_007_199_254_740_992_u64);

    let change = json!({"base": 9_007_199_254_740_992_u64, "revision": 7,
        "upsert": [{"name": "c", "y": {}}, {"name": "d", "z": []}], "remove": ["b", "unknown"]});
    assert_eq!(
        patch(&nginx, BACKENDS, &change),
        (200, json!({"revision": 7}))
    );
    let now = r#"[{"name":"c","y":{}},{"name":"d","z":[]}]"#;
    assert_eq!(nginx.configure("GET", BACKENDS, "").body, now);

    assert_eq!(
        patch(&nginx, BACKENDS, &change),
        (409, json!({"revision": 7}))
    );
    assert_eq!(nginx.configure("GET", BACKENDS, "").body, now);

    // Without a base a change always applies; a plain list leaves the revision unknown.
    let change = json!({"revision": 3, "upsert": [{"name": "a"}]});
    assert_eq!(
        patch(&nginx, BACKENDS, &change),
        (200, json!({"revision": 3}))
    );
    assert_eq!(nginx.revision()["backends"], 3);
    assert_eq!(status(&nginx, "POST", BACKENDS, now), 201);
    assert_eq!(nginx.revision()["backends"], 0);
    assert_eq!(nginx.revision()["servers"], 0);
}

#[test]
fn wrong_changes_are_refused() {
    let nginx = Nginx::start();
    nginx.post_backends(&[json!({"name": "a"})]);
    for wrong in [
        "",
        "7",
        "{",
        r#"{"upsert":[]}"#,
        r#"{"revision":"7"}"#,
        r#"{"revision":-1}"#,
        r#"{"revision":1.5}"#,
        r#"{"revision":1,"base":"0"}"#,
        r#"{"revision":1,"upsert":{"a":1}}"#,
        r#"{"revision":1,"upsert":"a"}"#,
        r#"{"revision":1,"upsert":[{"name":""}]}"#,
        r#"{"revision":1,"upsert":[1]}"#,
        r#"{"revision":1,"remove":[1]}"#,
        r#"{"revision":1,"remove":{"a":"a"}}"#,
    ] {
        assert_eq!(status(&nginx, "PATCH", BACKENDS, wrong), 400, "{wrong}");
    }
    for wrong in [
        "",
        r#"{"revision":"7"}"#,
        r#"{"revision":1,"certificates":{"u":1}}"#,
        r#"{"revision":1,"servers":["x"]}"#,
        r#"{"revision":1,"remove_servers":[1]}"#,
        r#"{"revision":1,"remove_certificates":"u"}"#,
    ] {
        assert_eq!(status(&nginx, "PATCH", SERVERS, wrong), 400, "{wrong}");
    }
    assert_eq!(
        nginx.configure("GET", BACKENDS, "").body,
        r#"[{"name":"a"}]"#
    );
    let bad_header = http::request(nginx.status, "POST", BACKENDS, &[("X-Revision", "x")], "[]");
    assert_eq!(bad_header.status, 400);
}

#[test]
fn of_changes_at_the_same_time_one_wins() {
    let nginx = Nginx::start_with(Setup {
        workers: 2,
        ..Setup::default()
    });
    nginx.post_backends(&[]);
    for round in 0..10_u32 {
        let base = nginx.revision()["backends"].clone();
        let answers: Vec<u16> = thread::scope(|scope| {
            let tries: Vec<_> = (0..4_u32)
                .map(|number| {
                    let change = json!({"base": base, "revision": round * 4 + number + 1,
                        "upsert": [{"name": format!("{round}-{number}")}]});
                    let nginx = &nginx;
                    scope.spawn(move || patch(nginx, BACKENDS, &change).0)
                })
                .collect();
            tries.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(
            answers.iter().filter(|code| **code == 200).count(),
            1,
            "{answers:?}"
        );
        assert_eq!(
            answers.iter().filter(|code| **code == 409).count(),
            3,
            "{answers:?}"
        );
        let kept = nginx.configure("GET", BACKENDS, "").json();
        assert_eq!(kept.as_array().unwrap().len(), round as usize + 1);
    }
}

#[test]
fn a_reload_keeps_the_state_and_shows_its_checksum() {
    let nginx = Nginx::start();
    nginx.upsert_backends(&[backend("a", &[Upstream::start("up")])]);
    let before = nginx.revision();
    assert_eq!(before["checksum"], "first");
    assert_eq!(before["backends"], 1);
    nginx.reload("second");
    let after = nginx.revision();
    assert_eq!(after["checksum"], "second");
    for member in ["backends", "servers", "instance", "pid"] {
        assert_eq!(after[member], before[member], "{member}");
    }
    assert_eq!(nginx.get("a").body, "up");
    // Another NGINX is another instance.
    assert_ne!(Nginx::start().revision()["instance"], before["instance"]);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let nginx = Nginx::start_with(Setup {
        configuration_size: "256k",
        ..Setup::default()
    });
    let serving = backend("serving", &[Upstream::start("up")]);
    nginx.post_backends(std::slice::from_ref(&serving));
    let large: Vec<Value> = (0..500)
        .map(|index| json!({"name": format!("large-{index}"), "x": "x".repeat(1000)}))
        .collect();
    let all = Value::from([vec![backend("serving", &[])], large.clone()].concat()).to_string();

    let change = json!({"revision": 5, "upsert": large, "remove": ["serving"]});
    let (code, answer) = patch(&nginx, BACKENDS, &change);
    assert_eq!(code, 507);
    assert_eq!(answer["error"], "dictionary configuration_data is full");
    assert_eq!(answer["dictionary"], "configuration_data");
    assert_eq!(answer["capacity"], 256 * 1024);
    assert!(
        answer["needed"].as_u64() > answer["capacity"].as_u64(),
        "{answer}"
    );

    let plain = nginx.configure("POST", BACKENDS, &all);
    assert_eq!(
        (plain.status, &plain.json()["dictionary"]),
        (400, &json!("configuration_data"))
    );
    let versioned = http::request(nginx.status, "POST", BACKENDS, &[("X-Revision", "5")], &all);
    assert_eq!(versioned.status, 507);

    assert_eq!(nginx.get("serving").body, "up");
    assert_eq!(
        nginx.configure("GET", BACKENDS, "").json(),
        json!([serving])
    );
    assert_eq!(nginx.revision()["backends"], 0);
    // And there is room again for what fits.
    nginx.upsert_backends(&large[..50]);
}
