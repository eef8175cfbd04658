//! What the author of an Ingress chooses opens nothing that another one guards.

use std::{path::Path, process::Command, sync::Arc};

use ingress_model::{
    Location, ObjectName, Server,
    config::RenderConfig,
    layout::{
        AuthCache, Authority, CacheValid, ClientAuth, ExternalAuth, LocationSettings, Mirror,
        Modifier, Owned, PathType, VerifyClient,
    },
    value::{Seconds, Snippet},
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::{
    BACKEND, host,
    nginx::{Nginx, exchange, free_ports, read_answer},
    support::{key_pair, layout, location, render, server, servers, template, with_config},
};

/// A question to a service at a port of this host, whose answers are kept by the header `X-Key`.
fn asked(port: u16, path: &str) -> LocationSettings {
    let cache = AuthCache {
        key: template("$http_x_key"),
        valid: vec![CacheValid {
            statuses: vec![200, 401],
            time: Seconds(60),
        }],
    };
    LocationSettings {
        external_auth: Some(Arc::new(ExternalAuth {
            url: template(&format!("http://127.0.0.1:{port}{path}")),
            host: template("127.0.0.1"),
            authority: template(&format!("127.0.0.1:{port}")),
            method: None,
            signin: None,
            response_headers: Vec::new(),
            request_redirect: None,
            request_headers: Vec::new(),
            cache: Some(cache),
            always_set_cookie: false,
            keepalive: None,
            snippet: None,
        })),
        ..LocationSettings::default()
    }
}

/// Has NGINX answer at a port as the endpoint does.
fn service(port: u16) -> RenderConfig {
    RenderConfig {
        http_snippet: Snippet::new(&format!(
            "server {{ listen 127.0.0.1:{port}; location / {{ set $proxy_upstream_name shop-cart-80; \
             proxy_pass http://upstream_balancer; }} }}"
        )),
        ..RenderConfig::default()
    }
}

fn of(ingress: &str, location: Location) -> Location {
    Location {
        ingress: Some(ObjectName::new("other", ingress)),
        ..location
    }
}

/// A location for everything below a path, and one for the same path exactly, are two Ingresses' maybe.
#[test]
fn kept_answers_are_not_those_of_another_location() {
    let [port] = free_ports();
    let exact = Location {
        path_type: PathType::Exact,
        ..location(Modifier::Exact, "/admin/", &asked(port, "/lax?status=200"))
    };
    let below = location(
        Modifier::Prefix,
        "/admin/",
        &asked(port, "/strict?status=401"),
    );
    let hosts = layout([server("a.test", [of("lax", exact), below])]);
    let nginx = Nginx::start(&with_config(hosts, service(port)), BACKEND);
    let get = |path: &str| nginx.get("a.test", path, &["X-Key: same"]).status;
    assert_eq!(get("/admin/"), 200, "{}", nginx.log());
    assert_eq!(get("/admin/x"), 401, "{}", nginx.log());
}

/// Who takes over a path is not believed what the one before was told.
#[test]
fn kept_answers_are_not_those_of_another_ingress_or_service() {
    let key = |ingress: &str, url: &str| {
        let guarded = of(ingress, location(Modifier::Prefix, "/", &asked(80, url)));
        let main = render(&layout([server("a.test", [guarded])])).main;
        let line = main.lines().find(|line| line.contains("proxy_cache_key"));
        line.unwrap().to_owned()
    };
    assert_eq!(key("a", "/x"), key("a", "/x"));
    assert_ne!(key("a", "/x"), key("b", "/x"));
    assert_ne!(key("a", "/x"), key("a", "/y"));
}

/// NGINX refuses a location that is there twice, so that whoever could take the name would close what is guarded.
#[test]
fn no_path_takes_the_name_of_a_location_for_questions() {
    let guarded = LocationSettings {
        mirror: Some(Mirror {
            target: template("http://127.0.0.1:1"),
            host: template("copy.test"),
            request_body: false,
        }),
        ..asked(1, "/")
    };
    let text = servers(&render(&layout([host("a.test", &guarded)])).main);
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("location = \""))
        .filter_map(|line| line.split('"').next());
    let internal: Vec<_> = names.filter(|name| name.contains('_')).collect();
    assert_eq!(internal.len(), 2, "{text}");
    assert!(internal.iter().all(|name| !name.starts_with('/')), "{text}");
}

/// The target of a request picks the server; endpoints and services would be told what the header says.
#[test]
fn requests_that_name_two_hosts_are_refused() {
    let open = LocationSettings::default();
    let nginx = Nginx::start(&layout([host("a.test", &open)]), BACKEND);
    for (target, host, status) in [
        ("/", "a.test", 200),
        ("/", "a.test:8080", 200),
        ("/", "A.Test.:8080", 200),
        ("http://a.test/", "a.test", 200),
        ("http://A.test:81/", "a.test:8080", 200),
        ("http://a.test/", "b.test", 400),
        ("http://a.test/", "b.test:8080", 400),
        ("http://a.test/", "a.test.b.test", 400),
        ("http://a.test/", "[::1]:8080", 400),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = exchange(nginx.environment.ports.http, &request);
        assert_eq!(answer.status, status, "{target} {host}: {}", nginx.log());
    }
}

/// Services take such headers for what a proxy says of the request, such as a path that is open to everybody.
#[test]
fn services_are_told_nothing_that_the_client_says_of_its_request() {
    let [port] = free_ports();
    let layouts = [false, true].map(|use_forwarded_headers| {
        let config = RenderConfig {
            use_forwarded_headers,
            ..service(port)
        };
        with_config(layout([host("a.test", &asked(port, "/check"))]), config)
    });
    for (layout, is_told) in layouts.iter().zip([false, true]) {
        let nginx = Nginx::start(layout, BACKEND);
        for name in ["Uri", "Method", "Prefix"] {
            let (key, header) = (
                format!("X-Key: {name}"),
                format!("X-Forwarded-{name}: forged"),
            );
            assert_eq!(nginx.get("a.test", "/", &[&key, &header]).status, 200);
            let question = nginx.endpoint.wait_for(&key);
            assert!(question.contains("/check"), "{question}");
            assert_eq!(question.contains(&header), is_told, "{question}");
        }
    }
}

/// An authority, and a client that it vouches for.
struct Clients {
    pem: String,
    client: String,
}

impl Clients {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new([]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let pem = parameters.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(parameters, key);
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new([]).unwrap();
        let subject = &mut parameters.distinguished_name;
        subject.push(DnType::CommonName, "client");
        let client = parameters.signed_by(&key, &issuer).unwrap().pem();
        Self {
            pem,
            client: client + &key.serialize_pem(),
        }
    }

    fn asked_by(&self, namespace: &str, server: Server) -> Server {
        let value = ClientAuth {
            denied: None,
            authority: Some(Authority {
                secret: ObjectName::new(namespace, "clients"),
                pem: self.pem.as_str().into(),
                crl: None,
            }),
            verify: VerifyClient::On,
            depth: 1,
            error_page: None,
            match_cn: None,
            pass_certificate: false,
        };
        Server {
            client_auth: Some(Box::new(Owned {
                ingress: ObjectName::new(namespace, "web"),
                value,
            })),
            ..server
        }
    }
}

/// Asks for `/` of a host on a connection that was opened for a name, or for none, with a client's certificate.
fn ask(nginx: &Nginx, opened_for: Option<&str>, host: &str, client: &Path) -> u16 {
    let port = nginx.environment.ports.https;
    let name = opened_for.unwrap_or("127.0.0.1");
    let output = Command::new("curl")
        .args(["-ksi", "--http1.1", "--cert"])
        .arg(client)
        .args(["--connect-to", &format!("::127.0.0.1:{port}")])
        .args(["-H", &format!("Host: {host}")])
        .arg(format!("https://{name}:{port}/"))
        .output()
        .unwrap();
    read_answer(&String::from_utf8_lossy(&output.stdout)).status
}

/// Tells NGINX the certificate for all hosts.
fn tell_certificate(nginx: &Nginx) {
    let update = serde_json::json!({"certificates": {"all": key_pair()}, "servers": {"_": "all"}});
    let body = update.to_string();
    let request = format!(
        "POST /configuration/servers HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(nginx.environment.ports.status, &request);
    assert_eq!(answer.status, 201, "{}", answer.body);
}

/// A connection without a name, or with one that nobody serves, is verified as the catch-all host says, whose author is
/// somebody else maybe.
#[test]
fn certificates_count_where_they_were_asked_for() {
    let (own, strange) = (Clients::new("own"), Clients::new("strange"));
    let open = LocationSettings::default();
    let layout = layout([
        own.asked_by("shop", host("a.test", &open)),
        own.asked_by("shop", host("*.wild.test", &open)),
        strange.asked_by("other", host("_", &open)),
    ]);
    let nginx = Nginx::start(&layout, BACKEND);
    tell_certificate(&nginx);
    let file = |name: &str, clients: &Clients| {
        let path = nginx.directory.path().join(name);
        std::fs::write(&path, &clients.client).unwrap();
        path
    };
    let (own, strange) = (file("own.pem", &own), file("strange.pem", &strange));
    for (opened_for, host, client, status) in [
        (Some("a.test"), "a.test", &own, 200),
        (Some("A.Test"), "a.test", &own, 200),
        (Some("a.test"), "A.test:443", &own, 200),
        (Some("x.wild.test"), "x.wild.test", &own, 200),
        (Some("a.test"), "a.test", &strange, 400),
        (Some("unknown.test"), "unknown.test", &strange, 200),
        (None, "unknown.test", &strange, 200),
        (None, "a.test", &strange, 421),
        (None, "x.wild.test", &strange, 421),
        (Some("unknown.test"), "a.test", &strange, 421),
        (Some("a.test.unknown.test"), "a.test", &strange, 421),
    ] {
        let got = ask(&nginx, opened_for, host, client);
        assert_eq!(
            got,
            status,
            "{opened_for:?} {host} {client:?}: {}",
            nginx.log()
        );
    }
}
