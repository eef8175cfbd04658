//! What NGINX refuses, kept apart so that it does no harm to others.
//!
//! What NGINX takes is known for certain only when it is asked: a regular expression, a raw snippet or a combination of
//! annotations may be wrong in a way that no rule foresees. The error names a line, the line belongs to an Ingress, and
//! that Ingress is taken out, no further than needed ([`Level`]). A key of the ConfigMap is left out, so that its default
//! holds. Both come back when they change.
//!
//! The fault may also have been the company that they were in, or a file that was not there. A key is given another try now
//! and then. An Ingress stays out until it has been tried by itself ([`Quarantine::due`]), which costs nobody else anything.
//! So does one that is only [held](Quarantine::hold), since somebody like it is at fault and all others should not wait for
//! who it is.

mod denial;
mod record;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ingress_model::{ObjectKind, ObjectName, ObjectRef, Options, Snapshot};
use k8s_openapi::api::{core::v1::ConfigMap, networking::v1::Ingress};
use tokio::time::Instant;

pub use self::{
    denial::deny,
    record::{IngressRecord, KeyRecord, LevelRecord, Record},
};
use crate::stored::Stored;

/// How long something that does not change waits for its next try; the time doubles with each try that fails.
const FIRST_WAIT: Duration = Duration::from_secs(60);

/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// What is said of an Ingress that is held.
const HELD: &str = "nginx refuses the configuration; this Ingress, which has a part that may be at fault, waits to be tried by itself";

/// Annotations that an Ingress can do without: nothing that they do protects anything.
const DISPENSABLE: &[&str] = &["ssl-ciphers", "stream-snippet"];

/// What becomes of an Ingress that NGINX refuses (`--on-invalid`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInvalid {
    /// Its version that was served last goes on being served. Where none is known, as after a start, its paths answer
    /// 503.
    #[default]
    LastGood,
    /// Its paths answer 503.
    Unavailable,
}

/// How far an Ingress is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The version of it that was served before is served.
    Earlier,
    /// It is served without this annotation (its name without prefix).
    Without(&'static str),
    /// Its paths answer 503.
    Denied,
    /// It is left out.
    Removed,
}

/// The Ingresses that are taken out, and how far.
pub type Levels = BTreeMap<ObjectName, Level>;

/// What is known of a refusal.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    /// What NGINX says.
    pub reason: String,
    /// The annotation that it is about, where that is known.
    pub annotation: Option<&'static str>,
    /// The version of the Ingress that NGINX runs with.
    pub served: Option<Arc<Ingress>>,
}

/// What is taken out.
#[derive(Debug, Default)]
pub struct Quarantine {
    policy: OnInvalid,
    kept: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ingresses: BTreeMap<ObjectName, Kept<Arc<Ingress>>>,
    /// Keys of the ConfigMap, with the values that were refused.
    keys: BTreeMap<String, Kept<String>>,
    /// The ConfigMap as it was reviewed last.
    config_map: Option<Arc<ConfigMap>>,
}

#[derive(Debug)]
struct Kept<T> {
    /// What was refused; it gets another try when it changes.
    refused: T,
    /// `None` while it is given another try.
    level: Option<Level>,
    /// The version that [`Level::Earlier`] stands for.
    served: Option<Arc<Ingress>>,
    reason: String,
    /// Whether nobody knows yet that it is at fault.
    held: bool,
    retry_at: Instant,
    wait: Duration,
}

impl Level {
    /// Levels are gone through in this order.
    fn rank(self) -> u8 {
        match self {
            Self::Earlier => 0,
            Self::Without(_) => 1,
            Self::Denied => 2,
            Self::Removed => 3,
        }
    }
}

impl Quarantine {
    /// A quarantine that nothing is in.
    #[must_use]
    pub fn new(policy: OnInvalid) -> Self {
        Self {
            policy,
            kept: Mutex::default(),
        }
    }

    /// Takes an Ingress out, or one that is out already further out. Answers how far; `None` when there is nothing more
    /// to be done to it.
    pub fn isolate(&self, ingress: &Arc<Ingress>, fault: &Fault, prefix: &str) -> Option<Level> {
        let name = ingress.object_name()?;
        let mut kept = self.kept();
        let before = kept.ingresses.get(&name);
        let served = fault
            .served
            .clone()
            .or_else(|| before.and_then(|before| before.served.clone()))
            .filter(|served| is_other_version(served, ingress));
        // How far one is held tells nothing of how far it has to be out.
        let now = before.filter(|before| !before.held);
        let now = now.and_then(|before| before.level);
        let annotation = |name: &str| annotation(ingress, prefix, name);
        let earlier =
            (self.policy == OnInvalid::LastGood && served.is_some()).then_some(Level::Earlier);
        let without = fault
            .annotation
            .filter(|name| DISPENSABLE.contains(name) && annotation(name).is_some())
            .map(Level::Without);
        // The paths of a canary are those of another Ingress, which goes on.
        let denied = (annotation("canary") != Some("true")).then_some(Level::Denied);
        let levels = [earlier, without, denied, Some(Level::Removed)];
        let further = |level: &Level| now.is_none_or(|now| now.rank() < level.rank());
        let level = levels.into_iter().flatten().find(further)?;
        let entry = Kept::new(Arc::clone(ingress), level, &fault.reason, served, before);
        kept.ingresses.insert(name, entry);
        Some(level)
    }

    /// Takes an Ingress out as far as can be: the rules cannot deal with it.
    pub fn remove(&self, ingress: &Arc<Ingress>, reason: &str) {
        if let Some(name) = ingress.object_name() {
            let mut kept = self.kept();
            let before = kept.ingresses.get(&name);
            let entry = Kept::new(Arc::clone(ingress), Level::Removed, reason, None, before);
            kept.ingresses.insert(name, entry);
        }
    }

    /// Takes a key of the ConfigMap out. Answers whether that makes a difference.
    pub fn leave_out(&self, key: &str, value: &str, reason: &str) -> bool {
        let mut kept = self.kept();
        let before = kept.keys.get(key);
        if before.is_some_and(|before| before.level.is_some() && before.refused == value) {
            return false;
        }
        let entry = Kept::new(value.to_owned(), Level::Removed, reason, None, before);
        kept.keys.insert(key.to_owned(), entry);
        true
    }

    /// Takes an Ingress out that may be at fault, until it has been tried by itself. Answers whether that makes a
    /// difference.
    pub fn hold(&self, ingress: &Arc<Ingress>, served: Option<Arc<Ingress>>, prefix: &str) -> bool {
        let name = ingress.object_name();
        let Some(name) = name.filter(|name| !self.is_out(name)) else {
            return false;
        };
        let fault = Fault {
            reason: HELD.to_owned(),
            annotation: None,
            served,
        };
        if self.isolate(ingress, &fault, prefix).is_none() {
            return false;
        }
        if let Some(kept) = self.kept().ingresses.get_mut(&name) {
            kept.held = true;
            kept.retry_at = Instant::now();
        }
        true
    }

    /// The Ingresses that are to be tried by themselves: those that are held, and those that have waited long enough or
    /// for whom something may have changed.
    #[must_use]
    pub fn due(&self) -> Vec<ObjectName> {
        let now = Instant::now();
        let kept = self.kept();
        let out = kept.ingresses.iter();
        let due = out.filter(|(_, kept)| kept.level.is_some() && kept.retry_at <= now);
        due.map(|(name, _)| name.clone()).collect()
    }

    /// Whether an Ingress is out although nobody knows that it is at fault.
    #[must_use]
    pub fn is_held(&self, name: &ObjectName) -> bool {
        let kept = self.kept();
        let kept = kept.ingresses.get(name);
        kept.is_some_and(|kept| kept.level.is_some() && kept.held)
    }

    /// Takes an Ingress in again that NGINX takes by itself. Should it be refused all the same, it waits longer next time.
    pub fn readmit(&self, name: &ObjectName) {
        if let Some(kept) = self.kept().ingresses.get_mut(name) {
            kept.level = None;
            kept.held = false;
        }
    }

    /// Says what NGINX has against an Ingress by itself. It is as far out as that needs. Answers whether anything of it is
    /// news.
    pub fn convict(&self, ingress: &Arc<Ingress>, fault: &Fault, prefix: &str) -> bool {
        let Some(name) = ingress.object_name() else {
            return false;
        };
        let known = |kept: &Kept<Arc<Ingress>>| (!kept.held).then(|| kept.reason.clone());
        let before = self.kept().ingresses.get(&name).and_then(known);
        self.readmit(&name);
        self.isolate(ingress, fault, prefix);
        before.as_ref() != Some(&fault.reason)
    }

    fn is_out(&self, name: &ObjectName) -> bool {
        let kept = self.kept();
        let kept = kept.ingresses.get(name);
        kept.is_some_and(|kept| kept.level.is_some())
    }

    /// Takes an Ingress in again: it was not at fault.
    pub fn release(&self, name: &ObjectName) {
        self.kept().ingresses.remove(name);
    }

    /// Forgets what has changed or is gone, and gives another try to keys that have waited long enough. Ingresses are
    /// [due](Self::due) when the ConfigMap has changed, since what it allows, or says itself, may have been the fault, or
    /// an object that they name.
    pub fn review(
        &self,
        snapshot: &Snapshot,
        config_map: Option<&ObjectName>,
        changed: &[ObjectRef],
    ) {
        let now = Instant::now();
        let config_map = config_map.and_then(|name| snapshot.config_maps.get(name));
        let mut kept = self.kept();
        let known = kept.config_map.as_ref();
        let is_other = config_map.map(|it| &it.data) != known.map(|it| &it.data);
        if is_other {
            kept.config_map = config_map.cloned();
        }
        kept.ingresses.retain(|name, kept| {
            if is_other || changed.iter().any(|object| names(&kept.refused, object)) {
                kept.retry_at = now;
            }
            let there = snapshot.ingresses.get(name);
            there.is_some_and(|ingress| !kept.refused.matters(ingress))
        });
        kept.keys.retain(|key, kept| {
            kept.try_again(now);
            value(config_map, key) == Some(&kept.refused)
        });
    }

    /// Puts into place of what is out what stands for it. Paths that are [denied](Level::Denied) are left to
    /// [`deny`].
    pub fn substitute(&self, snapshot: &mut Snapshot, options: &Options) {
        let kept = self.kept();
        for (name, kept) in &kept.ingresses {
            match (kept.level, &kept.served) {
                (Some(Level::Earlier), Some(served)) => {
                    snapshot.ingresses.insert(name.clone(), Arc::clone(served));
                }
                (Some(Level::Without(annotation)), _) => {
                    let mut ingress = Ingress::clone(&kept.refused);
                    let key = format!("{}/{annotation}", options.annotations_prefix);
                    if let Some(annotations) = &mut ingress.metadata.annotations {
                        annotations.remove(&key);
                    }
                    snapshot.ingresses.insert(name.clone(), ingress);
                }
                (Some(Level::Removed), _) => {
                    snapshot.ingresses.remove(name);
                }
                (Some(Level::Earlier | Level::Denied) | None, _) => {}
            }
        }
        let keys = kept.keys.iter().filter(|(_, kept)| kept.level.is_some());
        let keys: Vec<_> = keys.map(|(key, _)| key.as_str()).collect();
        without_keys(snapshot, options, &keys);
    }

    /// The Ingresses that are out now.
    #[must_use]
    pub fn levels(&self) -> Levels {
        let kept = self.kept();
        let out = kept
            .ingresses
            .iter()
            .filter_map(|(name, kept)| Some((name.clone(), kept.level?)));
        out.collect()
    }

    /// The keys of the ConfigMap that are out now, and why.
    #[must_use]
    pub fn keys(&self) -> Vec<(String, String)> {
        let kept = self.kept();
        let out = kept.keys.iter().filter(|(_, kept)| kept.level.is_some());
        out.map(|(key, kept)| (key.clone(), kept.reason.clone()))
            .collect()
    }

    /// Why an Ingress is out.
    #[must_use]
    pub fn reason(&self, name: &ObjectName) -> Option<String> {
        let kept = self.kept();
        let kept = kept.ingresses.get(name)?;
        kept.level.map(|_| kept.reason.clone())
    }

    fn kept(&self) -> MutexGuard<'_, State> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Kept<T> {
    fn new(
        refused: T,
        level: Level,
        reason: &str,
        served: Option<Arc<Ingress>>,
        before: Option<&Self>,
    ) -> Self {
        let wait = match before {
            None => FIRST_WAIT,
            // It was given another try, in vain.
            Some(before) if before.level.is_none() => (before.wait * 2).min(LONGEST_WAIT),
            Some(before) => before.wait,
        };
        Self {
            refused,
            level: Some(level),
            served,
            reason: reason.to_owned(),
            held: false,
            retry_at: Instant::now() + wait,
            wait,
        }
    }

    fn try_again(&mut self, now: Instant) {
        if self.retry_at <= now {
            self.level = None;
        }
    }
}

/// Takes keys out of the ConfigMap.
pub(crate) fn without_keys(snapshot: &mut Snapshot, options: &Options, keys: &[&str]) {
    let Some(name) = options.config_map.as_ref().filter(|_| !keys.is_empty()) else {
        return;
    };
    let Some(config_map) = snapshot.config_maps.get(name) else {
        return;
    };
    let mut config_map = ConfigMap::clone(config_map);
    if let Some(data) = &mut config_map.data {
        data.retain(|key, _| !keys.contains(&key.as_str()));
    }
    snapshot.config_maps.insert(name.clone(), config_map);
}

fn value<'a>(config_map: Option<&'a Arc<ConfigMap>>, key: &str) -> Option<&'a String> {
    config_map?.data.as_ref()?.get(key)
}

/// Whether an Ingress names an object, be it among other things, of which it may get what NGINX is to read.
fn names(ingress: &Ingress, object: &ObjectRef) -> bool {
    if !matches!(object.kind, ObjectKind::ConfigMap | ObjectKind::Secret) {
        return false;
    }
    let name = object.name.name();
    let annotations = ingress.metadata.annotations.iter().flatten();
    let tls = ingress.spec.iter().flat_map(|spec| &spec.tls).flatten();
    let mut secrets = tls.filter_map(|tls| tls.secret_name.as_deref());
    secrets.any(|secret| secret == name)
        || annotations
            .into_iter()
            .any(|(_, value)| value.contains(name))
}

/// Whether it is the same Ingress with other content. One that was deleted and made anew is another Ingress.
fn is_other_version(served: &Ingress, refused: &Ingress) -> bool {
    served.metadata.uid == refused.metadata.uid && served.matters(refused)
}

fn annotation<'a>(ingress: &'a Ingress, prefix: &str, name: &str) -> Option<&'a str> {
    let annotations = ingress.metadata.annotations.as_ref()?;
    let key = format!("{prefix}/{name}");
    annotations.get(&key).map(String::as_str)
}

#[cfg(test)]
mod tests;
