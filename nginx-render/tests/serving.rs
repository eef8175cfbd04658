//! What a running NGINX makes of the configuration.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]

#[path = "support/nginx.rs"]
mod nginx;
mod support;

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    sync::Arc,
};

use ingress_model::ObjectName;
use ingress_model::{
    Layout, Server,
    config::RenderConfig,
    layout::{
        AuthScheme, BasicAuth, Cors, ExternalAuth, LocationSettings, Mirror, Modifier, Origin,
        ProxySettings, SignIn, StreamServer,
    },
    live::UpstreamName,
    value::{Confidential, Literal, Seconds, Snippet, Template},
};

use nginx::{Nginx, exchange, free_ports};
use support::{layout, location, prefix, server};

const BACKEND: &[&str] = &["shop-cart-80"];

fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

fn literal(text: &str) -> Literal {
    Literal::parse(text).unwrap()
}

fn with_config(layout: Layout, config: RenderConfig) -> Layout {
    Layout {
        config: Arc::new(config),
        ..layout
    }
}

/// A host with one path, and that path's settings.
fn host(name: &str, settings: &LocationSettings) -> Server {
    server(name, [location(Modifier::Prefix, "/", settings)])
}

#[test]
fn endpoints_learn_who_asks() {
    let layout = layout([host("a.test", &LocationSettings::default())]);
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let port = nginx.environment.ports.http.to_string();
    let answer = nginx.get(
        "a.test",
        "/x?y=1",
        &[
            "X-Forwarded-For: 198.51.100.7",
            "X-Forwarded-Proto: gopher",
            "X-Forwarded-Host: b.test",
            "Proxy: evil",
        ],
    );
    assert_eq!(answer.status, 200, "{}", nginx.log());
    assert_eq!(answer.seen_line(), "GET /x?y=1 HTTP/1.1");
    for (name, value) in [
        ("Host", Some("a.test")),
        ("X-Real-IP", Some("127.0.0.1")),
        ("X-Forwarded-For", Some("127.0.0.1")),
        ("X-Forwarded-Host", Some("a.test")),
        ("X-Forwarded-Port", Some(&*port)),
        ("X-Forwarded-Proto", Some("http")),
        ("X-Forwarded-Scheme", Some("http")),
        ("X-Scheme", Some("http")),
        ("X-Original-Forwarded-For", Some("198.51.100.7")),
        ("X-Original-Forwarded-Host", Some("b.test")),
        ("Proxy", None),
        ("Upgrade", None),
        ("Connection", None),
    ] {
        assert_eq!(answer.seen(name), value, "{name} in {}", answer.body);
    }
    assert_eq!(answer.seen("X-Request-ID").map(str::len), Some(32));
    assert_eq!(answer.header("server"), None);
    assert_eq!(answer.header("strict-transport-security"), Some("own"));

    let upgrade = nginx.get("a.test", "/", &["Upgrade: websocket", "X-Request-ID: mine"]);
    assert_eq!(upgrade.seen("Upgrade"), Some("websocket"));
    assert_eq!(upgrade.seen("Connection"), Some("upgrade"));
    assert_eq!(upgrade.seen("X-Request-ID"), Some("mine"));

    assert_eq!(nginx.get("nobody.test", "/", &[]).status, 404);
    assert_eq!(nginx.get("nobody.test", "/healthz", &[]).status, 200);
    assert_eq!(nginx.get("nobody.test", "/nginx_status", &[]).status, 200);
}

#[test]
fn trusted_proxies_are_believed() {
    let config = RenderConfig {
        use_forwarded_headers: true,
        ..RenderConfig::default()
    };
    let redirect = LocationSettings {
        force_ssl_redirect: true,
        ..LocationSettings::default()
    };
    let layout = with_config(
        layout([
            host("a.test", &LocationSettings::default()),
            host("secure.test", &redirect),
        ]),
        config,
    );
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let forwarded = [
        "X-Forwarded-For: 198.51.100.7",
        "X-Forwarded-Proto: gopher",
        "X-Forwarded-Host: first.test, second.test,third.test",
        "X-Forwarded-Port: 1234",
    ];
    let answer = nginx.get("a.test", "/", &forwarded);
    for (name, value) in [
        ("Host", "first.test"),
        ("X-Forwarded-Host", "first.test"),
        ("X-Forwarded-For", "198.51.100.7"),
        ("X-Real-IP", "198.51.100.7"),
        ("X-Forwarded-Proto", "gopher"),
        ("X-Scheme", "gopher"),
        ("X-Forwarded-Port", "1234"),
    ] {
        assert_eq!(answer.seen(name), Some(value), "{name} in {}", answer.body);
    }
    assert_eq!(
        nginx
            .get("secure.test", "/", &["X-Forwarded-Proto: https"])
            .status,
        200
    );
    let redirected = nginx.get("secure.test", "/a/", &["X-Forwarded-Host: [::1]:8080, x"]);
    assert_eq!(redirected.header("location"), Some("https://[::1]/a"));
}

#[test]
fn proxy_protocol_tells_the_client() {
    let config = RenderConfig {
        use_proxy_protocol: true,
        use_forwarded_headers: true,
        proxy_real_ip_cidr: vec!["10.0.0.0/8".parse().unwrap()],
        ..RenderConfig::default()
    };
    let layout = with_config(
        layout([host("a.test", &LocationSettings::default())]),
        config,
    );
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    for (port, scheme) in [("1234", "http"), ("443", "https")] {
        let request = format!(
            "PROXY TCP4 192.0.2.44 192.0.2.80 40123 {port}\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\
             X-Forwarded-For: 198.51.100.99\r\nConnection: close\r\n\r\n"
        );
        let answer = exchange(nginx.environment.ports.http, &request);
        assert_eq!(answer.status, 200, "{}", nginx.log());
        assert_eq!(
            answer.seen("X-Forwarded-Port"),
            Some(port),
            "{}",
            answer.body
        );
        assert_eq!(answer.seen("X-Forwarded-Proto"), Some(scheme));
    }
}

#[test]
fn plain_http_is_redirected() {
    let redirect = LocationSettings {
        ssl_redirect: true,
        ..LocationSettings::default()
    };
    let keep = LocationSettings {
        force_ssl_redirect: true,
        preserve_trailing_slash: true,
        use_port_in_redirects: true,
        ..LocationSettings::default()
    };
    let tls = Server {
        tls: true,
        ..host("tls.test", &redirect)
    };
    let root = LocationSettings {
        app_root: Some(template("/portal")),
        ..LocationSettings::default()
    };
    let layout = layout([
        tls,
        host("plain.test", &redirect),
        host("keep.test", &keep),
        host("root.test", &root),
    ]);
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let https = nginx.environment.ports.https;
    for (host, path, want) in [
        ("tls.test", "/", "https://tls.test".to_owned()),
        ("tls.test:8080", "/dir/", "https://tls.test/dir".to_owned()),
        (
            "tls.test",
            "/docs/?q=a/b",
            "https://tls.test/docs/?q=a/b".to_owned(),
        ),
        (
            "keep.test:80",
            "/dir/",
            format!("https://keep.test:{https}/dir/"),
        ),
    ] {
        let answer = nginx.get(host, path, &[]);
        assert_eq!(answer.status, 308, "{host}{path}");
        assert_eq!(answer.header("location"), Some(&*want));
    }
    assert_eq!(nginx.get("plain.test", "/", &[]).status, 200);
    let root = nginx.get("root.test", "/", &[]);
    assert_eq!(
        (root.status, root.header("location")),
        (302, Some("http://root.test/portal"))
    );
    assert_eq!(nginx.get("root.test", "/x", &[]).status, 200);
}

#[test]
fn handshakes_and_hsts() {
    let layout = layout([]);
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let url = format!(
        "https://127.0.0.1:{}/healthz",
        nginx.environment.ports.https
    );
    let Ok(output) = Command::new("curl")
        .args(["-ksi", "--http1.1", &url])
        .output()
    else {
        println!("no curl is installed: not tested");
        return;
    };
    let answer = nginx::read_answer(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(answer.status, 200, "{}", nginx.log());
    assert_eq!(
        answer.header("strict-transport-security"),
        Some("max-age=31536000; includeSubDomains")
    );
}

#[test]
fn paths_are_rewritten() {
    let strip = LocationSettings {
        use_regex: true,
        rewrite_target: Some(template("/$3")),
        forwarded_prefix: Some(template("/$1")),
        ..LocationSettings::default()
    };
    let quoted = LocationSettings {
        rewrite_target: Some(template("/a$b;\"{x}")),
        ..LocationSettings::default()
    };
    let regex = server(
        "regex.test",
        [
            location(Modifier::Regex, "/(thing)(/|$)(.*)", &strip),
            location(
                Modifier::Regex,
                "/quoted",
                &LocationSettings {
                    rewrite_target: Some(template("/5$-\"{x};")),
                    ..quoted
                },
            ),
            location(Modifier::Regex, "/", &LocationSettings::default()),
        ],
    );
    let plain = server(
        "plain.test",
        prefix("/cart$x;\"", &LocationSettings::default()),
    );
    let wildcard = host("*.wild.test", &LocationSettings::default());
    let layout = layout([regex, plain, wildcard]);
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let answer = nginx.get("regex.test", "/thing/new/one?a=1&b=%2F", &[]);
    assert_eq!(
        answer.seen_line(),
        "GET /new/one?a=1&b=%2F HTTP/1.1",
        "{}",
        nginx.log()
    );
    assert_eq!(answer.seen("X-Forwarded-Prefix"), Some("/thing"));
    assert_eq!(
        nginx.get("regex.test", "/thing", &[]).seen_line(),
        "GET / HTTP/1.1"
    );
    assert_eq!(
        nginx.get("regex.test", "/quoted", &[]).seen_line(),
        "GET /5$-%22%7Bx%7D; HTTP/1.1"
    );
    assert_eq!(nginx.get("plain.test", "/cart$x;\"/1", &[]).status, 200);
    assert_eq!(nginx.get("plain.test", "/cart", &[]).status, 404);
    assert_eq!(nginx.get("one.wild.test", "/", &[]).status, 200);
    assert_eq!(nginx.get("one.two.wild.test", "/", &[]).status, 404);
}

#[test]
fn headers_of_snippets_join_ours() {
    let snippet = LocationSettings {
        snippet: Snippet::new(
            "proxy_set_header X-Own 1; more_set_headers \"Backend: $proxy_host\"; # end",
        ),
        proxy: ProxySettings {
            read_timeout: Some(Seconds(9)),
            ..ProxySettings::default()
        },
        ..LocationSettings::default()
    };
    let config = RenderConfig {
        http_snippet: Snippet::new("proxy_read_timeout 7s;\nproxy_set_header X-Http 1;"),
        ..RenderConfig::default()
    };
    let layout = with_config(
        layout([
            host("a.test", &snippet),
            host("b.test", &LocationSettings::default()),
        ]),
        config,
    );
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let answer = nginx.get("a.test", "/", &[]);
    assert_eq!(answer.seen("X-Own"), Some("1"));
    assert_eq!(answer.seen("Host"), Some("a.test"));
    assert_eq!(answer.header("backend"), Some("shop-cart-80"));
    assert_eq!(nginx.get("b.test", "/", &[]).seen("Host"), Some("b.test"));
}

#[test]
fn who_is_let_in() {
    let network = |text: &str| text.parse().unwrap();
    let listed = LocationSettings {
        allow: vec![network("192.0.2.0/24")],
        ..LocationSettings::default()
    };
    let denied = LocationSettings {
        deny: vec![network("127.0.0.0/8")],
        ..LocationSettings::default()
    };
    let password = LocationSettings {
        basic_auth: Some(BasicAuth {
            scheme: AuthScheme::Basic,
            realm: literal("5$ \"please\""),
            secret: ObjectName::new("shop", "users"),
            users: Confidential::new("frodo:{PLAIN}mellon"),
        }),
        ..LocationSettings::default()
    };
    let closed = LocationSettings {
        denied: Some("no such secret".into()),
        ..LocationSettings::default()
    };
    let layout = layout([server(
        "a.test",
        [
            location(Modifier::Exact, "/listed", &listed),
            location(Modifier::Exact, "/denied", &denied),
            location(Modifier::Exact, "/password", &password),
            location(Modifier::Exact, "/closed", &closed),
        ],
    )]);
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    assert_eq!(nginx.get("a.test", "/listed", &[]).status, 403);
    assert_eq!(nginx.get("a.test", "/denied", &[]).status, 403);
    assert_eq!(nginx.get("a.test", "/closed", &[]).status, 503);
    let refused = nginx.get("a.test", "/password", &[]);
    assert_eq!(
        (refused.status, refused.header("www-authenticate")),
        (401, Some("Basic realm=\"5$ \\\"please\\\"\""))
    );
    let accepted = nginx.get(
        "a.test",
        "/password",
        &["Authorization: Basic ZnJvZG86bWVsbG9u"],
    );
    assert_eq!(accepted.status, 200, "{}", nginx.log());
    assert_eq!(accepted.seen("Authorization"), None);
}

#[test]
fn a_service_decides() {
    let [port] = free_ports();
    let auth = |path: &str, signin: bool| LocationSettings {
        external_auth: Some(Arc::new(ExternalAuth {
            url: template(&format!("http://127.0.0.1:{port}{path}")),
            host: template("127.0.0.1"),
            authority: template(&format!("127.0.0.1:{port}")),
            method: Some(literal("POST")),
            signin: signin.then(|| SignIn {
                url: template("http://$host/login"),
                back: Some(literal("?rd=")),
            }),
            response_headers: vec![literal("X-User")],
            request_redirect: None,
            request_headers: vec![(literal("X-Sent"), template("say \"hi\""))],
            cache: None,
            always_set_cookie: false,
            keepalive: None,
            snippet: None,
        })),
        ..LocationSettings::default()
    };
    // The service is a server of the same NGINX, in front of the same endpoint.
    let config = RenderConfig {
        http_snippet: Snippet::new(&format!(
            "server {{ listen 127.0.0.1:{port}; location / {{ set $proxy_upstream_name shop-cart-80; proxy_pass http://upstream_balancer; }} }}"
        )),
        ..RenderConfig::default()
    };
    let layout = with_config(
        layout([server(
            "a.test",
            [
                location(
                    Modifier::Exact,
                    "/plain",
                    &auth("/check?set-cookie=seen", false),
                ),
                location(Modifier::Exact, "/signin", &auth("/check", true)),
                location(
                    Modifier::Exact,
                    "/told",
                    &auth("/check?uri=$escaped_request_uri", false),
                ),
                location(
                    Modifier::Exact,
                    "/broken",
                    &auth("/check?status=500", false),
                ),
            ],
        )]),
        config,
    );
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let accepted = nginx.get("a.test", "/plain?x=1", &[]);
    assert_eq!(accepted.status, 200, "{}", nginx.log());
    assert_eq!(accepted.seen("X-User"), Some("frodo"));
    assert_eq!(accepted.header("set-cookie"), Some("seen"));
    let question = nginx.endpoint.wait_for("/check?set-cookie=seen");
    assert!(question.starts_with("POST "), "{question}");
    for header in [
        "X-Sent: say \"hi\"\n",
        "X-Original-URL: http://a.test/plain?x=1\n",
        "X-Original-Method: GET\n",
    ] {
        assert!(question.contains(header), "{header} in {question}");
    }
    assert_eq!(nginx.get("a.test", "/plain", &["X-Deny: 1"]).status, 401);
    let signin = nginx.get("a.test", "/signin?a=b&c=d", &["X-Deny: 1"]);
    let want = "http://a.test/login?rd=http://a.test%2Fsignin%3Fa%3Db%26c%3Dd";
    assert_eq!(
        (signin.status, signin.header("location")),
        (302, Some(want))
    );
    assert_eq!(nginx.get("a.test", "/told?a=b&c", &[]).status, 200);
    nginx.endpoint.wait_for("/check?uri=%2Ftold%3Fa%3Db%26c");
    assert_eq!(nginx.get("a.test", "/broken", &[]).status, 500);
}

#[test]
fn other_origins() {
    let cors = LocationSettings {
        cors: Some(Cors {
            origins: Some(vec![Origin::Page {
                scheme: "https".into(),
                wildcard: true,
                host: "front.test".into(),
                port: None,
            }]),
            methods: literal("GET"),
            headers: literal("X-A"),
            expose: None,
            credentials: true,
            max_age: 600,
        }),
        response_headers: vec![(literal("X-Odd"), literal("a$host;c\"d{e}f"))],
        ..LocationSettings::default()
    };
    let layout = layout([host("a.test", &cors)]);
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let allowed = nginx.get("a.test", "/?status=404", &["Origin: https://x.front.test"]);
    assert_eq!(allowed.status, 404);
    assert_eq!(
        allowed.header("access-control-allow-origin"),
        Some("https://x.front.test")
    );
    assert_eq!(allowed.header("access-control-max-age"), Some("600"));
    assert_eq!(allowed.header("x-odd"), Some("a$host;c\"d{e}f"));
    let other = nginx.get("a.test", "/", &["Origin: https://front.test.evil.test"]);
    assert_eq!(
        (other.status, other.header("access-control-allow-origin")),
        (200, None)
    );
    let preflight = nginx.send("OPTIONS", "a.test", "/", &["Origin: https://x.front.test"]);
    assert_eq!(
        (
            preflight.status,
            preflight.header("access-control-allow-methods")
        ),
        (204, Some("GET"))
    );
    assert_eq!(
        preflight.header("access-control-allow-credentials"),
        Some("true")
    );
}

#[test]
fn errors_and_copies() {
    let [port] = free_ports();
    let errors = LocationSettings {
        custom_http_errors: Some(vec![418, 503]),
        mirror: Some(Mirror {
            target: template(&format!("http://127.0.0.1:{port}/copy$request_uri")),
            host: template("mirror.test"),
            request_body: true,
        }),
        ..LocationSettings::default()
    };
    let config = RenderConfig {
        custom_http_errors: vec![404],
        http_snippet: Snippet::new(&format!(
            "server {{ listen 127.0.0.1:{port}; location / {{ set $proxy_upstream_name shop-cart-80; proxy_pass http://upstream_balancer; }} }}"
        )),
        ..RenderConfig::default()
    };
    let mut elsewhere = location(
        Modifier::Exact,
        "/gone",
        &LocationSettings {
            custom_http_errors: Some(vec![503]),
            ..LocationSettings::default()
        },
    );
    elsewhere.upstream = UpstreamName::new("no-endpoints");
    let layout = with_config(
        layout([
            server(
                "a.test",
                [location(Modifier::Prefix, "/", &errors), elsewhere],
            ),
            host("b.test", &LocationSettings::default()),
        ]),
        config,
    );
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    for (host, path, status, is_endpoints_own) in [
        ("a.test", "/?status=418", 404, false),
        ("a.test", "/?status=404", 404, true),
        ("a.test", "/gone", 404, false),
        ("b.test", "/?status=404", 404, false),
        ("b.test", "/?status=418", 418, true),
    ] {
        let answer = nginx.get(host, path, &[]);
        assert_eq!(answer.status, status, "{host}{path} {}", nginx.log());
        assert_eq!(
            answer.body.contains("X-Request-ID"),
            is_endpoints_own,
            "{host}{path}: {}",
            answer.body
        );
    }
    let copy = nginx.endpoint.wait_for("/copy/?status=418");
    assert!(copy.contains("Host: mirror.test\n"), "{copy}");
}

#[test]
fn streams_read_their_endpoints_from_files() {
    let [plain, with_header] = free_ports();
    let server = |proxy_protocol_out| StreamServer {
        upstream: UpstreamName::new("tcp-shop-db-5432"),
        proxy_protocol_in: false,
        proxy_protocol_out,
    };
    let layout = Layout {
        tcp: [(plain, server(false)), (with_header, server(true))].into(),
        ..layout([])
    };
    let Some(nginx) = Nginx::start(&layout, BACKEND) else {
        return;
    };
    let endpoints = nginx.directory.path().join("stream");
    std::fs::create_dir_all(&endpoints).unwrap();
    let request = "GET /raw HTTP/1.1\r\nConnection: close\r\n\r\n";
    let ask = |port: u16| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut first = [0; 1];
        stream.read(&mut first).unwrap_or(0)
    };
    assert_eq!(ask(plain), 0, "nobody serves a port without endpoints");
    for port in [plain, with_header] {
        let address = format!("127.0.0.1:{}\n", nginx.endpoint.port);
        std::fs::write(endpoints.join(format!("tcp-{port}")), address).unwrap();
    }
    assert_eq!(ask(plain), 1, "{}", nginx.log());
    assert!(nginx.endpoint.wait_for("/raw").starts_with("GET /raw "));
    assert_eq!(ask(with_header), 1, "{}", nginx.log());
    assert!(
        nginx
            .endpoint
            .wait_for("PROXY TCP4 127.0.0.1")
            .contains("GET /raw ")
    );
}
