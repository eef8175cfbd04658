//! Hosts, paths, and what the ConfigMap says about all of them.

use ingress_model::{
    ObjectName, Server,
    config::RenderConfig,
    layout::{LocationSettings, Modifier, Owned, ProxySettings},
    value::{Seconds, Size, Snippet},
};
use nginx_render::{Metrics, User};

use crate::{
    golden, golden_servers,
    support::{
        self, default_location, host, layout, literal, location, prefix, server, template,
        with_config,
    },
};

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
