//! The objects as they are now, whoever brings them.
//!
//! A source [`Store::apply`]s, [`Store::delete`]s and [`Store::reset`]s objects, or makes several of these changes at once
//! ([`Store::batch`]); each of these tells whether anything changed that the rules can see. Nothing is to be synced before
//! every list that was announced has come once, since a configuration made from half of the cluster would take the other
//! half out of service.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ingress_model::{ObjectKind, ObjectName, ObjectRef, Snapshot};
use tokio::sync::watch;

use crate::stored::Stored;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It is new.
    Added,
    /// It is different.
    Changed,
    /// It is gone.
    Deleted,
}

/// A change that the rules can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Of what.
    pub object: ObjectRef,
    /// What happened to it.
    pub verb: Verb,
}

/// Which objects of a kind a list covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// Only those of this namespace.
    pub namespace: Option<String>,
    /// Only the one of this name.
    pub name: Option<String>,
}

/// The objects as they are now.
#[derive(Debug)]
pub struct Store {
    state: Mutex<State>,
    ready: watch::Sender<bool>,
    changed: watch::Sender<()>,
}

/// Changes that nobody sees before all of them are made.
#[derive(Debug)]
pub struct Batch<'a> {
    state: MutexGuard<'a, State>,
    changes: Vec<Change>,
}

#[derive(Debug, Default)]
struct State {
    snapshot: Snapshot,
    /// Lists that have not come yet.
    awaited: BTreeSet<String>,
    /// Kinds that the API server does not let us list.
    refused: BTreeSet<ObjectKind>,
    /// Changes since the last [`Store::take`], the last one of each object.
    changes: BTreeMap<ObjectRef, Verb>,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.object, self.verb)
    }
}

impl Scope {
    /// Everything.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The objects of a namespace.
    #[must_use]
    pub fn namespace(namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            name: None,
        }
    }

    /// One object.
    #[must_use]
    pub fn object(name: &ObjectName) -> Self {
        Self {
            namespace: Some(name.namespace().to_owned()),
            name: Some(name.name().to_owned()),
        }
    }

    /// Whether the list covers an object of that name.
    #[must_use]
    pub fn covers(&self, name: &ObjectName) -> bool {
        let is =
            |want: &Option<String>, have: &str| want.as_deref().is_none_or(|want| want == have);
        is(&self.namespace, name.namespace()) && is(&self.name, name.name())
    }
}

impl Store {
    /// A store without objects that waits for these lists, named for people.
    #[must_use]
    pub fn awaiting(lists: impl IntoIterator<Item = String>) -> Self {
        let awaited: BTreeSet<_> = lists.into_iter().collect();
        Self {
            ready: watch::Sender::new(awaited.is_empty()),
            changed: watch::Sender::new(()),
            state: Mutex::new(State {
                awaited,
                ..State::default()
            }),
        }
    }

    /// Adds or replaces an object.
    pub fn apply<K: Stored>(&self, object: K) -> Option<Change> {
        self.batch(|batch| batch.apply(object)).pop()
    }

    /// Takes an object away.
    pub fn delete<K: Stored>(&self, name: &ObjectName) -> Option<Change> {
        self.batch(|batch| batch.delete::<K>(name)).pop()
    }

    /// Replaces all objects of a scope.
    pub fn reset<K: Stored>(&self, scope: &Scope, objects: Vec<K>) -> Vec<Change> {
        self.batch(|batch| {
            let listed: BTreeSet<_> = objects.iter().filter_map(Stored::object_name).collect();
            let gone: Vec<_> = K::of(&batch.state.snapshot)
                .iter()
                .map(|(name, _)| name.clone())
                .filter(|name| scope.covers(name) && !listed.contains(name))
                .collect();
            for name in &gone {
                batch.delete::<K>(name);
            }
            for object in objects {
                batch.apply(object);
            }
        })
    }

    /// Makes several changes as one: no snapshot has some of them only, and they are told once. Answers those that the
    /// rules can see.
    ///
    /// The store is locked meanwhile; `edit` must not use it but by the batch.
    pub fn batch(&self, edit: impl FnOnce(&mut Batch<'_>)) -> Vec<Change> {
        let mut batch = Batch {
            state: self.lock(),
            changes: Vec::new(),
        };
        edit(&mut batch);
        let Batch { state, changes } = batch;
        drop(state);
        if !changes.is_empty() {
            self.changed.send_replace(());
        }
        changes
    }

    /// Says that a list has come. Saying it again changes nothing.
    pub fn listed(&self, list: &str) {
        let complete = {
            let mut state = self.lock();
            state.awaited.remove(list) && state.awaited.is_empty()
        };
        if complete {
            self.ready.send_replace(true);
            self.changed.send_replace(());
        }
    }

    /// Says whether a kind can be listed at all. Until anything is said, it can.
    pub fn set_refused(&self, kind: ObjectKind, refused: bool) {
        let changed = {
            let kinds = &mut self.lock().refused;
            if refused {
                kinds.insert(kind)
            } else {
                kinds.remove(&kind)
            }
        };
        if changed {
            self.changed.send_replace(());
        }
    }

    /// Whether the API server does not let us list a kind.
    #[must_use]
    pub fn is_refused(&self, kind: ObjectKind) -> bool {
        self.lock().refused.contains(&kind)
    }

    /// Whether every list has come once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Waits until every list has come once.
    pub async fn until_ready(&self) {
        let mut ready = self.ready.subscribe();
        // The sender is ours, so that it does not go away.
        let _ready = ready.wait_for(|ready| *ready).await;
    }

    /// The lists that have not come yet.
    #[must_use]
    pub fn awaited(&self) -> Vec<String> {
        self.lock().awaited.iter().cloned().collect()
    }

    /// Is told of each change that the rules can see, and of readiness.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The objects as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.lock().snapshot.clone()
    }

    /// The objects as they are now, and what changed since this was last called.
    #[must_use]
    pub fn take(&self) -> (Snapshot, Vec<Change>) {
        let mut state = self.lock();
        let changes = std::mem::take(&mut state.changes);
        let changes = changes
            .into_iter()
            .map(|(object, verb)| Change { object, verb })
            .collect();
        (state.snapshot.clone(), changes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch<'_> {
    /// Adds or replaces an object.
    pub fn apply<K: Stored>(&mut self, object: K) {
        let change = self.state.apply(object);
        self.changes.extend(change);
    }

    /// Takes an object away.
    pub fn delete<K: Stored>(&mut self, name: &ObjectName) {
        let change = self.state.delete::<K>(name);
        self.changes.extend(change);
    }
}

impl State {
    fn apply<K: Stored>(&mut self, mut object: K) -> Option<Change> {
        let name = object.object_name()?;
        if object.is_foreign() {
            return self.delete::<K>(&name);
        }
        object.prune();
        let objects = K::of_mut(&mut self.snapshot);
        let verb = match objects.get(&name) {
            None => Verb::Added,
            // The shared pointer stays, and with it what was computed from the object.
            Some(old) if **old == object => return None,
            Some(old) if old.matters(&object) => Verb::Changed,
            Some(_) => {
                // Its version and status are kept up to date for those who write it.
                objects.insert(name, object);
                return None;
            }
        };
        objects.insert(name.clone(), object);
        Some(self.note::<K>(name, verb))
    }

    fn delete<K: Stored>(&mut self, name: &ObjectName) -> Option<Change> {
        K::of_mut(&mut self.snapshot).remove(name)?;
        Some(self.note::<K>(name.clone(), Verb::Deleted))
    }

    fn note<K: Stored>(&mut self, name: ObjectName, verb: Verb) -> Change {
        let object = ObjectRef::new(K::KIND, name);
        self.changes.insert(object.clone(), verb);
        Change { object, verb }
    }
}

#[cfg(test)]
mod tests;
