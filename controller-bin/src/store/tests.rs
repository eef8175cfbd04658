//! Which changes are told, and what is kept of objects.

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
    let tiller: ConfigMap =
        object(json!({"metadata": {"namespace": "a", "name": "r", "labels": {"OWNER": "TILLER"}}}));
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
