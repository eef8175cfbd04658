//! Keys of redirects.

use super::{
    Context, KEY, KeyInfo, Status,
    read::{boolean, redirect_code, text},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "ssl-redirect",
        value: "boolean",
        default: "true",
        context: Context::Location,
        example: "false",
        bad: Some("sure"),
        doc: "Fall-back of the annotation.",
        action: policy!(ssl_redirect, boolean),
        ..KEY
    },
    KeyInfo {
        name: "force-ssl-redirect",
        value: "boolean",
        default: "false",
        context: Context::Location,
        example: "true",
        bad: Some("sure"),
        doc: "Fall-back of the annotation.",
        action: policy!(force_ssl_redirect, boolean),
        ..KEY
    },
    KeyInfo {
        name: "no-tls-redirect-locations",
        value: "list of path prefixes",
        default: "/.well-known/acme-challenge",
        context: Context::Location,
        example: "/plain",
        doc: "Paths that are not redirected to HTTPS.",
        action: policy_list!(no_tls_redirect_locations, text),
        ..KEY
    },
    KeyInfo {
        name: "preserve-trailing-slash",
        value: "boolean",
        default: "false",
        context: Context::Location,
        example: "true",
        bad: Some("sure"),
        doc: "Fall-back of the annotation.",
        action: policy!(preserve_trailing_slash, boolean),
        ..KEY
    },
    KeyInfo {
        name: "use-port-in-redirects",
        value: "boolean",
        default: "false",
        context: Context::Location,
        example: "true",
        bad: Some("sure"),
        doc: "Fall-back of the annotation.",
        action: policy!(use_port_in_redirects, boolean),
        ..KEY
    },
    KeyInfo {
        name: "relative-redirects",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether redirects that NGINX makes leave scheme and host out.",
        action: render!(relative_redirects, boolean),
        ..KEY
    },
    KeyInfo {
        name: "http-redirect-code",
        value: "301, 302, 307 or 308",
        default: "308",
        example: "301",
        bad: Some("200"),
        doc: "Status of redirects to HTTPS and to or from `www.`.",
        action: render!(http_redirect_code, redirect_code),
        ..KEY
    },
    KeyInfo {
        name: "app-root",
        value: "path",
        default: "none",
        context: Context::Server,
        status: Status::NotYet,
        example: "/app",
        doc: "Has no effect in ingress-nginx either.",
        ..KEY
    },
];
