//! Nothing that happens to what NGINX is told loses an update: a real controller, a real NGINX and real requests.

mod site;

use site::{
    Site,
    backend::{Backend, ingress},
    status_port::{Harm, StatusPort, move_away},
};

/// Whether an update arrives although this happens to it, once it does not happen any more. `arrives` says whether it
/// does so all the same, without the controller's knowledge.
async fn an_update_is_told_after(harm: Harm, arrives: bool) {
    let (site, one) = Site::with_one("app").await;
    let two = Backend::start("two").await;
    let mut port = StatusPort::intercept(&site).await;
    port.set(harm).await;
    let before = site.logged("cannot tell nginx");
    site.write("service.yaml", &two.service("app"));
    site.until("the update has failed", async || {
        (site.logged("cannot tell nginx") > before).then_some(())
    })
    .await;
    if harm != Harm::Refuse {
        assert!(port.harmed() > 0);
    }
    let served = if arrives { "two" } else { "one" };
    site.answers("a.test", "/", 200, served).await;

    port.set(Harm::None).await;
    site.answers("a.test", "/", 200, "two").await;
    site.write("service.yaml", &one.service("app"));
    site.answers("a.test", "/", 200, "one").await;
    site.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_refuses_delays_an_update_only() {
    an_update_is_told_after(Harm::Refuse, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_500_delay_an_update_only() {
    an_update_is_told_after(Harm::Fail, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_written_request_delays_an_update_only() {
    an_update_is_told_after(Harm::Halve, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_confuses_nobody() {
    an_update_is_told_after(Harm::LoseAnswer, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_gone_is_brought_back_by_the_next_load() {
    let (site, _one) = Site::with_one("app").await;
    move_away(&site).await;
    site.write("b.yaml", &ingress("b", "b.test", "app", ""));
    site.answers("b.test", "/", 200, "one").await;
    site.answers("a.test", "/", 200, "one").await;
    site.ready().await;
}
