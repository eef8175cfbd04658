//! Which requests a kept connection to an endpoint serves.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

#[allow(dead_code, reason = "only some of it is needed here")]
#[path = "support/nginx.rs"]
mod nginx;
mod support;

use std::{collections::BTreeSet, sync::Arc};

use ingress_model::{
    Layout, ObjectName, Server,
    config::RenderConfig,
    layout::{BackendProtocol, LocationSettings, Modifier, Owned, UpstreamTls},
    value::{Confidential, Literal, Snippet, Template},
};

use nginx::{Nginx, exchange, free_ports};
use support::{key_pair, layout, location, server};

/// More than NGINX has workers, so that each of them serves several.
const ROUNDS: usize = 40;

fn tls(name: &str) -> UpstreamTls {
    UpstreamTls {
        secret: ObjectName::new("shop", name),
        authority: None,
        certificate: None,
        ciphers: Literal::constant("DEFAULT"),
        protocols: vec![Literal::constant("TLSv1.2")],
        name: None,
        server_name: false,
        verify: false,
        verify_depth: 1,
    }
}

fn settings(protocol: BackendProtocol, tls: Option<UpstreamTls>) -> LocationSettings {
    LocationSettings {
        backend_protocol: protocol,
        upstream_tls: tls,
        ..LocationSettings::default()
    }
}

/// A host of this name whose only path has settings.
fn host(name: &str, settings: &LocationSettings) -> Server {
    server(name, [location(Modifier::Prefix, "/", settings)])
}

/// NGINX in front of an endpoint, another server of its own, that speaks TLS. It answers with the subject of the
/// client's certificate, the name that it was called, and the number of the connection.
fn start(servers: impl IntoIterator<Item = Server>, keepalive: u32) -> Nginx {
    let [port] = free_ports();
    let config = RenderConfig {
        upstream_keepalive_connections: keepalive,
        http_snippet: Snippet::new(&format!(
            "server {{ listen 127.0.0.1:{port} ssl; ssl_certificate ssl/default.pem; \
             ssl_certificate_key ssl/default.pem; ssl_verify_client optional_no_ca; \
             location / {{ return 200 \"$ssl_client_s_dn|$ssl_server_name|$connection\"; }} }}"
        )),
        ..RenderConfig::default()
    };
    let layout = Layout {
        config: Arc::new(config),
        ..layout(servers)
    };
    let nginx = Nginx::start(&layout, &["shop-cart-80"]);
    let backends = format!(
        r#"[{{"name":"shop-cart-80","endpoints":[{{"address":"127.0.0.1","port":"{port}"}}]}}]"#
    );
    let request = format!(
        "POST /configuration/backends HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{backends}",
        backends.len()
    );
    let answer = exchange(nginx.environment.ports.status, &request);
    assert_eq!(answer.status, 201, "{}", answer.body);
    nginx
}

/// What the endpoint has seen of a request: subject, name, connection.
fn ask(nginx: &Nginx, host: &str) -> [String; 3] {
    let answer = nginx.get(host, "/", &[]);
    assert_eq!(answer.status, 200, "{host}: {}", nginx.log());
    let mut parts = answer.body.trim().split('|').map(str::to_owned);
    std::array::from_fn(|_| parts.next().unwrap())
}

#[test]
fn certificates_show_at_their_own_endpoints_only() {
    let with_certificate = UpstreamTls {
        certificate: Some(Confidential::new(&key_pair())),
        ..tls("client")
    };
    let https = |tls| settings(BackendProtocol::Https, tls);
    let nginx = start(
        [
            host("shown.test", &https(Some(with_certificate.clone()))),
            host("same.test", &https(Some(with_certificate.clone()))),
            host("none.test", &https(Some(tls("client")))),
            host("default.test", &https(None)),
            Server {
                upstream_tls: Some(Box::new(Owned {
                    ingress: ObjectName::new("shop", "web"),
                    value: with_certificate,
                })),
                ..host("server.test", &https(None))
            },
        ],
        320,
    );
    let mut shown = BTreeSet::new();
    for _ in 0..ROUNDS {
        for host in ["shown.test", "same.test", "server.test"] {
            let [subject, _, connection] = ask(&nginx, host);
            assert_ne!(subject, "", "{host}");
            shown.insert(connection);
        }
        for host in ["none.test", "default.test"] {
            let [subject, ..] = ask(&nginx, host);
            assert_eq!(subject, "", "{host}");
        }
    }
    // They are kept nevertheless, and shared by those who may.
    assert!(shown.len() < ROUNDS, "{} connections", shown.len());
}

#[test]
fn a_verified_connection_vouches_for_nobody_else() {
    // The endpoint's certificate is its own authority.
    let of = |name: &str| {
        let tls = UpstreamTls {
            name: Some(Template::parse(name).unwrap()),
            verify: true,
            ..tls("authority")
        };
        LocationSettings {
            snippet: Snippet::new("proxy_ssl_trusted_certificate ssl/default.pem;"),
            ..settings(BackendProtocol::Https, Some(tls))
        }
    };
    let unverified = settings(BackendProtocol::Https, Some(tls("authority")));
    let nginx = start(
        [
            host("good.test", &of("authority.test")),
            host("bad.test", &of("other.test")),
            host("unverified.test", &unverified),
        ],
        320,
    );
    for _ in 0..ROUNDS {
        ask(&nginx, "good.test");
        ask(&nginx, "unverified.test");
        assert_eq!(nginx.get("bad.test", "/", &[]).status, 502);
    }
}

#[test]
fn endpoints_are_called_by_the_name_of_each_request() {
    let named = |name: &str| {
        let tls = UpstreamTls {
            name: Some(Template::parse(name).unwrap()),
            server_name: true,
            ..tls("names")
        };
        settings(BackendProtocol::Https, Some(tls))
    };
    let unnamed = UpstreamTls {
        server_name: true,
        ..tls("names")
    };
    let by_host = Server {
        aliases: vec![support::host("b.test")],
        ..host("a.test", &named("$host"))
    };
    let nginx = start(
        [
            by_host,
            host("fixed.test", &named("inner.test")),
            host(
                "unnamed.test",
                &settings(BackendProtocol::Https, Some(unnamed)),
            ),
        ],
        320,
    );
    for _ in 0..ROUNDS {
        for (host, want) in [
            ("a.test", "a.test"),
            ("b.test", "b.test"),
            ("fixed.test", "inner.test"),
            ("unnamed.test", "upstream_balancer"),
        ] {
            let [_, name, _] = ask(&nginx, host);
            assert_eq!(name, want, "{host}");
        }
    }
}

#[test]
fn connections_are_not_kept_unless_wanted() {
    let https = settings(BackendProtocol::Https, None);
    let nginx = start([host("a.test", &https)], 0);
    let connections: BTreeSet<_> = (0..ROUNDS)
        .map(|_| {
            let [.., connection] = ask(&nginx, "a.test");
            connection
        })
        .collect();
    assert_eq!(connections.len(), ROUNDS);
}
