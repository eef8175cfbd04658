//! Response headers from a ConfigMap.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[AnnotationInfo {
    name: "custom-headers",
    value: "`namespace/name`",
    default: "none",
    risk: Risk::Medium,
    misuse: Misuse::Deny,
    status: Status::NotYet,
    example: "shop/headers",
    doc: "ConfigMap with headers for responses; each name has to be in `global-allowed-response-headers`.",
    ..ANNOTATION
}];
