//! Keys of headers.

use super::{
    Context, KEY, KeyInfo,
    read::{boolean, header_name, media_type},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "add-headers",
        value: "`namespace/name`",
        default: "none",
        example: "ingress/headers",
        bad: Some("headers"),
        doc: "ConfigMap with headers for every response.",
        action: reference!(add_headers),
        ..KEY
    },
    KeyInfo {
        name: "proxy-set-headers",
        value: "`namespace/name`",
        default: "none",
        context: Context::Location,
        example: "ingress/headers",
        bad: Some("headers"),
        doc: "ConfigMap with headers for every request to endpoints.",
        action: reference!(proxy_set_headers),
        ..KEY
    },
    KeyInfo {
        name: "hide-headers",
        value: "list of header names",
        default: "none",
        example: "X-Powered-By",
        bad: Some("a b"),
        doc: "Headers of endpoints that clients do not see.",
        action: render_list!(hide_headers, header_name),
        ..KEY
    },
    KeyInfo {
        name: "allow-backend-server-header",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether the `Server` header of endpoints is passed on; needs `server-tokens`.",
        action: render!(allow_backend_server_header, boolean),
        ..KEY
    },
    KeyInfo {
        name: "proxy-add-original-uri-header",
        value: "boolean",
        default: "false",
        context: Context::Location,
        example: "true",
        bad: Some("sure"),
        doc: "Whether endpoints get `X-Original-URI`.",
        action: render!(proxy_add_original_uri_header, boolean),
        ..KEY
    },
    KeyInfo {
        name: "global-allowed-response-headers",
        value: "list of header names",
        default: "none",
        context: Context::Controller,
        example: "X-Team",
        bad: Some("a b"),
        doc: "Headers that the annotation `custom-headers` may set.",
        action: policy_list!(allowed_response_headers, header_name),
        ..KEY
    },
    KeyInfo {
        name: "default-type",
        value: "media type",
        default: "text/html",
        example: "text/plain",
        bad: Some("a b"),
        doc: "Media type of files that NGINX knows no other for.",
        action: render!(default_type, media_type),
        ..KEY
    },
];
