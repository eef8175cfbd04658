//! What a synchronizer makes of answers, failures and restarts.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says by panicking that it failed"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ingress_model::{
    Host, Live,
    live::{Backend, Certificate, CertificateId, Endpoint as Peer, UpstreamName},
};
use lua_sync_client::{
    Applied, Error, LuaSyncClient, Retry, Revision, RevisionSource, Revisions, Settings, Standing,
    Synchronizer,
};
use serde_json::json;

mod client_support;

use client_support::{Reply, Seen, Server};

const BACKENDS_POST: &str = "POST /configuration/backends";
const BACKENDS_PATCH: &str = "PATCH /configuration/backends";
const SERVERS_PATCH: &str = "PATCH /configuration/servers";

fn synchronizer(client: LuaSyncClient) -> Synchronizer {
    Synchronizer::with_revisions(client, RevisionSource::starting_at(Revision::new(100)))
}

fn set_backend(live: &mut Live, name: &str, port: u16) {
    let mut backend = Backend::new(UpstreamName::new(name));
    backend.endpoints = vec![Peer {
        address: "10.0.0.1".to_owned(),
        port,
    }];
    live.backends
        .insert(backend.name.clone(), Arc::new(backend));
}

fn set_server(live: &mut Live, host: &str, certificate: &str) {
    let id = CertificateId::new(certificate);
    live.certificates.insert(
        id.clone(),
        Certificate {
            id: id.clone(),
            pem: format!("PEM of {certificate}").into(),
        },
    );
    live.servers.insert(Host::parse(host).unwrap(), id);
}

/// Backends `a` and `b`, and `a.test` with a certificate.
fn live() -> Live {
    let mut live = Live::default();
    set_backend(&mut live, "a", 80);
    set_backend(&mut live, "b", 80);
    set_server(&mut live, "a.test", "uid-a");
    live
}

fn accept_all(count: usize) -> Vec<Reply> {
    vec![Reply::Accept; count]
}

fn then(mut script: Vec<Reply>, more: impl IntoIterator<Item = Reply>) -> Vec<Reply> {
    script.extend(more);
    script
}

fn full_dictionary() -> Reply {
    Reply::answer(
        507,
        r#"{"error":"full","dictionary":"configuration_data","needed":2,"capacity":1}"#,
    )
}

fn status(backends: u64, servers: u64, instance: &str) -> Reply {
    let status = json!({
        "backends": backends, "servers": servers, "instance": instance, "pid": 1, "checksum": "",
    });
    Reply::Answer(200, status.to_string())
}

fn names(request: &Seen, member: &str) -> Vec<String> {
    let json = request.json();
    let list = json[member].as_array().unwrap();
    list.iter()
        .map(|value| {
            value["name"]
                .as_str()
                .or(value.as_str())
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn only_changes_are_sent_after_the_first_time() {
    let server = Server::scripted(accept_all(4)).await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();

    let applied = nginx.apply(&wanted).await.unwrap();
    let first = Applied {
        backends_sent: 2,
        certificates_sent: 1,
        servers_sent: 1,
        full: true,
        elapsed: applied.elapsed,
    };
    assert_eq!(applied, first);
    assert!(applied.elapsed > Duration::ZERO);
    assert_eq!(server.take_lines(), [SERVERS_PATCH, BACKENDS_POST]);
    assert_eq!(nginx.told(), &wanted);

    let applied = nginx.apply(&wanted).await.unwrap();
    assert_eq!((applied.backends_sent, applied.full), (0, false));
    assert_eq!(server.take_lines(), [] as [&str; 0]);

    set_backend(&mut wanted, "b", 81);
    let applied = nginx.apply(&wanted).await.unwrap();
    assert_eq!((applied.backends_sent, applied.full), (1, false));
    let seen = server.take();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line(), BACKENDS_PATCH);
    assert_eq!(
        (&seen[0].json()["base"], &seen[0].json()["revision"]),
        (&json!(101), &json!(102))
    );
    assert_eq!(names(&seen[0], "upsert"), ["b"]);

    set_server(&mut wanted, "b.test", "uid-b");
    wanted.servers.remove(&Host::parse("a.test").unwrap());
    let applied = nginx.apply(&wanted).await.unwrap();
    assert_eq!((applied.certificates_sent, applied.servers_sent), (1, 2));
    let seen = server.take();
    assert_eq!(seen[0].line(), SERVERS_PATCH);
    // Each half counts from its own revision.
    assert_eq!(
        seen[0].json(),
        json!({
            "base": 100, "revision": 103, "replace": false,
            "certificates": {"uid-b": "PEM of uid-b"}, "servers": {"b.test": "uid-b"},
            "remove_servers": ["a.test"], "remove_certificates": [],
        })
    );
}

#[tokio::test]
async fn tcp_and_udp_services_are_left_out() {
    let server = Server::scripted(accept_all(2)).await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();
    nginx.apply(&wanted).await.unwrap();
    server.take();
    wanted
        .tcp
        .insert(9000, Arc::new(Backend::new(UpstreamName::new("tcp-a"))));
    nginx.apply(&wanted).await.unwrap();
    assert_eq!(server.take_lines(), [] as [&str; 0]);
    assert!(nginx.told().tcp.is_empty());
}

#[tokio::test]
async fn an_nginx_with_another_revision_is_told_everything() {
    let stale = Reply::answer(409, r#"{"revision":0}"#);
    let server = Server::scripted(then(accept_all(2), [stale, Reply::Accept, Reply::Accept])).await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();
    nginx.apply(&wanted).await.unwrap();
    server.take();

    set_backend(&mut wanted, "c", 80);
    let applied = nginx.apply(&wanted).await.unwrap();
    assert!(applied.full);
    assert_eq!(applied.backends_sent, 3);
    let seen = server.take();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1].line(), BACKENDS_POST);
    assert_eq!(seen[1].headers["x-revision"], "103");
    assert_eq!(seen[1].json().as_array().unwrap().len(), 3);

    // And goes on from there.
    wanted.backends.remove(&UpstreamName::new("a"));
    nginx.apply(&wanted).await.unwrap();
    let seen = server.take();
    assert_eq!(seen[0].json()["base"], json!(103));
    assert_eq!(names(&seen[0], "remove"), ["a"]);
}

#[tokio::test]
async fn after_a_failure_that_leaves_the_outcome_open_everything_is_told() {
    for failure in [
        Reply::answer(500, ""),
        Reply::Bytes(String::new()),
        Reply::answer(200, "{"),
    ] {
        let server = Server::scripted(then(accept_all(2), [failure.clone(), Reply::Accept])).await;
        let mut nginx = synchronizer(server.client());
        let first = live();
        nginx.apply(&first).await.unwrap();
        server.take();

        let mut wanted = first.clone();
        set_backend(&mut wanted, "a", 81);
        nginx.apply(&wanted).await.unwrap_err();
        // Wanting the old state again is no reason to believe that NGINX has it.
        let applied = nginx.apply(&first).await.unwrap();
        assert!(applied.full, "{failure:?}");
        assert_eq!(server.take_lines(), [BACKENDS_PATCH, BACKENDS_POST]);
    }
}

#[tokio::test]
async fn after_a_refusal_only_the_change_is_told_again() {
    let refusal = Reply::answer(400, "an upserted backend has no valid name\n");
    let server = Server::scripted(then(accept_all(2), [refusal, Reply::Accept])).await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();
    nginx.apply(&wanted).await.unwrap();
    server.take();

    set_backend(&mut wanted, "a", 81);
    let error = nginx.apply(&wanted).await.unwrap_err();
    assert!(matches!(error, Error::Status { code: 400, .. }), "{error}");
    let applied = nginx.apply(&wanted).await.unwrap();
    assert_eq!((applied.backends_sent, applied.full), (1, false));
    let seen = server.take();
    assert_eq!(seen[1].line(), BACKENDS_PATCH);
    assert_eq!(seen[1].json()["base"], json!(101));
}

#[tokio::test]
async fn a_cancelled_update_counts_as_one_with_an_open_outcome() {
    let server = Server::scripted(then(accept_all(2), [Reply::Silence, Reply::Accept])).await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();
    nginx.apply(&wanted).await.unwrap();
    server.take();

    set_backend(&mut wanted, "a", 81);
    let asked = async {
        while server.take().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = nginx.apply(&wanted) => panic!("the server says nothing, and yet: {answer:?}"),
        () = asked => {}
    }
    let applied = nginx.apply(&wanted).await.unwrap();
    assert!(applied.full);
    assert_eq!(nginx.told(), &wanted);
}

#[tokio::test]
async fn additions_come_before_and_removals_after() {
    let server = Server::scripted(accept_all(4)).await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();
    nginx.apply(&wanted).await.unwrap();
    server.take();

    wanted.backends.remove(&UpstreamName::new("a"));
    set_backend(&mut wanted, "c", 80);
    nginx.apply_additions(&wanted).await.unwrap();
    let seen = server.take();
    assert_eq!(seen.len(), 1);
    assert_eq!(names(&seen[0], "upsert"), ["c"]);
    assert_eq!(names(&seen[0], "remove"), [] as [&str; 0]);
    assert_eq!(nginx.told().backends.len(), 3);

    nginx.apply(&wanted).await.unwrap();
    let seen = server.take();
    assert_eq!(names(&seen[0], "upsert"), [] as [&str; 0]);
    assert_eq!(names(&seen[0], "remove"), ["a"]);
    assert_eq!(nginx.told(), &wanted);
}

#[tokio::test]
async fn additions_to_a_restarted_nginx_keep_what_old_servers_use() {
    let stale = Reply::answer(409, r#"{"revision":0}"#);
    let server = Server::scripted(then(accept_all(2), [stale, Reply::Accept])).await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();
    nginx.apply(&wanted).await.unwrap();
    server.take();

    wanted.backends.remove(&UpstreamName::new("a"));
    set_backend(&mut wanted, "c", 80);
    nginx.apply_additions(&wanted).await.unwrap();
    let list = server.take()[1].json();
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|backend| backend["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test]
async fn verification_finds_what_has_to_be_repaired() {
    let server = Server::scripted([
        status(0, 0, "first"),
        Reply::Accept,
        Reply::Accept,
        status(101, 100, "first"),
        status(7, 100, "first"),
        Reply::Accept,
        status(0, 0, "second"),
        Reply::Accept,
        Reply::Accept,
        status(104, 103, "second"),
    ])
    .await;
    let mut nginx = synchronizer(server.client());
    let wanted = live();

    let standing = nginx.verify().await.unwrap();
    assert_eq!(standing, Standing::Untold);
    assert!(standing.needs_repair());
    nginx.apply(&wanted).await.unwrap();
    let standing = nginx.verify().await.unwrap();
    assert_eq!(standing, Standing::InStep);
    assert!(!standing.needs_repair());
    server.take();

    let (told, have) = (
        Revisions {
            backends: Revision::new(101),
            servers: Revision::new(100),
        },
        Revisions {
            backends: Revision::new(7),
            servers: Revision::new(100),
        },
    );
    assert_eq!(
        nginx.verify().await.unwrap(),
        Standing::Diverged { told, have }
    );
    assert!(nginx.apply(&wanted).await.unwrap().full);
    // The other half was in step.
    assert_eq!(
        server.take_lines(),
        ["GET /configuration/revision", BACKENDS_POST]
    );

    assert_eq!(nginx.verify().await.unwrap(), Standing::Restarted);
    nginx.apply(&wanted).await.unwrap();
    assert_eq!(nginx.verify().await.unwrap(), Standing::InStep);
    assert_eq!(
        server.take_lines(),
        [
            "GET /configuration/revision",
            SERVERS_PATCH,
            BACKENDS_POST,
            "GET /configuration/revision"
        ]
    );
}

#[tokio::test]
async fn a_failed_verification_changes_nothing() {
    let server = Server::scripted(then(accept_all(2), [Reply::answer(500, "")])).await;
    let mut nginx = synchronizer(server.client());
    nginx.apply(&live()).await.unwrap();
    server.take();
    nginx.verify().await.unwrap_err();
    assert!(!nginx.apply(&live()).await.unwrap().full);
    assert_eq!(server.take().len(), 1);

    nginx.forget();
    nginx.apply(&live()).await.unwrap_err();
    assert_eq!(server.take_lines()[0], SERVERS_PATCH);
}

#[tokio::test]
async fn a_half_that_does_not_fit_does_not_stop_the_other() {
    let server = Server::start(|request| {
        if request.target == "/configuration/servers"
            && request.json()["servers"] != json!({"a.test": "uid-a"})
        {
            full_dictionary()
        } else {
            Reply::Accept
        }
    })
    .await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();
    nginx.apply(&wanted).await.unwrap();

    set_server(&mut wanted, "b.test", "uid-b");
    set_backend(&mut wanted, "c", 80);
    let error = nginx.apply(&wanted).await.unwrap_err();
    assert!(matches!(error, Error::DictionaryFull { .. }), "{error}");
    assert_eq!(nginx.told().backends, wanted.backends);
    assert_eq!(nginx.told().servers, live().servers);
}

#[tokio::test]
async fn an_unreachable_nginx_is_not_tried_for_the_other_half() {
    let server = Server::scripted([Reply::answer(500, "")]).await;
    let mut nginx = synchronizer(server.client());
    nginx.apply(&live()).await.unwrap_err();
    assert_eq!(server.take_lines(), [SERVERS_PATCH]);
}

#[tokio::test]
async fn one_backend_that_does_not_fit_keeps_no_other_back() {
    let server = Server::start(|request| {
        let huge = request.method == "PATCH"
            && request.target == "/configuration/backends"
            && names(request, "upsert").contains(&"huge".to_owned());
        if huge {
            full_dictionary()
        } else {
            Reply::Accept
        }
    })
    .await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = Live::default();
    for number in 0..200 {
        set_backend(&mut wanted, &format!("backend-{number:03}"), 80);
    }
    nginx.apply(&wanted).await.unwrap();
    server.take();

    for number in 0..200 {
        set_backend(&mut wanted, &format!("backend-{number:03}"), 81);
    }
    wanted.backends.remove(&UpstreamName::new("backend-007"));
    set_backend(&mut wanted, "huge", 80);
    let error = nginx.apply(&wanted).await.unwrap_err();
    assert!(matches!(error, Error::DictionaryFull { .. }), "{error}");
    let missing = nginx.told().diff(&wanted);
    assert_eq!(missing.set_backends.len(), 1);
    assert_eq!(missing.set_backends[0].name.as_str(), "huge");
    assert_eq!(missing.remove_backends, []);
    let seen = server.take();
    assert!(seen.len() < 25, "{}", seen.len());
    // What goes away makes room for the rest.
    assert_eq!(names(&seen[1], "remove"), ["backend-007"]);

    // The next change goes out alone, with what is missing tried after it.
    set_backend(&mut wanted, "backend-100", 82);
    nginx.apply(&wanted).await.unwrap_err();
    let lines = server.take();
    assert!(lines.len() <= 4, "{lines:?}");
    assert_eq!(nginx.told().diff(&wanted).set_backends.len(), 1);
}

#[tokio::test]
async fn a_whole_state_that_does_not_fit_is_told_in_parts() {
    let server = Server::start(|request| match request.line().as_str() {
        BACKENDS_POST => full_dictionary(),
        "GET /configuration/revision" => status(55, 100, "i"),
        "GET /configuration/backends" => {
            Reply::answer(200, r#"[{"name":"a","port":80},{"name":"gone","port":80}]"#)
        }
        BACKENDS_PATCH if names(request, "upsert").contains(&"b".to_owned()) => full_dictionary(),
        _ => Reply::Accept,
    })
    .await;
    let mut nginx = synchronizer(server.client());
    let mut wanted = live();
    let error = nginx.apply(&wanted).await.unwrap_err();
    assert!(matches!(error, Error::DictionaryFull { .. }), "{error}");
    assert_eq!(nginx.told().backends.len(), 1);
    assert_eq!(nginx.told().servers, wanted.servers);

    let patches: Vec<Seen> = server
        .take()
        .into_iter()
        .filter(|request| request.line() == BACKENDS_PATCH)
        .collect();
    assert_eq!(patches[0].json()["base"], json!(55));
    assert_eq!(names(&patches[0], "remove"), ["gone"]);

    // From here on only changes are sent.
    set_backend(&mut wanted, "a", 81);
    nginx.apply(&wanted).await.unwrap_err();
    assert!(
        server
            .take_lines()
            .iter()
            .all(|line| line == BACKENDS_PATCH)
    );
    assert_eq!(
        nginx.told().backends.get(&UpstreamName::new("a")),
        wanted.backends.get(&UpstreamName::new("a"))
    );
}

#[tokio::test]
async fn an_update_survives_a_moment_without_answers() {
    let failures = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&failures);
    let server = Server::start(move |_| {
        // Every second request breaks.
        if count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            Reply::Bytes(String::new())
        } else {
            Reply::Accept
        }
    })
    .await;
    let mut nginx = synchronizer(server.stubborn_client());
    // Controllers run it in a task.
    let applied = tokio::spawn(async move { nginx.apply(&live()).await }).await;
    assert!(applied.unwrap().unwrap().full);
    assert_eq!(failures.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn without_nginx_the_budget_ends_the_attempts() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        retry: Retry {
            first: Duration::from_millis(1),
            cap: Duration::from_millis(2),
            jitter_percent: 0,
            budget: Duration::from_millis(20),
        },
        ..Settings::default()
    };
    let endpoint = lua_sync_client::Endpoint::Unix(dir.path().join("none.sock"));
    let mut nginx = synchronizer(LuaSyncClient::new(endpoint, settings));
    let error = nginx.apply(&live()).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
}
