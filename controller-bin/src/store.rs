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
mod tests {
    use k8s_openapi::api::{
        core::v1::{ConfigMap, Node, Secret, Service},
        discovery::v1::EndpointSlice,
        networking::v1::Ingress,
    };
    use serde_json::{Value, json};

    use super::*;

    fn store() -> Store {
        Store::awaiting([])
    }

    fn object<K: Stored>(value: Value) -> K {
        serde_json::from_value(value).unwrap()
    }

    fn ingress(host: &str, extra: &Value) -> Ingress {
        let mut value = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"namespace": "shop", "name": "cart", "resourceVersion": "1"},
            "spec": {"rules": [{"host": host}]},
        });
        for (key, extra) in extra.as_object().unwrap() {
            value[key].as_object_mut().map_or_else(
                || panic!("{key} is no object"),
                |object| object.extend(extra.as_object().unwrap().clone()),
            );
        }
        object(value)
    }

    fn told(change: Option<Change>) -> Option<String> {
        change.map(|change| change.to_string())
    }

    #[test]
    fn only_changes_that_rules_can_see_are_told() {
        let store = store();
        let apply = |object: Ingress| told(store.apply(object));
        assert_eq!(
            apply(ingress("a.test", &json!({}))).unwrap(),
            "Ingress shop/cart added"
        );
        assert_eq!(apply(ingress("a.test", &json!({}))), None);
        let invisible = json!({"metadata": {
            "resourceVersion": "2",
            "generation": 7,
            "managedFields": [{"manager": "x"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        }});
        assert_eq!(apply(ingress("a.test", &invisible)), None);
        let annotated = json!({"metadata": {"annotations": {"a": "b"}}});
        assert_eq!(
            apply(ingress("a.test", &annotated)).unwrap(),
            "Ingress shop/cart changed"
        );
        let mut with_status = ingress("a.test", &annotated);
        with_status.status = Some(k8s_openapi::api::networking::v1::IngressStatus::default());
        assert_eq!(apply(with_status), None);
        assert_eq!(
            apply(ingress("b.test", &json!({}))).unwrap(),
            "Ingress shop/cart changed"
        );
        let name = ObjectName::new("shop", "cart");
        assert_eq!(
            told(store.delete::<Ingress>(&name)).unwrap(),
            "Ingress shop/cart deleted"
        );
        assert_eq!(told(store.delete::<Ingress>(&name)), None);
    }

    #[test]
    fn what_does_not_matter_is_kept_up_to_date_all_the_same() {
        let store = store();
        store.apply(ingress("a.test", &json!({})));
        store.apply(ingress(
            "a.test",
            &json!({"metadata": {"resourceVersion": "9"}}),
        ));
        let snapshot = store.snapshot();
        let (_, kept) = snapshot.ingresses.iter().next().unwrap();
        assert_eq!(kept.metadata.resource_version.as_deref(), Some("9"));
    }

    #[test]
    fn pods_behind_the_same_endpoint_do_not_matter() {
        let store = store();
        let slice = |version: &str, ready: bool| -> EndpointSlice {
            object(json!({
                "metadata": {"namespace": "shop", "name": "cart-1", "labels": {"kubernetes.io/service-name": "cart"}},
                "addressType": "IPv4",
                "endpoints": [{
                    "addresses": ["10.0.0.1"],
                    "conditions": {"ready": ready},
                    "targetRef": {"kind": "Pod", "name": "cart-x", "resourceVersion": version},
                }],
            }))
        };
        assert!(store.apply(slice("1", true)).is_some());
        assert!(store.apply(slice("2", true)).is_none());
        assert!(store.apply(slice("2", false)).is_some());
    }

    #[test]
    fn of_nodes_only_labels_matter_and_addresses_are_kept() {
        let store = store();
        let node = |zone: &str, image: &str| -> Node {
            object(json!({
                "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": zone}},
                "status": {
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                    "images": [{"names": [image]}],
                },
            }))
        };
        assert!(store.apply(node("a", "x")).is_some());
        assert!(store.apply(node("a", "y")).is_none());
        assert!(store.apply(node("b", "y")).is_some());
        let snapshot = store.snapshot();
        let status = snapshot
            .nodes
            .get(&ObjectName::cluster("n"))
            .unwrap()
            .status
            .clone()
            .unwrap();
        assert_eq!(status.images, None);
        assert_eq!(status.addresses.unwrap().len(), 1);
    }

    #[test]
    fn histories_of_helm_are_left_out_and_unusable_secrets_lose_their_data() {
        let store = store();
        let secret = |name: &str, kind: &str| -> Secret {
            object(
                json!({"metadata": {"namespace": "a", "name": name}, "type": kind, "data": {"k": "dg=="}}),
            )
        };
        assert!(
            store
                .apply(secret("release", "helm.sh/release.v1"))
                .is_none()
        );
        assert!(
            store
                .apply(secret("token", "kubernetes.io/service-account-token"))
                .is_some()
        );
        assert!(store.apply(secret("tls", "kubernetes.io/tls")).is_some());
        let tiller: ConfigMap = object(
            json!({"metadata": {"namespace": "a", "name": "r", "labels": {"OWNER": "TILLER"}}}),
        );
        assert!(store.apply(tiller).is_none());
        let snapshot = store.snapshot();
        let data: Vec<_> = snapshot
            .secrets
            .iter()
            .map(|(name, secret)| (name.name(), secret.data.is_some()))
            .collect();
        assert_eq!(data, [("tls", true), ("token", false)]);
        assert!(snapshot.config_maps.is_empty());
    }

    #[test]
    fn a_new_list_takes_away_what_it_lacks_within_its_scope() {
        let store = store();
        let service = |namespace: &str, name: &str| -> Service {
            object(json!({"metadata": {"namespace": namespace, "name": name}}))
        };
        store.reset(
            &Scope::all(),
            vec![service("a", "x"), service("a", "y"), service("b", "z")],
        );
        let changes = store.reset(
            &Scope::namespace("a"),
            vec![service("a", "y"), service("a", "w")],
        );
        let told: Vec<_> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["Service a/x deleted", "Service a/w added"]);
        let changes = store.reset::<Service>(&Scope::object(&ObjectName::new("a", "w")), vec![]);
        assert_eq!(changes.len(), 1);
        let left: Vec<_> = store
            .snapshot()
            .services
            .iter()
            .map(|(name, _)| name.to_string())
            .collect();
        assert_eq!(left, ["a/y", "b/z"]);
    }

    #[test]
    fn a_batch_is_seen_whole_and_told_once() {
        let store = store();
        store.apply(ingress("a.test", &json!({})));
        let mut changed = store.subscribe();
        let changes = store.batch(|batch| {
            batch.delete::<Ingress>(&ObjectName::new("shop", "cart"));
            assert!(!changed.has_changed().unwrap());
            batch.apply(ingress("b.test", &json!({"metadata": {"name": "till"}})));
        });
        assert!(changed.has_changed().unwrap());
        let told: Vec<_> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            ["Ingress shop/cart deleted", "Ingress shop/till added"]
        );
        changed.mark_unchanged();
        assert!(store.batch(|_| {}).is_empty() && !changed.has_changed().unwrap());
    }

    #[test]
    fn the_store_is_ready_once_every_list_has_come() {
        let store = Store::awaiting(["Ingress".to_owned(), "Service".to_owned()]);
        let mut changed = store.subscribe();
        store.listed("Service");
        store.listed("Service");
        assert!(!store.is_ready());
        assert_eq!(store.awaited(), ["Ingress"]);
        assert!(!changed.has_changed().unwrap());
        store.listed("Ingress");
        assert!(store.is_ready() && changed.has_changed().unwrap());
        changed.mark_unchanged();
        store.listed("Ingress");
        assert!(!changed.has_changed().unwrap());
    }

    #[test]
    fn changes_are_handed_out_once_the_last_of_each_object() {
        let store = store();
        let mut changed = store.subscribe();
        store.apply(ingress("a.test", &json!({})));
        store.apply(ingress("b.test", &json!({})));
        assert!(changed.has_changed().unwrap());
        let (snapshot, changes) = store.take();
        assert_eq!(snapshot.ingresses.len(), 1);
        assert_eq!(
            changes,
            [Change {
                object: ObjectRef::new(ObjectKind::Ingress, ObjectName::new("shop", "cart")),
                verb: Verb::Changed,
            }]
        );
        assert!(store.take().1.is_empty());
        changed.mark_unchanged();
        store.apply(ingress("b.test", &json!({})));
        assert!(!changed.has_changed().unwrap());
    }
}
