//! Where requests come from, and what is no HTTP.

use std::path::Path;

use ingress_model::{
    Layout,
    config::RenderConfig,
    layout::{BackendProtocol, ExternalAuth, LocationSettings, Mirror, Modifier, StreamServer},
    live::UpstreamName,
};
use nginx_render::{Capabilities, Environment, PassthroughPorts, Renderer};

use crate::{
    access::external_auth,
    golden,
    support::{self, debian, layout, literal, location, refusal, server, template, with_config},
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

fn passing(environment: &mut Environment) {
    environment.ports.passthrough = Some(PassthroughPorts {
        https: 442,
        relay: 10_247,
    });
}

#[test]
fn passthrough() {
    golden("passthrough", &layout([]), passing);
    let config = RenderConfig {
        use_proxy_protocol: true,
        ..RenderConfig::default()
    };
    let layout = with_config(layout([]), config);
    golden("passthrough_behind_a_proxy", &layout, passing);
}

/// The header that only NGINX itself may set reaches nobody who might send it on to NGINX, which would refuse that.
#[test]
fn what_nginx_tells_itself_is_told_to_nobody_else() {
    let auth = ExternalAuth {
        url: template("https://$host/oauth2/auth"),
        host: template("$host"),
        ..external_auth()
    };
    let mirror = Mirror {
        target: template("https://$host$request_uri"),
        host: template("$host"),
        request_body: true,
    };
    let settings = LocationSettings {
        external_auth: Some(auth.into()),
        mirror: Some(mirror),
        forwarded_prefix: Some(template("/p")),
        rewrite_target: Some(template("/x")),
        ..LocationSettings::default()
    };
    let blank = "proxy_set_header \"X-Forwarded-For-Proxy-Protocol\" \"\";";
    for (use_forwarded_headers, enable_real_ip, use_proxy_protocol, levels) in [
        (true, false, false, 4),
        (false, true, false, 4),
        (false, false, false, 0),
        (true, false, true, 0),
    ] {
        let config = RenderConfig {
            use_forwarded_headers,
            enable_real_ip,
            use_proxy_protocol,
            ..RenderConfig::default()
        };
        let location = location(Modifier::Prefix, "/", &settings);
        let layout = with_config(layout([server("a.test", [location])]), config);
        assert_eq!(refusal(&layout, passing), None);
        let mut environment = support::environment(Path::new("/etc/nginx"));
        passing(&mut environment);
        let rendered = Renderer::new(debian(), environment).render(&layout);
        let main = rendered.unwrap().main;
        // The http block, the location, the question and the copy.
        assert_eq!(main.matches(blank).count(), levels, "{main}");
    }
}

/// Where connections are looked at before they are passed on, addresses of headers are known late, at all hosts.
#[test]
fn calls_that_are_redirected_need_no_look_at_connections() {
    let main = |redirects: bool, use_proxy_protocol: bool| {
        let settings = LocationSettings {
            backend_protocol: BackendProtocol::Grpc,
            force_ssl_redirect: redirects,
            ..LocationSettings::default()
        };
        let config = RenderConfig {
            use_forwarded_headers: true,
            use_proxy_protocol,
            ..RenderConfig::default()
        };
        let calls = location(Modifier::Prefix, "/", &settings);
        let layout = with_config(layout([server("calls.test", [calls])]), config);
        assert_eq!(refusal(&layout, |_| {}), None);
        support::render(&layout).main
    };
    let redirected = main(true, false);
    assert!(
        redirected.contains("real_ip_header X-Forwarded-For;"),
        "{redirected}"
    );
    assert!(!redirected.contains("run/http1.sock"), "{redirected}");
    // A PROXY header may tell that TLS has ended in front.
    assert!(main(true, true).contains("run/http1.sock"));
    let served = main(false, false);
    assert!(served.contains("run/http1.sock"), "{served}");
    // NGINX would warn of a default beside it, at each load.
    let trusted = "$proxy_protocol_addr_trusted {\n        0.0.0.0/0 1;\n    }";
    assert!(served.contains(trusted), "{served}");
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
