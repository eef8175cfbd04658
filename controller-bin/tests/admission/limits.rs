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

use crate::webhook::{LIMIT, PATIENCE, Webhook, exchange, review};

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
    // Enough for a handshake on any machine.
    let limits = Limits {
        head: Duration::from_secs(3),
        body: Duration::from_secs(3),
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;
    let silent = async {
        let mut silent = TcpStream::connect(webhook.address).await.unwrap();
        let mut nothing = Vec::new();
        let end = timeout(PATIENCE, silent.read_to_end(&mut nothing)).await;
        assert_eq!(end.unwrap().unwrap(), 0);
    };
    let slow_head = async {
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
    };
    let slow_body = async {
        let mut slow_body = webhook.connect().await;
        let head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
        assert_eq!(exchange(&mut slow_body, head).await.status, 408);
    };
    tokio::join!(silent, slow_head, slow_body);

    webhook.review(&review("new", "/")).await;
}

#[tokio::test]
async fn idle_connections_keep_nobody_out() {
    let limits = Limits {
        connections: 3,
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;
    let mut silent = TcpStream::connect(webhook.address).await.unwrap();
    let mut idle = [webhook.connect().await, webhook.connect().await];
    // There is no place, and yet no wait: whoever has waited longest goes, one after the other.
    let mut nothing = Vec::new();
    webhook.review(&review("new", "/")).await;
    let end = timeout(PATIENCE, silent.read_to_end(&mut nothing)).await;
    // The end of a connection that nobody has greeted yet, be it a rough one.
    assert!(!matches!(end.unwrap(), Ok(read) if read > 0));
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(webhook.connect().await);
    }
    let end = timeout(PATIENCE, idle[0].read_to_end(&mut nothing)).await;
    assert!(!matches!(end.unwrap(), Ok(read) if read > 0));
    // The last one can be used.
    let last = others.last_mut().unwrap();
    let head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n{";
    assert_eq!(exchange(last, head).await.status, 400);
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
