//! The figures of requests that are sent to the controller.

use std::{fs, os::unix::fs::PermissionsExt};
use std::{io::Read, os::unix::net::UnixListener};

use serde_json::Value;

use crate::support::{
    nginx::{Nginx, Setup},
    upstream::{Upstream, backend},
};

#[test]
fn every_request_is_in_one_of_the_arrays() {
    let nginx = Nginx::start_with(Setup {
        metrics: true,
        ..Setup::default()
    });
    let path = nginx.directory().join("metrics.sock");
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    nginx.post_backends(&[
        backend("a", &[Upstream::start("up")]),
        backend("retried", &[Upstream::closed()]),
    ]);
    for _ in 0..5 {
        nginx.get_with("a", &[("Host", "Shop.test")]);
    }
    nginx.get("unknown");
    nginx.get("retried");

    let mut records: Vec<Value> = Vec::new();
    while records.len() < 7 {
        let mut text = String::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_string(&mut text)
            .unwrap();
        let batch: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(!batch.is_empty());
        records.extend(batch);
    }
    assert_eq!(records.len(), 7);

    let first = &records[0];
    for (member, expected) in [
        ("host", "shop.test"),
        ("namespace", "shop"),
        ("ingress", "front"),
        ("service", "web"),
        ("canary", ""),
        ("path", "/"),
        ("method", "GET"),
        ("status", "200"),
    ] {
        assert_eq!(first[member], expected, "{member}");
    }
    for member in [
        "requestLength",
        "requestTime",
        "responseLength",
        "upstreamLatency",
        "upstreamHeaderTime",
        "upstreamResponseTime",
    ] {
        assert!(
            first[member].as_f64().is_some_and(|value| value >= 0.0),
            "{member} in {first}"
        );
    }
    assert_eq!(first["upstreamResponseLength"], 2);
    assert_eq!(first.as_object().unwrap().len(), 15);
    // Nothing was measured, or more than one value.
    assert_eq!(
        (&records[5]["status"], &records[5]["upstreamLatency"]),
        (&"503".into(), &(-1).into())
    );
    assert_eq!(
        (&records[6]["status"], &records[6]["upstreamResponseTime"]),
        (&"502".into(), &(-1).into())
    );
}

#[test]
fn nothing_is_sent_when_metrics_are_off() {
    let nginx = Nginx::start();
    let path = nginx.directory().join("metrics.sock");
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    nginx.post_backends(&[backend("a", &[Upstream::start("up")])]);
    nginx.get("a");
    // Workers that end flush what they have.
    drop(nginx);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}
