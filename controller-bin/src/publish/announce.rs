//! What is said about objects, by Events: that which is new.
//!
//! Nothing is said about Ingresses of other classes. `--disable-sync-events` leaves what is said about the controller's
//! own pod.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ingress_model::{
    Diagnostic, ObjectKind, ObjectName, ObjectRef, Outcome, Reason, Severity, Snapshot,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api, Client, Resource};
use tokio::{sync::watch, time::timeout};
use tracing::debug;

use super::{
    events::{About, Notice, Recorder, Weight},
    feed::{Happening, Happenings, Outcomes},
};
use crate::{args::Args, store::Store, stored::Stored};

/// How long it may take to learn the UID of our pod.
const LOOK_UP: Duration = Duration::from_secs(5);

/// An Ingress was added or changed. Named as in ingress-nginx, like those below.
const SYNC: &str = "Sync";
/// One of our ConfigMaps is there.
const CREATE: &str = "CREATE";
/// One of our ConfigMaps has changed.
const UPDATE: &str = "UPDATE";
/// NGINX was reloaded, or was not.
const RELOAD: &str = "RELOAD";
/// NGINX refuses what an Ingress makes of its configuration.
const ISOLATED: &str = "Isolated";
/// It does not any more.
const RECOVERED: &str = "Recovered";

/// Finds out what is new.
#[derive(Debug)]
pub struct Announcer {
    /// Whether anything is said about objects other than our pod.
    about_objects: bool,
    pod: Option<About>,
    /// The ConfigMaps that flags name.
    config_maps: Vec<ObjectName>,
    /// The same as they were last.
    seen: BTreeMap<ObjectName, Arc<ConfigMap>>,
    before: Arc<Outcome>,
}

impl Announcer {
    /// As the flags say, for a controller that runs in this pod.
    #[must_use]
    pub fn new(args: &Args, pod: Option<ObjectName>) -> Self {
        let rules = &args.rules;
        let config_maps = [
            &rules.configmap,
            &rules.tcp_services_configmap,
            &rules.udp_services_configmap,
        ];
        Self {
            about_objects: !args.status.disable_sync_events,
            pod: pod.map(|name| About {
                object: ObjectRef::new(ObjectKind::Pod, name),
                uid: None,
            }),
            config_maps: config_maps.into_iter().flatten().cloned().collect(),
            seen: BTreeMap::new(),
            before: Arc::default(),
        }
    }

    /// What is new in an outcome, compared with the one before. The snapshot is as new as the outcome, or newer.
    pub fn outcome(&mut self, outcome: &Arc<Outcome>, snapshot: &Snapshot) -> Vec<Notice> {
        let before = std::mem::replace(&mut self.before, Arc::clone(outcome));
        if !self.about_objects {
            return Vec::new();
        }
        let mut notices = new_diagnostics(&before, outcome, snapshot);
        notices.extend(self.config_maps(snapshot));
        notices.extend(new_ingresses(&before, outcome, snapshot));
        notices
    }

    /// What is to be said of something that happened.
    #[must_use]
    pub fn happening(&self, happening: &Happening, snapshot: &Snapshot) -> Option<Notice> {
        let about_ingress = |ingress: &ObjectName| {
            let object = ObjectRef::new(ObjectKind::Ingress, ingress.clone());
            about(object, snapshot).filter(|_| self.about_objects)
        };
        let (about, weight, reason, message) = match happening {
            Happening::Loaded => (
                self.pod.clone()?,
                Weight::Normal,
                RELOAD,
                "nginx runs with its new configuration".to_owned(),
            ),
            Happening::LoadFailed { error } => {
                (self.pod.clone()?, Weight::Warning, RELOAD, error.clone())
            }
            Happening::Isolated { ingress, reason } => (
                about_ingress(ingress)?,
                Weight::Warning,
                ISOLATED,
                format!("nginx refuses what this makes of its configuration: {reason}"),
            ),
            Happening::Recovered { ingress } => (
                about_ingress(ingress)?,
                Weight::Normal,
                RECOVERED,
                "nginx takes what this makes of its configuration again".to_owned(),
            ),
        };
        Some(Notice {
            about,
            weight,
            reason,
            message,
        })
    }

    /// Learns the UID of our pod, if it is not known.
    async fn look_up_pod(&mut self, client: &Client) {
        let Some(About {
            object,
            uid: uid @ None,
        }) = &mut self.pod
        else {
            return;
        };
        let pods = Api::<Pod>::namespaced(client.clone(), object.name.namespace());
        match timeout(LOOK_UP, pods.get(object.name.name())).await {
            Ok(Ok(pod)) => *uid = pod.metadata.uid,
            Ok(Err(error)) => debug!(%object, %error, "cannot look up our pod"),
            Err(_) => debug!(%object, "cannot look up our pod in time"),
        }
    }

    fn config_maps(&mut self, snapshot: &Snapshot) -> Vec<Notice> {
        let mut notices = Vec::new();
        for name in &self.config_maps {
            let Some(now) = snapshot.config_maps.get(name) else {
                self.seen.remove(name);
                continue;
            };
            let reason = match self.seen.insert(name.clone(), Arc::clone(now)) {
                None => CREATE,
                Some(seen) if seen.matters(now) => UPDATE,
                Some(_) => continue,
            };
            let object = ObjectRef::new(ObjectKind::ConfigMap, name.clone());
            notices.push(Notice {
                message: object.to_string(),
                about: About {
                    object,
                    uid: now.metadata.uid.clone(),
                },
                weight: Weight::Normal,
                reason,
            });
        }
        notices
    }
}

/// Announces what comes until the controller ends.
pub(super) async fn run(
    mut announcer: Announcer,
    recorder: Recorder,
    store: Arc<Store>,
    mut outcomes: Outcomes,
    mut happenings: Happenings,
    mut ended: watch::Receiver<bool>,
) {
    let announce = async {
        loop {
            tokio::select! {
                Ok(()) = outcomes.changed() => {
                    let outcome = outcomes.borrow_and_update().clone();
                    let notices = outcome.map(|outcome| announcer.outcome(&outcome, &store.snapshot()));
                    notices.into_iter().flatten().for_each(|notice| recorder.report(notice));
                }
                Some(happening) = happenings.recv() => {
                    announcer.look_up_pod(recorder.client()).await;
                    let notice = announcer.happening(&happening, &store.snapshot());
                    if let Some(notice) = notice {
                        recorder.report(notice);
                    }
                }
                else => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        () = announce => {}
        () = recorder.run() => {}
        // Without a sender the end has come as well.
        _ = ended.wait_for(|ended| *ended) => {}
    }
}

/// Diagnostics that were not there before.
fn new_diagnostics(before: &Outcome, outcome: &Outcome, snapshot: &Snapshot) -> Vec<Notice> {
    // Both are sorted.
    let new = outcome
        .diagnostics
        .iter()
        .filter(|diagnostic| before.diagnostics.binary_search(diagnostic).is_err());
    new.filter(|diagnostic| is_ours(diagnostic))
        .filter_map(|diagnostic| of_diagnostic(diagnostic, snapshot))
        .collect()
}

/// Ingresses that were not served before, or in another version.
fn new_ingresses(before: &Outcome, outcome: &Outcome, snapshot: &Snapshot) -> Vec<Notice> {
    if before.last_good == outcome.last_good {
        return Vec::new();
    }
    let served = snapshot.ingresses.iter().filter_map(|(name, _)| {
        let ingress = outcome.last_good.get(name)?;
        let is_new = match before.last_good.get(name) {
            None => true,
            Some(before) => !Arc::ptr_eq(before, ingress) && before.matters(ingress),
        };
        is_new.then(|| Notice {
            about: About {
                object: ObjectRef::new(ObjectKind::Ingress, name.clone()),
                uid: ingress.metadata.uid.clone(),
            },
            weight: Weight::Normal,
            reason: SYNC,
            message: "taken into the configuration".to_owned(),
        })
    });
    served.collect()
}

/// Whether a diagnostic is about something that this controller is to look after.
fn is_ours(diagnostic: &Diagnostic) -> bool {
    !matches!(
        diagnostic.reason,
        Reason::ForeignClass | Reason::ForeignNamespace | Reason::MissingClass
    )
}

fn of_diagnostic(diagnostic: &Diagnostic, snapshot: &Snapshot) -> Option<Notice> {
    let message = &diagnostic.message;
    Some(Notice {
        about: about(diagnostic.object.clone(), snapshot)?,
        weight: match diagnostic.severity {
            Severity::Info => Weight::Normal,
            Severity::Warning | Severity::Error => Weight::Warning,
        },
        reason: diagnostic.reason.as_str(),
        message: match &diagnostic.key {
            Some(key) => format!("{key}: {message}"),
            None => message.clone(),
        },
    })
}

/// An object with its UID; `None` if it is not there, since nobody looks for Events about it then.
fn about(object: ObjectRef, snapshot: &Snapshot) -> Option<About> {
    let name = &object.name;
    let uid = match object.kind {
        ObjectKind::Ingress => uid(snapshot.ingresses.get(name)?),
        ObjectKind::IngressClass => uid(snapshot.ingress_classes.get(name)?),
        ObjectKind::Service => uid(snapshot.services.get(name)?),
        ObjectKind::EndpointSlice => uid(snapshot.endpoint_slices.get(name)?),
        ObjectKind::Secret => uid(snapshot.secrets.get(name)?),
        ObjectKind::ConfigMap => uid(snapshot.config_maps.get(name)?),
        ObjectKind::Namespace => uid(snapshot.namespaces.get(name)?),
        ObjectKind::Node => uid(snapshot.nodes.get(name)?),
        ObjectKind::Pod => return None,
    };
    Some(About { object, uid })
}

fn uid<K: Resource>(object: &Arc<K>) -> Option<String> {
    object.meta().uid.clone()
}

#[cfg(test)]
mod tests {
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
            let value =
                json!({"metadata": {"namespace": "ours", "name": "settings"}, "data": data});
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
        for (happening, want) in [
            (&Happening::Loaded, Some("Pod ours/pod RELOAD")),
            (&failed, Some("Pod ours/pod RELOAD")),
            (&isolated("a"), Some("Ingress shop/a Isolated")),
            (&isolated("gone"), None),
            (&recovered, Some("Ingress shop/a Recovered")),
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
}
