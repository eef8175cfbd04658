//! How long a change of an API server's objects takes until requests see it: a real controller, a real NGINX.

#[path = "site/cluster.rs"]
#[allow(dead_code, reason = "nothing is added here")]
mod cluster;
mod site;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
mod support;

use std::time::{Duration, Instant};

use cluster::{CLASS, Cluster};
use site::backend::{Backend, ingress, service};

/// Services with an Ingress each.
const SERVICES: usize = 1_000;

const MOVES: usize = 200;

/// Of sorted durations, the one that so many percent of them do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "figures that need a quiet machine: make propagation"]
#[expect(clippy::print_stdout, reason = "the figures are what it is made for")]
async fn slow_endpoints_of_a_large_cluster_move_within_100_ms() {
    let backends = [Backend::start("one").await, Backend::start("two").await];
    let objects: Vec<_> = (0..SERVICES)
        .map(|number| {
            let name = format!("app-{number}");
            let ingress = ingress(&name, &format!("{name}.test"), &name, "");
            format!("{}---\n{ingress}", service(&name, 9))
        })
        .collect();
    let mut texts: Vec<_> = objects.iter().map(String::as_str).collect();
    let app = backends[0].service("app");
    let host = ingress("app", "app.test", "app", "");
    texts.extend([CLASS, &app, &host]);
    let Cluster { api, site } = Cluster::start(&[], &texts).await;
    site.answers("app.test", "/", 200, "one").await;
    let workers = site.workers();

    let mut took = Vec::new();
    for turn in 1..=MOVES {
        let (backend, name) = match turn % 2 {
            0 => (&backends[0], "one"),
            _ => (&backends[1], "two"),
        };
        let began = Instant::now();
        api.apply_yaml(&backend.service("app"));
        loop {
            let answer = site.get("app.test", "/").await.unwrap();
            if answer.body.starts_with(name) {
                break;
            }
        }
        took.push(began.elapsed());
    }
    took.sort();
    let [median, most] = [50, 99].map(|percent| percentile(&took, percent));
    println!("{MOVES} moves among {SERVICES} Services: p50 {median:?}, p99 {most:?}");
    assert_eq!(site.workers(), workers, "NGINX was reloaded");
    assert!(most < Duration::from_millis(100), "{most:?}");
}
