//! What is announced, over several merges.

use ingress_model::Merger;
use jiff::Timestamp;
use k8s_openapi::api::networking::v1::Ingress;
use serde_json::{Value, json};

use super::*;

const FLAGS: &[&str] = &[
    "test",
    "--configmap=ours/settings",
    "--watch-ingress-without-class",
];

/// Objects, and who announces what becomes of them.
struct Cluster {
    args: Args,
    announcer: Announcer,
    merger: Merger,
    snapshot: Snapshot,
}

impl Cluster {
    fn new(flags: &[&str]) -> Self {
        let args = Args::try_parse_from(FLAGS.iter().chain(flags)).unwrap();
        Self {
            announcer: Announcer::new(&args, Some(ObjectName::new("ours", "pod"))),
            args,
            merger: Merger::default(),
            snapshot: Snapshot::default(),
        }
    }

    fn ingress(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut value = json!({
            "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")},
            "spec": {"rules": [{"host": format!("{name}.test")}]},
        });
        change(&mut value);
        let ingress: Ingress = serde_json::from_value(value).unwrap();
        self.snapshot
            .ingresses
            .insert(ObjectName::new("shop", name), ingress);
    }

    fn settings(&mut self, data: &Value) {
        let value = json!({"metadata": {"namespace": "ours", "name": "settings"}, "data": data});
        let map: ConfigMap = serde_json::from_value(value).unwrap();
        self.snapshot
            .config_maps
            .insert(ObjectName::new("ours", "settings"), map);
    }

    /// What is announced after a merge: object and reason, sorted.
    fn announced(&mut self) -> Vec<String> {
        self.snapshot.last_good = self.announcer.before.last_good.clone();
        let options = self.args.options();
        let outcome = self
            .merger
            .merge(&self.snapshot, &options, Timestamp::UNIX_EPOCH);
        let notices = self.announcer.outcome(&Arc::new(outcome), &self.snapshot);
        let mut told: Vec<_> = notices.iter().map(told).collect();
        told.sort();
        told
    }

    fn happened(&self, happening: &Happening) -> Option<String> {
        let notice = self.announcer.happening(happening, &self.snapshot)?;
        Some(told(&notice))
    }
}

fn told(notice: &Notice) -> String {
    format!("{} {}", notice.about.object, notice.reason)
}

fn annotated(value: &str) -> impl FnOnce(&mut Value) {
    move |ingress| {
        ingress["metadata"]["annotations"] =
            json!({"nginx.ingress.kubernetes.io/proxy-body-size": value});
    }
}

#[test]
fn an_ingress_is_announced_when_it_is_new_or_different() {
    let mut cluster = Cluster::new(&[]);
    cluster.ingress("a", |_| {});
    assert_eq!(cluster.announced(), ["Ingress shop/a Sync"]);
    assert!(cluster.announced().is_empty());
    cluster.ingress("a", |ingress| {
        ingress["status"] = json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}});
    });
    cluster.ingress("b", |_| {});
    assert_eq!(cluster.announced(), ["Ingress shop/b Sync"]);
    cluster.ingress("a", annotated("1m"));
    assert_eq!(cluster.announced(), ["Ingress shop/a Sync"]);
}

#[test]
fn a_diagnostic_is_announced_while_it_is_new() {
    let mut cluster = Cluster::new(&[]);
    cluster.ingress("a", annotated("much"));
    let first = cluster.announced();
    assert!(
        first.contains(&"Ingress shop/a AnnotationParsingFailed".to_owned()),
        "{first:?}"
    );
    assert!(cluster.announced().is_empty());
    cluster.ingress("a", annotated("1m"));
    assert_eq!(cluster.announced(), ["Ingress shop/a Sync"]);
    cluster.ingress("a", annotated("much"));
    let again = cluster.announced();
    assert!(
        again.contains(&"Ingress shop/a AnnotationParsingFailed".to_owned()),
        "{again:?}"
    );
}

#[test]
fn a_message_names_the_annotation() {
    let mut cluster = Cluster::new(&[]);
    cluster.ingress("a", annotated("much"));
    let options = cluster.args.options();
    let outcome = cluster
        .merger
        .merge(&cluster.snapshot, &options, Timestamp::UNIX_EPOCH);
    let notices = cluster
        .announcer
        .outcome(&Arc::new(outcome), &cluster.snapshot);
    let notice = notices
        .iter()
        .find(|notice| notice.reason == "AnnotationParsingFailed")
        .unwrap();
    assert_eq!(notice.weight, Weight::Warning);
    assert_eq!(notice.about.uid.as_deref(), Some("uid-a"));
    let key = "nginx.ingress.kubernetes.io/proxy-body-size: ";
    assert!(notice.message.starts_with(key), "{}", notice.message);
}

#[test]
fn ingresses_of_other_classes_are_let_alone() {
    let mut cluster = Cluster::new(&["--watch-namespace=shop"]);
    cluster.ingress("theirs", |ingress| {
        ingress["metadata"]["annotations"] = json!({"kubernetes.io/ingress.class": "other"});
    });
    cluster.ingress("nobodys", |ingress| {
        ingress["spec"]["ingressClassName"] = json!("missing");
    });
    cluster.ingress("elsewhere", |ingress| {
        ingress["metadata"]["namespace"] = json!("elsewhere");
    });
    let elsewhere = cluster
        .snapshot
        .ingresses
        .remove(&ObjectName::new("shop", "elsewhere"))
        .unwrap();
    cluster
        .snapshot
        .ingresses
        .insert(ObjectName::new("elsewhere", "elsewhere"), elsewhere);
    assert!(cluster.announced().is_empty());
}

#[test]
fn our_config_maps_are_announced_and_what_is_wrong_in_them() {
    let mut cluster = Cluster::new(&[]);
    cluster.settings(&json!({}));
    assert_eq!(cluster.announced(), ["ConfigMap ours/settings CREATE"]);
    cluster.settings(&json!({"no-such-key": "1", "keep-alive": "long"}));
    let want = [
        "ConfigMap ours/settings InvalidConfigKey",
        "ConfigMap ours/settings UPDATE",
        "ConfigMap ours/settings UnknownConfigKey",
    ];
    assert_eq!(cluster.announced(), want);
    cluster
        .snapshot
        .config_maps
        .remove(&ObjectName::new("ours", "settings"));
    assert!(cluster.announced().is_empty());
    cluster.settings(&json!({}));
    assert_eq!(cluster.announced(), ["ConfigMap ours/settings CREATE"]);
}

#[test]
fn what_happens_to_nginx_is_about_our_pod_or_an_ingress() {
    let mut cluster = Cluster::new(&[]);
    cluster.ingress("a", |_| {});
    let name = |name: &str| ObjectName::new("shop", name);
    let isolated = |ingress: &str| Happening::Isolated {
        ingress: name(ingress),
        reason: "unknown directive".into(),
    };
    let recovered = Happening::Recovered { ingress: name("a") };
    let failed = Happening::LoadFailed { error: "x".into() };
    let without = Happening::WentWithout {
        ingress: name("a"),
        what: "enable-modsecurity".into(),
        reason: "NGINX has no module for it".into(),
    };
    for (happening, want) in [
        (&Happening::Loaded, Some("Pod ours/pod RELOAD")),
        (&failed, Some("Pod ours/pod RELOAD")),
        (&isolated("a"), Some("Ingress shop/a Isolated")),
        (&isolated("gone"), None),
        (&recovered, Some("Ingress shop/a Recovered")),
        (&without, Some("Ingress shop/a NotRendered")),
    ] {
        assert_eq!(
            cluster.happened(happening).as_deref(),
            want,
            "{happening:?}"
        );
    }
    let notice = cluster
        .announcer
        .happening(&isolated("a"), &cluster.snapshot);
    assert!(notice.unwrap().message.ends_with("unknown directive"));
}

#[test]
fn without_sync_events_only_our_pod_is_spoken_of() {
    let mut cluster = Cluster::new(&["--disable-sync-events"]);
    cluster.ingress("a", annotated("much"));
    cluster.settings(&json!({"no-such-key": "1"}));
    assert!(cluster.announced().is_empty());
    let recovered = Happening::Recovered {
        ingress: ObjectName::new("shop", "a"),
    };
    assert_eq!(cluster.happened(&recovered), None);
    assert_eq!(
        cluster.happened(&Happening::Loaded).as_deref(),
        Some("Pod ours/pod RELOAD")
    );
}
