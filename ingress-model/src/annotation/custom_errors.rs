//! Error pages by a default backend.

use crate::{layout::LocationSettings, object::ObjectName, scalar, value::ValueError};

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "custom-http-errors",
        value: "list of statuses from 400 to 599, without 499",
        default: "none",
        config_key: Some("custom-http-errors"),
        misuse: Misuse::Refuse,
        example: "404,503",
        doc: "Statuses whose response the default backend gives.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "default-backend",
        value: "name of a Service",
        default: "the controller's",
        misuse: Misuse::Refuse,
        example: "errors",
        doc: "Service that answers when the backend has no endpoint, and gives the responses of `custom-http-errors`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "disable-proxy-intercept-errors",
        value: "boolean",
        default: "false",
        example: "true",
        doc: "Leaves error responses of endpoints as they are.",
        ..ANNOTATION
    },
];

pub(super) fn read(reader: &mut Reader<'_>, location: &mut LocationSettings) {
    location.custom_http_errors = reader.value("custom-http-errors", |text| {
        let mut statuses = scalar::items(text)
            .map(status)
            .collect::<Result<Vec<u16>, ValueError>>()?;
        statuses.sort_unstable();
        statuses.dedup();
        Ok(statuses)
    });
    location.disable_proxy_intercept_errors = reader
        .boolean("disable-proxy-intercept-errors")
        .unwrap_or(false);
}

fn status(text: &str) -> Result<u16, ValueError> {
    let number = scalar::within(scalar::integer(text)?, 400, 599)?;
    error_page(u16::try_from(number).unwrap_or_default())
}

/// A status that can have an error page (NGINX docs: `error_page`).
///
/// # Errors
/// For 499, with which NGINX logs that the client has gone: it refuses a page for it.
pub(crate) fn error_page(status: u16) -> Result<u16, ValueError> {
    if status == 499 {
        return Err(ValueError::Rule(
            "no page can be shown for 499: it stands for a client that has gone",
        ));
    }
    Ok(status)
}

/// A Service in the Ingress's namespace.
pub(super) fn default_backend(reader: &mut Reader<'_>) -> Option<ObjectName> {
    let ingress = reader.name().clone();
    reader.value("default-backend", |text| {
        let named = scalar::is_label(text, 63)
            && !text.contains('.')
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.ends_with('-');
        named.then(|| ingress.sibling(text)).ok_or(ValueError::Rule(
            "a Service's name has lower-case letters, digits and -, and begins with a letter",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::settings;

    #[test]
    fn statuses() {
        let read = |text| {
            settings(&[("custom-http-errors", text)])?
                .location
                .custom_http_errors
                .clone()
        };
        assert_eq!(read("503, 404,503"), Some(vec![404, 503]));
        assert_eq!(read(""), None);
        for bad in [
            "399",
            "499",
            "404,499",
            "600",
            "4xx",
            "/a\"; add_header X-Marker 1 always; #",
        ] {
            assert_eq!(settings(&[("custom-http-errors", bad)]), None, "{bad:?}");
        }
    }

    #[test]
    fn the_default_backend_is_a_service() {
        let read =
            |text| settings(&[("default-backend", text)]).map(|settings| settings.default_backend);
        assert_eq!(
            read("errors"),
            Some(Some(ObjectName::new("shop", "errors")))
        );
        for bad in ["Not_A_Name", "1a", "a.b", "shop/errors", "a-"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
