//! Keys of error pages.

use crate::annotation::Status;

use super::{
    KEY, KeyInfo,
    read::{boolean, statuses},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "custom-http-errors",
        value: "list of statuses from 300 to 599",
        default: "none",
        status: Status::NotYet,
        example: "404,503",
        bad: Some("200"),
        doc: "Statuses whose response the default backend gives; fall-back of the annotation.",
        action: render!(custom_http_errors, |text| statuses(text, 300, 599)),
        ..KEY
    },
    KeyInfo {
        name: "disable-proxy-intercept-errors",
        value: "boolean",
        default: "false",
        status: Status::NotYet,
        example: "true",
        bad: Some("sure"),
        doc: "Whether error responses of endpoints are left as they are.",
        action: render!(disable_proxy_intercept_errors, boolean),
        ..KEY
    },
];
