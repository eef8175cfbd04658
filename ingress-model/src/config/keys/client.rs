//! Keys of the client's side of requests.

use crate::value::Size;

use super::{
    Context, KEY, KeyInfo,
    read::{
        boolean, buffer, header_buffers, number, optional, seconds, some_buffer, status, variable,
    },
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "keep-alive",
        value: "seconds",
        default: "75",
        example: "10",
        bad: Some("10s"),
        doc: "How long a client's connection may be idle; 0: it is closed after each response.",
        action: render!(keep_alive, seconds),
        ..KEY
    },
    KeyInfo {
        name: "keep-alive-requests",
        value: "whole number",
        default: "1000",
        example: "100",
        bad: Some("many"),
        doc: "How many requests a client's connection serves.",
        action: render!(keep_alive_requests, |text| number(text, 0, 2_000_000_000)),
        ..KEY
    },
    KeyInfo {
        name: "client-header-buffer-size",
        value: "size",
        default: "1k",
        example: "2k",
        bad: Some("2x"),
        doc: "Buffer for the head of a request.",
        action: render!(client_header_buffer_size, some_buffer),
        ..KEY
    },
    KeyInfo {
        name: "client-header-timeout",
        value: "seconds",
        default: "60",
        example: "10",
        bad: Some("soon"),
        doc: "Longest time for the head of a request.",
        action: render!(client_header_timeout, seconds),
        ..KEY
    },
    KeyInfo {
        name: "large-client-header-buffers",
        value: "whole number and size",
        default: "4 8k",
        example: "4 16k",
        bad: Some("8k"),
        doc: "Buffers for heads that are larger; a buffer has at least 512 bytes.",
        action: render!(large_client_header_buffers, header_buffers),
        ..KEY
    },
    KeyInfo {
        name: "client-body-buffer-size",
        value: "size",
        default: "8k",
        example: "16k",
        bad: Some("2x"),
        doc: "How much of a request body is kept in memory; fall-back of the annotation.",
        action: render!(client_body_buffer_size, some_buffer),
        ..KEY
    },
    KeyInfo {
        name: "client-body-timeout",
        value: "seconds",
        default: "60",
        example: "10",
        bad: Some("soon"),
        doc: "Longest time between two reads of a request body.",
        action: render!(client_body_timeout, seconds),
        ..KEY
    },
    KeyInfo {
        name: "proxy-body-size",
        value: "size",
        default: "1m",
        context: Context::Location,
        example: "8m",
        bad: Some("15q"),
        doc: "Largest request body; fall-back of the annotation.",
        action: render!(proxy_body_size, Size::parse),
        ..KEY
    },
    KeyInfo {
        name: "http2-max-concurrent-streams",
        value: "whole number",
        default: "128",
        example: "64",
        bad: Some("many"),
        doc: "How many requests an HTTP/2 connection may have at once.",
        action: render!(http2_max_concurrent_streams, |text| number(
            text, 1, 1_000_000
        )),
        ..KEY
    },
    KeyInfo {
        name: "http2-max-field-size",
        value: "size",
        default: "none",
        example: "4k",
        bad: Some("2x"),
        doc: "Largest header of an HTTP/2 request, for NGINX before 1.19.7.",
        action: render!(http2_max_field_size, |text| optional(text, buffer)),
        ..KEY
    },
    KeyInfo {
        name: "http2-max-header-size",
        value: "size",
        default: "none",
        example: "16k",
        bad: Some("2x"),
        doc: "Largest head of an HTTP/2 request, for NGINX before 1.19.7.",
        action: render!(http2_max_header_size, |text| optional(text, buffer)),
        ..KEY
    },
    KeyInfo {
        name: "http2-max-requests",
        value: "whole number",
        default: "0",
        example: "1000",
        bad: Some("many"),
        doc: "How many requests an HTTP/2 connection serves, for NGINX before 1.19.7.",
        action: render!(http2_max_requests, |text| number(text, 0, 2_000_000_000)),
        ..KEY
    },
    KeyInfo {
        name: "enable-underscores-in-headers",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether header names may have underscores.",
        action: render!(enable_underscores_in_headers, boolean),
        ..KEY
    },
    KeyInfo {
        name: "ignore-invalid-headers",
        value: "boolean",
        default: "true",
        example: "false",
        bad: Some("sure"),
        doc: "Whether headers with odd names are dropped.",
        action: render!(ignore_invalid_headers, boolean),
        ..KEY
    },
    KeyInfo {
        name: "server-tokens",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether responses have a `Server` header with NGINX's version.",
        action: render!(server_tokens, boolean),
        ..KEY
    },
    KeyInfo {
        name: "limit-rate",
        value: "kilobytes a second",
        default: "0",
        context: Context::Location,
        example: "100",
        bad: Some("fast"),
        doc: "Fall-back of the annotation.",
        action: render!(limit_rate, |text| number(text, 0, 4_000_000)),
        ..KEY
    },
    KeyInfo {
        name: "limit-rate-after",
        value: "kilobytes",
        default: "0",
        context: Context::Location,
        example: "1000",
        bad: Some("soon"),
        doc: "Fall-back of the annotation.",
        action: render!(limit_rate_after, |text| number(text, 0, 4_000_000)),
        ..KEY
    },
    KeyInfo {
        name: "limit-req-status-code",
        value: "status from 400 to 599",
        default: "503",
        example: "429",
        bad: Some("200"),
        doc: "Answer to requests over a limit.",
        action: render!(limit_req_status_code, |text| status(text, 400, 599)),
        ..KEY
    },
    KeyInfo {
        name: "limit-conn-status-code",
        value: "status from 400 to 599",
        default: "503",
        example: "429",
        bad: Some("200"),
        doc: "Answer to connections over a limit.",
        action: render!(limit_conn_status_code, |text| status(text, 400, 599)),
        ..KEY
    },
    KeyInfo {
        name: "limit-conn-zone-variable",
        value: "variable",
        default: "$binary_remote_addr",
        example: "$http_x_client",
        bad: Some("client;"),
        doc: "What tells clients apart for limits.",
        action: render!(limit_conn_zone_variable, variable),
        ..KEY
    },
];
