//! Endpoints that are replaced while requests come: none of these is lost. A real controller, a real NGINX, real requests.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failure here fails the test"
)]

mod site;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::Signal;
use site::{
    Site,
    backend::{ingress, service},
    http, send,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::MissedTickBehavior,
};

const HOST: &str = "rolling.test";

/// An endpoint that answers with its name, `/slow` not before it is told to. When it is dropped, it closes its port and
/// all of its connections at once.
struct Endpoint {
    port: u16,
    /// Whether `/slow` was asked for.
    slow: watch::Sender<bool>,
    release: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Endpoint {
    async fn start(name: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (release, released) = watch::channel(false);
        let slow = watch::Sender::new(false);
        let asked = slow.clone();
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, name.clone(), asked.clone(), released.clone()));
            }
        });
        Self {
            port,
            slow,
            release,
            serving,
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    name: String,
    slow: watch::Sender<bool>,
    mut released: watch::Receiver<bool>,
) {
    let mut request = Vec::new();
    loop {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(length) if length > 0 => request.extend_from_slice(&part[..length]),
            _ => return,
        }
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        if request.starts_with(b"GET /slow") {
            slow.send_replace(true);
            if released.wait_for(|is| *is).await.is_err() {
                return;
            }
        }
        request.clear();
        let length = name.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Requests at a steady rate, whatever becomes of them.
struct Load {
    failures: Arc<AtomicU64>,
    requests: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
    sending: JoinHandle<()>,
}

impl Load {
    fn start(port: u16, every: Duration) -> Self {
        let (failures, requests) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let ends = Arc::<AtomicBool>::default();
        let (lost, sent, stop) = (failures.clone(), requests.clone(), ends.clone());
        let sending = tokio::spawn(async move {
            let mut under_way = JoinSet::new();
            let mut ticks = tokio::time::interval(every);
            // A machine that falls behind does not catch up all at once.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while !stop.load(Ordering::Relaxed) {
                ticks.tick().await;
                let (lost, sent) = (lost.clone(), sent.clone());
                under_way.spawn(async move {
                    let answer = http::get_patiently(port, HOST, "/").await;
                    sent.fetch_add(1, Ordering::Relaxed);
                    if answer.is_none_or(|answer| answer.status != 200) {
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            under_way.join_all().await;
        });
        Self {
            failures,
            requests,
            ends,
            sending,
        }
    }

    /// How many requests failed, of how many.
    async fn end(self) -> (u64, u64) {
        self.ends.store(true, Ordering::Relaxed);
        self.sending.await.unwrap();
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (count(&self.failures), count(&self.requests))
    }
}

async fn site(endpoint: &Endpoint) -> Site {
    let site = Site::with_manifests(&[
        ("service.yaml", &service("app", endpoint.port)),
        ("ingress.yaml", &ingress("app", HOST, "app", "")),
    ])
    .await;
    site.until("requests are answered", async || {
        (site.get(HOST, "/").await?.status == 200).then_some(())
    })
    .await;
    site
}

/// Waits until NGINX knows that endpoint, and no other one of these.
async fn knows(site: &Site, endpoint: &Endpoint) {
    let port = format!("\"{}\"", endpoint.port);
    site.until("nginx knows the endpoint", async || {
        let list = http::get(site.ports.status, "localhost", "/configuration/backends").await?;
        list.body.contains(&port).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_nginx_no_longer_knows_may_close_at_once() {
    let mut current = Endpoint::start("0".into()).await;
    let site = site(&current).await;
    let load = Load::start(site.ports.http, Duration::from_millis(10));
    for round in 1..=10 {
        let next = Endpoint::start(round.to_string()).await;
        site.write("service.yaml", &service("app", next.port));
        knows(&site, &next).await;
        current = next;
    }
    let (failures, requests) = load.end().await;
    assert!(requests > 0);
    assert_eq!(failures, 0, "of {requests}: {}", site.log());
    drop(current);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_flight_finish_where_they_are() {
    let (old, new) = (
        Endpoint::start("old".into()).await,
        Endpoint::start("new".into()).await,
    );
    let site = site(&old).await;
    let port = site.ports.http;
    let slow = tokio::spawn(async move { http::get_patiently(port, HOST, "/slow").await });
    let mut asked = old.slow.subscribe();
    asked.wait_for(|is| *is).await.unwrap();
    site.write("service.yaml", &service("app", new.port));
    knows(&site, &new).await;
    for _ in 0..20 {
        assert_eq!(site.get(HOST, "/").await.unwrap().body, "new");
    }
    old.release.send(true).unwrap();
    new.release.send(true).unwrap();
    let answer = slow.await.unwrap().unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, "old"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_later_of_two_lists_holds_however_soon_it_comes() {
    let endpoints = [
        Endpoint::start("0".into()).await,
        Endpoint::start("1".into()).await,
        Endpoint::start("2".into()).await,
    ];
    let site = site(&endpoints[0]).await;
    for round in 0..20 {
        // Neither list is the one in force: an answer by it would not show that they have come.
        let [earlier, last] = [round + 1, round + 2].map(|number| (number + round) % 3);
        site.write("service.yaml", &service("app", endpoints[earlier].port));
        site.write("service.yaml", &service("app", endpoints[last].port));
        let name = last.to_string();
        site.until("the later list is in force", async || {
            (site.get(HOST, "/").await?.body == name).then_some(())
        })
        .await;
        // Nothing brings the earlier one back.
        for _ in 0..10 {
            assert_eq!(site.get(HOST, "/").await.unwrap().body, name);
        }
    }
}

/// Kills what `victim` names while endpoints change; answers how long it took until the right one answered.
///
/// The site starts with the second endpoint: with the first, its answer would not show that the lists have come.
async fn kill_during_updates(
    site: &Site,
    endpoints: &[Endpoint; 2],
    victim: impl Fn() -> u32,
) -> Duration {
    let mut slowest = Duration::ZERO;
    // More of them in a row would show how the controller waits longer each time.
    for round in 0..4 {
        let last = round % 2;
        site.write("service.yaml", &service("app", endpoints[1 - last].port));
        let killed = Instant::now();
        send(victim(), Signal::KILL);
        site.write("service.yaml", &service("app", endpoints[last].port));
        let name = last.to_string();
        site.until("the right endpoint answers", async || {
            (site.get(HOST, "/").await?.body == name).then_some(())
        })
        .await;
        slowest = slowest.max(killed.elapsed());
        knows(site, &endpoints[last]).await;
        for _ in 0..10 {
            let began = Instant::now();
            // An NGINX that has just started waits so long for what it is to be told.
            if let Some(answer) = site.get(HOST, "/").await
                && began.elapsed() < Duration::from_secs(3)
            {
                assert_eq!((answer.status, answer.body), (200, name.clone()));
            }
        }
        site.until("a master and its workers run", async || {
            (site::is_nginx(site.nginx()) && !site.workers().is_empty()).then_some(())
        })
        .await;
    }
    slowest
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_endpoint_answers_after_a_kill_during_updates() {
    let endpoints = [
        Endpoint::start("0".into()).await,
        Endpoint::start("1".into()).await,
    ];
    let site = site(&endpoints[1]).await;
    let worker = || site.workers().into_iter().next().unwrap();
    kill_during_updates(&site, &endpoints, worker).await;
    kill_during_updates(&site, &endpoints, || site.nginx()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "half a minute of steady load, and figures that need a quiet machine: make rolling"]
#[expect(clippy::print_stdout, reason = "the figures are what it is made for")]
async fn slow_a_rolling_replacement_under_load_loses_no_request() {
    const ROUNDS: usize = 20;
    const GRACE: Duration = Duration::from_millis(300);
    let mut current = Endpoint::start("0".into()).await;
    let site = site(&current).await;
    let load = Load::start(site.ports.http, Duration::from_millis(5));
    for round in 1..=ROUNDS {
        let next = Endpoint::start(round.to_string()).await;
        site.write("service.yaml", &service("app", next.port));
        // As a Pod does that is told to end.
        tokio::time::sleep(GRACE).await;
        current = next;
        tokio::time::sleep(GRACE).await;
    }
    let (failures, requests) = load.end().await;
    println!(
        "{ROUNDS} replacements of the only endpoint: {failures} of {requests} requests failed"
    );
    assert_eq!(failures, 0);
    drop(current);

    let endpoints = [
        Endpoint::start("0".into()).await,
        Endpoint::start("1".into()).await,
    ];
    let worker = || site.workers().into_iter().next().unwrap();
    let after_worker = kill_during_updates(&site, &endpoints, worker).await;
    let after_master = kill_during_updates(&site, &endpoints, || site.nginx()).await;
    println!(
        "right endpoint after kill -9, at most: worker {after_worker:?}, master {after_master:?}"
    );
    let limit = Duration::from_secs(2);
    assert!(after_worker < limit && after_master < limit);
}
