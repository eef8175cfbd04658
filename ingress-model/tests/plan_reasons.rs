//! Each way in which layouts differ, and the reason to reload that is given for it.

#![expect(clippy::unwrap_used, reason = "the layouts are known")]

mod support;

use std::sync::Arc;

use ingress_model::{
    Host, Layout, Options, Server,
    layout::{LocationSettings, Owned, StreamServer},
    live::UpstreamName,
    merge, plan,
    value::{Literal, Snippet},
};
use jiff::Timestamp;
use serde_json::json;

/// Two hosts, one with two paths, and a TCP port.
fn layout() -> Layout {
    let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
    let path = |path: &str| json!({"path": path, "pathType": "Prefix", "backend": backend});
    let ingress = json!({"kind": "Ingress", "metadata": {"name": "a"}, "spec": {"rules": [
        {"host": "a.test", "http": {"paths": [path("/"), path("/x")]}},
        {"host": "b.test"},
    ]}});
    let options = Options {
        watch_ingress_without_class: true,
        ..Options::default()
    };
    let snapshot = support::snapshot(&[ingress]);
    let mut layout = merge(&snapshot, &options, Timestamp::UNIX_EPOCH)
        .model
        .layout;
    layout.tcp.insert(9000, stream("one"));
    layout
}

fn stream(upstream: &str) -> StreamServer {
    StreamServer {
        upstream: UpstreamName::new(upstream),
        proxy_protocol_in: false,
        proxy_protocol_out: false,
    }
}

fn host(name: &str) -> Host {
    Host::parse(name).unwrap()
}

/// The reasons for a change, as text.
fn reasons(change: impl FnOnce(&mut Layout)) -> Vec<String> {
    let old = layout();
    let mut new = old.clone();
    change(&mut new);
    plan(Some(&old), &new)
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The reasons for a change of the host `a.test`.
fn server_reasons(change: impl FnOnce(&mut Server)) -> Vec<String> {
    reasons(|layout| {
        let server = layout.servers.get_mut(&host("a.test")).unwrap();
        change(Arc::make_mut(server));
    })
}

/// The reasons for a change of the settings of its path `/`.
fn setting_reasons(change: impl FnOnce(&mut LocationSettings)) -> Vec<String> {
    server_reasons(|server| {
        let location = server.locations.last_mut().unwrap();
        change(Arc::make_mut(&mut location.settings));
    })
}

fn snippet() -> Owned<Snippet> {
    Owned {
        ingress: ingress_model::ObjectName::new("shop", "a"),
        value: Snippet::new("x;").unwrap(),
    }
}

#[test]
fn the_first_configuration_is_a_reason() {
    let reasons = plan(None, &layout());
    assert_eq!(
        reasons.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["first configuration"]
    );
    assert!(plan(Some(&layout()), &layout()).is_empty());
}

#[test]
fn whole_hosts_and_ports() {
    assert_eq!(
        reasons(|layout| drop(layout.servers.remove(&host("b.test")))),
        ["host b.test removed"]
    );
    assert_eq!(
        reasons(|layout| {
            let server = layout.servers[&host("b.test")].as_ref().clone();
            let server = Server {
                host: host("c.test"),
                ..server
            };
            layout.servers.insert(host("c.test"), Arc::new(server));
        }),
        ["host c.test added"]
    );
    assert_eq!(
        reasons(|layout| drop(layout.tcp.insert(9000, stream("other")))),
        ["TCP port 9000 changed"]
    );
    assert_eq!(
        reasons(|layout| {
            layout.tcp.clear();
            layout.udp.insert(53, stream("one"));
        }),
        ["TCP port 9000 changed", "UDP port 53 changed"]
    );
    assert_eq!(
        reasons(|layout| layout.stream_snippets.push(snippet())),
        ["stream snippets changed"]
    );
    assert_eq!(
        reasons(|layout| Arc::make_mut(&mut layout.config).server_tokens = true),
        ["ConfigMap changed: server-tokens"]
    );
}

#[test]
fn settings_of_a_host() {
    assert_eq!(
        server_reasons(|server| server.tls = true),
        ["TLS section of host a.test added"]
    );
    let mut old = layout();
    let new = old.clone();
    Arc::make_mut(old.servers.get_mut(&host("a.test")).unwrap()).tls = true;
    let removed: Vec<_> = plan(Some(&old), &new)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(removed, ["TLS section of host a.test removed"]);
    let ciphers = Literal::constant("AES128-SHA");
    for (name, reasons) in [
        (
            "aliases",
            server_reasons(|server| server.aliases.push(host("x.test"))),
        ),
        (
            "ssl_ciphers",
            server_reasons(|server| server.ssl_ciphers = Some(ciphers)),
        ),
        (
            "ssl_prefer_server_ciphers",
            server_reasons(|server| server.ssl_prefer_server_ciphers = Some(true)),
        ),
        (
            "snippet",
            server_reasons(|server| server.snippet = Some(snippet())),
        ),
    ] {
        assert_eq!(reasons, [format!("{name} of host a.test changed")]);
    }
}

#[test]
fn paths_of_a_host() {
    // The path /x is two locations, = /x and /x/.
    assert_eq!(
        server_reasons(|server| drop(server.locations.remove(0))),
        ["path /x/ of host a.test removed"]
    );
    assert_eq!(
        server_reasons(|server| {
            let mut location = server.locations[0].clone();
            location.path = "/y/".into();
            server.locations.push(location);
        }),
        ["path /y/ of host a.test added"]
    );
    assert_eq!(
        server_reasons(|server| server.locations.reverse()),
        ["order of the paths of host a.test changed"]
    );
    for (name, reasons) in [
        (
            "upstream",
            server_reasons(|server| server.locations[0].upstream = UpstreamName::new("other")),
        ),
        (
            "service",
            server_reasons(|server| server.locations[0].service = None),
        ),
        (
            "ingress",
            server_reasons(|server| server.locations[0].ingress = None),
        ),
        (
            "ingress_path",
            server_reasons(|server| server.locations[0].ingress_path = "/z".into()),
        ),
    ] {
        assert_eq!(
            reasons,
            [format!("{name} of path /x/ of host a.test changed")]
        );
    }
}

#[test]
fn settings_of_a_path() {
    for (name, reasons) in [
        (
            "denied",
            setting_reasons(|settings| settings.denied = Some("so".into())),
        ),
        (
            "ssl_redirect",
            setting_reasons(|settings| settings.ssl_redirect = false),
        ),
        (
            "proxy",
            setting_reasons(|settings| settings.proxy.buffers_number = Some(9)),
        ),
        (
            "use_regex",
            setting_reasons(|settings| settings.use_regex = true),
        ),
        (
            "relative_redirects",
            setting_reasons(|settings| settings.relative_redirects = Some(true)),
        ),
    ] {
        assert_eq!(
            reasons,
            [format!("{name} of path / of host a.test changed")]
        );
    }
}
