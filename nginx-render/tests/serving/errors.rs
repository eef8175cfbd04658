//! Error pages and copies of requests.

use ingress_model::{
    config::RenderConfig,
    layout::{LocationSettings, Mirror, Modifier},
    live::UpstreamName,
    value::Snippet,
};

use crate::{
    BACKEND, host,
    nginx::{Nginx, free_ports},
    support::{layout, location, server, template, with_config},
};

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
    let nginx = Nginx::start(&layout, BACKEND);
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
