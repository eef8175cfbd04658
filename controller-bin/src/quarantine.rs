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
