//! Parameters of FastCGI.

use crate::config::Risk;

use super::registry::{ANNOTATION, AnnotationInfo, Misuse, Status};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "fastcgi-index",
        value: "letters, digits and `.-_`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Refuse,
        status: Status::NotYet,
        example: "index.php",
        doc: "File that stands for a directory.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "fastcgi-params-configmap",
        value: "`name` or `namespace/name`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        status: Status::NotYet,
        example: "shop/params",
        doc: "ConfigMap with FastCGI parameters.",
        ..ANNOTATION
    },
];
