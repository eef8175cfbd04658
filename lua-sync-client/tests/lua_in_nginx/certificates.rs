//! The certificate of a TLS handshake.

use std::process::{Command, Stdio};

use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

use crate::support::nginx::{Nginx, Setup};

const SERVERS: &str = "/configuration/servers";

/// Certificate and key in PEM, with `name` as common name.
fn pem(name: &str) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.self_signed(&key).unwrap().pem() + &key.serialize_pem()
}

/// An RSA certificate and its key, with `name` as common name.
fn rsa_pem(name: &str) -> String {
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj"])
        .args([&format!("/CN={name}"), "-keyout", "-", "-out", "-"])
        .output()
        .expect("running openssl");
    let text = String::from_utf8(output.stdout).unwrap();
    let (key, certificate) = text.split_at(text.find("-----BEGIN CERTIFICATE").unwrap());
    certificate.to_owned() + key
}

/// The common name of the certificate NGINX shows for `server_name`; `None` when the handshake fails.
fn shown(nginx: &Nginx, server_name: Option<&str>) -> Option<String> {
    shown_to(nginx, server_name, &[])
}

/// As [`shown`], to a client with these arguments of `openssl s_client`.
fn shown_to(nginx: &Nginx, server_name: Option<&str>, arguments: &[&str]) -> Option<String> {
    let mut client = Command::new("openssl");
    client
        .args([
            "s_client",
            "-connect",
            &format!("127.0.0.1:{}", nginx.https),
        ])
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    match server_name {
        Some(name) => client.args(["-servername", name]),
        None => client.arg("-noservername"),
    };
    let output = client.output().expect("running openssl");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("subject="))
        .and_then(|subject| subject.split_once("CN = "))
        .map(|(_, name)| name.to_owned())
}

fn post(nginx: &Nginx, update: &Value) -> u16 {
    nginx.configure("POST", SERVERS, &update.to_string()).status
}

fn patch(nginx: &Nginx, update: &Value) -> u16 {
    nginx
        .configure("PATCH", SERVERS, &update.to_string())
        .status
}

#[test]
fn by_server_name() {
    let nginx = Nginx::start();
    assert_eq!(shown(&nginx, Some("www.x.test")), None);
    let update = json!({
        "certificates": {"u1": pem("exact"), "u2": pem("wildcard"), "u3": pem("default")},
        "servers": {"www.x.test": "u1", "*.x.test": "u2", "_": "u3"},
    });
    assert_eq!(post(&nginx, &update), 201);
    for (name, expected) in [
        (Some("www.x.test"), "exact"),
        (Some("WWW.X.Test."), "exact"),
        (Some("other.x.test"), "wildcard"),
        (Some("a.b.x.test"), "default"),
        (Some("x.test"), "default"),
        (Some("unknown"), "default"),
        (None, "default"),
    ] {
        assert_eq!(shown(&nginx, name).as_deref(), Some(expected), "{name:?}");
    }
    let stored = nginx.configure("GET", "/configuration/certs?hostname=www.x.test", "");
    assert_eq!(
        (stored.status, stored.body.as_str()),
        (200, update["certificates"]["u1"].as_str().unwrap())
    );
    assert_eq!(
        nginx
            .configure("GET", "/configuration/certs?hostname=other.x.test", "")
            .status,
        404
    );
}

#[test]
fn each_client_gets_the_type_of_key_that_it_knows() {
    let nginx = Nginx::start();
    let both = pem("ecdsa") + &rsa_pem("rsa");
    let update = json!({"certificates": {"u": both}, "servers": {"x.test": "u"}});
    assert_eq!(post(&nginx, &update), 201);
    for arguments in [
        &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"][..],
        &["-tls1_3", "-sigalgs", "RSA-PSS+SHA256"],
    ] {
        let shown = shown_to(&nginx, Some("x.test"), arguments);
        assert_eq!(shown.as_deref(), Some("rsa"), "{arguments:?}");
    }
    for arguments in [
        &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"][..],
        &["-tls1_3", "-sigalgs", "ECDSA+SHA256"],
    ] {
        let shown = shown_to(&nginx, Some("x.test"), arguments);
        assert_eq!(shown.as_deref(), Some("ecdsa"), "{arguments:?}");
    }
    // One of the two may go.
    let update = json!({"certificates": {"u": rsa_pem("rsa")}, "servers": {"x.test": "u"}});
    assert_eq!(post(&nginx, &update), 201);
    assert_eq!(shown(&nginx, Some("x.test")).as_deref(), Some("rsa"));
}

#[test]
fn rotation_needs_no_reload() {
    let nginx = Nginx::start_with(Setup {
        workers: 2,
        ..Setup::default()
    });
    for round in 0..5 {
        let name = format!("round-{round}");
        let update = json!({"revision": round + 1, "base": round, "certificates": {"u": pem(&name)}, "servers": {"a.test": "u"}});
        assert_eq!(patch(&nginx, &update), 200);
        for _ in 0..3 {
            assert_eq!(shown(&nginx, Some("a.test")).as_ref(), Some(&name));
        }
    }
    assert_eq!(nginx.revision()["servers"], 5);
    assert_eq!(patch(&nginx, &json!({"revision": 9, "base": 4})), 409);
    // The same host with another certificate.
    assert_eq!(
        patch(
            &nginx,
            &json!({"revision": 6, "certificates": {"v": pem("other")}, "servers": {"a.test": "v"}})
        ),
        200
    );
    assert_eq!(shown(&nginx, Some("a.test")).as_deref(), Some("other"));
}

#[test]
fn a_certificate_that_cannot_be_parsed_leaves_the_last_good_one() {
    let nginx = Nginx::start();
    let update = json!({"certificates": {"u": pem("good"), "d": pem("default")}, "servers": {"a.test": "u", "_": "d"}});
    assert_eq!(post(&nginx, &update), 201);
    assert_eq!(shown(&nginx, Some("a.test")).as_deref(), Some("good"));
    let broken =
        json!({"certificates": {"u": "no PEM", "new": "no PEM"}, "servers": {"b.test": "new"}});
    assert_eq!(post(&nginx, &broken), 201);
    assert_eq!(shown(&nginx, Some("a.test")).as_deref(), Some("good"));
    assert_eq!(shown(&nginx, Some("b.test")).as_deref(), Some("default"));
    assert_eq!(
        post(&nginx, &json!({"certificates": {"u": pem("better")}})),
        201
    );
    assert_eq!(shown(&nginx, Some("a.test")).as_deref(), Some("better"));
}

#[test]
fn a_plain_update_adds_and_only_minus_one_removes() {
    let nginx = Nginx::start();
    let update = json!({"certificates": {"u": pem("one"), "d": pem("default")},
        "servers": {"a.test": "u", "b.test": "u", "_": "d"}});
    assert_eq!(post(&nginx, &update), 201);
    assert_eq!(
        post(
            &nginx,
            &json!({"certificates": {}, "servers": {"a.test": "-1"}})
        ),
        201
    );
    assert_eq!(shown(&nginx, Some("a.test")).as_deref(), Some("default"));
    assert_eq!(shown(&nginx, Some("b.test")).as_deref(), Some("one"));
}

#[test]
fn a_replacement_removes_what_it_does_not_name() {
    let nginx = Nginx::start();
    let all = json!({"revision": 1, "certificates": {"u": pem("one"), "v": pem("two")},
        "servers": {"a.test": "u", "b.test": "v", "c.test": "v"}});
    assert_eq!(patch(&nginx, &all), 200);
    let fewer = json!({"revision": 2, "base": 1, "remove_servers": ["b.test"], "remove_certificates": ["u"]});
    assert_eq!(patch(&nginx, &fewer), 200);
    assert_eq!(shown(&nginx, Some("a.test")), None);
    assert_eq!(shown(&nginx, Some("b.test")), None);
    assert_eq!(shown(&nginx, Some("c.test")).as_deref(), Some("two"));
    let only = json!({"revision": 3, "replace": true, "certificates": {"w": pem("three")}, "servers": {"a.test": "w"}});
    assert_eq!(patch(&nginx, &only), 200);
    assert_eq!(shown(&nginx, Some("a.test")).as_deref(), Some("three"));
    assert_eq!(shown(&nginx, Some("c.test")), None);
    assert_eq!(
        nginx
            .configure("GET", "/configuration/certs?hostname=c.test", "")
            .status,
        404
    );
}

#[test]
fn what_does_not_fit() {
    let nginx = Nginx::start_with(Setup {
        certificate_size: "64k",
        ..Setup::default()
    });
    assert_eq!(
        post(
            &nginx,
            &json!({"certificates": {"u": pem("one")}, "servers": {"a.test": "u"}})
        ),
        201
    );
    let large = "x".repeat(70_000);
    let update = json!({"revision": 1, "certificates": {"u": pem("two"), "big": large},
        "servers": {"a.test": "big"}, "remove_certificates": ["u"]});
    let refused = nginx.configure("PATCH", SERVERS, &update.to_string());
    assert_eq!(
        (refused.status, &refused.json()["dictionary"]),
        (507, &json!("certificate_data"))
    );
    assert_eq!(shown(&nginx, Some("a.test")).as_deref(), Some("one"));
    assert_eq!(nginx.revision()["servers"], 0);
    // The plain update applies the rest.
    let plain =
        json!({"certificates": {"u": pem("two"), "big": large}, "servers": {"b.test": "u"}});
    assert_eq!(post(&nginx, &plain), 500);
    assert_eq!(shown(&nginx, Some("a.test")).as_deref(), Some("two"));
    assert_eq!(shown(&nginx, Some("b.test")).as_deref(), Some("two"));
}
