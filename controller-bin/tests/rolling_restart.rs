//! A controller takes the place of another one under load, and no client notices.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

mod site;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use rustix::process::Signal;
use site::{Site, backend::Backend, backend::ingress, http};
use tokio::{task::JoinSet, time::sleep};

const CLASS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";

/// How often the load balancer looks whether a controller is ready.
const PROBE: Duration = Duration::from_millis(100);

/// How many clients there are.
const CLIENTS: usize = 4;

/// Sends each connection to a controller that was ready at the last look, as a Service does: it hears of the end of one
/// a little late.
#[derive(Debug)]
struct Balancer {
    /// The HTTP port of the controller that was seen to be ready last. Requests hold it as long as they go on.
    target: Mutex<Arc<u16>>,
    answered: AtomicUsize,
    failed: AtomicUsize,
    stop: AtomicBool,
}

impl Balancer {
    fn new(target: u16) -> Self {
        Self {
            target: Mutex::new(Arc::new(target)),
            answered: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        }
    }

    fn target(&self) -> Arc<u16> {
        Arc::clone(&self.target.lock().unwrap())
    }

    /// Looks at two controllers in turn, the newer one first.
    async fn probe(&self, sites: &[(u16, u16)]) {
        for (health, http) in sites {
            let answer = http::get(*health, "health", "/healthz").await;
            if answer.is_some_and(|answer| answer.status == 200) {
                let mut target = self.target.lock().unwrap();
                if **target != *http {
                    *target = Arc::new(*http);
                }
                return;
            }
        }
    }

    async fn client(&self) {
        while !self.stop.load(Ordering::SeqCst) {
            let target = self.target();
            let answer = http::get_patiently(*target, "a.test", "/x").await;
            if answer.is_some_and(|answer| answer.status == 200 && answer.body.contains("/x")) {
                self.answered.fetch_add(1, Ordering::SeqCst);
            } else {
                self.failed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

async fn controller(backend: &Backend) -> Site {
    let text = [
        CLASS.to_owned(),
        backend.service("one"),
        ingress("a", "a.test", "one", ""),
    ];
    let files = [("objects.yaml", text.join("---\n"))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    Site::with_flags(&["--shutdown-grace-period=3600"], &files).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_while_controllers_take_turns() {
    let backend = Backend::start("one").await;
    let mut old = controller(&backend).await;
    let balancer = Arc::new(Balancer::new(old.ports.http));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let balancer = Arc::clone(&balancer);
        clients.spawn(async move { balancer.client().await });
    }
    for turn in 0..3 {
        let new = controller(&backend).await;
        let served = balancer.answered.load(Ordering::SeqCst);
        let sites = [
            (old.ports.healthz, old.ports.http),
            (new.ports.healthz, new.ports.http),
        ];
        let probing = tokio::spawn({
            let balancer = Arc::clone(&balancer);
            async move {
                loop {
                    balancer.probe(&sites).await;
                    sleep(PROBE).await;
                }
            }
        });
        let before = balancer.target();
        old.signal(Signal::TERM);
        site::until("the load balancer has turned to the new one", async || {
            (*balancer.target() == new.ports.http).then_some(())
        })
        .await;
        site::until("requests to the old one have been answered", async || {
            (Arc::strong_count(&before) == 1).then_some(())
        })
        .await;
        // The grace period was long enough, then, and ends.
        old.signal(Signal::TERM);
        assert!(old.ended().await.success(), "turn {turn}");
        // The old one is gone, and the new one alone has answered since.
        let ended = balancer.answered.load(Ordering::SeqCst);
        site::until("the new one answers", async || {
            (balancer.answered.load(Ordering::SeqCst) > ended + 20).then_some(())
        })
        .await;
        assert!(ended > served, "requests were made meanwhile");
        probing.abort();
        old = new;
    }
    balancer.stop.store(true, Ordering::SeqCst);
    while clients.join_next().await.is_some() {}
    let answered = balancer.answered.load(Ordering::SeqCst);
    let failed = balancer.failed.load(Ordering::SeqCst);
    assert_eq!(failed, 0, "of {answered}");
}
