//! What is asked, and how.

use ingress_model::{
    Location, ObjectName,
    config::RenderConfig,
    layout::{
        Authority, BackendProtocol, FastCgi, HttpVersion, LocationSettings, Mirror, Modifier,
        ProxySettings, Redirect, Satisfy, UpstreamTls,
    },
    live::UpstreamName,
    value::{Confidential, Seconds, Size},
};

use crate::{
    golden, golden_servers,
    support::{self, layout, literal, location, server, template, with_config},
};

#[test]
fn proxy_settings() {
    let own = LocationSettings {
        body_size: Some(Size::mib(9)),
        body_buffer_size: Some(Size::kib(16)),
        proxy: ProxySettings {
            read_timeout: Some(Seconds(33)),
            send_timeout: Some(Seconds(60)),
            buffering: Some(true),
            buffer_size: Some(Size::kib(16)),
            buffers_number: Some(6),
            busy_buffers_size: Some(Size::kib(32)),
            http_version: Some(HttpVersion::Http10),
            next_upstream: Some(vec![literal("error"), literal("http_502")]),
            cookie_path: Some(vec![template("/one/"), template("/")]),
            redirect: Some(vec![template("default")]),
            ..ProxySettings::default()
        },
        ..LocationSettings::default()
    };
    let same = LocationSettings {
        proxy: ProxySettings {
            read_timeout: Some(Seconds(60)),
            redirect: Some(vec![template("off")]),
            ..ProxySettings::default()
        },
        ..LocationSettings::default()
    };
    let busy = LocationSettings {
        proxy: ProxySettings {
            busy_buffers_size: Some(Size::kib(1)),
            ..ProxySettings::default()
        },
        ..LocationSettings::default()
    };
    golden_servers(
        "proxy_settings",
        &layout([server(
            "proxy.test",
            [
                location(Modifier::Exact, "/own", &own),
                location(Modifier::Exact, "/same", &same),
                location(Modifier::Exact, "/busy", &busy),
            ],
        )]),
    );
}

#[test]
fn protocols() {
    let of = |protocol, path| {
        let settings = LocationSettings {
            backend_protocol: protocol,
            upstream_vhost: Some(template("inner.test")),
            proxy: ProxySettings {
                read_timeout: Some(Seconds(13)),
                redirect: Some(vec![template("default")]),
                ..ProxySettings::default()
            },
            ..LocationSettings::default()
        };
        location(Modifier::Exact, path, &settings)
    };
    let locations = [
        of(BackendProtocol::Http, "/http"),
        of(BackendProtocol::Https, "/https"),
        of(BackendProtocol::AutoHttp, "/auto"),
        of(BackendProtocol::Grpc, "/grpc"),
        of(BackendProtocol::Grpcs, "/grpcs"),
        of(BackendProtocol::Fcgi, "/fcgi"),
        Location {
            upstream: UpstreamName::default_backend(),
            ..of(BackendProtocol::Grpc, "/default")
        },
    ];
    golden(
        "protocols",
        &layout([server("protocols.test", locations)]),
        |_| {},
    );
}

#[test]
fn backends() {
    let mirror = |request_body| LocationSettings {
        mirror: Some(Mirror {
            target: template("https://mirror.test$request_uri"),
            host: template("mirror.test"),
            request_body,
        }),
        ..LocationSettings::default()
    };
    let tls = |protocol| LocationSettings {
        backend_protocol: protocol,
        upstream_tls: Some(UpstreamTls {
            secret: ObjectName::new("shop", "backend"),
            authority: Some(Authority {
                secret: ObjectName::new("shop", "backend"),
                pem: support::certificate().into(),
                crl: None,
            }),
            certificate: Some(Confidential::new(&support::key_pair())),
            ciphers: literal("HIGH:!CAMELLIA"),
            protocols: vec![literal("TLSv1.2"), literal("TLSv1.3")],
            name: Some(template("inner.test")),
            server_name: true,
            verify: true,
            verify_depth: 2,
        }),
        ..LocationSettings::default()
    };
    let fastcgi = LocationSettings {
        backend_protocol: BackendProtocol::Fcgi,
        fastcgi: FastCgi {
            index: Some(literal("index.php")),
            params: vec![
                (
                    literal("SCRIPT_FILENAME"),
                    template("/app/$fastcgi_script_name"),
                ),
                (literal("SERVER_NAME"), template("own \"name\"")),
            ],
        },
        ..LocationSettings::default()
    };
    golden_servers(
        "backends",
        &layout([server(
            "backends.test",
            [
                location(Modifier::Exact, "/mirrored", &mirror(true)),
                location(Modifier::Exact, "/mirrored-too", &mirror(true)),
                location(Modifier::Exact, "/headers-only", &mirror(false)),
                location(Modifier::Exact, "/tls", &tls(BackendProtocol::Https)),
                location(Modifier::Exact, "/grpcs", &tls(BackendProtocol::Grpcs)),
                location(Modifier::Exact, "/fcgi", &fastcgi),
            ],
        )]),
    );
}

#[test]
fn custom_errors() {
    let of = |statuses: Option<&[u16]>, disable| LocationSettings {
        custom_http_errors: statuses.map(Into::into),
        disable_proxy_intercept_errors: disable,
        relative_redirects: Some(true),
        http2_push_preload: true,
        ..LocationSettings::default()
    };
    let config = RenderConfig {
        custom_http_errors: vec![404, 502],
        ..RenderConfig::default()
    };
    let layout = with_config(
        layout([server(
            "errors.test",
            [
                location(Modifier::Exact, "/own", &of(Some(&[418]), false)),
                location(Modifier::Exact, "/none", &of(Some(&[]), false)),
                location(Modifier::Exact, "/disabled", &of(None, true)),
                location(Modifier::Prefix, "/", &LocationSettings::default()),
            ],
        )]),
        config,
    );
    golden("custom_errors", &layout, |_| {});
}

#[test]
fn answers() {
    let denied = LocationSettings {
        denied: Some("no such secret".into()),
        ..LocationSettings::default()
    };
    let redirect = LocationSettings {
        redirect: Some(Redirect {
            target: template("https://elsewhere.test/x?a=$arg_a"),
            code: 301,
        }),
        ..LocationSettings::default()
    };
    let root = LocationSettings {
        app_root: Some(template("/portal")),
        ..LocationSettings::default()
    };
    let quiet = LocationSettings {
        access_log: Some(false),
        satisfy: Some(Satisfy::Any),
        connection_header: Some(literal("keep-alive")),
        upstream_vhost: Some(template("inner.$host")),
        ..LocationSettings::default()
    };
    golden_servers(
        "answers",
        &layout([server(
            "answers.test",
            [
                location(Modifier::Exact, "/denied", &denied),
                location(Modifier::Exact, "/redirect", &redirect),
                location(Modifier::Exact, "/quiet", &quiet),
                location(Modifier::Prefix, "/", &root),
            ],
        )]),
    );
}
