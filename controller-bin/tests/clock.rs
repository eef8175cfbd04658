//! A clock that jumps loses and delays nothing: an API server, a real controller, a real NGINX and real requests.

mod site;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
mod support;

use jiff::{Timestamp, fmt::rfc2822};
use rustix::process::Signal;
use site::{
    Site,
    backend::{Backend, annotated, ingress},
    clock::Clock,
    open_directory, send,
};
use support::ApiDouble;

const HOUR: i64 = 3_600;

const CLASS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";

/// How many seconds NGINX's clock is ahead of ours.
async fn ahead(site: &Site) -> Option<i64> {
    let answer = site.get("a.test", "/").await?;
    let date = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("Date: "))?;
    let date = rfc2822::parse(date.trim()).ok()?.timestamp();
    Some(date.as_second() - Timestamp::now().as_second())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_an_hour_loses_and_delays_nothing() {
    let clock = Clock::new();
    let api = ApiDouble::start().await;
    let backends = [Backend::start("one").await, Backend::start("two").await];
    for object in [
        CLASS,
        &backends[0].service("app"),
        &ingress("a", "a.test", "app", ""),
    ] {
        api.apply_yaml(object);
    }
    let host = format!("--apiserver-host={}", api.url());
    let site = Site::start_in(open_directory(), &[&host], clock.environment());
    site.ready().await;
    site.answers("a.test", "/", 200, "one").await;
    // Forward, back to before the start, and on and on.
    for (round, hours) in [1, -1, 2, 0, 24, -24].into_iter().enumerate() {
        clock.shift(hours * HOUR);
        site.until("nginx goes by the new time", async || {
            let off = ahead(&site).await? - hours * HOUR;
            (off.abs() < HOUR / 2).then_some(())
        })
        .await;
        // Endpoints, without a reload.
        let served = backends[(round + 1) % 2].service("app");
        api.apply_yaml(&served);
        let body = ["two", "one"][round % 2];
        site.answers("a.test", "/", 200, body).await;
        // Files, with one, beside an Ingress that NGINX refuses.
        let variable = r#"{nginx.ingress.kubernetes.io/upstream-vhost: "$no_such"}"#;
        api.apply_yaml(&annotated("bad", "bad.test", "app", variable, "/", ""));
        let (name, host) = (format!("new-{round}"), format!("new-{round}.test"));
        api.apply_yaml(&ingress(&name, &host, "app", ""));
        site.answers(&host, "/", 200, body).await;
        site.answers("bad.test", "/", 503, "").await;
        api.apply_yaml(&ingress("bad", "bad.test", "app", ""));
        site.answers("bad.test", "/", 200, body).await;
        api.delete("ingresses", "default", "bad");
        site.answers("bad.test", "/", 404, "").await;
        // Watches are taken up again, and a worker that is new is told everything.
        api.end_watches("ingresses");
        let worker = site.workers().into_iter().next().unwrap();
        send(worker, Signal::KILL);
        api.delete("ingresses", "default", &name);
        site.answers(&host, "/", 404, "").await;
        site.ready().await;
    }
}
