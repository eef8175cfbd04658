//! Ingresses that NGINX refuses, kept apart so that they do no harm to others.
//!
//! What NGINX takes is known for certain only when it is asked: a regular expression, a raw snippet or a combination of
//! annotations may be wrong in a way that no rule foresees. The error names a line, the line belongs to an Ingress, and
//! that Ingress is taken out: at first its paths answer 503, so that no request for them reaches something else; if
//! NGINX refuses even that, they are left out. It is given another try when it changes, and now and then, since its
//! fault may have been the company it was in.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ingress_model::{
    Layout, ObjectName, Server, Snapshot,
    layout::{LocationSettings, Modifier},
};
use k8s_openapi::api::networking::v1::Ingress;
use tokio::time::Instant;

use crate::stored::Stored;

/// How long an Ingress that does not change waits for its next try; the time doubles with each try that fails.
const FIRST_WAIT: Duration = Duration::from_secs(60);

/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How far an Ingress is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Its paths answer 503.
    Denied,
    /// Its paths are not there.
    Removed,
}

/// The Ingresses that are taken out, and how far.
pub type Levels = BTreeMap<ObjectName, Level>;

/// The Ingresses that are taken out.
#[derive(Debug, Default)]
pub struct Quarantine {
    kept: Mutex<BTreeMap<ObjectName, Kept>>,
}

#[derive(Debug)]
struct Kept {
    /// The object that was refused; it gets another try when it changes.
    ingress: Arc<Ingress>,
    /// `None` while it is given another try.
    level: Option<Level>,
    reason: String,
    retry_at: Instant,
    wait: Duration,
}

impl Quarantine {
    /// Takes an Ingress out, or one that is out already further out. Answers how far; `None` when there is nothing more
    /// to be done to it.
    pub fn isolate(&self, ingress: &Arc<Ingress>, reason: &str) -> Option<Level> {
        let name = ingress.object_name()?;
        let now = Instant::now();
        let mut kept = self.kept();
        let (level, wait) = match kept.get(&name) {
            None => (Level::Denied, FIRST_WAIT),
            Some(Kept {
                level: None, wait, ..
            }) => (Level::Denied, (*wait * 2).min(LONGEST_WAIT)),
            Some(Kept {
                level: Some(Level::Denied),
                wait,
                ..
            }) => (Level::Removed, *wait),
            Some(Kept {
                level: Some(Level::Removed),
                ..
            }) => return None,
        };
        kept.insert(
            name,
            Kept {
                ingress: Arc::clone(ingress),
                level: Some(level),
                reason: reason.to_owned(),
                retry_at: now + wait,
                wait,
            },
        );
        Some(level)
    }

    /// Forgets Ingresses that have changed or are gone, and gives those another try whose time has come.
    pub fn review(&self, snapshot: &Snapshot) {
        let now = Instant::now();
        self.kept().retain(|name, kept| {
            let same = snapshot
                .ingresses
                .get(name)
                .is_some_and(|ingress| !kept.ingress.matters(ingress));
            if same && kept.retry_at <= now {
                kept.level = None;
            }
            same
        });
    }

    /// The Ingresses that are out now.
    #[must_use]
    pub fn levels(&self) -> Levels {
        let kept = self.kept();
        let out = kept
            .iter()
            .filter_map(|(name, kept)| Some((name.clone(), kept.level?)));
        out.collect()
    }

    /// Why an Ingress is out.
    #[must_use]
    pub fn reason(&self, name: &ObjectName) -> Option<String> {
        let kept = self.kept();
        let kept = kept.get(name).filter(|kept| kept.level.is_some())?;
        Some(kept.reason.clone())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<ObjectName, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The layout without what these Ingresses make of it.
#[must_use]
pub fn without(layout: &Layout, levels: &Levels) -> Layout {
    let mut layout = layout.clone();
    for (name, level) in levels {
        layout
            .stream_snippets
            .retain(|snippet| snippet.ingress != *name);
        for server in layout.servers.values_mut() {
            if is_touched(server, name) {
                take_out(Arc::make_mut(server), name, *level);
            }
        }
    }
    layout
}

fn is_touched(server: &Server, name: &ObjectName) -> bool {
    server
        .locations
        .iter()
        .any(|location| location.ingress.as_ref() == Some(name))
        || server
            .snippet
            .as_ref()
            .is_some_and(|snippet| snippet.ingress == *name)
        || server
            .client_auth
            .as_ref()
            .is_some_and(|auth| auth.ingress == *name)
}

fn take_out(server: &mut Server, name: &ObjectName, level: Level) {
    const WHY: &str = "nginx refuses the configuration of this Ingress";

    if server
        .snippet
        .as_ref()
        .is_some_and(|snippet| snippet.ingress == *name)
    {
        server.snippet = None;
    }
    if let Some(auth) = server
        .client_auth
        .as_mut()
        .filter(|auth| auth.ingress == *name)
    {
        // The host stays closed: who asked for client certificates would not want it open.
        auth.value.denied = Some(WHY.to_owned());
        auth.value.authority = None;
    }
    if level == Level::Removed {
        server
            .locations
            .retain(|location| location.ingress.as_ref() != Some(name));
        return;
    }
    let denied = Arc::new(LocationSettings {
        denied: Some(WHY.to_owned()),
        ..LocationSettings::default()
    });
    for location in &mut server.locations {
        if location.ingress.as_ref() == Some(name) {
            location.settings = Arc::clone(&denied);
            if location.modifier == Modifier::Regex {
                // The expression may be what is wrong.
                location.modifier = Modifier::Prefix;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ingress_model::{Options, merge};
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn ingress(name: &str, host: &str, paths: &[&str]) -> Arc<Ingress> {
        let paths: Vec<_> = paths
            .iter()
            .map(|path| {
                let backend = json!({"service": {"name": "app", "port": {"number": 80}}});
                json!({"path": path, "pathType": "Prefix", "backend": backend})
            })
            .collect();
        let ingress = json!({
            "metadata": {"namespace": "shop", "name": name, "uid": name},
            "spec": {"rules": [{"host": host, "http": {"paths": paths}}]},
        });
        Arc::new(serde_json::from_value(ingress).unwrap())
    }

    fn snapshot(ingresses: &[&Arc<Ingress>]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for ingress in ingresses {
            let name = ingress.object_name().unwrap();
            snapshot.ingresses.insert(name, Arc::clone(ingress));
        }
        snapshot
    }

    fn layout(ingresses: &[&Arc<Ingress>]) -> Layout {
        let options = Options {
            watch_ingress_without_class: true,
            ..Options::default()
        };
        merge(&snapshot(ingresses), &options, Timestamp::UNIX_EPOCH)
            .model
            .layout
    }

    /// Paths of a host, and whether they are denied.
    fn paths(layout: &Layout, host: &str) -> Vec<(String, bool)> {
        let server = layout
            .servers
            .iter()
            .find(|(name, _)| name.as_str() == host)
            .unwrap()
            .1;
        let locations = server.locations.iter();
        locations
            .map(|location| (location.path.clone(), location.settings.denied.is_some()))
            .collect()
    }

    fn name(name: &str) -> ObjectName {
        ObjectName::new("shop", name)
    }

    #[test]
    fn only_its_own_paths_are_taken_out() {
        let (good, bad) = (
            ingress("good", "a.test", &["/good"]),
            ingress("bad", "a.test", &["/bad"]),
        );
        let whole = layout(&[&good, &bad]);
        let denied = without(&whole, &Levels::from([(name("bad"), Level::Denied)]));
        let removed = without(&whole, &Levels::from([(name("bad"), Level::Removed)]));
        let of = |layout: &Layout, path: &str| -> Vec<bool> {
            let paths = paths(layout, "a.test").into_iter();
            paths
                .filter(|(at, _)| at.starts_with(path))
                .map(|(_, denied)| denied)
                .collect()
        };
        assert!(of(&whole, "/bad").iter().all(|denied| !denied));
        assert!(
            !of(&denied, "/bad").is_empty() && of(&denied, "/bad").iter().all(|denied| *denied)
        );
        assert!(of(&removed, "/bad").is_empty());
        for layout in [&denied, &removed] {
            assert_eq!(of(layout, "/good"), of(&whole, "/good"));
        }
        assert_eq!(without(&whole, &Levels::new()), whole);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_taken_out_step_by_step() {
        let quarantine = Quarantine::default();
        let bad = ingress("bad", "a.test", &["/"]);
        assert_eq!(quarantine.isolate(&bad, "why"), Some(Level::Denied));
        assert_eq!(quarantine.reason(&name("bad")).as_deref(), Some("why"));
        assert_eq!(quarantine.isolate(&bad, "why"), Some(Level::Removed));
        assert_eq!(quarantine.isolate(&bad, "why"), None);
        assert_eq!(
            quarantine.levels(),
            Levels::from([(name("bad"), Level::Removed)])
        );
    }

    #[tokio::test(start_paused = true)]
    async fn it_comes_back_when_it_changes_or_goes() {
        let quarantine = Quarantine::default();
        let bad = ingress("bad", "a.test", &["/"]);
        quarantine.isolate(&bad, "why");
        let mut touched = Ingress::clone(&bad);
        touched.metadata.resource_version = Some("2".into());
        quarantine.review(&snapshot(&[&Arc::new(touched)]));
        assert_eq!(
            quarantine.levels().len(),
            1,
            "nothing that rules see has changed"
        );
        quarantine.review(&snapshot(&[&ingress("bad", "b.test", &["/"])]));
        assert!(quarantine.levels().is_empty());
        quarantine.isolate(&bad, "why");
        quarantine.review(&Snapshot::default());
        assert!(quarantine.levels().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_given_another_try_less_and_less_often() {
        let quarantine = Quarantine::default();
        let bad = ingress("bad", "a.test", &["/"]);
        let present = snapshot(&[&bad]);
        for wait in [FIRST_WAIT, FIRST_WAIT * 2, FIRST_WAIT * 4] {
            assert_eq!(quarantine.isolate(&bad, "why"), Some(Level::Denied));
            tokio::time::advance(wait.saturating_sub(Duration::from_secs(1))).await;
            quarantine.review(&present);
            assert_eq!(quarantine.levels().len(), 1, "{wait:?}");
            tokio::time::advance(Duration::from_secs(1)).await;
            quarantine.review(&present);
            assert!(quarantine.levels().is_empty(), "{wait:?}");
        }
    }
}
