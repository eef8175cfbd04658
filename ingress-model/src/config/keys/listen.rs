//! Keys of listening.

use std::net::IpAddr;

use super::{
    Action, Context, KEY, KeyInfo,
    read::{add_address, address, boolean},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "bind-address",
        value: "list of addresses",
        default: "all addresses",
        context: Context::Server,
        example: "192.0.2.1,2001:db8::1",
        bad: Some("eth0"),
        doc: "Addresses that NGINX listens on.",
        action: render_list!(bind_address, address),
        ..KEY
    },
    KeyInfo {
        name: "bind-address-ipv4",
        value: "address",
        default: "all addresses",
        context: Context::Server,
        example: "192.0.2.1",
        bad: Some("::1"),
        doc: "One more address to listen on.",
        action: Some(Action {
            set: |draft, text| add_address(draft, text, IpAddr::is_ipv4),
            differs: |_, _| false,
        }),
        ..KEY
    },
    KeyInfo {
        name: "bind-address-ipv6",
        value: "address",
        default: "all addresses",
        context: Context::Server,
        example: "2001:db8::1",
        bad: Some("127.0.0.1"),
        doc: "One more address to listen on.",
        action: Some(Action {
            set: |draft, text| add_address(draft, text, IpAddr::is_ipv6),
            differs: |_, _| false,
        }),
        ..KEY
    },
    KeyInfo {
        name: "reuse-port",
        value: "boolean",
        default: "true",
        context: Context::Server,
        example: "false",
        bad: Some("sure"),
        doc: "Whether each worker has a listening socket of its own.",
        action: render!(reuse_port, boolean),
        ..KEY
    },
    KeyInfo {
        name: "disable-ipv6",
        value: "boolean",
        default: "false",
        context: Context::Server,
        example: "true",
        bad: Some("sure"),
        doc: "Whether NGINX listens on no IPv6 address.",
        action: render!(disable_ipv6, boolean),
        ..KEY
    },
    KeyInfo {
        name: "disable-ipv6-dns",
        value: "boolean",
        default: "true where IPv6 does not work",
        example: "true",
        bad: Some("sure"),
        doc: "Whether names are resolved to IPv4 addresses only.",
        action: render!(disable_ipv6_dns, |text| boolean(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "use-http2",
        value: "boolean",
        default: "true",
        context: Context::Server,
        example: "false",
        bad: Some("sure"),
        doc: "Whether HTTP/2 is spoken over TLS; and, where an Ingress serves gRPC without TLS, at the HTTP port, too.",
        action: render!(use_http2, boolean),
        ..KEY
    },
    KeyInfo {
        name: "use-http3",
        value: "boolean",
        default: "false",
        context: Context::Server,
        example: "true",
        bad: Some("sure"),
        doc: "Whether HTTP/3 is spoken at the UDP port of HTTPS, where NGINX can; not behind a PROXY header, nor with `--enable-ssl-passthrough`. ingress-nginx has no such key.",
        action: render!(use_http3, boolean),
        ..KEY
    },
    KeyInfo {
        name: "use-proxy-protocol",
        value: "boolean",
        default: "false",
        context: Context::Server,
        example: "true",
        bad: Some("sure"),
        doc: "Whether connections begin with a PROXY header.",
        action: render!(use_proxy_protocol, boolean),
        ..KEY
    },
];
