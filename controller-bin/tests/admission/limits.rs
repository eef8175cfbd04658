//! Nobody can ask for more than there is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use controller_bin::admission::Limits;
use ingress_model::Verdict;
use k8s_openapi::api::networking::v1::Ingress;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::webhook::{Client, LIMIT, PATIENCE, Webhook, exchange, review};

#[tokio::test]
async fn bodies_have_a_limit() {
    let webhook = Webhook::permissive().await;
    for (length, status) in [
        (LIMIT - 1, 400),
        (LIMIT, 413),
        (9_500_000, 413),
        (2 * LIMIT - 1, 413),
    ] {
        let response = webhook.post(&vec![b' '; length]).await;
        assert_eq!(response.status, status, "{length}");
    }
    let mut announced = webhook.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n";
    assert_eq!(exchange(&mut announced, head).await.status, 413);

    let mut chunked = webhook.connect().await;
    let head =
        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    chunked.write_all(head).await.unwrap();
    let chunk = [
        b"100000\r\n".to_vec(),
        vec![b' '; 1 << 20],
        b"\r\n".to_vec(),
    ]
    .concat();
    for _ in 0..10 {
        chunked.write_all(&chunk).await.unwrap();
    }
    assert_eq!(exchange(&mut chunked, b"0\r\n\r\n").await.status, 413);
}

#[tokio::test]
async fn bodies_are_kept_as_long_as_there_is_room() {
    let limits = Limits {
        memory: 2_000,
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;
    for _ in 0..3 {
        // The room is free again after each.
        webhook.review(&review("new", "/")).await;
        assert_eq!(webhook.post(&[b' '; 3_000]).await.status, 503);
    }
}

#[tokio::test]
async fn slow_clients_are_left() {
    let limits = Limits {
        head: Duration::from_millis(200),
        body: Duration::from_millis(200),
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;

    let mut silent = TcpStream::connect(webhook.address).await.unwrap();
    let mut nothing = Vec::new();
    let end = timeout(PATIENCE, silent.read_to_end(&mut nothing)).await;
    assert_eq!(end.unwrap().unwrap(), 0);

    let mut slow_head = webhook.connect().await;
    slow_head
        .write_all(b"POST / HTTP/1.1\r\nHost: ")
        .await
        .unwrap();
    let mut answer = Vec::new();
    // The connection may end without a farewell.
    let _end = timeout(PATIENCE, slow_head.read_to_end(&mut answer))
        .await
        .unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");

    let mut slow_body = webhook.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
    assert_eq!(exchange(&mut slow_body, head).await.status, 408);

    webhook.review(&review("new", "/")).await;
}

#[tokio::test]
async fn connections_have_a_limit() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;
    let first = webhook.connect().await;
    let client = Client::trusting(&webhook.certificate());
    let address = webhook.address;
    let mut second = tokio::spawn(async move { client.connect(address).await });
    let soon = timeout(Duration::from_millis(200), &mut second).await;
    assert!(soon.is_err(), "there is no place for a second one");
    drop(first);
    second.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_have_a_limit() {
    let limits = Limits {
        reviews: 2,
        ..Limits::default()
    };
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let reviewer = {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        move |_: &Ingress| {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            begun.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
            running.fetch_sub(1, Ordering::SeqCst);
            Verdict::default()
        }
    };
    let webhook = Arc::new(Webhook::start(limits, reviewer).await);
    let asked: Vec<_> = (0..6)
        .map(|_| {
            let webhook = Arc::clone(&webhook);
            tokio::spawn(async move { webhook.review(&review("new", "/")).await })
        })
        .collect();
    for _ in 0..6 {
        timeout(PATIENCE, begins.recv()).await.unwrap().unwrap();
        if running.load(Ordering::SeqCst) == 2 {
            go.send(()).unwrap();
        }
    }
    for _ in 0..6 {
        go.send(()).unwrap();
    }
    for asked in asked {
        assert_eq!(asked.await.unwrap()["allowed"], true);
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}
