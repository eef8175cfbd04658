//! Changes that are easily lost, since they are small, come in an unusual order or close upon another: an API server, a
//! real controller, a real NGINX and real requests.

#[path = "site/cluster.rs"]
mod cluster;
mod site;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
mod support;

use std::time::Duration;

use cluster::{CLASS, Cluster};
use serde_json::json;
use site::backend::{Backend, HEADERS, ingress};

fn config_map(name: &str, data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{{data}}}\n"
    )
}

/// The number of a back end's port, as manifests have it.
fn port(backend: &Backend) -> u16 {
    backend.address().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_within_milliseconds_of_the_configmap_is_not_lost() {
    let one = Backend::start("one").await;
    let settings = |hidden: &str| config_map("settings", &format!("hide-headers: {hidden}"));
    let cluster = Cluster::start(
        &["--configmap=default/settings"],
        &[CLASS, &one.service("one"), &settings("x-a")],
    )
    .await;
    let mut applied = Vec::new();
    // Nobody waits for one round before the next one, except at the end.
    for round in 0..20 {
        let hidden = HEADERS[round % HEADERS.len()];
        cluster.api.apply_yaml(&settings(hidden));
        let host = format!("round-{round}.test");
        let name = format!("round-{round}");
        cluster.api.apply_yaml(&ingress(&name, &host, "one", ""));
        // The Ingress of the round before changes right after the ConfigMap as well.
        cluster.api.apply_yaml(&ingress("moving", &host, "one", ""));
        applied.push(host);
        if round % 5 == 4 {
            for host in &applied {
                let what = format!("{host} is served without {hidden}");
                cluster
                    .site
                    .until(&what, async || {
                        let answer = cluster.site.get(host, "/").await?;
                        let head = answer.head.to_ascii_lowercase();
                        (answer.status == 200 && !head.contains(hidden)).then_some(())
                    })
                    .await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_ports_only_is_not_lost() {
    let one = Backend::start("one").await;
    let two = Backend::start("two").await;
    let cluster = Cluster::start(
        &[],
        &[
            CLASS,
            &one.service("app"),
            &ingress("a", "a.test", "app", ""),
        ],
    )
    .await;
    let site = &cluster.site;
    site.answers("a.test", "/", 200, "one").await;
    // The addresses stay.
    cluster
        .api
        .edit("endpointslices", "default", "app-1", |slice| {
            slice["ports"][0]["port"] = port(&two).into();
        });
    site.answers("a.test", "/", 200, "two").await;
    // The Ingress asks for a port that the Service gets later.
    cluster.api.edit("ingresses", "default", "a", |ingress| {
        let path = &mut ingress["spec"]["rules"][0]["http"]["paths"][0];
        path["backend"]["service"]["port"] = json!({"number": 8080});
    });
    site.answers("a.test", "/", 503, "").await;
    cluster.api.edit("services", "default", "app", |service| {
        service["spec"]["ports"][0]["port"] = 8080.into();
    });
    site.answers("a.test", "/", 200, "two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_configmap_that_is_referred_to_is_not_lost() {
    let one = Backend::start("one").await;
    let headers = |value: &str| config_map("headers", &format!("X-Added: {value}"));
    let cluster = Cluster::start(
        &["--configmap=default/settings"],
        &[
            CLASS,
            &one.service("one"),
            &ingress("a", "a.test", "one", ""),
            &config_map("settings", "add-headers: default/headers"),
        ],
    )
    .await;
    let site = &cluster.site;
    site.answers("a.test", "/", 200, "one").await;
    // It comes after who refers to it, changes, goes and comes back.
    for value in ["first", "second"] {
        cluster.api.apply_yaml(&headers(value));
        let what = format!("the header says {value}");
        site.until(&what, async || {
            let head = site.get("a.test", "/").await?.head.to_ascii_lowercase();
            head.contains(&format!("x-added: {value}")).then_some(())
        })
        .await;
    }
    assert!(cluster.api.delete("configmaps", "default", "headers"));
    site.until("the header goes", async || {
        let head = site.get("a.test", "/").await?.head.to_ascii_lowercase();
        (!head.contains("x-added")).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_that_comes_after_its_ingress_is_not_lost() {
    let one = Backend::start("one").await;
    let late = ingress("a", "a.test", "one", "")
        .replace("ingressClassName: nginx", "ingressClassName: late");
    let cluster = Cluster::start(&[], &[CLASS, &one.service("one"), &late]).await;
    let site = &cluster.site;
    cluster.add("b", "one").await;
    site.answers("a.test", "/", 404, "").await;
    cluster
        .api
        .apply_yaml(&CLASS.replace("name: nginx", "name: late"));
    site.answers("a.test", "/", 200, "one").await;
    assert!(cluster.api.delete("ingressclasses", "", "late"));
    site.answers("a.test", "/", 404, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slice_that_is_not_named_after_its_service_is_not_lost() {
    let one = Backend::start("one").await;
    let two = Backend::start("two").await;
    let renamed = one.service("app").replace("name: app-1", "name: zebra");
    let cluster = Cluster::start(&[], &[CLASS, &renamed, &ingress("a", "a.test", "app", "")]).await;
    let site = &cluster.site;
    site.answers("a.test", "/", 200, "one").await;
    cluster
        .api
        .edit("endpointslices", "default", "zebra", |slice| {
            slice["ports"][0]["port"] = port(&two).into();
        });
    site.answers("a.test", "/", 200, "two").await;
    assert!(cluster.api.delete("endpointslices", "default", "zebra"));
    site.answers("a.test", "/", 503, "").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes more than a minute: make chaos"]
async fn an_api_server_that_is_gone_for_a_minute_is_followed_again() {
    let one = Backend::start("one").await;
    let cluster = Cluster::start(
        &[],
        &[
            CLASS,
            &one.service("one"),
            &ingress("a", "a.test", "one", ""),
        ],
    )
    .await;
    let site = &cluster.site;
    site.answers("a.test", "/", 200, "one").await;
    cluster.api.go_away().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    site.answers("a.test", "/", 200, "one").await;
    cluster.api.delete("ingresses", "default", "a");
    cluster.api.apply_yaml(&ingress("b", "b.test", "one", ""));
    cluster.api.come_back().await;
    site.until("what came meanwhile is served", async || {
        let a = site.get("a.test", "/").await?;
        let b = site.get("b.test", "/").await?;
        (a.status == 404 && b.status == 200).then_some(())
    })
    .await;
}
