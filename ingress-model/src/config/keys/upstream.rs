//! Keys of the endpoints' side of requests.

use crate::{
    annotation::proxy::{conditions, replacement},
    value::{Template, Time, ValueError},
};

use super::{
    Action, Context, KEY, KeyInfo, Status,
    read::{boolean, buffer, http_version, load_balance, number, optional, seconds, switch},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "proxy-connect-timeout",
        value: "seconds",
        default: "5",
        context: Context::Location,
        example: "10",
        bad: Some("soon"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.connect_timeout, |text| seconds(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-send-timeout",
        value: "seconds",
        default: "60",
        context: Context::Location,
        example: "10",
        bad: Some("soon"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.send_timeout, |text| seconds(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-read-timeout",
        value: "seconds",
        default: "60",
        context: Context::Location,
        example: "10",
        bad: Some("soon"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.read_timeout, |text| seconds(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-buffering",
        value: "`on` or `off`",
        default: "off",
        context: Context::Location,
        example: "on",
        bad: Some("true"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.buffering, |text| switch(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-request-buffering",
        value: "`on` or `off`",
        default: "on",
        context: Context::Location,
        example: "off",
        bad: Some("false"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.request_buffering, |text| switch(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-buffer-size",
        value: "size",
        default: "4k",
        context: Context::Location,
        example: "8k",
        bad: Some("8g"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.buffer_size, |text| buffer(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-buffers-number",
        value: "whole number from 2 on",
        default: "4",
        context: Context::Location,
        example: "8",
        bad: Some("1"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.buffers_number, |text| number(text, 2, 65_536)
            .map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-busy-buffers-size",
        value: "size",
        default: "twice the buffer size",
        context: Context::Location,
        example: "12k",
        bad: Some("2x"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.busy_buffers_size, |text| optional(text, buffer)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-max-temp-file-size",
        value: "size",
        default: "1024m",
        context: Context::Location,
        example: "64m",
        bad: Some("2x"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.max_temp_file_size, |text| buffer(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-http-version",
        value: "`1.0` or `1.1`",
        default: "1.1",
        context: Context::Location,
        example: "1.0",
        bad: Some("2"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.http_version, |text| http_version(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-next-upstream",
        value: "list of conditions, separated by spaces",
        default: "error timeout",
        context: Context::Location,
        example: "error http_502",
        bad: Some("http_418"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.next_upstream, |text| match text {
            "" => Err(ValueError::Empty),
            text => conditions(text, false).map(Some),
        }),
        ..KEY
    },
    KeyInfo {
        name: "proxy-next-upstream-timeout",
        value: "seconds",
        default: "0",
        context: Context::Location,
        example: "10",
        bad: Some("soon"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.next_upstream_timeout, |text| seconds(text).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-next-upstream-tries",
        value: "whole number",
        default: "3",
        context: Context::Location,
        example: "2",
        bad: Some("many"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.next_upstream_tries, |text| number(text, 0, 1_000)
            .map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "retry-non-idempotent",
        value: "boolean",
        default: "false",
        context: Context::Location,
        example: "true",
        bad: Some("sure"),
        doc: "Whether another endpoint is tried for POST and other requests that may not be repeated.",
        action: policy!(retry_non_idempotent, boolean),
        ..KEY
    },
    KeyInfo {
        name: "proxy-cookie-domain",
        value: "`off`, or two words",
        default: "off",
        context: Context::Location,
        example: "a.test b.test",
        bad: Some("a.test"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.cookie_domain, |text| replacement(text, None)
            .map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-cookie-path",
        value: "`off`, or two words",
        default: "off",
        context: Context::Location,
        example: "/a /b",
        bad: Some("/a"),
        doc: "Fall-back of the annotation.",
        action: render!(proxy.cookie_path, |text| replacement(text, None).map(Some)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-redirect-from",
        value: "`off`, `default` or a URL",
        default: "off",
        context: Context::Location,
        example: "default",
        doc: "Fall-back of the annotation.",
        action: Some(Action {
            set: |draft, text| {
                draft.policy.proxy_redirect_from = Template::parse(text)?;
                Ok(())
            },
            differs: |one, other| one.proxy.redirect != other.proxy.redirect,
        }),
        ..KEY
    },
    KeyInfo {
        name: "proxy-redirect-to",
        value: "URL",
        default: "off",
        context: Context::Location,
        example: "http://outer.test/",
        doc: "Fall-back of the annotation.",
        action: policy!(proxy_redirect_to, Template::parse),
        ..KEY
    },
    KeyInfo {
        name: "upstream-keepalive-connections",
        value: "whole number",
        default: "320",
        example: "64",
        bad: Some("many"),
        doc: "How many idle connections to endpoints a worker keeps; 0: none.",
        action: render!(upstream_keepalive_connections, |text| number(
            text, 0, 1_000_000
        )),
        ..KEY
    },
    KeyInfo {
        name: "upstream-keepalive-requests",
        value: "whole number",
        default: "10000",
        example: "100",
        bad: Some("many"),
        doc: "How many requests such a connection serves.",
        action: render!(upstream_keepalive_requests, |text| number(
            text,
            1,
            2_000_000_000
        )),
        ..KEY
    },
    KeyInfo {
        name: "upstream-keepalive-time",
        value: "time",
        default: "1h",
        example: "30m",
        bad: Some("soon"),
        doc: "How long such a connection lives.",
        action: render!(upstream_keepalive_time, Time::parse),
        ..KEY
    },
    KeyInfo {
        name: "upstream-keepalive-timeout",
        value: "seconds",
        default: "60",
        example: "10",
        bad: Some("soon"),
        doc: "How long such a connection may be idle.",
        action: render!(upstream_keepalive_timeout, seconds),
        ..KEY
    },
    KeyInfo {
        name: "grpc-buffer-size-kb",
        value: "kilobytes",
        default: "0",
        example: "8",
        bad: Some("many"),
        doc: "Buffer for responses of gRPC endpoints; 0: NGINX's own default.",
        action: render!(grpc_buffer_size_kb, |text| number(text, 0, 1_000_000)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-ssl-location-only",
        value: "boolean",
        default: "false",
        context: Context::Server,
        example: "true",
        bad: Some("sure"),
        doc: "Whether `proxy-ssl-*` annotations leave the server alone.",
        action: policy!(proxy_ssl_location_only, boolean),
        ..KEY
    },
    KeyInfo {
        name: "load-balance",
        value: "`round_robin` or `ewma`",
        default: "round_robin",
        context: Context::Controller,
        example: "ewma",
        bad: Some("fastest"),
        doc: "Fall-back of the annotation.",
        action: policy!(load_balance, load_balance),
        ..KEY
    },
    KeyInfo {
        name: "service-upstream",
        value: "boolean",
        default: "false",
        context: Context::Controller,
        example: "true",
        bad: Some("sure"),
        doc: "Fall-back of the annotation.",
        action: policy!(service_upstream, boolean),
        ..KEY
    },
    KeyInfo {
        name: "upstream-hash-by",
        value: "text and variables",
        default: "none",
        context: Context::Controller,
        status: Status::NotYet,
        example: "$host",
        doc: "Has no effect in ingress-nginx either.",
        ..KEY
    },
    KeyInfo {
        name: "upstream-hash-by-subset",
        value: "boolean",
        default: "false",
        context: Context::Controller,
        status: Status::NotYet,
        example: "true",
        doc: "Has no effect in ingress-nginx either.",
        ..KEY
    },
    KeyInfo {
        name: "upstream-hash-by-subset-size",
        value: "whole number",
        default: "0",
        context: Context::Controller,
        status: Status::NotYet,
        example: "3",
        doc: "Has no effect in ingress-nginx either.",
        ..KEY
    },
];
