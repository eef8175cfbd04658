//! Tracing with OpenTelemetry.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "enable-opentelemetry",
        value: "boolean",
        default: "as the ConfigMap has it",
        config_key: Some("enable-opentelemetry"),
        status: Status::NotYet,
        example: "true",
        doc: "Whether requests are traced.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "opentelemetry-trust-incoming-span",
        value: "boolean",
        default: "true",
        config_key: Some("opentelemetry-trust-incoming-span"),
        status: Status::NotYet,
        example: "false",
        doc: "Whether a trace that the client began is continued.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "opentelemetry-operation-name",
        value: "letters, digits, `_` and `-`",
        default: "none",
        config_key: Some("opentelemetry-operation-name"),
        risk: Risk::Medium,
        misuse: Misuse::Refuse,
        status: Status::NotYet,
        example: "shop",
        doc: "Name of the span.",
        ..ANNOTATION
    },
];
