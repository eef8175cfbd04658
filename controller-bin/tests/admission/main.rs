//! The webhook's server, asked over TLS.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failure here fails the test; indexing a JSON value does not panic"
)]

mod identity;
mod inspection;
mod limits;
mod webhook;

use std::sync::mpsc;

use controller_bin::admission::Limits;
use ingress_model::{ObjectName, Options, Snapshot, Verdict, admit};
use k8s_openapi::api::networking::v1::Ingress;
use rustls::version::{TLS12, TLS13};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use webhook::{Client, PATIENCE, Webhook, exchange, post, read, review};

#[tokio::test]
async fn ingresses_are_judged_by_the_rules() {
    let stored: Ingress =
        serde_json::from_value(review("first", "/")["request"]["object"].clone()).unwrap();
    let mut snapshot = Snapshot::default();
    let name = ObjectName::new("shop", "first");
    snapshot.ingresses.insert(name, stored);
    let options = Options {
        watch_ingress_without_class: true,
        ..Options::default()
    };
    let judge = move |ingress: &Ingress| admit(ingress, &snapshot, &options);
    let webhook = Webhook::start(Limits::default(), judge).await;
    let uid = "705ab4f5-6393-11e8-b7cc-42010a800002";
    let mut allowed = webhook.review(&review("second", "/other")).await;
    let warnings = allowed["warnings"].take();
    assert_eq!(
        allowed,
        json!({"uid": uid, "allowed": true, "warnings": null})
    );
    let warning = warnings[0].as_str().unwrap();
    assert!(
        warning.contains("Service shop/web: it does not exist"),
        "{warning}"
    );
    let refused = webhook.review(&review("second", "/")).await;
    assert_eq!(refused["uid"], uid);
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["status"]["code"], 400);
    let message = refused["status"]["message"].as_str().unwrap();
    let expected = "host \"a.test\" and path \"/\" is already defined in ingress shop/first";
    assert!(message.ends_with(expected), "{message}");
}

#[tokio::test]
async fn tls_is_spoken_and_http_1_1_inside() {
    let webhook = Webhook::permissive().await;
    for version in [&TLS12, &TLS13] {
        let client = Client::speaking(&webhook.certificate(), &[version]);
        let mut stream = client.connect(webhook.address).await.unwrap();
        let (_, session) = stream.get_ref();
        assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
        let request = post(review("new", "/").to_string().as_bytes());
        assert_eq!(exchange(&mut stream, &request).await.status, 200);
    }
    let mut plain = TcpStream::connect(webhook.address).await.unwrap();
    plain.write_all(&post(b"{}")).await.unwrap();
    let mut answer = Vec::new();
    let _closed = timeout(PATIENCE, plain.read_to_end(&mut answer))
        .await
        .unwrap();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn one_connection_serves_many_reviews() {
    let webhook = Webhook::permissive().await;
    let mut stream = webhook.connect().await;
    let body = review("new", "/").to_string();
    let length = body.len();
    let request = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\"allowed\":true}}") {
            let mut buffer = [0; 1024];
            let length = timeout(PATIENCE, stream.read(&mut buffer))
                .await
                .unwrap()
                .unwrap();
            assert_ne!(length, 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(buffer.get(..length).unwrap());
        }
    }
}

#[tokio::test]
async fn what_is_no_review_is_a_bad_request() {
    let webhook = Webhook::permissive().await;
    for body in [
        "",
        "nonsense",
        "{}",
        "[1]",
        r#"{"kind": "AdmissionReview"}"#,
    ] {
        let response = webhook.post(body.as_bytes()).await;
        assert_eq!(response.status, 400, "{body:?}");
        assert!(response.body.contains("AdmissionReview"), "{response:?}");
    }
    let get = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_eq!(webhook.ask(get).await.status, 400);
    assert_eq!(webhook.ask(b"nonsense\r\n\r\n").await.status, 400);
}

#[tokio::test]
async fn other_kinds_are_refused_in_words() {
    let webhook = Webhook::permissive().await;
    let mut other = review("new", "/");
    other["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let response = webhook.review(&other).await;
    assert_eq!(response["allowed"], false);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("Deployment"), "{message}");
}

#[tokio::test]
async fn a_panic_ends_one_review_only() {
    let webhook = Webhook::start(Limits::default(), |ingress: &Ingress| {
        match ingress.metadata.name.as_deref() {
            Some("bad") => panic!("a rule is wrong"),
            _ => Verdict::default(),
        }
    })
    .await;
    let body = review("bad", "/").to_string();
    for _ in 0..10 {
        let response = webhook.post(body.as_bytes()).await;
        assert_eq!(response.status, 500);
        assert!(!response.body.contains("a rule is wrong"));
    }
    assert_eq!(webhook.review(&review("good", "/")).await["allowed"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_begun_is_answered_at_the_end() {
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let mut webhook = Webhook::start(Limits::default(), move |_: &Ingress| {
        begun.send(()).unwrap();
        gate.lock().unwrap().recv().unwrap();
        Verdict::default()
    })
    .await;
    let mut idle = webhook.connect().await;
    let mut stream = webhook.connect().await;
    let request = post(review("new", "/").to_string().as_bytes());
    stream.write_all(&request).await.unwrap();
    timeout(PATIENCE, begins.recv()).await.unwrap().unwrap();
    webhook.stop.take().unwrap().send(()).unwrap();
    let mut nothing = Vec::new();
    let _end = timeout(PATIENCE, idle.read_to_end(&mut nothing))
        .await
        .unwrap();
    assert_eq!(nothing, b"");
    assert!(TcpStream::connect(webhook.address).await.is_err());
    go.send(()).unwrap();
    assert_eq!(read(&mut stream).await.status, 200);
    timeout(PATIENCE, webhook.served).await.unwrap().unwrap();
}
