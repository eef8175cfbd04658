//! Errors of NGINX lead to whoever caused them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod support;

use std::sync::Arc;

use ingress_model::{
    Layout, ObjectName, Server,
    config::RenderConfig,
    layout::{LocationSettings, Modifier, Owned, ProxySettings},
    value::{Literal, Snippet},
};
use nginx_render::{Environment, Renderer, Source};

use support::{layout, location, refusal, server};

fn snippet(text: &str) -> Snippet {
    Snippet::new(text).unwrap()
}

/// Some host among others, with one path.
fn with(name: &str, settings: &LocationSettings) -> Layout {
    let fine = LocationSettings {
        snippet: Some(snippet("# fine\n\n# fine")),
        ..LocationSettings::default()
    };
    layout([
        server("a.test", [location(Modifier::Prefix, "/", &fine)]),
        server(
            name,
            [
                location(Modifier::Exact, "/odd", settings),
                location(Modifier::Prefix, "/", &fine),
            ],
        ),
        server("z.test", [location(Modifier::Prefix, "/", &fine)]),
    ])
}

/// Who is behind the line that NGINX complains of.
fn culprit(layout: &Layout) -> Option<Source> {
    let capabilities = support::installed()?;
    let error = refusal(layout, |_| {}).expect("NGINX should refuse this");
    let line = error
        .lines()
        .find_map(|line| line.rsplit_once("nginx.conf:"))
        .unwrap_or_else(|| panic!("{error}"))
        .1;
    let rendered = Renderer::new(capabilities, Environment::default())
        .render(layout)
        .unwrap();
    let line = line.trim().parse().unwrap();
    Some(
        rendered
            .source_map
            .locate(line)
            .unwrap_or_else(|| panic!("{error}"))
            .clone(),
    )
}

#[test]
fn a_location() {
    let settings = LocationSettings {
        proxy: ProxySettings {
            next_upstream: Some(vec![Literal::parse("no_such_word").unwrap()]),
            ..ProxySettings::default()
        },
        ..LocationSettings::default()
    };
    let Some(source) = culprit(&with("m.test", &settings)) else {
        return;
    };
    assert_eq!(
        source.host.map(|host| host.to_string()).as_deref(),
        Some("m.test")
    );
    assert_eq!(source.path.as_deref(), Some("/odd"));
    assert_eq!(source.ingress, Some(ObjectName::new("shop", "web")));
    assert_eq!(source.what, "location");
}

#[test]
fn snippets() {
    let bad = || snippet("# first\n\nno_such_directive on;");
    let settings = LocationSettings {
        snippet: Some(bad()),
        ..LocationSettings::default()
    };
    let Some(source) = culprit(&with("m.test", &settings)) else {
        return;
    };
    assert_eq!(
        (source.what, source.path.as_deref()),
        ("configuration-snippet", Some("/odd"))
    );

    let ingress = ObjectName::new("shop", "servers");
    let owned = Owned {
        ingress: ingress.clone(),
        value: bad(),
    };
    let mut of_server = with("m.test", &LocationSettings::default());
    let host = support::host("m.test");
    let server = Server {
        snippet: Some(owned.clone()),
        ..Server::clone(&of_server.servers[&host])
    };
    of_server.servers.insert(host.clone(), Arc::new(server));
    let source = culprit(&of_server).unwrap();
    assert_eq!(
        (source.what, source.ingress.as_ref(), source.host),
        ("server-snippet", Some(&ingress), Some(host))
    );

    let mut of_stream = with("m.test", &LocationSettings::default());
    of_stream.stream_snippets.push(owned);
    let source = culprit(&of_stream).unwrap();
    assert_eq!(
        (source.what, source.ingress),
        ("stream-snippet", Some(ingress))
    );
}

#[test]
fn settings_of_the_config_map() {
    let literal = |text: &str| Literal::parse(text).unwrap();
    let fine = RenderConfig::default;
    let configs = [
        (
            "ssl-protocols",
            RenderConfig {
                ssl_protocols: vec![literal("SSLv9")],
                ..fine()
            },
        ),
        (
            "error-log-path",
            RenderConfig {
                error_log_level: literal("loud"),
                ..fine()
            },
        ),
        (
            "block-user-agents",
            RenderConfig {
                block_user_agents: vec![literal("ok"), literal("~(")],
                ..fine()
            },
        ),
        (
            "http-snippet",
            RenderConfig {
                http_snippet: Some(snippet("x;\n")),
                ..fine()
            },
        ),
        (
            "stream-snippet",
            RenderConfig {
                stream_snippet: Some(snippet("x;\n")),
                ..fine()
            },
        ),
        (
            "main-snippet",
            RenderConfig {
                main_snippet: Some(snippet("x;\n")),
                ..fine()
            },
        ),
        (
            "server-snippet",
            RenderConfig {
                server_snippet: Some(snippet("x;\n")),
                ..fine()
            },
        ),
        (
            "location-snippet",
            RenderConfig {
                location_snippet: Some(snippet("x;\n")),
                ..fine()
            },
        ),
    ];
    for (key, config) in configs {
        let layout = Layout {
            config: Arc::new(config),
            ..with("m.test", &LocationSettings::default())
        };
        let Some(source) = culprit(&layout) else {
            return;
        };
        assert_eq!(source.what, key);
        assert_eq!(source.ingress, None, "{key}");
    }
}

#[test]
fn only_changed_servers_are_rendered_again() {
    let before = with("m.test", &LocationSettings::default());
    let after = with(
        "m.test",
        &LocationSettings {
            rewrite_log: true,
            ..LocationSettings::default()
        },
    );
    let renderer = || Renderer::new(support::debian(), Environment::default());
    let mut used = renderer();
    let first = used.render(&before).unwrap();
    let second = used.render(&after).unwrap();
    assert_ne!(first.checksum, second.checksum);
    assert_eq!(
        second,
        renderer().render(&after).unwrap(),
        "what is kept must not show"
    );
    assert_eq!(first, used.render(&before).unwrap());
    let other = Layout {
        config: Arc::new(RenderConfig {
            use_http2: false,
            ..RenderConfig::default()
        }),
        ..before
    };
    assert_eq!(
        used.render(&other).unwrap(),
        renderer().render(&other).unwrap()
    );
}
