//! What the client sends, and what it makes of the answers.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test says by panicking that it failed"
)]

use std::{error::Error as _, io, sync::Arc, time::Duration};

use ingress_model::{
    Host, Live,
    live::{Backend, Certificate, CertificateId, LiveDelta, UpstreamName},
};
use lua_sync_client::{
    Endpoint, Error, LuaSyncClient, Retry, Revision, Revisions, Settings, wire::Servers,
};

mod client_support;

use client_support::{Reply, Server};

const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIEsecret\n-----END PRIVATE KEY-----\n";

const BACKEND: &str = concat!(
    r#"{"name":"a","port":0,"sslPassthrough":false,"#,
    r#""sessionAffinityConfig":{"name":"","mode":"","cookieSessionAffinity":{"name":""}},"#,
    r#""upstreamHashByConfig":{},"noServer":false,"#,
    r#""trafficShapingPolicy":{"weight":0,"weightTotal":0,"header":"","headerValue":"","headerPattern":"","cookie":""}}"#,
);

fn live() -> Live {
    let mut live = Live::default();
    let backend = Backend::new(UpstreamName::new("a"));
    live.backends
        .insert(backend.name.clone(), Arc::new(backend));
    let id = CertificateId::new("uid-1");
    live.certificates.insert(
        id.clone(),
        Certificate {
            id: id.clone(),
            pem: KEY.into(),
        },
    );
    live.servers.insert(Host::parse("a.test").unwrap(), id);
    live
}

fn backends_delta() -> LiveDelta {
    LiveDelta {
        remove_backends: vec![UpstreamName::new("a")],
        ..LiveDelta::default()
    }
}

const fn revisions(backends: u64, servers: u64) -> Revisions {
    Revisions {
        backends: Revision::new(backends),
        servers: Revision::new(servers),
    }
}

/// Pushes a change of backends from revision 1 to 2.
async fn push(client: &LuaSyncClient) -> Result<Revisions, Error> {
    client
        .push(&backends_delta(), revisions(1, 1), Revision::new(2))
        .await
}

/// The text of the error and of all its causes.
fn whole_text(error: &Error) -> String {
    let mut texts = vec![format!("{error} {error:?}")];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(format!("{error} {error:?}"));
        cause = error.source();
    }
    texts.join("\n")
}

#[tokio::test]
async fn replacing_sends_both_halves_as_a_whole() {
    let server = Server::scripted([Reply::Accept, Reply::Accept]).await;
    let now = server
        .client()
        .replace(&live(), Revision::new(7))
        .await
        .unwrap();
    assert_eq!(now, revisions(7, 7));

    let seen = server.take();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].line(), "PATCH /configuration/servers");
    assert_eq!(
        seen[0].body,
        format!(
            r#"{{"revision":7,"replace":true,"certificates":{{"uid-1":{}}},"servers":{{"a.test":"uid-1"}},"remove_servers":[],"remove_certificates":[]}}"#,
            serde_json::to_string(KEY).unwrap()
        )
    );
    assert_eq!(seen[1].line(), "POST /configuration/backends");
    assert_eq!(seen[1].body, format!("[{BACKEND}]"));
    assert_eq!(seen[1].headers["x-revision"], "7");
    assert_eq!(seen[1].headers["content-type"], "application/json");
    // NGINX answers only those who name it as they reach it.
    assert_eq!(seen[1].headers["host"], server.endpoint.to_string());
}

#[tokio::test]
async fn pushing_sends_only_the_halves_that_change() {
    let server = Server::scripted([Reply::Accept, Reply::Accept, Reply::Accept]).await;
    let client = server.client();
    let base = revisions(3, 4);

    let push = async |delta: &LiveDelta, revision| {
        let revision = Revision::new(revision);
        client.push(delta, base, revision).await.unwrap()
    };

    assert_eq!(push(&LiveDelta::default(), 5).await, base);
    assert_eq!(server.take_lines(), [] as [&str; 0]);

    assert_eq!(push(&backends_delta(), 5).await, revisions(5, 4));
    let seen = server.take();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line(), "PATCH /configuration/backends");
    assert_eq!(
        seen[0].body,
        r#"{"base":3,"revision":5,"upsert":[],"remove":["a"]}"#
    );

    let both = Live::default().diff(&live());
    assert_eq!(push(&both, 6).await, revisions(6, 6));
    assert_eq!(
        server.take_lines(),
        [
            "PATCH /configuration/servers",
            "PATCH /configuration/backends"
        ]
    );
}

#[tokio::test]
async fn the_classic_update_of_servers_is_a_post() {
    let server = Server::scripted([Reply::Accept]).await;
    let servers = Servers {
        servers: [("a.test".to_owned(), "-1".to_owned())].into(),
        ..Servers::default()
    };
    server.client().post_servers(&servers).await.unwrap();
    let seen = server.take();
    assert_eq!(seen[0].line(), "POST /configuration/servers");
    assert_eq!(
        seen[0].body,
        r#"{"certificates":{},"servers":{"a.test":"-1"}}"#
    );
}

#[tokio::test]
async fn questions_are_answered() {
    let status = r#"{"backends":8,"servers":9,"instance":"i","pid":1,"checksum":"c"}"#;
    let server = Server::scripted([
        Reply::answer(200, status),
        Reply::answer(200, "nil"),
        Reply::answer(200, &format!("[{BACKEND}]")),
        Reply::answer(200, KEY),
        Reply::answer(404, "no certificate for this host\n"),
        Reply::answer(200, "OK\n"),
        Reply::answer(500, "<html>"),
        Reply::answer(200, "nil"),
        Reply::answer(200, "{}"),
        Reply::Accept,
    ])
    .await;
    let client = server.client();

    let status = client.revision().await.unwrap();
    assert_eq!(status.revisions(), revisions(8, 9));
    assert_eq!((status.instance.as_str(), status.pid), ("i", 1));
    assert_eq!(status.checksum, "c");
    assert_eq!(client.backends().await.unwrap(), []);
    assert_eq!(client.backends().await.unwrap()[0].name, "a");
    let certificate = client.certificate("*.a.test").await.unwrap();
    assert_eq!(&*certificate.unwrap().0, KEY);
    assert_eq!(client.certificate("b.test").await.unwrap(), None);
    assert!(client.initialized().await.unwrap());
    assert!(!client.initialized().await.unwrap());
    assert_eq!(client.general().await.unwrap(), None);
    assert_eq!(client.general().await.unwrap().as_deref(), Some("{}"));
    client.set_general("{}").await.unwrap();

    assert_eq!(
        server.take_lines(),
        [
            "GET /configuration/revision",
            "GET /configuration/backends",
            "GET /configuration/backends",
            "GET /configuration/certs?hostname=%2A.a.test",
            "GET /configuration/certs?hostname=b.test",
            "GET /is-dynamic-lb-initialized",
            "GET /is-dynamic-lb-initialized",
            "GET /configuration/general",
            "GET /configuration/general",
            "POST /configuration/general",
        ]
    );
}

#[tokio::test]
async fn a_unix_socket_serves_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("status.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let read = stream.read(&mut request).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nOK\n")
            .await
            .unwrap();
        String::from_utf8(request[..read].to_vec()).unwrap()
    });
    let client = LuaSyncClient::new(Endpoint::Unix(path), Settings::default());
    assert!(client.initialized().await.unwrap());
    let request = server.await.unwrap();
    assert!(request.starts_with("GET /is-dynamic-lb-initialized HTTP/1.1\r\n"));
    assert!(request.contains("host: localhost\r\n"), "{request}");
}

#[tokio::test]
async fn a_refused_base_names_the_revision_that_nginx_has() {
    let server = Server::scripted([Reply::answer(409, r#"{"revision":41}"#)]).await;
    let error = push(&server.stubborn_client()).await.unwrap_err();
    assert!(
        matches!(error, Error::Stale { have, .. } if have == Revision::new(41)),
        "{error:?}"
    );
    assert_eq!(server.take().len(), 1);
}

#[tokio::test]
async fn a_full_dictionary_is_named() {
    let body = r#"{"error":"no memory","dictionary":"configuration_data","needed":31000000,"capacity":20971520}"#;
    let server = Server::scripted([Reply::answer(507, body)]).await;
    let error = push(&server.stubborn_client()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "dictionary configuration_data is too small: 31000000 bytes are needed, it has 20971520; raise it with the \
         ConfigMap key lua-shared-dicts"
    );
    assert_eq!(server.take().len(), 1);
}

#[tokio::test]
async fn what_may_pass_is_tried_again_with_the_same_request() {
    let server = Server::scripted([
        Reply::answer(503, "another update is running\n"),
        Reply::Bytes(String::new()),
        Reply::answer(500, ""),
        Reply::Accept,
    ])
    .await;
    let now = push(&server.stubborn_client()).await.unwrap();
    assert_eq!(now, revisions(2, 1));
    let seen = server.take();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|request| request.body == seen[0].body));
}

#[tokio::test]
async fn what_cannot_pass_is_not_tried_again() {
    for code in [400, 403, 404, 413, 507] {
        let server = Server::scripted([Reply::answer(code, "because\n")]).await;
        let error = push(&server.stubborn_client()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("nginx answered PATCH /configuration/backends with status {code}: \"because\"")
        );
        assert_eq!(server.take().len(), 1, "status {code}");
    }
}

#[tokio::test]
async fn an_update_whose_answer_was_lost_is_not_made_twice() {
    let server = Server::scripted([
        // It took effect, and the connection broke.
        Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"revi".to_owned()),
        Reply::answer(409, r#"{"revision":2}"#),
    ])
    .await;
    assert_eq!(
        push(&server.stubborn_client()).await.unwrap(),
        revisions(2, 1)
    );
    assert_eq!(server.take().len(), 2);
}

#[tokio::test]
async fn only_201_is_success_of_a_post() {
    let server = Server::scripted([Reply::answer(200, "")]).await;
    let error = server
        .client()
        .replace_backends(&live(), Revision::new(1))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Status { code: 200, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn broken_answers_are_told_apart() {
    type Check = fn(&Error) -> bool;
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"revision\"";
    let cut_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{\"revision\"";
    let cases: [(&str, Check); 6] = [
        ("", |e| matches!(e, Error::Interrupted { .. })),
        ("SSH-2.0-OpenSSH\r\n", |e| {
            matches!(e, Error::Interrupted { .. })
        }),
        (cut, |e| matches!(e, Error::Interrupted { .. })),
        (cut_chunk, |e| matches!(e, Error::Interrupted { .. })),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", |e| {
            matches!(e, Error::Decode { .. })
        }),
        ("HTTP/1.1 409 -\r\nContent-Length: 0\r\n\r\n", |e| {
            matches!(e, Error::Decode { .. })
        }),
    ];
    for (bytes, is_right) in cases {
        let server = Server::scripted([Reply::Bytes(bytes.to_owned())]).await;
        let error = push(&server.client()).await.unwrap_err();
        assert!(is_right(&error), "{bytes:?}: {error:?}");
        assert!(error.to_string().contains("PATCH /configuration/backends"));
        assert!(error.source().is_some());
    }
}

#[tokio::test]
async fn an_answer_that_acknowledges_another_revision_is_none() {
    let server = Server::scripted([Reply::answer(200, r#"{"revision":1}"#)]).await;
    let error = push(&server.client()).await.unwrap_err();
    assert!(matches!(error, Error::Stale { .. }), "{error:?}");
}

#[tokio::test]
async fn answers_are_read_up_to_the_limit() {
    let long = "x".repeat(5000);
    let announced = Reply::answer(200, &long);
    let open_ended = Reply::Bytes(format!("HTTP/1.1 200 OK\r\n\r\n{long}"));
    for reply in [announced, open_ended] {
        let server = Server::scripted([reply.clone(), reply]).await;
        let with_limit = |max_answer| {
            let settings = Settings {
                max_answer,
                ..Settings::default()
            };
            LuaSyncClient::new(server.endpoint.clone(), settings)
        };
        let error = with_limit(4999).general().await.unwrap_err();
        assert!(
            matches!(error, Error::TooLarge { limit: 4999, .. }),
            "{error:?}"
        );
        let text = with_limit(5000).general().await.unwrap();
        assert_eq!(text, Some(long.clone()));
    }
}

#[tokio::test]
async fn an_nginx_that_says_nothing_is_given_up() {
    let server = Server::scripted([Reply::Silence]).await;
    let settings = Settings {
        timeout: Duration::from_millis(50),
        retry: Retry::never(),
        ..Settings::default()
    };
    let error = push(&LuaSyncClient::new(server.endpoint.clone(), settings))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "wait for nginx's answer to PATCH /configuration/backends for 50 ms"
    );
    assert!(error.is_transient() && !error.is_refusal());
}

#[tokio::test]
async fn a_port_without_nginx_fails_to_connect() {
    // No server of these tests is at this address.
    let address = ([127, 77, 0, 1], 9).into();
    let settings = Settings {
        retry: Retry::never(),
        ..Settings::default()
    };
    let error = push(&LuaSyncClient::new(Endpoint::Tcp(address), settings))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), format!("connect to nginx at {address}"));
    let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn no_error_shows_a_key_that_nginx_gives_back() {
    for code in [200, 400, 409, 500, 507] {
        let server = Server::start(move |request| Reply::Answer(code, request.body.clone())).await;
        let error = server
            .client()
            .replace_servers(&live(), Revision::new(1))
            .await;
        // The request has a revision too, so an answer 200 or 409 with it is a good one.
        if let Err(error) = error {
            assert!(!whole_text(&error).contains("secret"), "{error:?}");
        } else {
            assert!([200, 409].contains(&code), "{code}");
        }
        let error = server
            .client()
            .set_general(KEY)
            .await
            .expect_err("no status is 201");
        assert!(!whole_text(&error).contains("secret"), "{error:?}");
    }
    let debug = format!("{:?}", Servers::from(&live()));
    assert!(
        debug.contains("uid-1") && !debug.contains("secret"),
        "{debug}"
    );
}
