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
/// NGINX runs without something that an Ingress asks for.
const NOT_RENDERED: &str = "NotRendered";

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
            Happening::WentWithout {
                ingress,
                what,
                reason,
            } => (
                about_ingress(ingress)?,
                Weight::Warning,
                NOT_RENDERED,
                format!("{what}: {reason}"),
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
mod tests;
