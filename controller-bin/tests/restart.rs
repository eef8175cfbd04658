//! An NGINX that dies and is started anew while requests come: a real controller, a real NGINX.

mod site;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use site::{
    Site,
    backend::{Backend, ingress},
    send,
};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_answered_by_an_nginx_that_was_told_nothing_yet() {
    const ROUNDS: usize = 5;
    const CLIENTS: usize = 4;
    // NGINX waits so long for what it is to be told, and then says that it does not know.
    const PATIENCE: Duration = Duration::from_secs(3);
    let backend = Backend::start("one").await;
    let site = Site::with_manifests(&[
        ("service.yaml", &backend.service("one")),
        ("app.yaml", &ingress("app", "app.test", "one", "")),
    ])
    .await;
    site.answers("app.test", "/", 200, "one").await;

    let done = AtomicBool::new(false);
    let client = async || {
        let mut statuses = BTreeMap::<_, usize>::new();
        while !done.load(Ordering::Relaxed) {
            let began = Instant::now();
            let answer = site.get("app.test", "/").await;
            let in_time = answer.filter(|_| began.elapsed() < PATIENCE);
            let status = in_time.map(|answer| answer.status);
            *statuses.entry(status).or_default() += 1;
        }
        statuses
    };
    let clients = futures::future::join_all((0..CLIENTS).map(|_| client()));
    let killing = async {
        for _ in 0..ROUNDS {
            let before = site.nginx();
            for pid in site.workers().into_iter().chain([before]) {
                send(pid, Signal::KILL);
            }
            site.until("another nginx answers", async || {
                let other = site.nginx() != before;
                let answer = site.get("app.test", "/").await?;
                (other && answer.status == 200).then_some(())
            })
            .await;
        }
        done.store(true, Ordering::Relaxed);
    };
    let (statuses, ()) = tokio::join!(clients, killing);
    for statuses in statuses {
        assert!(statuses.get(&Some(200)) > Some(&0), "{statuses:?}");
        // None: it was refused, or cut off, while there was no NGINX; or it took too long to tell anything.
        let others = statuses
            .keys()
            .filter(|status| !matches!(status, Some(200) | None));
        assert_eq!(others.count(), 0, "{statuses:?}");
    }
}
