//! Cross-origin requests of browsers.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "enable-cors",
        value: "boolean",
        default: "false",
        status: Status::NotYet,
        example: "true",
        doc: "Answers cross-origin requests of browsers.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-allow-origin",
        value: "list of origins, or `*`",
        default: "*",
        risk: Risk::Medium,
        status: Status::NotYet,
        example: "https://a.test,https://*.b.test",
        doc: "Origins that may ask.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-allow-methods",
        value: "list of methods",
        default: "GET, PUT, POST, DELETE, PATCH, OPTIONS",
        risk: Risk::Medium,
        status: Status::NotYet,
        example: "GET, POST",
        doc: "Methods that they may use.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-allow-headers",
        value: "list of header names",
        default: "DNT, Keep-Alive, User-Agent, X-Requested-With, If-Modified-Since, Cache-Control, Content-Type, Range, Authorization",
        risk: Risk::Medium,
        status: Status::NotYet,
        example: "X-Token",
        doc: "Headers that they may send.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-expose-headers",
        value: "list of header names, or `*`",
        default: "none",
        risk: Risk::Medium,
        status: Status::NotYet,
        example: "X-Total",
        doc: "Headers that they may read.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-allow-credentials",
        value: "boolean",
        default: "true",
        status: Status::NotYet,
        example: "false",
        doc: "Whether they may send credentials.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-max-age",
        value: "seconds",
        default: "1728000",
        status: Status::NotYet,
        example: "600",
        doc: "How long a browser may remember the answer.",
        ..ANNOTATION
    },
];
