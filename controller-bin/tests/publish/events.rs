//! Events: one for each thing, about our objects only.

use ingress_model::ObjectName;

use super::*;
use crate::support::{Fault, Target, Verb};

/// Events as `object reason`, sorted.
fn events(state: &State) -> Vec<String> {
    let mut events: Vec<_> = state
        .list("events")
        .into_iter()
        .map(|event| {
            let about = &event["involvedObject"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!(
                "{} {} {}",
                text(&about["kind"]),
                text(&about["name"]),
                text(&event["reason"])
            )
        })
        .collect();
    events.sort();
    events
}

fn bad_ingress(name: &str) -> Value {
    let mut ingress = ingress(name, "nginx");
    ingress["metadata"]["annotations"] =
        json!({"nginx.ingress.kubernetes.io/proxy-body-size": "much"});
    ingress
}

async fn until_event(api: &ApiDouble, want: &str) {
    api.wait_until(&format!("there is the Event {want:?}"), |state| {
        events(state).iter().any(|event| event == want)
    })
    .await;
}

fn find<'a>(state: &'a State, reason: &str) -> &'a Value {
    let events = state.list("events");
    let mut found = events.into_iter().filter(|event| event["reason"] == reason);
    let event = found.next().unwrap_or_else(|| panic!("no Event {reason}"));
    assert!(found.next().is_none(), "several Events {reason}");
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_say_the_same_in_one_event() {
    let api = cluster().await;
    api.apply(&bad_ingress("bad"));
    api.apply(&ingress("foreign", "other"));
    api.apply(&ingress("unknown", "missing"));
    let a = Replica::start(&api, "a", &[]).await;
    until_event(&api, "Ingress bad AnnotationParsingFailed").await;
    let _b = Replica::start(&api, "b", &[]).await;
    api.wait_until("b has said it too", |state| {
        state.count(Verb::Patch, "events") >= state.list("events").len()
    })
    .await;
    // It is said again after a restart, too.
    drop(a);
    let _again = Replica::start(&api, "a", &[]).await;
    api.wait_until("it has been said again", |state| {
        state.count(Verb::Patch, "events") >= 2 * state.list("events").len()
    })
    .await;
    api.read(|state| {
        let all = events(state);
        assert!(
            all.iter().all(|event| event.starts_with("Ingress bad ")),
            "{all:?}"
        );
        let uid = &state.get("ingresses", "default", "bad").unwrap()["metadata"]["uid"];
        let event = find(state, "AnnotationParsingFailed");
        assert_eq!(event["involvedObject"]["uid"], *uid);
        assert_eq!(
            event["involvedObject"]["apiVersion"],
            "networking.k8s.io/v1"
        );
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["count"], 1);
        assert_eq!(event["source"]["component"], "nginx-ingress-controller");
        let message = event["message"].as_str().unwrap();
        assert!(message.contains("proxy-body-size"), "{message}");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_and_bad_settings_are_told() {
    let api = cluster().await;
    let path = json!({"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "x", "port": {"number": 80}}}}]});
    for name in ["one", "two"] {
        let mut ingress = ingress(name, "nginx");
        ingress["spec"]["rules"] = json!([{"host": "same.test", "http": path}]);
        api.apply(&ingress);
    }
    api.apply(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": OURS},
        "data": {"keep-alive": "long"},
    }));
    let _a = Replica::start(&api, "a", &[]).await;
    until_event(&api, "ConfigMap settings InvalidConfigKey").await;
    until_event(&api, "ConfigMap settings CREATE").await;
    until_event(&api, "Ingress one Sync").await;
    api.wait_until("the conflict is told to one of them", |state| {
        let told = |event: &&String| event.ends_with(" PathConflict");
        events(state).iter().filter(told).count() == 1
    })
    .await;
    api.edit("configmaps", OURS, "settings", |map| {
        map["data"] = json!({"keep-alive": "10"});
    });
    until_event(&api, "ConfigMap settings UPDATE").await;
    api.read(|state| assert_eq!(find(state, "UPDATE")["message"], "ConfigMap ours/settings"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nginx_says_is_told() {
    let api = cluster().await;
    api.apply(&ingress("i", "nginx"));
    let a = Replica::start(&api, "a", &[]).await;
    until_event(&api, "Ingress i Sync").await;
    let name = ObjectName::new("default", "i");
    a.observer.isolated(&name, "unknown directive \"x\"");
    until_event(&api, "Ingress i Isolated").await;
    a.observer.recovered(&name);
    until_event(&api, "Ingress i Recovered").await;
    a.observer
        .load_failed(&std::io::Error::other("no space left"));
    until_event(&api, "Pod a RELOAD").await;
    api.read(|state| {
        let message = &find(state, "Isolated")["message"];
        assert!(
            message
                .as_str()
                .unwrap()
                .contains("unknown directive \"x\"")
        );
        let reload = find(state, "RELOAD");
        let uid = &state.get("pods", OURS, "a").unwrap()["metadata"]["uid"];
        assert_eq!(reload["involvedObject"]["uid"], *uid);
        assert_eq!(
            (&reload["type"], &reload["message"]),
            (&json!("Warning"), &json!("no space left"))
        );
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn without_sync_events_the_pod_is_still_spoken_of() {
    let api = cluster().await;
    api.apply(&bad_ingress("bad"));
    let flags = ["--disable-sync-events", "--publish-status-address=10.9.0.1"];
    let a = Replica::start(&api, "a", &flags).await;
    api.wait_until("the Ingress is known", |state| {
        !addresses(state, "bad").is_empty()
    })
    .await;
    a.observer
        .load_failed(&std::io::Error::other("no space left"));
    until_event(&api, "Pod a RELOAD").await;
    api.read(|state| assert_eq!(events(state), ["Pod a RELOAD"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_told_is_told_later() {
    let api = cluster().await;
    let create = Target::any().on("events").verb(Verb::Create);
    api.inject(create.clone(), Fault::forbidden(), 1);
    api.inject(create.clone(), Fault::LoseAnswer, 1);
    api.inject(create, Fault::internal(), 1);
    api.apply(&bad_ingress("bad"));
    let _a = Replica::start(&api, "a", &[]).await;
    until_event(&api, "Ingress bad Sync").await;
    until_event(&api, "Ingress bad AnnotationParsingFailed").await;
    // An Event whose time is up is made anew.
    let name = api.read(|state| {
        let event = find(state, "Sync");
        event["metadata"]["name"].as_str().unwrap().to_owned()
    });
    api.delete("events", "default", &name);
    api.apply(&ingress("bad", "nginx"));
    until_event(&api, "Ingress bad Sync").await;
}
