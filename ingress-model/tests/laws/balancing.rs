//! How requests are balanced is told to a running NGINX.

use std::{collections::BTreeSet, sync::Arc};

use ingress_model::{Merger, plan};
use k8s_openapi::api::networking::v1::{Ingress, IngressBackend};

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
    ("canary-weight", "30"),
];

fn annotation(ingress: &Ingress, name: &str) -> Option<String> {
    let annotations = ingress.metadata.annotations.as_ref()?;
    annotations.get(&format!("{PREFIX}{name}")).cloned()
}

fn is_canary(ingress: &Ingress) -> bool {
    annotation(ingress, "canary").as_deref() == Some("true")
}

/// The Services' ports that an Ingress names.
fn ports(ingress: &Ingress) -> BTreeSet<(Option<String>, String, String)> {
    let spec = ingress.spec.as_ref();
    let rules = spec.iter().flat_map(|spec| spec.rules.iter().flatten());
    let paths = rules.flat_map(|rule| rule.http.iter().flat_map(|http| &http.paths));
    let default = spec.and_then(|spec| spec.default_backend.as_ref());
    let backends = paths.map(|path| &path.backend).chain(default);
    let named = |backend: &IngressBackend| {
        let service = backend.service.as_ref()?;
        let port = service.port.as_ref()?;
        let number = port.number.filter(|number| *number > 0);
        let port = number.map_or_else(|| port.name.clone(), |number| Some(number.to_string()));
        Some((
            ingress.metadata.namespace.clone(),
            service.name.clone(),
            port?,
        ))
    };
    backends.filter_map(named).collect()
}

/// A change of balancing reloads nothing, unless another Ingress shares a Service's port with the one that changes: two
/// that cease to agree, or begin to, need another number of upstreams. A canary's never does.
#[test]
fn balancing_reloads_only_where_a_port_is_shared() {
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
        if name == "canary-weight" && !is_canary(old) {
            return Ok(());
        }
        let mut cluster = snapshot(objects);
        let mut merger = Merger::default();
        let before = merger.merge(&cluster, &options(policy), now()).model;
        Object::Ingress(Arc::new(new)).put(&mut cluster);
        let after = merger.merge(&cluster, &options(policy), now()).model;
        let reasons = plan(Some(&before.layout), &after.layout);
        let others = ingresses
            .iter()
            .filter(|other| !Arc::ptr_eq(other, old) && !is_canary(other));
        let mut shared = others.flat_map(|other| ports(other));
        let own = ports(old);
        let may_reload = !is_canary(old) && shared.any(|port| own.contains(&port));
        ensure!(
            reasons.is_empty() || may_reload,
            "{name} reloads: {reasons:?}"
        );
        Ok(())
    });
}
