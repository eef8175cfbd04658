//! Where requests come from, and what is no HTTP.

use std::path::Path;

use ingress_model::{Layout, config::RenderConfig, layout::StreamServer, live::UpstreamName};
use nginx_render::{Capabilities, Environment, PassthroughPorts, Renderer};

use crate::{
    golden,
    support::{self, layout, literal, with_config},
};

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
