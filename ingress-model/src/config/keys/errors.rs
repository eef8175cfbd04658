//! Keys of error pages.

use crate::annotation::custom_errors::error_page;

use super::{
    Action, KEY, KeyInfo,
    read::{boolean, status},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "custom-http-errors",
        value: "list of statuses from 300 to 599, without 499",
        default: "none",
        example: "404,503",
        bad: Some("200"),
        doc: "Statuses whose response the default backend gives; fall-back of the annotation.",
        action: Some(Action {
            set: |draft, text| {
                let mut statuses: Vec<u16> =
                    draft.items(text, |text| status(text, 300, 599).and_then(error_page))?;
                statuses.sort_unstable();
                statuses.dedup();
                draft.render.custom_http_errors = statuses;
                Ok(())
            },
            differs: |one, other| one.custom_http_errors != other.custom_http_errors,
        }),
        ..KEY
    },
    KeyInfo {
        name: "disable-proxy-intercept-errors",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether error responses of endpoints are left as they are.",
        action: render!(disable_proxy_intercept_errors, boolean),
        ..KEY
    },
];
