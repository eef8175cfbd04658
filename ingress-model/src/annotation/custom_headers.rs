//! Response headers from a ConfigMap.

use crate::{config::Risk, object::ObjectName, scalar};

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[AnnotationInfo {
    name: "custom-headers",
    value: "`namespace/name`",
    default: "none",
    risk: Risk::Medium,
    misuse: Misuse::Deny,
    example: "shop/headers",
    doc: "ConfigMap with headers for responses; each name has to be in `global-allowed-response-headers`.",
    ..ANNOTATION
}];

/// The ConfigMap with the headers.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<ObjectName> {
    reader.value("custom-headers", scalar::object_name)
}
