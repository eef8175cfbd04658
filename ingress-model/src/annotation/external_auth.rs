//! External authentication: a service of the user decides about each request.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "auth-url",
        value: "URL, may hold variables",
        default: "none",
        config_key: Some("global-auth-url"),
        risk: Risk::High,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "http://auth.test/verify",
        doc: "Service that is asked whether a request may pass.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-method",
        value: "HTTP method",
        default: "that of the request",
        config_key: Some("global-auth-method"),
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "POST",
        doc: "Method of the question.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-signin",
        value: "URL, may hold variables",
        default: "none",
        config_key: Some("global-auth-signin"),
        risk: Risk::High,
        status: Status::NotYet,
        example: "http://auth.test/start",
        doc: "Where a client that was refused with 401 is sent.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-signin-redirect-param",
        value: "URL characters",
        default: "rd",
        config_key: Some("global-auth-signin-redirect-param"),
        risk: Risk::Medium,
        status: Status::NotYet,
        example: "next",
        doc: "Query parameter that tells the sign-in page where the client came from.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-response-headers",
        value: "list of header names",
        default: "none",
        config_key: Some("global-auth-response-headers"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "X-User,X-Groups",
        doc: "Headers of the answer that are passed on to the endpoints.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-proxy-set-headers",
        value: "`namespace/name`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "shop/headers",
        doc: "ConfigMap with headers that are added to the question.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-request-redirect",
        value: "URL characters",
        default: "$request_uri",
        config_key: Some("global-auth-request-redirect"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "http://shop.test/",
        doc: "`X-Auth-Request-Redirect` of the question.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-cache-key",
        value: "letters, digits and `-_${}`",
        default: "none",
        config_key: Some("global-auth-cache-key"),
        risk: Risk::Medium,
        status: Status::NotYet,
        example: "$remote_user$http_authorization",
        doc: "Caches answers under this key.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-cache-duration",
        value: "list of statuses and times",
        default: "200 202 401 5m",
        config_key: Some("global-auth-cache-duration"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "200 10m,401 1m",
        doc: "How long answers are cached.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-always-set-cookie",
        value: "boolean",
        default: "false",
        config_key: Some("global-auth-always-set-cookie"),
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "true",
        doc: "Passes cookies of the answer on whatever the status of the response.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-keepalive",
        value: "whole number",
        default: "0",
        status: Status::NotYet,
        example: "10",
        doc: "How many connections to the service are kept open; 0: none.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-keepalive-requests",
        value: "whole number",
        default: "1000",
        status: Status::NotYet,
        example: "500",
        doc: "How many requests a kept connection serves.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-keepalive-timeout",
        value: "seconds",
        default: "60",
        status: Status::NotYet,
        example: "30",
        doc: "How long a kept connection may be idle.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-keepalive-share-vars",
        value: "boolean",
        default: "false",
        status: Status::NotYet,
        example: "true",
        doc: "Whether the question shares the request's variables.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-snippet",
        value: "raw configuration",
        default: "none",
        config_key: Some("global-auth-snippet"),
        risk: Risk::Critical,
        status: Status::NotYet,
        example: "proxy_set_header X-From edge;",
        doc: "Raw configuration for the location that asks.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "enable-global-auth",
        value: "boolean",
        default: "true",
        status: Status::NotYet,
        example: "false",
        doc: "Whether the ConfigMap's external authentication applies.",
        ..ANNOTATION
    },
];
