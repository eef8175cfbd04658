//! Injected faults, as a client meets them, and the ways to connect.

use std::io::ErrorKind;

use k8s_openapi::api::{core::v1::Service, networking::v1::Ingress};
use kube::{
    Api, Client, Config, Error,
    api::{ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_runtime::watcher;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{
    ingress, refusal, refused, service,
    support::{ApiDouble, Fault, Follower, Seen, Target, Verb},
};

#[tokio::test]
async fn faults_meet_their_target_so_many_times() {
    let api = ApiDouble::start().await;
    let services: Api<Service> = Api::default_namespaced(api.client());
    let ingresses: Api<Ingress> = Api::all(api.client());
    let lists = || Target::any().verb(Verb::List).on("services");
    api.inject(lists(), Fault::internal(), 1);
    api.inject(lists(), Fault::forbidden(), 1);
    api.inject(lists(), Fault::not_served(), 1);

    ingresses.list(&ListParams::default()).await.unwrap();
    assert!(services.get_opt("a").await.unwrap().is_none());
    for (code, reason) in [
        (500, "InternalError"),
        (403, "Forbidden"),
        (404, "NotFound"),
    ] {
        assert_eq!(
            refused(services.list(&ListParams::default()).await),
            refusal(code, reason)
        );
    }
    services.list(&ListParams::default()).await.unwrap();

    api.inject(lists(), Fault::internal(), usize::MAX);
    assert!(services.list(&ListParams::default()).await.is_err());
    api.clear_faults();
    services.list(&ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn overload_is_retried_by_the_client_itself() {
    let api = ApiDouble::start().await;
    let services: Api<Service> = Api::all(api.client());
    api.inject(Target::any().on("services"), Fault::too_many_requests(0), 2);
    api.inject(Target::any().on("services"), Fault::unavailable(), 1);
    services.list(&ListParams::default()).await.unwrap();
    let codes: Vec<_> = api
        .requests()
        .iter()
        .filter_map(|request| request.code)
        .collect();
    assert_eq!(codes, [429, 429, 503, 200]);
}

#[tokio::test]
async fn a_broken_connection_leaves_the_client_in_doubt() {
    let api = ApiDouble::start().await;
    let ingresses: Api<Ingress> = Api::default_namespaced(api.client());
    let new: Ingress = serde_json::from_value(ingress("web", "a.example")).unwrap();
    let creations = || Target::any().verb(Verb::Create).on("ingresses");

    api.inject(creations(), Fault::Drop, 1);
    let dropped = ingresses.create(&PostParams::default(), &new).await;
    assert!(
        !matches!(dropped, Ok(_) | Err(Error::Api(_))),
        "{dropped:?}"
    );
    assert_eq!(api.get("ingresses", "default", "web"), None);

    api.inject(creations(), Fault::LoseAnswer, 1);
    let lost = ingresses.create(&PostParams::default(), &new).await;
    assert!(!matches!(lost, Ok(_) | Err(Error::Api(_))), "{lost:?}");
    assert!(api.get("ingresses", "default", "web").is_some());
    let again = ingresses.create(&PostParams::default(), &new).await;
    assert_eq!(refused(again), refusal(409, "AlreadyExists"));
}

#[tokio::test]
async fn a_held_request_waits_for_the_test() {
    let api = ApiDouble::start().await;
    let hold = api.hold(Target::any().verb(Verb::List).on("services"));
    let mut services: Follower<Service> =
        Follower::start(Api::all(api.client()), watcher::Config::default());
    api.wait_until("the list has arrived", |state| {
        state.count(Verb::List, "services") == 1
    })
    .await;
    assert_eq!(api.requests()[0].code, None);

    api.apply(&service("late"));
    drop(hold);
    services.until(&Seen::InitDone).await;
    assert_eq!(services.names(), ["late"]);
}

/// Starts a watch of services by hand, and waits until it is answered.
async fn raw_watch(api: &ApiDouble) -> TcpStream {
    let mut stream = TcpStream::connect(api.url().trim_start_matches("http://"))
        .await
        .unwrap();
    let request = "GET /api/v1/services?watch=1 HTTP/1.1\r\nHost: double\r\n\r\n";
    let before = api.read(|state| state.count(Verb::Watch, "services"));
    stream.write_all(request.as_bytes()).await.unwrap();
    api.wait_until("services are watched", |state| {
        let mut watches = state
            .requests()
            .iter()
            .filter(|request| request.is(Verb::Watch, "services"));
        watches
            .nth(before)
            .is_some_and(|request| request.code.is_some())
    })
    .await;
    stream
}

#[tokio::test]
async fn a_watch_can_end_in_three_ways() {
    const LAST_CHUNK: &str = "\r\n0\r\n\r\n";
    let api = ApiDouble::start().await;
    let mut watch = raw_watch(&api).await;
    api.apply(&service("a"));
    api.end_watches("services");
    let mut received = Vec::new();
    while !String::from_utf8_lossy(&received).ends_with(LAST_CHUNK) {
        assert_ne!(
            watch.read_buf(&mut received).await.unwrap(),
            0,
            "closed before the last chunk"
        );
    }
    drop(watch);
    api.wait_until("no service is watched", |state| {
        state.open_watches("services") == 0
    })
    .await;

    // Initial events are cut as well.
    api.cut_next_event("services");
    let mut watch = raw_watch(&api).await;
    let mut received = Vec::new();
    watch.read_to_end(&mut received).await.unwrap();
    let received = String::from_utf8(received).unwrap();
    // Size and content of the only chunk.
    let (_, chunk) = received.split_once("\r\n\r\n").unwrap();
    let half = serde_json::from_str::<Value>(chunk.lines().nth(1).unwrap());
    assert!(half.unwrap_err().is_eof(), "{received}");
    assert!(!received.ends_with(LAST_CHUNK), "{received}");
    api.wait_until("no service is watched", |state| {
        state.open_watches("services") == 0
    })
    .await;

    let mut watch = raw_watch(&api).await;
    api.drop_connections().await;
    let reset = watch.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_kubeconfig_leads_to_the_double() {
    let api = ApiDouble::start().await;
    let file = api.kubeconfig();
    let kubeconfig = Kubeconfig::read_from(file.path()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let client = Client::try_from(config).unwrap();

    assert_eq!(client.apiserver_version().await.unwrap().major, "1");
    let groups = client.list_api_groups().await.unwrap().groups;
    let names: Vec<_> = groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "admissionregistration.k8s.io",
            "coordination.k8s.io",
            "discovery.k8s.io",
            "events.k8s.io",
            "networking.k8s.io"
        ]
    );
    let resources = client
        .list_api_group_resources("networking.k8s.io/v1")
        .await
        .unwrap()
        .resources;
    assert!(
        resources
            .iter()
            .any(|resource| resource.name == "ingresses/status")
    );
    let core = client
        .list_core_api_resources("v1")
        .await
        .unwrap()
        .resources;
    assert!(
        core.iter()
            .any(|resource| resource.name == "secrets" && resource.namespaced)
    );
}
