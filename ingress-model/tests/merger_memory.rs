//! A merger that remembers gives what a fresh one would, and leaves alone what a change does not concern.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the objects are known"
)]

mod support;

use std::sync::Arc;

use ingress_model::{
    Host, Merger, ObjectName, Options, Outcome, Snapshot, live::UpstreamName, merge, plan,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A merger, what it was given last, and its outcomes.
struct Story {
    merger: Merger,
    snapshot: Snapshot,
    options: Options,
    outcomes: Vec<Outcome>,
}

impl Story {
    fn new(objects: &[Value]) -> Self {
        let mut story = Self {
            merger: Merger::default(),
            snapshot: support::snapshot(objects),
            options: Options {
                watch_ingress_without_class: true,
                config_map: ObjectName::parse("shop/settings"),
                ..Options::default()
            },
            outcomes: Vec::new(),
        };
        story.merge();
        story
    }

    fn merge(&mut self) {
        let now = Timestamp::UNIX_EPOCH;
        let outcome = self.merger.merge(&self.snapshot, &self.options, now);
        let fresh = merge(&self.snapshot, &self.options, now);
        assert!(
            outcome == fresh,
            "remembered:\n{outcome:?}\nfresh:\n{fresh:?}"
        );
        self.snapshot.last_good = outcome.last_good.clone();
        self.outcomes.push(outcome);
    }

    fn apply(&mut self, object: Value) {
        support::add(&mut self.snapshot, object);
        self.merge();
    }

    fn now(&self) -> &Outcome {
        self.outcomes.last().unwrap()
    }

    fn before(&self) -> &Outcome {
        &self.outcomes[self.outcomes.len() - 2]
    }

    /// Whether a host's server is the very one that it was.
    fn kept_server(&self, host: &str) -> bool {
        let host = Host::parse(host).unwrap();
        let server = |outcome: &Outcome| Arc::clone(&outcome.model.layout.servers[&host]);
        Arc::ptr_eq(&server(self.now()), &server(self.before()))
    }

    fn kept_backend(&self, name: &str) -> bool {
        let name = UpstreamName::new(name);
        let backend = |outcome: &Outcome| Arc::clone(&outcome.model.live.backends[&name]);
        Arc::ptr_eq(&backend(self.now()), &backend(self.before()))
    }

    fn reloads(&self) -> bool {
        !plan(Some(&self.before().model.layout), &self.now().model.layout).is_empty()
    }

    fn addresses(&self, name: &str) -> Vec<String> {
        let backend = &self.now().model.live.backends[&UpstreamName::new(name)];
        backend
            .endpoints
            .iter()
            .map(|endpoint| endpoint.address.clone())
            .collect()
    }
}

fn ingress(name: &str, host: &str, service: &str, annotations: &Value) -> Value {
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    json!({"kind": "Ingress", "metadata": {"name": name, "annotations": annotations},
        "spec": {"rules": [{"host": host, "http": {"paths": [path]}}]}})
}

fn web(name: &str, pods: &[&str]) -> Value {
    json!({"kind": "Web", "name": name, "pods": pods})
}

fn two_hosts() -> Story {
    Story::new(&[
        ingress("a", "a.test", "a", &json!({})),
        ingress("b", "b.test", "b", &json!({})),
        web("a", &["10.0.0.1"]),
        web("b", &["10.0.0.2"]),
    ])
}

#[test]
fn one_host_changes_and_the_others_stay() {
    let mut story = two_hosts();
    story.apply(ingress(
        "a",
        "a.test",
        "a",
        &json!({
            "nginx.ingress.kubernetes.io/proxy-read-timeout": "7"
        }),
    ));
    assert!(!story.kept_server("a.test") && story.kept_server("b.test") && story.kept_server(""));
    assert!(story.kept_backend("shop-a-80") && story.kept_backend("shop-b-80"));
    assert!(story.reloads());
}

#[test]
fn an_ingress_that_says_the_same_changes_nothing() {
    let mut story = two_hosts();
    let mut again = ingress("a", "a.test", "a", &json!({}));
    again["metadata"]["labels"] = json!({"touched": "yes"});
    story.apply(again);
    assert!(story.kept_server("a.test") && story.kept_backend("shop-a-80"));
    assert!(!story.reloads());
}

#[test]
fn endpoints_change_without_a_reload() {
    let mut story = two_hosts();
    story.apply(web("a", &["10.0.0.9"]));
    assert_eq!(story.addresses("shop-a-80"), ["10.0.0.9"]);
    assert!(story.kept_backend("shop-b-80") && story.kept_server("a.test"));
    assert!(!story.reloads());
}

#[test]
fn a_service_that_comes_later_is_used() {
    let mut story = Story::new(&[ingress("a", "a.test", "late", &json!({}))]);
    assert!(story.addresses("shop-late-80").is_empty());
    assert_eq!(
        story.now().diagnostics.len(),
        2,
        "{:?}",
        story.now().diagnostics
    );
    story.apply(web("late", &["10.0.0.1"]));
    assert_eq!(story.addresses("shop-late-80"), ["10.0.0.1"]);
    assert_eq!(
        story.now().diagnostics.len(),
        1,
        "{:?}",
        story.now().diagnostics
    );
    assert!(!story.reloads());
    story
        .snapshot
        .services
        .remove(&ObjectName::new("shop", "late"));
    story.merge();
    assert!(story.addresses("shop-late-80").is_empty());
}

#[test]
fn a_slice_that_changes_hands_serves_the_other_service() {
    let mut story = two_hosts();
    let slice = |service: &str| {
        json!({"kind": "EndpointSlice",
            "metadata": {"name": "x", "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4", "ports": [{"name": "http", "port": 8080}],
            "endpoints": [{"addresses": ["10.0.0.7"]}]})
    };
    story.apply(slice("a"));
    assert_eq!(story.addresses("shop-a-80"), ["10.0.0.1", "10.0.0.7"]);
    story.apply(slice("b"));
    assert_eq!(story.addresses("shop-a-80"), ["10.0.0.1"]);
    assert_eq!(story.addresses("shop-b-80"), ["10.0.0.2", "10.0.0.7"]);
}

#[test]
fn certificates_come_change_and_go_without_a_reload() {
    let mut tls = ingress("a", "a.test", "a", &json!({}));
    tls["spec"]["tls"] = json!([{"hosts": ["a.test"], "secretName": "cert"}]);
    let mut story = Story::new(&[tls, ingress("b", "b.test", "b", &json!({}))]);
    assert!(story.now().model.live.servers.is_empty());
    story.apply(json!({"kind": "Tls", "name": "cert", "hosts": ["a.test"]}));
    assert!(story.kept_server("a.test") && !story.reloads());
    let first = story.now().model.live.certificates.clone();
    assert_eq!(first.len(), 1);
    story.apply(json!({"kind": "Tls", "name": "cert", "hosts": ["a.test"]}));
    assert_ne!(story.now().model.live.certificates, first);
    assert!(!story.reloads());
    story
        .snapshot
        .secrets
        .remove(&ObjectName::new("shop", "cert"));
    story.merge();
    assert!(story.now().model.live.certificates.is_empty() && !story.reloads());
}

#[test]
fn a_certificate_holds_until_its_secret_is_usable_again_or_gone() {
    let mut tls = ingress("a", "a.test", "a", &json!({}));
    tls["spec"]["tls"] = json!([{"hosts": ["a.test"], "secretName": "cert"}]);
    let mut story = Story::new(&[tls]);
    let good = json!({"kind": "Tls", "name": "cert", "hosts": ["a.test"]});
    let broken = json!({"kind": "Secret", "metadata": {"name": "cert", "namespace": "shop"},
        "data": {"tls.crt": ""}});
    let said = |story: &Story| {
        let messages = story.now().diagnostics.iter();
        let messages = messages.map(|diagnostic| diagnostic.message.clone());
        messages
            .filter(|message| message.starts_with("Secret"))
            .collect::<Vec<_>>()
    };
    story.apply(broken.clone());
    assert!(story.now().model.live.certificates.is_empty());
    assert!(said(&story)[0].ends_with("is served with the default certificate"));

    story.apply(good.clone());
    let first = story.now().model.live.certificates.clone();
    assert_eq!(first.len(), 1);
    for _ in 0..2 {
        story.apply(broken.clone());
        assert_eq!(story.now().model.live.certificates, first);
        assert!(said(&story)[0].ends_with("with the certificate that it held before"));
    }
    // Another Ingress that refers to it finds it as well.
    let mut later = ingress("later", "b.test", "a", &json!({}));
    later["spec"]["tls"] = json!([{"secretName": "cert"}]);
    story.apply(later);
    assert_eq!(story.now().model.live.certificates, first);

    story.apply(good);
    assert_ne!(story.now().model.live.certificates, first);
    assert!(said(&story).is_empty());
    story
        .snapshot
        .secrets
        .remove(&ObjectName::new("shop", "cert"));
    story.merge();
    assert!(story.now().model.live.certificates.is_empty());
    // What was gone is not taken up again.
    story.apply(broken);
    assert!(story.now().model.live.certificates.is_empty());
}

#[test]
fn an_authority_that_comes_later_opens_the_host() {
    let auth = json!({"nginx.ingress.kubernetes.io/auth-tls-secret": "shop/ca"});
    let mut story = Story::new(&[ingress("a", "a.test", "a", &auth)]);
    let denied = |story: &Story| {
        let server = &story.now().model.layout.servers[&Host::parse("a.test").unwrap()];
        server.client_auth.as_ref().unwrap().value.denied.is_some()
    };
    assert!(denied(&story));
    story.apply(json!({"kind": "Authority", "name": "ca"}));
    assert!(!denied(&story) && story.reloads());
}

#[test]
fn the_config_map_is_read_again() {
    let mut story = two_hosts();
    story.apply(
        json!({"kind": "ConfigMap", "metadata": {"name": "settings"},
        "data": {"ssl-redirect": "false"}}),
    );
    assert!(story.reloads() && !story.kept_server("a.test"));
    story.apply(
        json!({"kind": "ConfigMap", "metadata": {"name": "settings"},
        "data": {"ssl-redirect": "false", "no-such-key": "x"}}),
    );
    assert!(!story.reloads() && story.kept_server("a.test"));
    assert_eq!(story.now().diagnostics.len(), 1);
}

#[test]
fn a_class_that_comes_later_lets_its_ingresses_in() {
    let mut of_class = ingress("a", "a.test", "a", &json!({}));
    of_class["spec"]["ingressClassName"] = "late".into();
    let mut story = Story::new(&[of_class]);
    let host = Host::parse("a.test").unwrap();
    assert!(!story.now().model.layout.servers.contains_key(&host));
    story.apply(json!({"kind": "IngressClass", "metadata": {"name": "late"},
        "spec": {"controller": "k8s.io/ingress-nginx"}}));
    assert!(story.now().model.layout.servers.contains_key(&host));
}

#[test]
fn an_alias_that_is_lost_is_lost_for_the_cookie_too() {
    let alias = json!({"nginx.ingress.kubernetes.io/server-alias": "alias.test"});
    let sticky = json!({"nginx.ingress.kubernetes.io/affinity": "cookie"});
    let mut story = Story::new(&[
        ingress("alias", "a.test", "b", &alias),
        ingress("sticky", "a.test", "a", &sticky),
    ]);
    story
        .snapshot
        .ingresses
        .remove(&ObjectName::new("shop", "alias"));
    story.merge();
    let backend = &story.now().model.live.backends[&UpstreamName::new("shop-a-80")];
    let hosts: Vec<_> = backend
        .affinity
        .as_ref()
        .unwrap()
        .locations
        .keys()
        .collect();
    assert_eq!(hosts, [&Host::parse("a.test").unwrap()]);
}

#[test]
fn the_canary_follows_its_main_backend() {
    let canary = json!({"nginx.ingress.kubernetes.io/canary": "true",
        "nginx.ingress.kubernetes.io/canary-weight": "5"});
    let sticky = json!({"nginx.ingress.kubernetes.io/affinity": "cookie"});
    let mut story = Story::new(&[
        ingress("main", "a.test", "a", &json!({})),
        ingress("next", "a.test", "b", &canary),
    ]);
    let affinity = |story: &Story| {
        let backend = &story.now().model.live.backends[&UpstreamName::new("shop-b-80")];
        backend.affinity.is_some()
    };
    assert!(!affinity(&story));
    story.apply(ingress("main", "a.test", "a", &sticky));
    assert!(affinity(&story) && !story.reloads());
    story
        .snapshot
        .ingresses
        .remove(&ObjectName::new("shop", "next"));
    story.merge();
    assert!(!story.reloads());
    let live = &story.now().model.live;
    assert!(!live.backends.contains_key(&UpstreamName::new("shop-b-80")));
    story
        .snapshot
        .ingresses
        .remove(&ObjectName::new("shop", "main"));
    story.merge();
    assert_eq!(story.now().model.live.backends.len(), 1);
}

#[test]
fn a_refused_version_keeps_the_one_before_until_a_good_one_comes() {
    let bad = json!({"nginx.ingress.kubernetes.io/permanent-redirect": "bad value;"});
    let mut story = two_hosts();
    story.apply(ingress("a", "a.test", "b", &bad));
    assert!(story.kept_server("a.test") && !story.reloads());
    story.apply(web("b", &["10.0.0.3"]));
    assert!(story.kept_server("a.test"));
    story.apply(ingress("a", "a.test", "b", &json!({})));
    assert!(story.reloads());
}

#[test]
fn a_default_backend_comes_changes_and_goes_without_a_reload() {
    let spare = json!({"nginx.ingress.kubernetes.io/default-backend": "spare"});
    let mut story = Story::new(&[
        ingress("a", "a.test", "a", &spare),
        ingress("b", "b.test", "b", &spare),
    ]);
    let name = "custom-default-backend-shop-spare";
    assert_eq!(story.addresses(name), [""; 0]);
    let told = |story: &Story| {
        let diagnostics = story.now().diagnostics.iter();
        diagnostics
            .filter(|told| told.key.as_deref() == Some("default-backend"))
            .count()
    };
    assert_eq!(told(&story), 2);
    for pods in [&["10.0.0.9"][..], &["10.0.0.8", "10.0.0.9"], &[]] {
        story.apply(web("spare", pods));
        assert_eq!(story.addresses(name), pods);
        assert!(!story.reloads());
    }
    for ingress in ["a", "b"] {
        let backends = &story.now().model.live.backends;
        assert!(backends.contains_key(&UpstreamName::new(name)));
        let ingress = ObjectName::new("shop", ingress);
        story.snapshot.ingresses.remove(&ingress);
        story.merge();
    }
    let backends = &story.now().model.live.backends;
    assert!(!backends.contains_key(&UpstreamName::new(name)));
    assert_eq!(told(&story), 0);
}

#[test]
fn the_other_name_is_redirected_as_long_as_nobody_serves_it() {
    let wish = json!({"nginx.ingress.kubernetes.io/from-to-www-redirect": "true"});
    let alias = json!({"nginx.ingress.kubernetes.io/server-alias": "www.a.test"});
    let redirected = |story: &Story, host: &str| {
        let server = &story.now().model.layout.servers[&Host::parse(host).unwrap()];
        server.redirected.as_ref().map(ToString::to_string)
    };
    let mut story = Story::new(&[ingress("a", "a.test", "a", &wish)]);
    assert_eq!(redirected(&story, "a.test").as_deref(), Some("www.a.test"));
    story.apply(ingress("www", "www.a.test", "b", &wish));
    assert_eq!(redirected(&story, "a.test"), None);
    assert_eq!(redirected(&story, "www.a.test"), None);
    story.apply(ingress("www", "www.b.test", "b", &wish));
    assert_eq!(redirected(&story, "a.test").as_deref(), Some("www.a.test"));
    assert_eq!(redirected(&story, "www.b.test").as_deref(), Some("b.test"));
    story.apply(ingress("www", "c.test", "b", &alias));
    assert_eq!(redirected(&story, "a.test"), None);
    story.apply(ingress("www", "c.test", "b", &json!({})));
    assert_eq!(redirected(&story, "a.test").as_deref(), Some("www.a.test"));
    story.apply(ingress("a", "a.test", "a", &json!({})));
    assert_eq!(redirected(&story, "a.test"), None);
}
