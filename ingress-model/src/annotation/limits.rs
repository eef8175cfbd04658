//! How much a client may ask for.

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "limit-connections",
        value: "whole number",
        default: "0",
        misuse: Misuse::Refuse,
        status: Status::NotYet,
        example: "20",
        doc: "How many connections a client may have at once; 0: any number.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-rps",
        value: "whole number",
        default: "0",
        misuse: Misuse::Refuse,
        status: Status::NotYet,
        example: "5",
        doc: "How many requests a client may make in a second; 0: any number.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-rpm",
        value: "whole number",
        default: "0",
        misuse: Misuse::Refuse,
        status: Status::NotYet,
        example: "300",
        doc: "How many requests a client may make in a minute; 0: any number.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-burst-multiplier",
        value: "whole number",
        default: "5",
        status: Status::NotYet,
        example: "3",
        doc: "How many times the rate may be exceeded at once.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-allowlist",
        aliases: &["limit-whitelist"],
        value: "list of addresses and networks",
        default: "none",
        misuse: Misuse::Refuse,
        status: Status::NotYet,
        example: "10.0.0.0/8",
        doc: "Clients without limits.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-rate",
        value: "kilobytes a second",
        default: "0",
        config_key: Some("limit-rate"),
        status: Status::NotYet,
        example: "100",
        doc: "How fast a response is sent; 0: as fast as it goes.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-rate-after",
        value: "kilobytes",
        default: "0",
        config_key: Some("limit-rate-after"),
        status: Status::NotYet,
        example: "1000",
        doc: "How much is sent before that.",
        ..ANNOTATION
    },
];
