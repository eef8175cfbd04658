//! Which clients may come, by address.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "allowlist-source-range",
        aliases: &["whitelist-source-range"],
        value: "list of addresses and networks",
        default: "none",
        config_key: Some("whitelist-source-range"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "10.0.0.0/8,192.0.2.7",
        doc: "Only these clients are served; others get 403.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "denylist-source-range",
        value: "list of addresses and networks",
        default: "none",
        config_key: Some("denylist-source-range"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "198.51.100.0/24",
        doc: "These clients get 403.",
        ..ANNOTATION
    },
];
