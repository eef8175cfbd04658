//! What is logged.

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[AnnotationInfo {
    name: "enable-access-log",
    value: "boolean",
    default: "true",
    example: "false",
    doc: "Whether requests are logged.",
    ..ANNOTATION
}];

/// `None` leaves it to the ConfigMap.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<bool> {
    // On is what the level above has, or else what the ConfigMap switched off for everybody.
    reader.boolean("enable-access-log").filter(|on| !on)
}
