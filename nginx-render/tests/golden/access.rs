//! Who is let in.

use std::sync::Arc;

use ingress_model::{
    ObjectName, Server,
    config::RenderConfig,
    layout::{
        AuthCache, AuthKeepalive, AuthScheme, Authority, BasicAuth, CacheValid, ClientAuth, Cors,
        ExternalAuth, Limits, LocationSettings, Modifier, Origin, Owned, Satisfy, SignIn,
        VerifyClient,
    },
    value::{Confidential, Seconds, Snippet},
};
use nginx_render::RelativePath;

use crate::{
    golden, golden_servers,
    support::{self, layout, literal, location, server, template, with_config},
};

#[test]
fn client_auth() {
    let auth = |denied: Option<&str>, crl: bool| {
        Some(Box::new(Owned {
            ingress: ObjectName::new("shop", "web"),
            value: ClientAuth {
                denied: denied.map(Into::into),
                authority: denied.is_none().then(|| Authority {
                    secret: ObjectName::new("shop", "clients"),
                    pem: support::certificate().into(),
                    crl: crl.then(|| support::revocation_list().into()),
                }),
                verify: VerifyClient::Optional,
                depth: 2,
                error_page: Some(template("https://errors.test/x")),
                match_cn: Some(literal("CN=[\"a-z]{2,3}$")),
                pass_certificate: true,
            },
        }))
    };
    let settings = LocationSettings::default();
    let vhost = LocationSettings {
        upstream_vhost: Some(template("inner.test")),
        ..LocationSettings::default()
    };
    let checked = Server {
        client_auth: auth(None, true),
        ..server(
            "checked.test",
            [
                location(Modifier::Exact, "/vhost", &vhost),
                location(Modifier::Prefix, "/", &settings),
            ],
        )
    };
    let denied = Server {
        client_auth: auth(Some("no such secret"), false),
        ..server("denied.test", [location(Modifier::Prefix, "/", &settings)])
    };
    let layout = layout([checked, denied]);
    golden_servers("client_auth", &layout);

    let rendered = support::render(&layout);
    let files: Vec<_> = rendered.files.keys().map(RelativePath::as_str).collect();
    assert_eq!(
        files,
        [
            "lua.json",
            "ssl/ca-shop_clients.pem",
            "ssl/crl-shop_clients.pem"
        ]
    );
    let source = rendered
        .source_map
        .locate_file("ssl/ca-shop_clients.pem")
        .unwrap();
    assert_eq!(
        (source.what, source.ingress.as_ref()),
        ("auth-tls-secret", Some(&ObjectName::new("shop", "web")))
    );
}

#[test]
fn access() {
    let network = |text: &str| text.parse().unwrap();
    let listed = LocationSettings {
        allow: vec![network("198.51.100.0/25"), network("2001:db8::/32")],
        deny: vec![network("198.51.100.7/32")],
        ..LocationSettings::default()
    };
    let password = LocationSettings {
        basic_auth: Some(BasicAuth {
            scheme: AuthScheme::Basic,
            realm: literal("say \"friend\" for $5"),
            secret: ObjectName::new("shop", "users"),
            users: Confidential::new("frodo:{PLAIN}mellon"),
        }),
        satisfy: Some(Satisfy::Any),
        ..LocationSettings::default()
    };
    let limited = LocationSettings {
        limits: Some(Limits {
            connections: 8,
            per_second: 5,
            per_minute: 300,
            burst_multiplier: 3,
            exempt: vec![network("192.0.2.0/24")],
        }),
        limit_rate: Some(64),
        limit_rate_after: Some(0),
        ..LocationSettings::default()
    };
    let unlimited = LocationSettings {
        limits: Some(Limits {
            per_second: 1,
            burst_multiplier: 5,
            ..Limits::default()
        }),
        limit_rate: Some(0),
        ..LocationSettings::default()
    };
    let mut other = location(Modifier::Exact, "/other", &unlimited);
    other.ingress = Some(ObjectName::new("shop", "other"));
    let config = RenderConfig {
        limit_rate: 10,
        ..RenderConfig::default()
    };
    let layout = with_config(
        layout([server(
            "access.test",
            [
                location(Modifier::Exact, "/listed", &listed),
                location(Modifier::Exact, "/password", &password),
                location(Modifier::Exact, "/limited", &limited),
                other,
            ],
        )]),
        config,
    );
    golden("access", &layout, |_| {});
    let rendered = support::render(&layout);
    let file = &rendered.files[&RelativePath::new("auth/shop_web.passwd").unwrap()];
    assert!(file.private);
    assert_eq!(file.bytes, b"frodo:{PLAIN}mellon");
}

pub(crate) fn external_auth() -> ExternalAuth {
    ExternalAuth {
        url: template("http://192.0.2.9:81/check?a=$arg_a"),
        host: template("192.0.2.9"),
        authority: template("192.0.2.9:81"),
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

#[test]
fn external_authentication() {
    let short = LocationSettings {
        external_auth: Some(Arc::new(external_auth())),
        ..LocationSettings::default()
    };
    let long = ExternalAuth {
        method: Some(literal("POST")),
        signin: Some(SignIn {
            url: template("https://login.test/start?x=1"),
            back: Some(literal("&rd=")),
        }),
        response_headers: vec![literal("X-User"), literal("X-Roles")],
        request_redirect: Some(template("https://back.test/")),
        request_headers: vec![(literal("X-Sent"), template("say \"hi\" to $host"))],
        cache: Some(AuthCache {
            key: template("$http_authorization"),
            valid: vec![
                CacheValid {
                    statuses: vec![200, 202],
                    time: Seconds(300),
                },
                CacheValid {
                    statuses: Vec::new(),
                    time: Seconds(10),
                },
            ],
        }),
        always_set_cookie: true,
        keepalive: Some(AuthKeepalive {
            connections: 12,
            requests: 345,
            timeout: Seconds(67),
            share_variables: false,
        }),
        snippet: Snippet::new("proxy_set_header X-Snippet 1;"),
        ..external_auth()
    };
    let long = LocationSettings {
        external_auth: Some(Arc::new(long)),
        custom_http_errors: Some(vec![404, 503]),
        ..LocationSettings::default()
    };
    let config = RenderConfig {
        use_http2: false,
        ..RenderConfig::default()
    };
    let layout = with_config(
        layout([server(
            "auth.test",
            [
                location(Modifier::Exact, "/short", &short),
                location(Modifier::Exact, "/long", &long),
            ],
        )]),
        config,
    );
    golden("external_authentication", &layout, |_| {});
}

#[test]
fn cross_origin() {
    let cors = Cors {
        origins: None,
        methods: literal("GET, PUT"),
        headers: literal("DNT,Range"),
        expose: Some(literal("X-$Odd")),
        credentials: true,
        max_age: 1_728_000,
    };
    let some = Cors {
        origins: Some(vec![
            Origin::Null,
            Origin::Page {
                scheme: "https".into(),
                wildcard: true,
                host: "front.test".into(),
                port: Some(8443),
            },
        ]),
        expose: None,
        credentials: false,
        max_age: -1,
        ..cors.clone()
    };
    let settings = |cors: &Cors| LocationSettings {
        cors: Some(cors.clone()),
        response_headers: vec![(literal("X-Odd"), literal("a$host;c\"d{e}f"))],
        ..LocationSettings::default()
    };
    golden_servers(
        "cross_origin",
        &layout([server(
            "cors.test",
            [
                location(Modifier::Exact, "/all", &settings(&cors)),
                location(Modifier::Exact, "/some", &settings(&some)),
            ],
        )]),
    );
}
