//! The client, the Lua modules and a real NGINX together.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says by panicking that it failed"
)]

use std::sync::Arc;

use ingress_model::{
    Host, Live,
    live::{Backend, Certificate, CertificateId, Endpoint, PortRef, TrafficShaping, UpstreamName},
};
use lua_sync_client::{Error, Revision, Standing, Synchronizer, wire};

#[path = "client_support/nginx.rs"]
mod nginx;

use nginx::{Nginx, Peer};

fn set_backend(live: &mut Live, name: &str, ports: &[u16]) {
    let mut backend = Backend::new(UpstreamName::new(name));
    backend.port = Some(PortRef::Number(80));
    backend.endpoints = ports
        .iter()
        .map(|port| Endpoint {
            address: "127.0.0.1".to_owned(),
            port: *port,
        })
        .collect();
    live.backends
        .insert(backend.name.clone(), Arc::new(backend));
}

/// That many backends, `service-0000` and so on, all with one peer at `port`.
fn many(count: usize, port: u16) -> Live {
    let mut live = Live::default();
    for number in 0..count {
        set_backend(&mut live, &format!("service-{number:04}"), &[port]);
    }
    live
}

fn set_server(live: &mut Live, host: &str, certificate: &str) {
    let id = CertificateId::new(certificate);
    live.certificates.insert(
        id.clone(),
        Certificate {
            id: id.clone(),
            pem: format!("PEM of {certificate}\n").into(),
        },
    );
    live.servers.insert(Host::parse(host).unwrap(), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_told_nginx_balances_requests() {
    let (one, two) = (Peer::start("one").await, Peer::start("two").await);
    let nginx = Nginx::start("1m").await;
    let client = nginx.client();
    assert!(!client.initialized().await.unwrap());
    assert_eq!(client.backends().await.unwrap(), []);
    assert_eq!(nginx.get("shop").await.0, 503);

    let mut live = Live::default();
    set_backend(&mut live, "shop", &[one.port, two.port]);
    set_backend(&mut live, "closed", &[]);
    client.replace(&live, Revision::new(7)).await.unwrap();

    assert!(client.initialized().await.unwrap());
    let mut answers = Vec::new();
    for _ in 0..20 {
        let (status, body) = nginx.get("shop").await;
        assert_eq!(status, 200);
        answers.push(body);
    }
    for name in ["one", "two"] {
        assert!(
            answers.iter().filter(|body| *body == name).count() >= 5,
            "{answers:?}"
        );
    }
    assert_eq!(nginx.get("closed").await.0, 503);
    assert_eq!(nginx.get("unknown").await.0, 503);
    let status = client.revision().await.unwrap();
    assert_eq!(
        (status.backends, status.servers),
        (Revision::new(7), Revision::new(7))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_comes_back_as_it_was() {
    let nginx = Nginx::start("1m").await;
    let client = nginx.client();
    let mut live = many(3, 80);
    let mut canary = Backend::new(UpstreamName::new("canary"));
    canary.port = Some(PortRef::Name("http".to_owned()));
    canary.canary = true;
    canary.traffic_shaping = Some(Box::new(TrafficShaping {
        weight: 10,
        weight_total: 100,
        header_pattern: r#"^"\\/é$"#.to_owned(),
        ..TrafficShaping::default()
    }));
    live.backends.insert(canary.name.clone(), Arc::new(canary));
    set_server(&mut live, "*.shop.test", "uid-1");
    client.replace(&live, Revision::new(1)).await.unwrap();

    assert_eq!(client.backends().await.unwrap(), wire::backends(&live));
    let certificate = client.certificate("*.shop.test").await.unwrap().unwrap();
    assert_eq!(&*certificate.0, "PEM of uid-1\n");
    assert_eq!(client.certificate("shop.test").await.unwrap(), None);

    assert_eq!(client.general().await.unwrap(), None);
    client.set_general("{\"a\":1}").await.unwrap();
    assert_eq!(
        client.general().await.unwrap().as_deref(),
        Some("{\"a\":1}")
    );

    let classic = wire::Servers {
        servers: [("*.shop.test".to_owned(), wire::NO_CERTIFICATE.to_owned())].into(),
        ..wire::Servers::default()
    };
    client.post_servers(&classic).await.unwrap();
    assert_eq!(client.certificate("*.shop.test").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_change_among_two_thousand_backends_is_in_effect_at_once() {
    let (old, new) = (Peer::start("old").await, Peer::start("new").await);
    let nginx = Nginx::start("20m").await;
    let mut synchronizer = Synchronizer::new(nginx.client());
    let mut wanted = many(2_000, old.port);
    let applied = synchronizer.apply(&wanted).await.unwrap();
    assert!(applied.full);
    assert_eq!(applied.backends_sent, 2_000);
    // Both workers have it in use.
    for _ in 0..20 {
        assert_eq!(nginx.get("service-1000").await, (200, "old".to_owned()));
    }

    for round in 0..10 {
        let (peer, name) = if round % 2 == 0 {
            (&new, "new")
        } else {
            (&old, "old")
        };
        set_backend(&mut wanted, "service-1000", &[peer.port]);
        let applied = synchronizer.apply(&wanted).await.unwrap();
        assert_eq!((applied.backends_sent, applied.full), (1, false));
        for _ in 0..5 {
            assert_eq!(nginx.get("service-1000").await, (200, name.to_owned()));
        }
    }
    assert_eq!(nginx.get("service-0999").await, (200, "old".to_owned()));

    wanted.backends.remove(&UpstreamName::new("service-0999"));
    synchronizer.apply(&wanted).await.unwrap();
    assert_eq!(nginx.get("service-0999").await.0, 503);
    assert_eq!(
        synchronizer.client().backends().await.unwrap(),
        wire::backends(&wanted)
    );
    assert_eq!(synchronizer.verify().await.unwrap(), Standing::InStep);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_added_exchanged_and_removed() {
    let nginx = Nginx::start("1m").await;
    let mut synchronizer = Synchronizer::new(nginx.client());
    let client = nginx.client();
    let certificate = async |host| {
        let pem = client.certificate(host).await.unwrap();
        pem.map(|pem| pem.0.to_string())
    };
    let mut wanted = many(1, 80);
    set_server(&mut wanted, "a.test", "uid-a");
    set_server(&mut wanted, "b.test", "uid-b");
    synchronizer.apply(&wanted).await.unwrap();
    assert_eq!(
        certificate("a.test").await.as_deref(),
        Some("PEM of uid-a\n")
    );

    wanted.certificates.remove(&CertificateId::new("uid-a"));
    set_server(&mut wanted, "a.test", "uid-c");
    wanted.servers.remove(&Host::parse("b.test").unwrap());
    wanted.certificates.remove(&CertificateId::new("uid-b"));

    let applied = synchronizer.apply_additions(&wanted).await.unwrap();
    assert_eq!((applied.certificates_sent, applied.servers_sent), (1, 1));
    assert_eq!(
        certificate("a.test").await.as_deref(),
        Some("PEM of uid-c\n")
    );
    assert_eq!(
        certificate("b.test").await.as_deref(),
        Some("PEM of uid-b\n")
    );

    let applied = synchronizer.apply(&wanted).await.unwrap();
    assert_eq!((applied.certificates_sent, applied.servers_sent), (2, 1));
    assert_eq!(certificate("b.test").await, None);
    assert_eq!(synchronizer.verify().await.unwrap(), Standing::InStep);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_nginx_is_noticed_and_repaired() {
    let peer = Peer::start("peer").await;
    let mut nginx = Nginx::start("1m").await;
    let mut synchronizer = Synchronizer::new(nginx.client());
    let mut wanted = many(10, peer.port);
    set_server(&mut wanted, "a.test", "uid-a");
    synchronizer.apply(&wanted).await.unwrap();
    assert_eq!(synchronizer.verify().await.unwrap(), Standing::InStep);

    nginx.restart().await;
    assert_eq!(nginx.get("service-0003").await.0, 503);
    assert_eq!(synchronizer.verify().await.unwrap(), Standing::Restarted);
    assert!(synchronizer.apply(&wanted).await.unwrap().full);
    assert_eq!(nginx.get("service-0003").await, (200, "peer".to_owned()));
    assert!(
        nginx
            .client()
            .certificate("a.test")
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(synchronizer.verify().await.unwrap(), Standing::InStep);

    // A change finds it out too, without being asked to verify.
    nginx.restart().await;
    set_backend(&mut wanted, "service-0003", &[]);
    assert!(synchronizer.apply(&wanted).await.unwrap().full);
    assert_eq!(nginx.get("service-0003").await.0, 503);
    assert_eq!(nginx.get("service-0004").await, (200, "peer".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_someone_else_told_nginx_is_noticed_and_repaired() {
    let nginx = Nginx::start("1m").await;
    let mut synchronizer = Synchronizer::new(nginx.client());
    let wanted = many(3, 80);
    synchronizer.apply(&wanted).await.unwrap();

    let other = nginx.client();
    other
        .replace_backends(&Live::default(), Revision::new(1))
        .await
        .unwrap();
    assert_eq!(other.backends().await.unwrap(), []);
    let standing = synchronizer.verify().await.unwrap();
    assert!(
        matches!(standing, Standing::Diverged { .. }),
        "{standing:?}"
    );
    synchronizer.apply(&wanted).await.unwrap();
    assert_eq!(other.backends().await.unwrap(), wire::backends(&wanted));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_leaves_the_rest_serving_and_changing() {
    let (old, new) = (Peer::start("old").await, Peer::start("new").await);
    let nginx = Nginx::start("256k").await;
    let mut synchronizer = Synchronizer::new(nginx.client());
    let mut wanted = many(100, old.port);
    synchronizer.apply(&wanted).await.unwrap();

    // One that grows beyond the dictionary, and one that only moves.
    let ports: Vec<u16> = (1..=20_000).collect();
    set_backend(&mut wanted, "service-0001", &ports);
    set_backend(&mut wanted, "service-0002", &[new.port]);
    let error = synchronizer.apply(&wanted).await.unwrap_err();
    let Error::DictionaryFull {
        dictionary,
        needed,
        capacity,
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(
        (dictionary.as_str(), *capacity),
        ("configuration_data", 256 << 10)
    );
    assert!(needed > capacity, "{needed}");
    assert_eq!(nginx.get("service-0001").await, (200, "old".to_owned()));
    assert_eq!(nginx.get("service-0002").await, (200, "new".to_owned()));

    set_backend(&mut wanted, "service-0001", &[new.port]);
    let applied = synchronizer.apply(&wanted).await.unwrap();
    assert_eq!((applied.backends_sent, applied.full), (1, false));
    assert_eq!(nginx.get("service-0001").await, (200, "new".to_owned()));
    assert_eq!(synchronizer.verify().await.unwrap(), Standing::InStep);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_everything_fits_where_its_result_does() {
    let (old, new) = (Peer::start("old").await, Peer::start("new").await);
    let nginx = Nginx::start("512k").await;
    let mut synchronizer = Synchronizer::new(nginx.client());
    // Together, old and new texts are more than the dictionary holds.
    let before = many(600, old.port);
    synchronizer.apply(&before).await.unwrap();
    let after = many(600, new.port);
    let whole = synchronizer
        .client()
        .push_backends(
            &before.diff(&after),
            synchronizer.client().revision().await.unwrap().backends,
            Revision::new(1),
        )
        .await;
    assert!(
        matches!(whole, Err(Error::DictionaryFull { .. })),
        "{whole:?}"
    );

    let applied = synchronizer.apply(&after).await.unwrap();
    assert_eq!((applied.backends_sent, applied.full), (600, false));
    assert_eq!(nginx.get("service-0599").await, (200, "new".to_owned()));
    assert_eq!(
        synchronizer.client().backends().await.unwrap(),
        wire::backends(&after)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_controller_finds_an_old_nginx() {
    let peer = Peer::start("peer").await;
    let nginx = Nginx::start("512k").await;
    Synchronizer::new(nginx.client())
        .apply(&many(600, 1))
        .await
        .unwrap();
    let mut wanted = many(590, peer.port);
    set_backend(&mut wanted, "another", &[peer.port]);
    let mut successor = Synchronizer::new(nginx.client());
    successor.apply(&wanted).await.unwrap();
    assert_eq!(nginx.get("service-0001").await, (200, "peer".to_owned()));
    assert_eq!(nginx.get("service-0595").await.0, 503);
    assert_eq!(
        nginx.client().backends().await.unwrap(),
        wire::backends(&wanted)
    );
    assert_eq!(successor.verify().await.unwrap(), Standing::InStep);
}
