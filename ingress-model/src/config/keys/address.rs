//! Keys of who the client is.

use super::{
    Action, Context, Instead, KEY, KeyInfo,
    read::{boolean, header_name, network},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "use-forwarded-headers",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether `X-Forwarded-*` headers of requests are trusted.",
        action: render!(use_forwarded_headers, boolean),
        ..KEY
    },
    KeyInfo {
        name: "compute-full-forwarded-for",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether the client's address is appended to `X-Forwarded-For` rather than replacing it.",
        action: render!(compute_full_forwarded_for, boolean),
        ..KEY
    },
    KeyInfo {
        name: "enable-real-ip",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether the client's address is read from a header of trusted proxies.",
        action: render!(enable_real_ip, boolean),
        ..KEY
    },
    KeyInfo {
        name: "forwarded-for-header",
        value: "header name",
        default: "X-Forwarded-For",
        example: "CF-Connecting-IP",
        bad: Some("a b"),
        doc: "Header with the client's address.",
        action: render!(forwarded_for_header, header_name),
        ..KEY
    },
    KeyInfo {
        name: "forwarded-for-proxy-protocol-header",
        value: "header name",
        default: "X-Forwarded-For-Proxy-Protocol",
        example: "X-Pp-For",
        bad: Some("a b"),
        doc: "Header that carries the address when both the PROXY protocol and forwarded headers are in use.",
        action: render!(forwarded_for_proxy_protocol_header, header_name),
        ..KEY
    },
    KeyInfo {
        name: "forwarded-host-header",
        value: "header name",
        default: "X-Forwarded-Host",
        context: Context::Location,
        example: "X-Host",
        bad: Some("a b"),
        doc: "Header whose value endpoints see as `X-Original-Forwarded-Host`.",
        action: render!(forwarded_host_header, header_name),
        ..KEY
    },
    KeyInfo {
        name: "proxy-real-ip-cidr",
        value: "list of addresses and networks",
        default: "0.0.0.0/0",
        example: "10.0.0.0/8",
        bad: Some("everybody"),
        doc: "Proxies that are trusted. Items that cannot be used are left out; if none can, nobody is trusted.",
        action: Some(Action {
            set: |draft, text| {
                draft.render.proxy_real_ip_cidr.clear();
                draft.render.proxy_real_ip_cidr = draft.items(text, network)?;
                Ok(())
            },
            differs: |one, other| one.proxy_real_ip_cidr != other.proxy_real_ip_cidr,
        }),
        instead: Instead::Nobody,
        ..KEY
    },
    KeyInfo {
        name: "generate-request-id",
        value: "boolean",
        default: "true",
        example: "false",
        bad: Some("sure"),
        doc: "Whether requests without `X-Request-ID` get one.",
        action: render!(generate_request_id, boolean),
        ..KEY
    },
];
