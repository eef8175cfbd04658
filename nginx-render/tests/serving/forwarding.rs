//! What endpoints learn of requests.

use ingress_model::{
    config::RenderConfig,
    layout::{LocationSettings, ProxySettings},
    value::{Seconds, Snippet},
};

use crate::{
    BACKEND, host,
    nginx::{Nginx, exchange},
    support::{layout, with_config},
};

#[test]
fn endpoints_learn_who_asks() {
    let layout = layout([host("a.test", &LocationSettings::default())]);
    let nginx = Nginx::start(&layout, BACKEND);
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
    let nginx = Nginx::start(&layout, BACKEND);
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
    let nginx = Nginx::start(&layout, BACKEND);
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
fn snippets_may_say_what_the_client_asked_for() {
    let settings = LocationSettings {
        snippet: Snippet::new("set $pass_access_scheme https; set $pass_port 443;"),
        ..LocationSettings::default()
    };
    let nginx = Nginx::start(&layout([host("a.test", &settings)]), BACKEND);
    let answer = nginx.get("a.test", "/", &[]);
    for (name, value) in [
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Scheme", "https"),
        ("X-Scheme", "https"),
        ("X-Forwarded-Port", "443"),
    ] {
        assert_eq!(answer.seen(name), Some(value), "{name} in {}", answer.body);
    }
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
    let nginx = Nginx::start(&layout, BACKEND);
    let answer = nginx.get("a.test", "/", &[]);
    assert_eq!(answer.seen("X-Own"), Some("1"));
    assert_eq!(answer.seen("Host"), Some("a.test"));
    assert_eq!(answer.header("backend"), Some("shop-cart-80"));
    assert_eq!(nginx.get("b.test", "/", &[]).seen("Host"), Some("b.test"));
}
