//! TLS spoken to the endpoints.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "proxy-ssl-secret",
        value: "`namespace/name`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "shop/upstream-tls",
        doc: "Secret with the authorities of the endpoints (`ca.crt`) and the controller's certificate for them.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-ciphers",
        value: "OpenSSL cipher list",
        default: "DEFAULT",
        risk: Risk::Medium,
        status: Status::NotYet,
        example: "HIGH:!aNULL",
        doc: "Cipher suites spoken to the endpoints.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-name",
        value: "plain characters and those of regular expressions",
        default: "the host of the backend",
        risk: Risk::High,
        status: Status::NotYet,
        example: "inner.test",
        doc: "Name that the endpoints' certificate has to have.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-protocols",
        value: "list of `TLSv1.2` and `TLSv1.3`, separated by spaces",
        default: "TLSv1.2",
        status: Status::NotYet,
        example: "TLSv1.3",
        doc: "Versions of TLS spoken to the endpoints.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-server-name",
        value: "`on` or `off`",
        default: "off",
        status: Status::NotYet,
        example: "on",
        doc: "Whether the name is sent to the endpoints (SNI).",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-verify",
        value: "`on` or `off`",
        default: "off",
        status: Status::NotYet,
        example: "on",
        doc: "Whether the endpoints' certificate is checked.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-verify-depth",
        value: "whole number",
        default: "1",
        status: Status::NotYet,
        example: "2",
        doc: "Longest chain of the endpoints' certificate.",
        ..ANNOTATION
    },
];
