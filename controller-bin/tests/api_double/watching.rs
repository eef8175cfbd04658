//! WATCH, through kube-runtime's watcher and reflector: what is seen, what a client recovers from.

use std::pin::pin;

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};
use kube_runtime::watcher;
use serde_json::json;

use super::{
    ingress, service,
    support::{ApiDouble, Fault, Follower, Seen, State, Target, Verb},
};

#[tokio::test]
async fn a_watcher_sees_what_is_there_and_what_changes() {
    let (api, mut services) = watched(watcher::Config::default()).await;
    assert_eq!(services.names(), ["a", "b"]);

    api.apply(&service("c"));
    services.until(&applied("c")).await;
    api.edit("services", "default", "b", |b| {
        b["spec"]["type"] = json!("ExternalName");
    });
    services.until(&applied("b")).await;
    api.delete("services", "default", "a");
    services.until(&Seen::Delete("a".to_owned())).await;
    assert_eq!(services.names(), ["b", "c"]);
}

#[tokio::test]
async fn a_broken_watch_resumes_without_a_list_and_without_a_gap() {
    let (api, mut services) = watched(watcher::Config::default()).await;

    api.end_watches("services");
    api.wait_until("the ended watch is back", |state| watches_again(state, 2))
        .await;
    api.apply(&service("after-end"));
    services.until(&applied("after-end")).await;

    api.drop_connections().await;
    api.apply(&service("after-drop"));
    services.until(&applied("after-drop")).await;

    api.cut_next_event("services");
    api.apply(&service("cut-in-half"));
    services.until(&applied("cut-in-half")).await;

    assert_eq!(
        services.names(),
        ["a", "after-drop", "after-end", "b", "cut-in-half"]
    );
    api.wait_until("every break led to one more watch", |state| {
        watches_again(state, 4)
    })
    .await;
    assert_eq!(api.read(|state| state.count(Verb::List, "services")), 1);
}

#[tokio::test]
async fn an_object_that_vanished_unseen_is_missed_by_the_next_list() {
    let (api, mut services) = watched(watcher::Config::default()).await;

    api.vanish("services", "default", "a");
    let seen = services.until(&Seen::InitDone).await;

    assert!(!seen.contains(&Seen::Delete("a".to_owned())), "{seen:?}");
    assert!(
        matches!(&seen[..2], [Seen::Error(_), Seen::Init]),
        "{seen:?}"
    );
    assert_eq!(services.names(), ["b"]);
    assert_eq!(api.read(|state| state.count(Verb::List, "services")), 2);
}

#[tokio::test]
async fn a_watch_that_expires_leads_to_a_new_list() {
    let (api, mut services) = watched(watcher::Config::default()).await;
    api.expire_watches("services");
    services.until(&Seen::InitDone).await;

    // The same for a watch that is to be resumed.
    api.wait_until("services are watched", |state| {
        state.open_watches("services") == 1
    })
    .await;
    api.inject(
        Target::any().verb(Verb::Watch).on("services"),
        Fault::Expire,
        1,
    );
    api.end_watches("services");
    services.until(&Seen::InitDone).await;
    assert_eq!(api.read(|state| state.count(Verb::List, "services")), 3);
}

#[tokio::test]
async fn a_server_that_was_away_is_found_again() {
    let (api, mut services) = watched(watcher::Config::default()).await;
    let client = api.client();
    client.apiserver_version().await.unwrap();

    api.go_away().await;
    assert!(client.apiserver_version().await.is_err());
    api.apply(&service("c"));
    services.until_error().await;
    api.come_back().await;
    services.until(&applied("c")).await;
    assert_eq!(client.apiserver_version().await.unwrap().minor, "33");
    assert_eq!(api.read(|state| state.count(Verb::List, "services")), 1);

    // Too much happens while it is away for the history to tell.
    api.limit_history(2);
    api.go_away().await;
    api.delete("services", "default", "a");
    for name in ["d", "e", "f"] {
        api.apply(&service(name));
    }
    api.come_back().await;
    services.until(&Seen::InitDone).await;
    assert_eq!(services.names(), ["b", "c", "d", "e", "f"]);
    assert_eq!(api.read(|state| state.count(Verb::List, "services")), 2);
}

#[tokio::test]
async fn a_streaming_list_needs_no_list() {
    let (api, mut services) = watched(watcher::Config::default().streaming_lists()).await;
    assert_eq!(services.names(), ["a", "b"]);

    api.apply(&service("c"));
    services.until(&applied("c")).await;
    api.vanish("services", "default", "a");
    services.until(&Seen::InitDone).await;
    assert_eq!(services.names(), ["b", "c"]);
    assert_eq!(api.read(|state| state.count(Verb::List, "services")), 0);
}

#[tokio::test]
async fn a_bookmark_moves_the_version_a_watch_resumes_from() {
    let (api, _services) = watched(watcher::Config::default()).await;
    let changed = api.apply(&ingress("web", "a.example"));

    api.send_bookmarks("services");
    api.end_watches("services");
    api.wait_until("services are watched again", |state| {
        watches_again(state, 2)
    })
    .await;
    let requests = api.requests();
    let resumed = requests
        .iter()
        .rfind(|request| request.is(Verb::Watch, "services"))
        .unwrap();
    assert_eq!(
        resumed.call.parameter("resourceVersion"),
        changed["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn a_watch_tells_what_enters_and_leaves_its_selector() {
    let api = ApiDouble::start().await;
    let services: Api<Service> = Api::namespaced(api.client(), "default");
    let parameters = WatchParams::default().labels("app=web");
    let start = api.apply(&service("a"))["metadata"]["resourceVersion"].clone();
    let mut events = pin!(
        services
            .watch(&parameters, start.as_str().unwrap())
            .await
            .unwrap()
    );

    let label = |value: &str| {
        let labels = json!({"app": value});
        api.edit("services", "default", "a", |a| {
            a["metadata"]["labels"] = labels;
        })
    };
    label("web");
    api.edit("services", "default", "a", |a| {
        a["spec"]["type"] = json!("NodePort");
    });
    let left = label("other");
    label("another");

    assert!(matches!(
        events.try_next().await.unwrap(),
        Some(WatchEvent::Added(_))
    ));
    assert!(matches!(
        events.try_next().await.unwrap(),
        Some(WatchEvent::Modified(_))
    ));
    let Some(WatchEvent::Deleted(gone)) = events.try_next().await.unwrap() else {
        panic!("expected a deletion");
    };
    assert_eq!(
        gone.metadata.resource_version.as_deref(),
        left["metadata"]["resourceVersion"].as_str()
    );
    assert_eq!(gone.metadata.labels.unwrap()["app"], "web");
    // The rest is outside the selector.
    api.end_watches("services");
    assert!(events.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_up() {
    let api = ApiDouble::start().await;
    let services: Api<Service> = Api::namespaced(api.client(), "default");
    let start = api.apply(&service("a"))["metadata"]["resourceVersion"].clone();
    let parameters = WatchParams::default().timeout(1);
    let watch = services.watch(&parameters, start.as_str().unwrap()).await;
    let mut events = pin!(watch.unwrap());
    assert!(events.try_next().await.unwrap().is_none());
}

fn applied(name: &str) -> Seen {
    Seen::Apply(name.to_owned())
}

/// A double with services `a` and `b`, and a follower that has listed them and now watches.
async fn watched(config: watcher::Config) -> (ApiDouble, Follower<Service>) {
    let api = ApiDouble::start().await;
    api.apply(&service("a"));
    api.apply(&service("b"));
    let mut follower = Follower::start(Api::all(api.client()), config);
    follower.until(&Seen::InitDone).await;
    api.wait_until("services are watched", |state| {
        state.open_watches("services") == 1
    })
    .await;
    (api, follower)
}

/// Whether so many watches have been started, of which only the last is open.
fn watches_again(state: &State, times: usize) -> bool {
    state.count(Verb::Watch, "services") == times && state.open_watches("services") == 1
}
