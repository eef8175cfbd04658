//! LIST: selectors, pages, versions.

use k8s_openapi::api::core::v1::{Secret, Service};
use kube::{
    Api, Error,
    api::ListParams,
    core::params::VersionMatch::{Exact, NotOlderThan},
};
use kube_runtime::watcher;
use serde_json::json;

use super::{
    refusal, refused, service,
    support::{ApiDouble, Fault, Follower, Seen, Target},
};

#[tokio::test]
async fn selectors_select_as_documented() {
    let api = ApiDouble::start().await;
    for (name, labels, kind) in [
        ("a", json!({"app": "web", "tier": "front"}), "Opaque"),
        ("b", json!({"app": "api"}), "kubernetes.io/tls"),
        ("c", json!({}), "kubernetes.io/tls"),
    ] {
        let metadata = json!({"name": name, "labels": labels});
        api.apply(
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind}),
        );
    }
    let secrets: Api<Secret> = Api::all(api.client());
    for (labels, fields, want) in [
        ("app=web", "", "a"),
        ("app==api", "", "b"),
        ("app!=web", "", "bc"),
        ("app in (web, api),tier", "", "a"),
        ("app notin (web)", "", "bc"),
        ("app", "", "ab"),
        ("!app", "", "c"),
        (" app = web , tier!=back ", "", "a"),
        ("", "type=kubernetes.io/tls", "bc"),
        ("", "type!=kubernetes.io/tls", "a"),
        ("app", "metadata.name=b,type==kubernetes.io/tls", "b"),
        ("", "metadata.namespace=elsewhere", ""),
    ] {
        let found = secrets
            .list(&ListParams::default().labels(labels).fields(fields))
            .await
            .unwrap();
        let names: String = found
            .items
            .into_iter()
            .filter_map(|secret| secret.metadata.name)
            .collect();
        assert_eq!(names, want, "labels {labels:?}, fields {fields:?}");
    }
    for (labels, fields) in [
        ("=x", ""),
        ("a in", ""),
        ("a in (b", ""),
        ("a among (b)", ""),
        ("!", ""),
        ("", "data=x"),
        ("", "type"),
    ] {
        let result = secrets
            .list(&ListParams::default().labels(labels).fields(fields))
            .await;
        assert_eq!(
            refused(result),
            refusal(400, "BadRequest"),
            "labels {labels:?}, fields {fields:?}"
        );
    }
}

#[tokio::test]
async fn pages_show_one_snapshot_and_expire() {
    let api = ApiDouble::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        api.apply(&service(name));
    }
    let services: Api<Service> = Api::all(api.client());
    let first = services
        .list(&ListParams::default().limit(2))
        .await
        .unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    let token = first.metadata.continue_.unwrap();

    api.delete("services", "default", "c");
    api.apply(&service("f"));
    let rest = services
        .list(&ListParams::default().continue_token(&token))
        .await
        .unwrap();
    let names: Vec<_> = rest
        .items
        .iter()
        .filter_map(|item| item.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["c", "d", "e"]);
    assert_eq!(
        rest.metadata.resource_version,
        first.metadata.resource_version
    );
    assert_eq!(rest.metadata.continue_, None);

    api.compact("services");
    let expired = services
        .list(&ListParams::default().continue_token(&token))
        .await
        .unwrap_err();
    let Error::Api(status) = expired else {
        panic!("expected a status, got {expired:?}")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let inconsistent = status
        .metadata
        .and_then(|metadata| metadata.continue_)
        .unwrap();
    let rest = services
        .list(&ListParams::default().continue_token(&inconsistent))
        .await
        .unwrap();
    assert_eq!(rest.items.len(), 3, "d, e and f are left");

    // A watcher whose second page expires lists from the start.
    api.inject(Target::any().on("services").later_page(), Fault::Expire, 1);
    let mut follower = Follower::start(services, watcher::Config::default().page_size(2));
    let seen = follower.until(&Seen::InitDone).await;
    assert_eq!(
        seen.iter().filter(|seen| **seen == Seen::Init).count(),
        2,
        "{seen:?}"
    );
    assert_eq!(follower.names(), ["a", "b", "d", "e", "f"]);
}

#[tokio::test]
async fn a_list_honours_the_version_it_is_asked_for() {
    let api = ApiDouble::start().await;
    let old = api.apply(&service("a"))["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let new = api.apply(&service("b"))["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let services: Api<Service> = Api::all(api.client());
    let at = |version: &str, matching| ListParams::default().at(version).matching(matching);

    assert_eq!(
        services.list(&at(&old, Exact)).await.unwrap().items.len(),
        1
    );
    let latest = services.list(&at(&old, NotOlderThan)).await.unwrap();
    assert_eq!(latest.items.len(), 2);
    assert_eq!(latest.metadata.resource_version, Some(new));
    api.compact("services");
    assert_eq!(
        refused(services.list(&at(&old, Exact)).await),
        refusal(410, "Expired")
    );
    let metadata = services
        .list_metadata(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(metadata.items[0].metadata.name.as_deref(), Some("a"));
}
