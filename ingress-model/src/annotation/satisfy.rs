//! Whether one access check is enough.

use crate::layout::Satisfy;

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[AnnotationInfo {
    name: "satisfy",
    value: "`any` or `all`",
    default: "all",
    example: "any",
    doc: "Whether one access check that allows is enough, or all have to.",
    ..ANNOTATION
}];

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Satisfy> {
    reader.word("satisfy", &[("any", Satisfy::Any), ("all", Satisfy::All)])
}
