//! Error pages by a default backend.

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "custom-http-errors",
        value: "list of statuses from 400 to 599",
        default: "none",
        config_key: Some("custom-http-errors"),
        misuse: Misuse::Refuse,
        status: Status::NotYet,
        example: "404,503",
        doc: "Statuses whose response the default backend gives.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "default-backend",
        value: "name of a Service",
        default: "the controller's",
        misuse: Misuse::Refuse,
        status: Status::NotYet,
        example: "errors",
        doc: "Service that answers when the backend has no endpoint, and gives the responses of `custom-http-errors`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "disable-proxy-intercept-errors",
        value: "boolean",
        default: "false",
        status: Status::NotYet,
        example: "true",
        doc: "Leaves error responses of endpoints as they are.",
        ..ANNOTATION
    },
];
