//! How requests are balanced is told to a running NGINX.

use std::sync::Arc;

use ingress_model::{Merger, plan};
use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    all,
    cluster::{Object, snapshot},
    ensure, for_clusters, now, options,
};

const PREFIX: &str = "nginx.ingress.kubernetes.io/";

const BALANCING: &[(&str, &str)] = &[
    ("load-balance", "ewma"),
    ("upstream-hash-by", "$host"),
    ("service-upstream", "true"),
    ("affinity", "cookie"),
    ("affinity-mode", "persistent"),
    ("session-cookie-name", "route"),
    ("session-cookie-path", "/x"),
    ("affinity-canary-behavior", "legacy"),
    ("canary-weight", "30"),
    ("canary-weight-total", "1000"),
    ("canary-by-header", "X-Next"),
    ("canary-by-cookie", "next"),
];

fn annotation(ingress: &Ingress, name: &str) -> Option<String> {
    let annotations = ingress.metadata.annotations.as_ref()?;
    annotations.get(&format!("{PREFIX}{name}")).cloned()
}

fn is_canary(ingress: &Ingress) -> bool {
    annotation(ingress, "canary").as_deref() == Some("true")
}

/// A change of balancing never reloads, whoever shares a Service with the Ingress that changes.
#[test]
fn balancing_never_reloads() {
    for_clusters(all, |objects, policy, dice| {
        let ingresses = objects.iter().filter_map(|object| match object {
            Object::Ingress(ingress) => Some(ingress),
            Object::Service(_)
            | Object::EndpointSlice(_)
            | Object::Secret(_)
            | Object::ConfigMap(_) => None,
        });
        let ingresses: Vec<_> = ingresses.collect();
        if ingresses.is_empty() {
            return Ok(());
        }
        let old = *dice.pick(&ingresses);
        let mut new = old.as_ref().clone();
        let (name, value) = *dice.pick(BALANCING);
        let annotations = new.metadata.annotations.get_or_insert_default();
        if annotations.remove(&format!("{PREFIX}{name}")).is_none() {
            annotations.insert(format!("{PREFIX}{name}"), value.to_owned());
        }
        // A weight makes one that is no canary yield its paths.
        if name.starts_with("canary-") && !is_canary(old) {
            return Ok(());
        }
        let mut cluster = snapshot(objects);
        let mut merger = Merger::default();
        let before = merger.merge(&cluster, &options(policy), now()).model;
        Object::Ingress(Arc::new(new)).put(&mut cluster);
        let after = merger.merge(&cluster, &options(policy), now()).model;
        let reasons = plan(Some(&before.layout), &after.layout);
        ensure!(reasons.is_empty(), "{name} reloads: {reasons:?}");
        let delta = before.live.diff(&after.live);
        let told = delta.set_servers.len() + delta.set_certificates.len() + delta.set_tcp.len();
        ensure!(told == 0, "{name} changes more than backends");
        Ok(())
    });
}
