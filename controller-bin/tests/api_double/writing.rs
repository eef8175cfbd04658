//! The write verbs: optimistic concurrency, the status subresource, what the server owns.

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, ObjectReference, Secret},
    events::v1::Event as LoggedEvent,
    networking::v1::Ingress,
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use kube_runtime::events::{Event, EventType, Recorder, Reporter};
use serde_json::{Value, json};

use super::{
    ingress, refusal, refused,
    support::{ApiDouble, Verb},
};

fn typed<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn lease(holder: &str) -> Lease {
    typed(json!({"metadata": {"name": "leader"}, "spec": {"holderIdentity": holder}}))
}

#[tokio::test]
async fn a_lease_goes_to_one_of_two() {
    let api = ApiDouble::start().await;
    let one: Api<Lease> = Api::namespaced(api.client(), "kube-system");
    let two: Api<Lease> = Api::namespaced(api.client(), "kube-system");
    let parameters = PostParams::default();

    let held = one.create(&parameters, &lease("one")).await.unwrap();
    assert_eq!(
        refused(two.create(&parameters, &lease("two")).await),
        refusal(409, "AlreadyExists")
    );

    // Both have read the same version; only the first write counts.
    let mut renewed = held.clone();
    renewed.spec.as_mut().unwrap().lease_duration_seconds = Some(15);
    let mut stolen = held;
    stolen.spec.as_mut().unwrap().holder_identity = Some("two".to_owned());
    one.replace("leader", &parameters, &renewed).await.unwrap();
    let refused_put = refused(two.replace("leader", &parameters, &stolen).await);
    assert_eq!(refused_put, refusal(409, "Conflict"));
    let patch = Patch::Merge(&stolen);
    let refused_patch = refused(two.patch("leader", &PatchParams::default(), &patch).await);
    assert_eq!(refused_patch, refusal(409, "Conflict"));
    let unread = refused(two.replace("leader", &parameters, &lease("two")).await);
    assert_eq!(unread, refusal(422, "Invalid"));
    let stored = api.get("leases", "kube-system", "leader").unwrap();
    assert_eq!(
        stored["spec"],
        json!({"holderIdentity": "one", "leaseDurationSeconds": 15})
    );
    let conflicts = api
        .requests()
        .into_iter()
        .filter(|request| request.code == Some(409));
    assert_eq!(conflicts.count(), 3);
}

#[tokio::test]
async fn status_and_spec_are_written_apart() {
    let api = ApiDouble::start().await;
    let ingresses: Api<Ingress> = Api::default_namespaced(api.client());
    let status = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    let mut asked = ingress("web", "a.example");
    asked["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}});
    let created = ingresses
        .create(&PostParams::default(), &typed(asked))
        .await
        .unwrap();
    assert_eq!(
        (&created.status, created.metadata.generation),
        (&None, Some(1))
    );
    assert!(created.metadata.uid.is_some() && created.metadata.creation_timestamp.is_some());

    let patch = Patch::Merge(json!({"status": status, "spec": {"rules": []}}));
    let patched = ingresses
        .patch_status("web", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(
        (&patched.spec, patched.metadata.generation),
        (&created.spec, Some(1))
    );
    assert_ne!(
        patched.metadata.resource_version,
        created.metadata.resource_version
    );

    let mut changed: Ingress = typed(ingress("web", "b.example"));
    changed.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    let replaced = ingresses
        .replace("web", &PostParams::default(), &changed)
        .await
        .unwrap();
    assert_eq!(replaced.metadata.generation, Some(2));
    assert_eq!(replaced.metadata.uid, created.metadata.uid);
    assert_eq!(
        api.get("ingresses", "default", "web").unwrap()["status"],
        status
    );

    let mut cleared = replaced.clone();
    cleared.status = None;
    cleared.spec = None;
    let cleared = ingresses
        .replace_status("web", &PostParams::default(), &cleared)
        .await
        .unwrap();
    assert_eq!((&cleared.status, &cleared.spec), (&None, &replaced.spec));
    assert!(
        api.requests()
            .iter()
            .any(|request| request.writes_status("ingresses"))
    );
    assert_eq!(api.read(|state| state.count(Verb::Patch, "ingresses")), 0);
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_event() {
    let api = ApiDouble::start().await;
    let ingresses: Api<Ingress> = Api::default_namespaced(api.client());
    let server_side = PatchParams::apply("test");
    let patch = Patch::Apply(ingress("web", "a.example"));
    let first = ingresses.patch("web", &server_side, &patch).await.unwrap();
    let again = ingresses.patch("web", &server_side, &patch).await.unwrap();
    assert_eq!(first, again);
    let dry = PatchParams {
        dry_run: true,
        ..PatchParams::apply("test")
    };
    let patch = Patch::Apply(ingress("web", "b.example"));
    let shown = ingresses.patch("web", &dry, &patch).await.unwrap();
    assert_eq!(shown.metadata.generation, Some(2));
    assert_eq!(ingresses.get("web").await.unwrap(), first);

    let removal = Patch::Merge(json!({"spec": {"rules": null, "ingressClassName": "nginx"}}));
    let spec = ingresses
        .patch("web", &PatchParams::default(), &removal)
        .await
        .unwrap()
        .spec;
    assert_eq!(
        serde_json::to_value(spec).unwrap(),
        json!({"ingressClassName": "nginx"})
    );
}

#[tokio::test]
async fn refusals_carry_code_and_reason() {
    let api = ApiDouble::start().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(api.client());
    let new = PostParams::default();
    let map = |metadata: Value| typed::<ConfigMap>(json!({"metadata": metadata}));

    assert_eq!(refused(maps.get("none").await), refusal(404, "NotFound"));
    let missing = maps
        .patch("none", &PatchParams::default(), &Patch::Merge(json!({})))
        .await;
    assert_eq!(refused(missing), refusal(404, "NotFound"));
    for (metadata, code, reason) in [
        (json!({}), 422, "Invalid"),
        (json!({"name": "Not_A_Name"}), 422, "Invalid"),
        (
            json!({"name": "a", "namespace": "elsewhere"}),
            400,
            "BadRequest",
        ),
        (
            json!({"name": "a", "resourceVersion": "1"}),
            400,
            "BadRequest",
        ),
    ] {
        let refused = refused(maps.create(&new, &map(metadata.clone())).await);
        assert_eq!(refused, refusal(code, reason), "{metadata}");
    }
    for shapeless in [json!([]), json!({"metadata": "text"})] {
        let patched = maps
            .patch("a", &PatchParams::apply("test"), &Patch::Apply(&shapeless))
            .await;
        assert_eq!(refused(patched), refusal(400, "BadRequest"), "{shapeless}");
    }
    let generated = maps
        .create(&new, &map(json!({"generateName": "map-"})))
        .await
        .unwrap();
    assert!(generated.metadata.name.unwrap().starts_with("map-"));
    let future = ListParams::default().at("999999").limit(1);
    let mut config = Config::new(api.url().parse().unwrap());
    config.default_retry = false;
    let maps: Api<ConfigMap> = Api::all(Client::try_from(config).unwrap());
    assert_eq!(refused(maps.list(&future).await), refusal(504, "Timeout"));
}

#[tokio::test]
async fn deletion_minds_preconditions_and_finalizers() {
    let api = ApiDouble::start().await;
    let secrets: Api<Secret> = Api::default_namespaced(api.client());
    let stored = api.apply_yaml(
        "{apiVersion: v1, kind: Secret, metadata: {name: cert, finalizers: [a.example/hold]},
          stringData: {key: text}}",
    );
    assert_eq!(stored[0]["data"], json!({"key": "dGV4dA=="}));
    let preconditions = Preconditions {
        uid: Some("other".to_owned()),
        resource_version: None,
    };
    let parameters = DeleteParams::default().preconditions(preconditions);
    assert_eq!(
        refused(secrets.delete("cert", &parameters).await),
        refusal(409, "Conflict")
    );

    let kept = secrets
        .delete("cert", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert!(kept.metadata.deletion_timestamp.is_some());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    secrets
        .patch("cert", &PatchParams::default(), &release)
        .await
        .unwrap();
    assert_eq!(api.get("secrets", "default", "cert"), None);
    let gone = secrets.delete("cert", &DeleteParams::default()).await;
    assert_eq!(refused(gone), refusal(404, "NotFound"));
}

#[tokio::test]
async fn the_test_may_state_what_clients_may_not() {
    let api = ApiDouble::start().await;
    let born = "2020-01-01T00:00:00Z";
    let mut old = ingress("old", "a.example");
    old["metadata"]["creationTimestamp"] = json!(born);
    old["status"] = json!({"loadBalancer": {}});
    api.apply(&old);
    let changed = api.apply(&ingress("old", "b.example"));
    assert_eq!(changed["metadata"]["creationTimestamp"], born);
    assert_eq!(changed["metadata"]["generation"], 2);
    assert_eq!(changed["status"], old["status"]);
}

#[tokio::test]
async fn the_event_recorder_is_understood() {
    let api = ApiDouble::start().await;
    let recorder = Recorder::new(
        api.client(),
        Reporter {
            controller: "test".to_owned(),
            instance: None,
        },
    );
    let event = Event {
        type_: EventType::Warning,
        reason: "Rejected".to_owned(),
        note: Some("a note".to_owned()),
        action: "Sync".to_owned(),
        secondary: None,
    };
    let about: ObjectReference =
        typed(json!({"kind": "Ingress", "namespace": "default", "name": "web", "uid": "1"}));
    recorder.publish(&event, &about).await.unwrap();
    recorder.publish(&event, &about).await.unwrap();
    let events: Api<LoggedEvent> = Api::default_namespaced(api.client());
    let found = events
        .list(&ListParams::default().fields("regarding.name=web"))
        .await
        .unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(
        found.items[0].series.as_ref().map(|series| series.count),
        Some(2)
    );
}
