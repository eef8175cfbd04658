//! From the objects that there are to what NGINX should do, without what it is known to refuse.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use ingress_model::{
    Diagnostic, Layout, Merger, ObjectKind, ObjectName, ObjectRef, Options, Outcome, Severity,
    Snapshot, diagnostic::Reason, snapshot::LastGood,
};
use jiff::Timestamp;
use k8s_openapi::api::networking::v1::Ingress;
use tracing::{error, info, warn};

use crate::{
    culprit::{self, Suspect},
    dataplane::DataPlane,
    guard::{Panicked, guard},
    issuers::Issuers,
    observe::Observer,
    quarantine::{self, Levels, Quarantine},
    store::{Change, Store},
    stream_ports::StreamPorts,
};

/// Why an Ingress is left out over which the merge panics.
const PANIC: &str =
    "a fault in the controller broke off what it does with this Ingress; its log says more";

/// Merges objects, and tells the data plane what is wanted. Who reacts to changes and who reacts to refusals share it.
#[derive(Debug)]
pub struct Planner {
    store: Arc<Store>,
    plane: Arc<DataPlane>,
    quarantine: Arc<Quarantine>,
    observer: Arc<dyn Observer>,
    /// Who completes certificates, if flags ask for it.
    issuers: Option<Arc<Issuers>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    merger: Merger,
    options: Options,
    last_good: LastGood,
    ports: StreamPorts,
    said: Said,
}

/// What objects ask for, and which these are.
struct Planned {
    outcome: Arc<Outcome>,
    changes: Vec<Change>,
    /// The objects as they are stored.
    stored: Snapshot,
    /// The same, without what is out.
    snapshot: Snapshot,
}

/// An Ingress over which the merge panics.
type Culprit = (ObjectName, Arc<Ingress>);

/// What has been said of objects and still holds.
#[derive(Debug, Default)]
struct Said(BTreeSet<Diagnostic>);

/// Configurations that nobody wants, to find out what is wrong with the one that is wanted.
#[derive(Debug)]
pub struct Trial {
    /// The objects as they are stored.
    stored: Snapshot,
    /// The same, without what is out already.
    snapshot: Snapshot,
    options: Options,
    merger: Merger,
}

impl Planner {
    /// A planner that has planned nothing yet.
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        plane: Arc<DataPlane>,
        quarantine: Arc<Quarantine>,
        observer: Arc<dyn Observer>,
        options: Options,
    ) -> Self {
        Self {
            store,
            plane,
            quarantine,
            observer,
            issuers: None,
            state: Mutex::new(State {
                merger: Merger::default(),
                options,
                last_good: LastGood::default(),
                ports: StreamPorts::default(),
                said: Said::default(),
            }),
        }
    }

    /// The same, which has certificates completed.
    #[must_use]
    pub(crate) fn with_issuers(self, issuers: Option<Arc<Issuers>>) -> Self {
        Self { issuers, ..self }
    }

    /// Has the data plane want what the objects ask for now. Answers what that is, and which objects have changed since
    /// the last time.
    ///
    /// # Errors
    ///
    /// When the merge panics. What was wanted before is wanted still.
    pub fn plan(&self) -> Result<(Arc<Outcome>, Vec<Change>), Panicked> {
        let planned = self.plan_locked(&mut self.state())?;
        Ok((planned.outcome, planned.changes))
    }

    /// [`Self::plan`], and configurations of the very same objects to try out: objects that have changed since are
    /// another matter, and nobody is to be blamed for a version that was not tried.
    ///
    /// # Errors
    ///
    /// As [`Self::plan`].
    pub fn plan_with_trial(&self) -> Result<(Arc<Outcome>, Trial), Panicked> {
        let mut state = self.state();
        let planned = self.plan_locked(&mut state)?;
        let trial = Trial {
            stored: planned.stored,
            snapshot: planned.snapshot,
            options: state.options.clone(),
            merger: Merger::default(),
        };
        Ok((planned.outcome, trial))
    }

    /// Plans behind the lock under which objects are taken, so that newer ones are never followed by older ones.
    fn plan_locked(&self, state: &mut State) -> Result<Planned, Panicked> {
        let began = Instant::now();
        let (stored, changes) = self.store.take();
        let config_map = state.options.config_map.as_ref();
        let changed: Vec<_> = changes.iter().map(|change| change.object.clone()).collect();
        self.quarantine.review(&stored, config_map, &changed);
        let about_keys = self.faults_of_keys(&state.options);
        let mut snapshot = stored.clone();
        if let Some(issuers) = &self.issuers {
            issuers.complete(&mut snapshot);
        }
        self.quarantine.substitute(&mut snapshot, &state.options);
        snapshot.last_good = state.last_good.clone();
        state.options.ingress_classes_readable = !self.store.is_refused(ObjectKind::IngressClass);
        let running = self.plane.loaded();
        let running = running.as_ref().map(|files| &files.outcome.model.layout);
        StreamPorts::release(&mut state.options, running);
        let merged = guard("the merge", || {
            let now = Timestamp::now();
            let outcome = state.merger.merge(&snapshot, &state.options, now);
            let layout = &outcome.model.layout;
            if state.ports.review(layout, running, &mut state.options) {
                return state.merger.merge(&snapshot, &state.options, now);
            }
            outcome
        });
        let mut outcome = match merged {
            Ok(outcome) => outcome,
            Err(panicked) => {
                state.merger = Merger::default();
                let merge = |snapshot: &Snapshot| {
                    let merge =
                        || Merger::default().merge(snapshot, &state.options, Timestamp::now());
                    guard("the merge", merge)
                };
                let (outcome, culprits) =
                    merge_without_culprits(&mut snapshot, merge).ok_or(panicked)?;
                for (name, ingress) in &culprits {
                    error!(ingress = %name, "a fault in the controller broke off what it does with an Ingress; it is left out");
                    self.quarantine.remove(ingress, PANIC);
                    self.observer.isolated(name, PANIC);
                }
                outcome
            }
        };
        if !about_keys.is_empty() {
            outcome.diagnostics.extend(about_keys);
            outcome.diagnostics.sort();
        }
        let outcome = Arc::new(outcome);
        state.last_good = outcome.last_good.clone();
        self.observer.merged(&outcome, began.elapsed());
        state.said.say(&outcome.diagnostics);
        self.plane.want(Arc::clone(&outcome));
        Ok(Planned {
            outcome,
            changes,
            stored,
            snapshot,
        })
    }

    /// Whether Ingresses that are out are to be tried by themselves.
    #[must_use]
    pub fn has_due(&self) -> bool {
        !self.quarantine.due().is_empty()
    }

    /// What the ConfigMap says, without what is out.
    #[must_use]
    pub fn config(&self) -> BTreeMap<String, String> {
        let options = &self.state().options;
        let mut snapshot = self.store.snapshot();
        self.quarantine.substitute(&mut snapshot, options);
        config(&snapshot, options)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults_of_keys(&self, options: &Options) -> Vec<Diagnostic> {
        let Some(config_map) = &options.config_map else {
            return Vec::new();
        };
        let keys = self.quarantine.keys().into_iter();
        keys.map(|(key, reason)| {
            Diagnostic::new(
                ObjectRef::new(ObjectKind::ConfigMap, config_map.clone()),
                Severity::Error,
                Reason::InvalidConfigKey,
                format!("nginx refuses it, its default holds: {reason}"),
            )
            .with_key(key)
        })
        .collect()
    }
}

impl Trial {
    /// The objects, without what is out.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// An Ingress as it is stored, be it out or not.
    #[must_use]
    pub fn stored(&self, name: &ObjectName) -> Option<&Arc<Ingress>> {
        self.stored.ingresses.get(name)
    }

    /// What the ConfigMap says.
    #[must_use]
    pub fn config(&self) -> BTreeMap<String, String> {
        config(&self.snapshot, &self.options)
    }

    /// What files would show if, of all Ingresses, there were only some suspects, and without the keys of others.
    pub(crate) fn only(
        &mut self,
        suspects: &[Suspect],
        all: &[Suspect],
    ) -> Result<Layout, Panicked> {
        let mut snapshot = self.snapshot.clone();
        let named = suspects.iter().filter_map(|suspect| match suspect {
            Suspect::Ingress(name) => Some(name),
            Suspect::Key(_) => None,
        });
        snapshot.ingresses = named
            .filter_map(|name| Some((name.clone(), Arc::clone(self.snapshot.ingresses.get(name)?))))
            .collect();
        let others = all.iter().filter(|suspect| !suspects.contains(suspect));
        let keys: Vec<_> = others
            .filter(|suspect| matches!(suspect, Suspect::Key(_)))
            .cloned()
            .collect();
        self.layout(snapshot, &keys)
    }

    /// What files would show if there were only the hosts of some Ingresses, as these are stored, with all that others
    /// who are not out have there, and some others.
    pub(crate) fn fragment(
        &mut self,
        suspects: &[ObjectName],
        others: &[ObjectName],
        out: &Levels,
    ) -> Result<Layout, Panicked> {
        let stored = &self.stored.ingresses;
        let objects = suspects.iter().filter_map(|name| stored.get(name));
        let about: BTreeSet<_> = objects.flat_map(|ingress| hosts(ingress)).collect();
        let is_in = |name: &ObjectName, ingress: &Ingress| {
            let is_neighbour = || hosts(ingress).any(|host| about.contains(&host));
            suspects.contains(name)
                || others.contains(name)
                || !out.contains_key(name) && is_neighbour()
        };
        let within = stored.iter().filter(|(name, it)| is_in(name, it));
        let within: Vec<_> = within
            .map(|(name, it)| (name.clone(), Arc::clone(it)))
            .collect();
        let mut snapshot = self.snapshot.clone();
        snapshot.ingresses = within.into_iter().collect();
        self.layout(snapshot, &[])
    }

    /// What files would show without some suspects.
    pub(crate) fn without(&mut self, suspects: &[Suspect]) -> Result<Layout, Panicked> {
        self.layout(self.snapshot.clone(), suspects)
    }

    /// What files would show of these objects without some suspects.
    fn layout(&mut self, mut snapshot: Snapshot, suspects: &[Suspect]) -> Result<Layout, Panicked> {
        let mut keys = Vec::new();
        for suspect in suspects {
            match suspect {
                Suspect::Ingress(name) => {
                    snapshot.ingresses.remove(name);
                }
                Suspect::Key(key) => keys.push(key.as_str()),
            }
        }
        quarantine::without_keys(&mut snapshot, &self.options, &keys);
        let (merger, options) = (&mut self.merger, &self.options);
        let merged = guard("the merge", || {
            merger.merge(&snapshot, options, Timestamp::now())
        })?;
        Ok(merged.model.layout)
    }
}

/// Merges objects without the Ingresses over which the merge panics, and takes these out. `None` when it panics over
/// something else.
fn merge_without_culprits<T>(
    snapshot: &mut Snapshot,
    merge: impl Fn(&Snapshot) -> Result<T, Panicked>,
) -> Option<(T, Vec<Culprit>)> {
    let without = |snapshot: &Snapshot, names: &[ObjectName]| {
        let mut snapshot = snapshot.clone();
        for name in names {
            snapshot.ingresses.remove(name);
        }
        snapshot
    };
    let mut culprits = Vec::new();
    loop {
        if let Ok(merged) = merge(snapshot) {
            return Some((merged, culprits));
        }
        let names = snapshot.ingresses.iter().map(|(name, _)| name.clone());
        let suspects = names.collect();
        let name = culprit::find_now(suspects, |out| merge(&without(snapshot, out)).is_ok())?;
        let ingress = snapshot.ingresses.get(&name).cloned()?;
        snapshot.ingresses.remove(&name);
        culprits.push((name, ingress));
    }
}

/// The hosts of an Ingress; `None` stands for all others.
fn hosts(ingress: &Ingress) -> impl Iterator<Item = Option<&str>> {
    let spec = ingress.spec.as_ref();
    let rules = spec
        .and_then(|spec| spec.rules.as_deref())
        .unwrap_or_default();
    let default = spec.and_then(|spec| spec.default_backend.as_ref());
    let named = rules.iter().map(|rule| rule.host.as_deref());
    named.chain(default.map(|_| None))
}

/// What a ConfigMap among these objects says.
fn config(snapshot: &Snapshot, options: &Options) -> BTreeMap<String, String> {
    let name = options.config_map.as_ref();
    let config_map = name.and_then(|name| snapshot.config_maps.get(name));
    let data = config_map.and_then(|config_map| config_map.data.clone());
    data.unwrap_or_default()
}

impl Said {
    /// Says what was not said before, and forgets what does not hold any more.
    fn say(&mut self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics
            .iter()
            .filter(|diagnostic| !self.0.contains(diagnostic))
        {
            let (object, key, reason) = (&diagnostic.object, &diagnostic.key, diagnostic.reason);
            let message = &diagnostic.message;
            match diagnostic.severity {
                Severity::Info => info!(%object, key, %reason, "{message}"),
                Severity::Warning => warn!(%object, key, %reason, "{message}"),
                Severity::Error => error!(%object, key, %reason, "{message}"),
            }
        }
        self.0 = diagnostics.iter().cloned().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ingresses_over_which_the_merge_panics_are_left_out() {
        let mut snapshot = Snapshot::default();
        for number in 0..40 {
            let name = ObjectName::new("shop", &number.to_string());
            snapshot.ingresses.insert(name, Ingress::default());
        }
        let bad = ["7", "23"].map(|name| ObjectName::new("shop", name));
        let merge = |snapshot: &Snapshot| {
            guard("the merge", || {
                let panics = bad
                    .iter()
                    .any(|name| snapshot.ingresses.get(name).is_some());
                assert!(!panics, "on purpose");
                snapshot.ingresses.len()
            })
        };
        let (merged, culprits) = merge_without_culprits(&mut snapshot, merge).unwrap();
        assert_eq!(merged, 38);
        let mut names: Vec<_> = culprits.into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert_eq!(names, [bad[1].clone(), bad[0].clone()]);

        let merge = |_: &Snapshot| guard("the merge", || panic!("over something else"));
        assert!(merge_without_culprits::<()>(&mut snapshot, merge).is_none());
    }

    #[test]
    fn what_holds_is_said_once() {
        let object = ObjectRef::new(ObjectKind::Ingress, ObjectName::new("a", "b"));
        let about = |message: &str| {
            Diagnostic::new(
                object.clone(),
                Severity::Warning,
                Reason::InvalidPath,
                message,
            )
        };
        let mut said = Said::default();
        said.say(&[about("x"), about("y")]);
        said.say(&[about("y")]);
        assert_eq!(said.0, BTreeSet::from([about("y")]));
    }
}
