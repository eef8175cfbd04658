//! What layouts look like as configuration. Each also passes `nginx -t`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod support;

use std::{path::Path, sync::Arc};

use ingress_model::{
    Layout, Location, ObjectName, Server,
    config::RenderConfig,
    layout::{
        AuthCache, AuthKeepalive, AuthScheme, Authority, BackendProtocol, BasicAuth, CacheValid,
        ClientAuth, Cors, ExternalAuth, FastCgi, HttpVersion, Limits, LocationSettings, Mirror,
        Modifier, Origin, Owned, ProxySettings, Redirect, Satisfy, SignIn, StreamServer,
        UpstreamTls, VerifyClient,
    },
    live::UpstreamName,
    value::{Confidential, Literal, Seconds, Size, Snippet, Template},
};
use nginx_render::{
    Capabilities, Environment, Metrics, PassthroughPorts, RelativePath, Renderer, User,
};

use support::{debian, default_location, host, layout, location, prefix, refusal, server};

/// Renders for a fixed place, and compares with the recorded text.
fn golden(name: &str, layout: &Layout, change: impl Fn(&mut Environment)) {
    let mut environment = support::environment(Path::new("/etc/nginx"));
    environment.lua_dir = "/etc/nginx/lua".into();
    change(&mut environment);
    let rendered = Renderer::new(debian(), environment).render(layout).unwrap();
    assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, without_checksum(&rendered.main)));
    if let Some(text) = refusal(layout, change) {
        panic!("nginx refuses {name}: {text}");
    }
}

/// Without the first line, which the keys of some tests change each time.
fn without_checksum(main: &str) -> &str {
    let (first, rest) = main.split_once('\n').unwrap();
    assert!(first.starts_with("# Configuration checksum: "), "{first}");
    rest
}

/// The servers of a rendering alone: what is around them is in `default`.
fn golden_servers(name: &str, layout: &Layout) {
    let rendered = support::render(layout);
    assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, support::servers(&rendered.main)));
    if let Some(text) = refusal(layout, |_| {}) {
        panic!("nginx refuses {name}: {text}");
    }
}

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

#[test]
fn default() {
    golden("default", &layout([]), |_| {});
}

#[test]
fn two_paths() {
    let settings = LocationSettings {
        ssl_redirect: true,
        ..LocationSettings::default()
    };
    let locations = prefix("/cart", &settings)
        .into_iter()
        .chain(prefix("/api", &settings));
    let layout = layout([server("shop.test", locations)]);
    golden_servers("two_paths", &layout);

    let text = support::render(&layout).main;
    let block = support::server_block(&text, "shop.test");
    assert!(block.lines().count() < 25, "{block}");
}

#[test]
fn tls() {
    let redirects = LocationSettings {
        ssl_redirect: true,
        ..LocationSettings::default()
    };
    let port = LocationSettings {
        force_ssl_redirect: true,
        use_port_in_redirects: true,
        preserve_trailing_slash: true,
        ..LocationSettings::default()
    };
    let root = |settings: &LocationSettings| location(Modifier::Prefix, "/", settings);
    let common = Server {
        tls: true,
        ..server("common.test", [root(&redirects)])
    };
    let mut mixed = server("mixed.test", prefix("/a", &port));
    mixed.locations.push(root(&redirects));
    mixed.ssl_ciphers = Some(literal("ALL:!aNULL:RC4+RSA@STRENGTH"));
    mixed.ssl_prefer_server_ciphers = Some(true);
    let plain = server("plain.test", [root(&redirects)]);
    let wildcard = Server {
        aliases: vec![host("*.alias.test"), host("other.test")],
        ..server("*.shop.test", [root(&redirects)])
    };
    golden_servers("tls", &layout([common, mixed, plain, wildcard]));
}

#[test]
fn regex_host() {
    let rewrite = LocationSettings {
        use_regex: true,
        rewrite_target: Some(template("/$2")),
        forwarded_prefix: Some(template("/$1")),
        rewrite_log: true,
        ..LocationSettings::default()
    };
    let quoted = LocationSettings {
        rewrite_target: Some(template(r#"/a"b;{}$-\"#)),
        ..LocationSettings::default()
    };
    golden_servers(
        "regex_host",
        &layout([server(
            "regex.test",
            [
                location(Modifier::Regex, r"/(thing)(/|$)(.*)", &rewrite),
                location(Modifier::Regex, r#"/q"\.{2,3};"#, &quoted),
                location(Modifier::Regex, "/plain", &LocationSettings::default()),
            ],
        )]),
    );
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
fn snippets() {
    let snippet = |text: &str| Snippet::new(text).unwrap();
    let settings = LocationSettings {
        snippet: Some(snippet(
            "more_set_headers \"Own: $proxy_host\"; # last word",
        )),
        ..LocationSettings::default()
    };
    let longer = LocationSettings {
        snippet: Some(snippet(
            "proxy_read_timeout 3s;\nif ($arg_a) {\n\n  return 418;\n}",
        )),
        proxy: ProxySettings {
            read_timeout: Some(Seconds(9)),
            ..ProxySettings::default()
        },
        ..LocationSettings::default()
    };
    let own = Server {
        snippet: Some(Owned {
            ingress: ObjectName::new("shop", "web"),
            value: snippet(
                "proxy_send_timeout 7s;\nproxy_set_header X-Server 1;\nlocation = /teapot { return 418; }",
            ),
        }),
        ..server(
            "own.test",
            [
                location(Modifier::Exact, "/a", &settings),
                location(Modifier::Exact, "/b", &longer),
            ],
        )
    };
    let other = server(
        "other.test",
        [location(
            Modifier::Prefix,
            "/",
            &LocationSettings::default(),
        )],
    );
    let config = RenderConfig {
        main_snippet: Some(snippet("env HARNESS_VAR;")),
        http_snippet: Some(snippet(
            "proxy_connect_timeout 8s;\nserver { listen 8095; return 200 \"x\"; }",
        )),
        server_snippet: Some(snippet("location = /pot { return 418; }")),
        location_snippet: Some(snippet("more_set_headers \"All: $uri\";")),
        stream_snippet: Some(snippet("server { listen 8110; return \"hello\"; }")),
        ..RenderConfig::default()
    };
    let mut layout = with_config(layout([own, other]), config);
    layout.stream_snippets.push(Owned {
        ingress: ObjectName::new("shop", "web"),
        value: snippet("# nothing but a comment"),
    });
    golden("snippets", &layout, |_| {});
}

#[test]
fn client_auth() {
    let auth = |denied: Option<&str>, crl: bool| {
        Some(Owned {
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
        })
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
fn proxy_protocol() {
    let config = RenderConfig {
        use_proxy_protocol: true,
        use_forwarded_headers: true,
        compute_full_forwarded_for: true,
        proxy_real_ip_cidr: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
        ..RenderConfig::default()
    };
    golden("proxy_protocol", &with_config(layout([]), config), |_| {});
}

#[test]
fn forwarded_headers() {
    let config = RenderConfig {
        use_forwarded_headers: true,
        forwarded_for_header: literal("CF-Connecting-IP"),
        ..RenderConfig::default()
    };
    golden(
        "forwarded_headers",
        &with_config(layout([]), config),
        |environment| {
            environment.ports.https = 8443;
            environment.ipv6 = false;
        },
    );
}

#[test]
fn stream() {
    let server = |proxy_protocol_in, proxy_protocol_out| StreamServer {
        upstream: UpstreamName::new("tcp-shop-db-5432"),
        proxy_protocol_in,
        proxy_protocol_out,
    };
    let layout = Layout {
        tcp: [(5432, server(false, false)), (5433, server(true, true))].into(),
        udp: [(5353, server(false, false))].into(),
        ..layout([])
    };
    golden("stream", &layout, |_| {});
}

#[test]
fn passthrough() {
    let passing = |environment: &mut Environment| {
        environment.ports.passthrough = Some(PassthroughPorts {
            https: 442,
            relay: 10_247,
        });
    };
    golden("passthrough", &layout([]), passing);
    let config = RenderConfig {
        use_proxy_protocol: true,
        ..RenderConfig::default()
    };
    let layout = with_config(layout([]), config);
    golden("passthrough_behind_a_proxy", &layout, passing);
}

#[test]
fn passthrough_needs_its_modules() {
    let mut environment = support::environment(Path::new("/etc/nginx"));
    let render = |environment: &Environment| {
        let without = Capabilities::parse(
            "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=/usr/lib/nginx/modules --with-http_realip_module",
            ["ndk_http_module.so", "ngx_http_lua_module.so"],
        );
        let mut renderer = Renderer::new(without, environment.clone());
        renderer.render(&layout([])).unwrap()
    };
    let ordinary = render(&environment);
    environment.ports.passthrough = Some(PassthroughPorts {
        https: 442,
        relay: 10_247,
    });
    let rendered = render(&environment);
    assert_eq!(rendered.main, ordinary.main);
    let [note] = &rendered.notes[..] else {
        panic!("{:?}", rendered.notes);
    };
    assert!(note.text.contains("not passed through"), "{}", note.text);
}

#[test]
fn every_setting() {
    let config = RenderConfig {
        worker_processes: Some(3),
        worker_cpu_affinity: vec![literal("auto")],
        max_worker_open_files: Some(4_000),
        debug_connections: vec!["192.0.2.0/24".parse().unwrap()],
        bind_address: vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
        reuse_port: false,
        ssl_reject_handshake: true,
        ssl_session_cache: false,
        ssl_ciphers: None,
        hsts_preload: true,
        use_gzip: true,
        gzip_disable: Some(literal("msie6;\"")),
        limit_rate: 64,
        limit_rate_after: 300,
        block_cidrs: vec!["203.0.113.0/24".parse().unwrap()],
        block_user_agents: vec![literal("~*bot{2}"), literal("default"), literal("Default")],
        block_referers: vec![literal("~^http://x\"y")],
        skip_access_log_urls: vec![literal("/health;"), literal("/a b")],
        upstream_keepalive_connections: 0,
        grpc_buffer_size_kb: 12,
        hide_headers: vec![literal("X-Powered-By")],
        allow_backend_server_header: true,
        proxy_add_original_uri_header: true,
        server_tokens: true,
        relative_redirects: true,
        access_log_path: Some(literal("/tmp/harness.log")),
        access_log_params: vec![literal("buffer=32k"), literal("flush=2s")],
        disable_stream_access_log: true,
        log_format_escape_json: true,
        log_format_upstream: template("{\"uri\": \"$uri\", \"price\": \"5$\"}"),
        lua_shared_dicts: [
            ("harness_one".to_owned(), Size::mib(12)),
            ("bad name;".to_owned(), Size::mib(1)),
        ]
        .into(),
        enable_aio_write: false,
        ..RenderConfig::default()
    };
    let long = "a".repeat(60);
    let name = format!("{long}.{long}.test");
    let layout = with_config(layout([server(&name, [default_location()])]), config);
    golden("every_setting", &layout, |environment| {
        environment.metrics = Some(Metrics {
            socket: "/tmp/nginx/metrics.sock".into(),
            batch_size: 500,
        });
        environment.resolvers = vec![
            "192.0.2.53".parse().unwrap(),
            "2001:db8::53".parse().unwrap(),
        ];
        environment.user = Some(User {
            name: "nobody".into(),
            group: Some("nogroup".into()),
        });
        environment.default_certificate_pem = Some(support::key_pair().into());
    });
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

fn external_auth() -> ExternalAuth {
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
