//! Keys of authentication.

use crate::annotation::Status;

use super::{
    Context, KEY, KeyInfo,
    read::{boolean, texts},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "no-auth-locations",
        value: "list of path prefixes",
        default: "/.well-known/acme-challenge",
        context: Context::Location,
        status: Status::NotYet,
        example: "/open",
        doc: "Paths without authentication.",
        action: policy!(no_auth_locations, texts),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-url",
        value: "URL",
        default: "none",
        context: Context::Location,
        status: Status::NotYet,
        example: "http://auth.test/verify",
        doc: "Fall-back of `auth-url`, for every location that does not opt out.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-method",
        value: "HTTP method",
        default: "that of the request",
        context: Context::Location,
        status: Status::NotYet,
        example: "POST",
        doc: "Fall-back of `auth-method`.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-signin",
        value: "URL",
        default: "none",
        context: Context::Location,
        status: Status::NotYet,
        example: "http://auth.test/start",
        doc: "Fall-back of `auth-signin`.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-signin-redirect-param",
        value: "name",
        default: "rd",
        context: Context::Location,
        status: Status::NotYet,
        example: "next",
        doc: "Fall-back of `auth-signin-redirect-param`.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-response-headers",
        value: "list of header names",
        default: "none",
        context: Context::Location,
        status: Status::NotYet,
        example: "X-User",
        doc: "Fall-back of `auth-response-headers`.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-request-redirect",
        value: "URL",
        default: "$request_uri",
        context: Context::Location,
        status: Status::NotYet,
        example: "http://shop.test/",
        doc: "Fall-back of `auth-request-redirect`.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-snippet",
        value: "raw configuration",
        default: "none",
        context: Context::Location,
        status: Status::NotYet,
        example: "proxy_set_header X-From edge;",
        doc: "Raw configuration for the location that asks.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-cache-key",
        value: "text and variables",
        default: "none",
        context: Context::Location,
        status: Status::NotYet,
        example: "$remote_user",
        doc: "Fall-back of `auth-cache-key`.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-cache-duration",
        value: "list of statuses and times",
        default: "200 202 401 5m",
        context: Context::Location,
        status: Status::NotYet,
        example: "200 10m",
        doc: "Fall-back of `auth-cache-duration`.",
        ..KEY
    },
    KeyInfo {
        name: "global-auth-always-set-cookie",
        value: "boolean",
        default: "false",
        context: Context::Location,
        status: Status::NotYet,
        example: "true",
        doc: "Fall-back of `auth-always-set-cookie`.",
        ..KEY
    },
    KeyInfo {
        name: "enable-auth-access-log",
        value: "boolean",
        default: "false",
        context: Context::Location,
        status: Status::NotYet,
        example: "true",
        bad: Some("sure"),
        doc: "Whether questions to the authenticating service are logged.",
        action: render!(enable_auth_access_log, boolean),
    },
];
