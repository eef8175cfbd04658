//! Objects from an API server.
//!
//! One watch a kind, none of which ever gives up: whatever fails is logged and tried again, and what the store has goes
//! on being served. A watch that falls behind lists anew, and what the new list lacks is taken away. An object that
//! cannot be understood is reported, and what was known of it before stays.

use std::{collections::BTreeSet, fmt, pin::pin, sync::Arc};

use futures::StreamExt;
use ingress_model::{ObjectKind, ObjectName};
use k8s_openapi::{
    ClusterResourceScope, NamespaceResourceScope,
    api::{
        core::v1::{ConfigMap, Namespace, Node, Secret, Service},
        discovery::v1::EndpointSlice,
        networking::v1::{Ingress, IngressClass},
    },
};
use kube::{Api, Client, core::DeserializeGuard};
use kube_runtime::{
    WatchStreamExt,
    watcher::{self, Event, watcher},
};
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::{
    args::Args,
    chain::chain,
    store::{Change, Scope, Store},
    stored::{HELM_RELEASE, Stored},
};

/// Seconds after which a watch is begun anew. A server that is gone without a word is noticed a little later than that.
const WATCH_SECONDS: u32 = 60;

/// A list that the store waits for, and the watch that goes on from there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct List {
    kind: ObjectKind,
    scope: Scope,
    labels: Option<String>,
    fields: Option<String>,
    /// Whether the controller does without it where the API server refuses it.
    optional: bool,
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match (&self.scope.namespace, &self.scope.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " of namespace {namespace}"),
            (None, _) => Ok(()),
        }
    }
}

/// What has to be listed and watched for these flags.
#[must_use]
pub fn lists(args: &Args) -> BTreeSet<List> {
    let scope = args
        .kubernetes
        .watch_namespace
        .as_deref()
        .map_or_else(Scope::all, Scope::namespace);
    let plain = |kind: ObjectKind| List {
        kind,
        scope: scope.clone(),
        labels: None,
        fields: None,
        optional: false,
    };
    let cluster_wide = |kind: ObjectKind| List {
        scope: Scope::all(),
        optional: true,
        ..plain(kind)
    };
    let mut lists = BTreeSet::from([
        plain(ObjectKind::Ingress),
        plain(ObjectKind::Service),
        plain(ObjectKind::EndpointSlice),
        List {
            labels: Some("OWNER!=TILLER".into()),
            ..plain(ObjectKind::ConfigMap)
        },
        List {
            fields: Some(format!("type!={HELM_RELEASE}")),
            ..plain(ObjectKind::Secret)
        },
        cluster_wide(ObjectKind::IngressClass),
        cluster_wide(ObjectKind::Node),
    ]);
    if args.kubernetes.watch_namespace_selector.is_some() {
        lists.insert(List {
            optional: false,
            ..cluster_wide(ObjectKind::Namespace)
        });
    }
    lists.extend(elsewhere(args, &scope));
    lists
}

/// Objects that flags name and that the watched namespace does not have.
fn elsewhere(args: &Args, scope: &Scope) -> Vec<List> {
    let rules = &args.rules;
    let outside = |name: &&ObjectName| !scope.covers(name);
    let one = |kind: ObjectKind, name: &ObjectName| List {
        kind,
        scope: Scope::object(name),
        labels: None,
        fields: Some(format!("metadata.name={}", name.name())),
        optional: true,
    };
    let config_maps = [
        &rules.configmap,
        &rules.tcp_services_configmap,
        &rules.udp_services_configmap,
    ];
    let mut lists: Vec<_> = config_maps
        .into_iter()
        .flatten()
        .filter(outside)
        .map(|name| one(ObjectKind::ConfigMap, name))
        .collect();
    let certificate = rules.default_ssl_certificate.iter().filter(outside);
    lists.extend(certificate.map(|name| one(ObjectKind::Secret, name)));
    for name in rules.default_backend_service.iter().filter(outside) {
        lists.push(one(ObjectKind::Service, name));
        lists.push(List {
            kind: ObjectKind::EndpointSlice,
            scope: Scope::namespace(name.namespace()),
            labels: Some(format!("kubernetes.io/service-name={}", name.name())),
            fields: None,
            optional: true,
        });
    }
    lists
}

/// Begins to carry the lists and what comes after them into the store. The watches end when the set is dropped.
#[must_use]
pub fn start(client: &Client, lists: BTreeSet<List>, store: &Arc<Store>) -> JoinSet<()> {
    let mut watches = JoinSet::new();
    for list in lists {
        let (client, store) = (client.clone(), Arc::clone(store));
        match list.kind {
            ObjectKind::Ingress => watches.spawn(namespaced::<Ingress>(client, list, store)),
            ObjectKind::Service => watches.spawn(namespaced::<Service>(client, list, store)),
            ObjectKind::EndpointSlice => {
                watches.spawn(namespaced::<EndpointSlice>(client, list, store))
            }
            ObjectKind::Secret => watches.spawn(namespaced::<Secret>(client, list, store)),
            ObjectKind::ConfigMap => watches.spawn(namespaced::<ConfigMap>(client, list, store)),
            ObjectKind::IngressClass => {
                watches.spawn(cluster_wide::<IngressClass>(client, list, store))
            }
            ObjectKind::Namespace => watches.spawn(cluster_wide::<Namespace>(client, list, store)),
            ObjectKind::Node => watches.spawn(cluster_wide::<Node>(client, list, store)),
            ObjectKind::Pod => continue,
        };
    }
    watches
}

async fn namespaced<K>(client: Client, list: List, store: Arc<Store>)
where
    K: Stored + kube::Resource<Scope = NamespaceResourceScope>,
{
    let api = match &list.scope.namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    follow::<K>(api, list, &store).await;
}

async fn cluster_wide<K>(client: Client, list: List, store: Arc<Store>)
where
    K: Stored + kube::Resource<Scope = ClusterResourceScope>,
{
    follow::<K>(Api::all(client), list, &store).await;
}

async fn follow<K: Stored>(api: Api<DeserializeGuard<K>>, list: List, store: &Store) {
    let mut config = watcher::Config::default().timeout(WATCH_SECONDS);
    config.label_selector.clone_from(&list.labels);
    config.field_selector.clone_from(&list.fields);
    let mut events = pin!(watcher(api, config).default_backoff());
    let mut follower = Follower {
        list,
        store,
        listing: Vec::new(),
        trouble: None,
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => follower.take(event),
            Err(error) => follower.complain(&error),
        }
    }
}

/// Carries the events of one watch into the store.
struct Follower<'a, K> {
    list: List,
    store: &'a Store,
    /// What has come of a list that is not complete.
    listing: Vec<K>,
    /// What is wrong at present.
    trouble: Option<String>,
}

impl<K: Stored> Follower<'_, K> {
    fn take(&mut self, event: Event<DeserializeGuard<K>>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                let object = self.understood(object);
                self.listing.extend(object);
            }
            Event::InitDone => {
                self.recovered();
                let objects = std::mem::take(&mut self.listing);
                debug!(list = %self.list, objects = objects.len(), "listed");
                let changes = self.store.reset(&self.list.scope, objects);
                changes.iter().for_each(tell);
                self.store.set_refused(self.list.kind, false);
                self.store.listed(&self.list.to_string());
            }
            Event::Apply(object) => {
                self.recovered();
                let change = self
                    .understood(object)
                    .and_then(|object| self.store.apply(object));
                change.iter().for_each(tell);
            }
            Event::Delete(DeserializeGuard(object)) => {
                self.recovered();
                let meta = match &object {
                    Ok(object) => object.meta(),
                    Err(invalid) => &invalid.metadata,
                };
                let name = ObjectName::new(
                    meta.namespace.as_deref().unwrap_or_default(),
                    meta.name.as_deref().unwrap_or_default(),
                );
                self.store.delete::<K>(&name).iter().for_each(tell);
            }
        }
    }

    /// The object; if it cannot be understood, what was known of it before.
    fn understood(&self, DeserializeGuard(object): DeserializeGuard<K>) -> Option<K> {
        match object {
            Ok(object) => Some(object),
            Err(invalid) => {
                let name = ObjectName::new(
                    invalid.metadata.namespace.as_deref().unwrap_or_default(),
                    invalid.metadata.name.as_deref().unwrap_or_default(),
                );
                let snapshot = self.store.snapshot();
                let known = K::of(&snapshot).get(&name);
                warn!(
                    kind = %K::KIND,
                    object = %name,
                    error = %invalid,
                    kept = known.is_some(),
                    "an object cannot be understood",
                );
                known.map(|known| K::clone(known))
            }
        }
    }

    fn complain(&mut self, error: &watcher::Error) {
        let code = status(error);
        let error = chain(error);
        if self.list.optional && matches!(code, Some(403 | 404)) {
            if self.trouble.is_none() {
                warn!(list = %self.list, error, "the API server refuses a list; going on without it");
            }
            self.store.set_refused(self.list.kind, true);
            self.store.listed(&self.list.to_string());
        } else if code == Some(410) {
            debug!(list = %self.list, "the watch fell behind; listing anew");
            return;
        } else if self.trouble.is_none() {
            warn!(list = %self.list, error, "cannot follow objects; what is known of them holds, trying again");
        } else {
            debug!(list = %self.list, error, "still cannot follow objects");
        }
        self.trouble = Some(error);
    }

    fn recovered(&mut self) {
        if self.trouble.take().is_some() {
            info!(list = %self.list, "following objects again");
        }
    }
}

fn tell(change: &Change) {
    debug!(%change, "the API server tells a change");
}

/// The status with which the API server refused.
fn status(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::{Value, json};

    use super::*;

    fn args(flags: &[&str]) -> Args {
        Args::try_parse_from(["test"].iter().chain(flags)).unwrap()
    }

    fn shown(flags: &[&str]) -> Vec<String> {
        lists(&args(flags))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn all_kinds_are_listed_everywhere() {
        let want = [
            "Ingress",
            "IngressClass",
            "Service",
            "EndpointSlice",
            "Secret",
            "ConfigMap",
            "Node",
        ];
        assert_eq!(shown(&["--configmap=a/b"]), want);
        assert!(shown(&["--watch-namespace-selector=a=b"]).contains(&"Namespace".to_owned()));
    }

    #[test]
    fn in_one_namespace_what_flags_name_elsewhere_is_listed_too() {
        let lists = shown(&[
            "--watch-namespace=shop",
            "--configmap=ours/settings",
            "--tcp-services-configmap=shop/tcp",
            "--default-ssl-certificate=ours/tls",
            "--default-backend-service=ours/fallback",
        ]);
        let want = [
            "Ingress of namespace shop",
            "IngressClass",
            "Service of namespace shop",
            "Service ours/fallback",
            "EndpointSlice of namespace ours",
            "EndpointSlice of namespace shop",
            "Secret of namespace shop",
            "Secret ours/tls",
            "ConfigMap of namespace shop",
            "ConfigMap ours/settings",
            "Node",
        ];
        let (mut lists, mut want): (Vec<_>, Vec<_>) = (lists, want.map(str::to_owned).into());
        lists.sort();
        want.sort();
        assert_eq!(lists, want);
    }

    fn guard(value: Value) -> DeserializeGuard<Service> {
        serde_json::from_value(value).unwrap()
    }

    fn service(name: &str) -> DeserializeGuard<Service> {
        guard(json!({"metadata": {"namespace": "a", "name": name}}))
    }

    fn broken(name: &str) -> DeserializeGuard<Service> {
        guard(json!({"metadata": {"namespace": "a", "name": name}, "spec": {"ports": "none"}}))
    }

    fn names(store: &Store) -> Vec<String> {
        store
            .snapshot()
            .services
            .iter()
            .map(|(name, _)| name.name().to_owned())
            .collect()
    }

    fn follower<'a>(store: &'a Store, list: &List) -> Follower<'a, Service> {
        Follower {
            list: list.clone(),
            store,
            listing: Vec::new(),
            trouble: None,
        }
    }

    fn services() -> List {
        lists(&args(&[]))
            .into_iter()
            .find(|list| list.kind == ObjectKind::Service)
            .unwrap()
    }

    #[test]
    fn a_list_replaces_what_was_there_once_it_is_complete() {
        let list = services();
        let store = Store::awaiting([list.to_string()]);
        let mut follower = follower(&store, &list);
        for event in [
            Event::Init,
            Event::InitApply(service("x")),
            Event::InitApply(service("y")),
        ] {
            follower.take(event);
        }
        assert!(names(&store).is_empty() && !store.is_ready());
        follower.take(Event::InitDone);
        assert_eq!(names(&store), ["x", "y"]);
        assert!(store.is_ready());
        follower.take(Event::Apply(service("z")));
        follower.take(Event::Delete(broken("x")));
        assert_eq!(names(&store), ["y", "z"]);
        // A list that broke off does no harm.
        for event in [
            Event::Init,
            Event::InitApply(service("v")),
            Event::Init,
            Event::InitApply(service("w")),
        ] {
            follower.take(event);
        }
        follower.take(Event::InitDone);
        assert_eq!(names(&store), ["w"]);
    }

    #[test]
    fn what_cannot_be_understood_stays_as_it_was() {
        let list = services();
        let store = Store::awaiting([]);
        let mut follower = follower(&store, &list);
        follower.take(Event::Apply(service("x")));
        follower.take(Event::Apply(broken("x")));
        follower.take(Event::Apply(broken("y")));
        assert_eq!(names(&store), ["x"]);
        for event in [Event::Init, Event::InitApply(broken("x")), Event::InitDone] {
            follower.take(event);
        }
        assert_eq!(names(&store), ["x"]);
    }

    #[test]
    fn only_what_can_be_done_without_may_be_refused() {
        let refusal = || {
            let status = Status {
                code: 403,
                ..Status::default()
            };
            watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
        };
        for (kind, ready) in [
            (ObjectKind::IngressClass, true),
            (ObjectKind::Service, false),
        ] {
            let list = lists(&args(&[]))
                .into_iter()
                .find(|list| list.kind == kind)
                .unwrap();
            let store = Store::awaiting([list.to_string()]);
            follower(&store, &list).complain(&refusal());
            assert_eq!(store.is_ready(), ready, "{kind}");
            assert_eq!(store.is_refused(kind), ready, "{kind}");
        }
    }
}
