//! What is closed stays closed, whatever else is asked for.

use std::sync::Arc;

use ingress_model::{
    Location, ObjectName, Server,
    config::RenderConfig,
    layout::{
        AuthKeepalive, BackendProtocol, ClientAuth, ExternalAuth, LocationSettings, Mirror,
        Modifier, Owned, ProxySettings, Satisfy, UpstreamTls, VerifyClient,
    },
    value::{Confidential, Literal, Seconds, Size, Snippet},
};

use crate::{
    BACKEND, host,
    nginx::{DEFAULT_BACKEND, Nginx, free_ports},
    support::{key_pair, layout, location, server, template, with_config},
};

/// A service that is asked at an address about each request.
fn asked_at(address: &str, rest: &str) -> ExternalAuth {
    let host = address.split(':').next().unwrap();
    let scheme = if rest.starts_with("/tls") {
        "https"
    } else {
        "http"
    };
    ExternalAuth {
        url: template(&format!("{scheme}://{address}{rest}")),
        host: template(host),
        authority: template(address),
        method: None,
        signin: None,
        response_headers: Vec::new(),
        request_redirect: None,
        request_headers: Vec::new(),
        cache: None,
        always_set_cookie: false,
        keepalive: None,
        snippet: None,
    }
}

fn kept(auth: ExternalAuth) -> ExternalAuth {
    let keepalive = AuthKeepalive {
        connections: 4,
        requests: 100,
        timeout: Seconds(60),
        share_variables: false,
    };
    ExternalAuth {
        keepalive: Some(keepalive),
        ..auth
    }
}

fn guarded(auth: ExternalAuth) -> LocationSettings {
    LocationSettings {
        external_auth: Some(Arc::new(auth)),
        ..LocationSettings::default()
    }
}

fn exact(path: &str, settings: &LocationSettings) -> Location {
    location(Modifier::Exact, path, settings)
}

/// A server of the same NGINX, in front of the same endpoint, that may be asked.
fn service(port: u16) -> Option<Snippet> {
    Snippet::new(&format!(
        "server {{ listen 127.0.0.1:{port}; location / {{ set $proxy_upstream_name shop-cart-80; proxy_pass http://upstream_balancer; }} }}"
    ))
}

#[test]
fn refusals_keep_their_status_beside_pages_for_errors() {
    let closed = LocationSettings {
        denied: Some("no such secret".into()),
        ..LocationSettings::default()
    };
    let unwritable = LocationSettings {
        response_headers: vec![(Literal::constant("X-Odd"), Literal::constant("a\nb"))],
        ..LocationSettings::default()
    };
    let refused = ClientAuth {
        denied: Some("no such secret".into()),
        authority: None,
        verify: VerifyClient::On,
        depth: 1,
        error_page: None,
        match_cn: None,
        pass_certificate: false,
    };
    let refused = Server {
        client_auth: Some(Box::new(Owned {
            ingress: ObjectName::new("shop", "web"),
            value: refused,
        })),
        ..host("refused.test", &LocationSettings::default())
    };
    let closed = server("closed.test", [exact("/closed", &closed)]);
    let config = RenderConfig {
        custom_http_errors: vec![403, 404, 503],
        ..RenderConfig::default()
    };
    let layout = with_config(layout([closed, refused]), config);
    // The page is an ordinary one.
    let nginx = Nginx::start(&layout, &[DEFAULT_BACKEND]);
    for (host, path, status) in [("closed.test", "/closed", 503), ("refused.test", "/", 403)] {
        let answer = nginx.get(host, path, &[]);
        assert_eq!(answer.status, status, "{host}: {}", nginx.log());
        let code = status.to_string();
        assert_eq!(
            answer.seen("X-Code"),
            Some(&*code),
            "{host}: {}",
            answer.body
        );
    }
    drop(nginx);

    let odd = server("odd.test", [exact("/odd", &unwritable)]);
    let layout = with_config(
        crate::support::layout([odd]),
        RenderConfig::clone(&layout.config),
    );
    let rendered = crate::support::render(&layout);
    let block = crate::support::server_block(&rendered.main, "odd.test");
    let page = "error_page 503 @custom_upstream-default-backend_503;";
    assert!(block.contains(page), "{block}");
}

/// CVE-2026-24513: whoever answers with an error page in place of the service is taken for the service.
#[test]
fn cve_2026_24513_no_page_stands_in_for_a_service_that_is_out_of_order() {
    let [nobody, port] = free_ports();
    let nobody = format!("127.0.0.1:{nobody}");
    let refusing = format!("127.0.0.1:{port}");
    let statuses = [401, 403, 404, 500, 502, 503, 504];
    let pages = LocationSettings {
        custom_http_errors: Some(statuses.to_vec()),
        ..guarded(asked_at(&nobody, "/check"))
    };
    let config = RenderConfig {
        custom_http_errors: statuses.to_vec(),
        use_http2: false,
        http_snippet: service(port),
        ..RenderConfig::default()
    };
    let layout = with_config(
        layout([server(
            "a.test",
            [
                exact("/guarded-1", &guarded(asked_at(&nobody, "/check"))),
                exact("/guarded-2", &guarded(kept(asked_at(&nobody, "/check")))),
                exact("/guarded-3", &pages),
                exact(
                    "/guarded-4",
                    &guarded(asked_at(&refusing, "/check?status=403")),
                ),
                exact(
                    "/guarded-5",
                    &guarded(kept(asked_at(&refusing, "/check?status=401"))),
                ),
                exact(
                    "/guarded-6",
                    &guarded(asked_at(&refusing, "/check?status=503")),
                ),
            ],
        )]),
        config,
    );
    let nginx = Nginx::start(&layout, &["shop-cart-80", DEFAULT_BACKEND]);
    for path in 1..=6 {
        let answer = nginx.get("a.test", &format!("/guarded-{path}"), &[]);
        // The page itself, which is asked for `/`.
        assert_eq!(answer.seen_line(), "GET / HTTP/1.1", "{path}: {answer:?}");
    }
    let requests = nginx.endpoint.requests.lock().unwrap();
    let passed: Vec<_> = requests
        .iter()
        .filter(|head| head.starts_with("GET /guarded"))
        .collect();
    assert!(passed.is_empty(), "{passed:?}");
}

/// `satisfy`, with a service that NGINX asks and one that the Lua side asks.
#[test]
fn one_check_or_all_of_them() {
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let networks = |text: &str| vec![text.parse().unwrap()];
    let of = |auth: ExternalAuth, satisfy, allow: &str| LocationSettings {
        satisfy,
        allow: networks(allow),
        ..guarded(auth)
    };
    let (ours, others) = ("127.0.0.0/8", "192.0.2.0/24");
    let mut locations = Vec::new();
    let mut wanted = Vec::new();
    for lua in [false, true] {
        for satisfy in [None, Some(Satisfy::All), Some(Satisfy::Any)] {
            for allow in [ours, others] {
                let auth = asked_at(&address, "/check");
                let auth = if lua { kept(auth) } else { auth };
                let path = format!("/{}", locations.len());
                locations.push(exact(&path, &of(auth, satisfy, allow)));
                for accepts in [true, false] {
                    let is_let_in = match satisfy {
                        Some(Satisfy::Any) => accepts || allow == ours,
                        Some(Satisfy::All) | None => accepts && allow == ours,
                    };
                    wanted.push((path.clone(), accepts, is_let_in));
                }
            }
        }
    }
    let config = RenderConfig {
        use_http2: false,
        http_snippet: service(port),
        ..RenderConfig::default()
    };
    let layout = with_config(layout([server("a.test", locations)]), config);
    let nginx = Nginx::start(&layout, BACKEND);
    for (path, accepts, is_let_in) in wanted {
        let headers: &[&str] = if accepts { &[] } else { &["X-Deny: 1"] };
        let answer = nginx.get("a.test", &path, headers);
        let is_ours = answer.body.starts_with(&format!("GET {path} "));
        assert_eq!(is_ours, is_let_in, "{path} {accepts}: {answer:?}");
        assert!(
            is_let_in || [401, 403].contains(&answer.status),
            "{path}: {answer:?}"
        );
    }
}

/// The service's answers may have heads as long as those of the endpoints.
#[test]
fn answers_of_services_have_the_buffers_of_the_path() {
    let [port] = free_ports();
    let auth = asked_at(
        &format!("127.0.0.1:{port}"),
        "/check?set-cookie=$http_x_cookie",
    );
    let long = LocationSettings {
        proxy: ProxySettings {
            buffer_size: Some(Size::kib(16)),
            ..ProxySettings::default()
        },
        ..guarded(auth.clone())
    };
    let config = RenderConfig {
        http_snippet: service(port).map(|snippet| {
            let text =
                snippet
                    .as_str()
                    .replacen('{', "{ proxy_buffer_size 64k; proxy_buffers 4 64k;", 1);
            Snippet::new(&text).unwrap()
        }),
        ..RenderConfig::default()
    };
    let locations = [exact("/short", &guarded(auth)), exact("/long", &long)];
    let layout = with_config(layout([server("a.test", locations)]), config);
    let nginx = Nginx::start(&layout, BACKEND);
    let cookie = format!("X-Cookie: {}", "c".repeat(6_000));
    for (path, status) in [("/short", 500), ("/long", 200)] {
        let answer = nginx.get("a.test", path, &[&cookie]);
        assert_eq!(answer.status, status, "{path}: {}", nginx.log());
    }
}

/// What a host says about TLS to its endpoints is not for the services that are asked or sent copies.
#[test]
fn other_services_do_not_see_the_certificate_for_endpoints() {
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let settings = LocationSettings {
        mirror: Some(Mirror {
            target: template(&format!("https://{address}/tls/copy")),
            host: template("mirror.test"),
            request_body: true,
        }),
        ..guarded(asked_at(&address, "/tls/check"))
    };
    let tls = UpstreamTls {
        secret: ObjectName::new("shop", "endpoints"),
        authority: Some(ingress_model::layout::Authority {
            secret: ObjectName::new("shop", "endpoints"),
            pem: crate::support::certificate().into(),
            crl: None,
        }),
        certificate: Some(Confidential::new(&key_pair())),
        ciphers: Literal::constant("DEFAULT"),
        protocols: vec![Literal::constant("TLSv1.2")],
        name: Some(template("inner.test")),
        server_name: true,
        verify: true,
        verify_depth: 1,
    };
    let https = LocationSettings {
        backend_protocol: BackendProtocol::Https,
        ..LocationSettings::default()
    };
    let guarded = Server {
        upstream_tls: Some(Box::new(Owned {
            ingress: ObjectName::new("shop", "web"),
            value: tls,
        })),
        ..server(
            "a.test",
            [exact("/guarded", &settings), exact("/tls", &https)],
        )
    };
    // Anybody who shows a certificate is refused.
    let config = RenderConfig {
        http_snippet: Snippet::new(&format!(
            "server {{ listen {address} ssl; ssl_certificate ssl/default.pem; \
             ssl_certificate_key ssl/default.pem; ssl_verify_client optional_no_ca; \
             if ($ssl_client_verify != NONE) {{ return 403; }} \
             location / {{ set $proxy_upstream_name shop-cart-80; proxy_set_header X-Name $ssl_server_name; \
             proxy_pass http://upstream_balancer; }} }}"
        )),
        ..RenderConfig::default()
    };
    let layout = with_config(layout([guarded]), config);
    let nginx = Nginx::start(&layout, BACKEND);
    let answer = nginx.get("a.test", "/guarded", &[]);
    assert_eq!(answer.status, 200, "{answer:?} {}", nginx.log());
    let copy = nginx.endpoint.wait_for("/tls/copy");
    assert!(!copy.contains("inner.test"), "{copy}");
}
