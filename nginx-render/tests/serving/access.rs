//! Who is let in.

use std::sync::Arc;

use ingress_model::{
    ObjectName,
    config::RenderConfig,
    layout::{
        AuthScheme, BasicAuth, Cors, ExternalAuth, LocationSettings, Modifier, Origin, SignIn,
    },
    value::{Confidential, Snippet},
};

use crate::{
    BACKEND, host,
    nginx::{Nginx, free_ports},
    support::{layout, literal, location, server, template, with_config},
};

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
    let nginx = Nginx::start(&layout, BACKEND);
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
    let nginx = Nginx::start(&layout, BACKEND);
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
    let secure = LocationSettings {
        force_ssl_redirect: true,
        ..cors.clone()
    };
    let layout = layout([host("a.test", &cors), host("secure.test", &secure)]);
    let nginx = Nginx::start(&layout, BACKEND);
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
    // Browsers follow no redirect of a preflight request.
    let origin = ["Origin: https://x.front.test"];
    let preflight = nginx.send("OPTIONS", "secure.test", "/", &origin);
    assert_eq!(preflight.status, 204);
    assert_eq!(nginx.get("secure.test", "/", &origin).status, 308);
    let stranger = ["Origin: https://stranger.test"];
    let preflight = nginx.send("OPTIONS", "secure.test", "/", &stranger);
    assert_eq!(preflight.status, 308);
}
