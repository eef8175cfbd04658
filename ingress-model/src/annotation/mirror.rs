//! A copy of each request for another service.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "mirror-target",
        value: "URL, may hold variables",
        default: "none",
        risk: Risk::High,
        status: Status::NotYet,
        example: "http://mirror.test$request_uri",
        doc: "Where a copy of each request is sent; its response is dropped.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "mirror-host",
        value: "plain characters and those of regular expressions",
        default: "the host of the target",
        risk: Risk::High,
        status: Status::NotYet,
        example: "mirror.test",
        doc: "`Host` header of the copy.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "mirror-request-body",
        value: "`on` or `off`",
        default: "on",
        status: Status::NotYet,
        example: "off",
        doc: "Whether the copy has the request's body.",
        ..ANNOTATION
    },
];
