//! Passwords: basic and digest authentication.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "auth-type",
        value: "`basic` or `digest`",
        default: "none",
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "basic",
        doc: "Asks for a user and a password.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-secret",
        value: "`name` or `namespace/name`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "users",
        doc: "Secret with the users.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-secret-type",
        value: "`auth-file` or `auth-map`",
        default: "auth-file",
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "auth-map",
        doc: "Whether the Secret holds one password file (`auth`) or one key a user.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-realm",
        value: "plain characters and spaces",
        default: "empty",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "Members only",
        doc: "Realm shown with the question for a password.",
        ..ANNOTATION
    },
];
