//! Keys of authentication.

use crate::{
    annotation::external_auth::{authority, cache_valid, method, parameter, target, url},
    value::{Template, ValueError},
};

use super::{
    Action, Context, KEY, KeyInfo,
    read::{boolean, header_name, optional, snippet, text},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "no-auth-locations",
        value: "list of path prefixes",
        default: "/.well-known/acme-challenge",
        context: Context::Location,
        example: "/open",
        doc: "Paths without authentication.",
        action: policy_list!(no_auth_locations, text),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-url",
        value: "URL",
        default: "none",
        context: Context::Location,
        example: "http://auth.test/verify",
        doc: "Fall-back of `auth-url`, for every location that does not opt out.",
        bad: Some("not-a-url"),
        action: auth!(url, |text| optional(text, url)),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-method",
        value: "HTTP method",
        default: "that of the request",
        context: Context::Location,
        example: "POST",
        doc: "Fall-back of `auth-method`.",
        bad: Some("FETCH"),
        action: auth!(method, |text| optional(text, method)),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-signin",
        value: "URL",
        default: "none",
        context: Context::Location,
        example: "http://auth.test/start",
        doc: "Fall-back of `auth-signin`.",
        bad: Some("/start"),
        action: auth!(signin, |text| optional(text, page)),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-signin-redirect-param",
        value: "name",
        default: "rd",
        context: Context::Location,
        example: "next",
        doc: "Fall-back of `auth-signin-redirect-param`.",
        bad: Some("a b;"),
        action: auth!(signin_parameter, |text| optional(text, parameter)),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-response-headers",
        value: "list of header names",
        default: "none",
        context: Context::Location,
        example: "X-User",
        doc: "Fall-back of `auth-response-headers`.",
        bad: Some("a b"),
        action: Some(Action {
            set: |draft, text| {
                draft.auth.response_headers = draft.items(text, header_name)?;
                Ok(())
            },
            differs: |_, _| false,
        }),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-request-redirect",
        value: "URL",
        default: "$request_uri",
        context: Context::Location,
        example: "http://shop.test/",
        doc: "Fall-back of `auth-request-redirect`.",
        action: auth!(request_redirect, |text| optional(text, Template::parse)),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-snippet",
        value: "raw configuration",
        default: "none",
        context: Context::Location,
        example: "proxy_set_header X-From edge;",
        doc: "Raw configuration for the location that asks.",
        action: auth!(snippet, snippet),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-cache-key",
        value: "text and variables",
        default: "none",
        context: Context::Location,
        example: "$remote_user",
        doc: "Fall-back of `auth-cache-key`.",
        action: auth!(cache_key, |text| optional(text, Template::parse)),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-cache-duration",
        value: "list of statuses and times",
        default: "200 202 401 5m",
        context: Context::Location,
        example: "200 10m",
        doc: "Fall-back of `auth-cache-duration`.",
        bad: Some("200"),
        action: auth!(cache_valid, |text| optional(text, cache_valid)),
        ..KEY
    },
    KeyInfo {
        name: "global-auth-always-set-cookie",
        value: "boolean",
        default: "false",
        context: Context::Location,
        example: "true",
        doc: "Fall-back of `auth-always-set-cookie`.",
        bad: Some("sure"),
        action: auth!(always_set_cookie, boolean),
        ..KEY
    },
    KeyInfo {
        name: "enable-auth-access-log",
        value: "boolean",
        default: "false",
        context: Context::Location,
        example: "true",
        bad: Some("sure"),
        doc: "Whether questions to the authenticating service are logged.",
        action: render!(enable_auth_access_log, boolean),
        ..KEY
    },
];

/// The URL of a page of another host, as the locations of all hosts need it.
fn page(text: &str) -> Result<Template, ValueError> {
    authority(text)?;
    target(text)
}
