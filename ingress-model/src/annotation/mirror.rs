//! A copy of each request for another service.

use crate::{
    config::Risk,
    layout::Mirror,
    value::{Template, ValueError},
};

use super::{
    external_auth::authority,
    grammar::PATTERN,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "mirror-target",
        value: "URL, may hold variables",
        default: "none",
        risk: Risk::High,
        example: "http://mirror.test$request_uri",
        doc: "Where a copy of each request is sent; its response is dropped.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "mirror-host",
        needs: &[Need::given("mirror-target")],
        value: "plain characters and those of regular expressions",
        default: "the host of the target",
        risk: Risk::High,
        example: "inner.test",
        doc: "`Host` header of the copy.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "mirror-request-body",
        needs: &[Need::given("mirror-target")],
        value: "`on` or `off`",
        default: "on",
        example: "off",
        doc: "Whether the copy has the request's body.",
        ..ANNOTATION
    },
];

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Mirror> {
    let target = reader.template("mirror-target", PATTERN)?;
    let derived = match authority(target.as_str()) {
        Ok(authority) => authority,
        Err(error) => {
            reader.misused("mirror-target", &error);
            return None;
        }
    };
    let host = reader.template("mirror-host", PATTERN);
    let request_body = reader.switch("mirror-request-body").unwrap_or(true);
    // What stands behind a variable cannot be told from the host.
    let derived = derived.split('$').next().unwrap_or_default();
    let host = match host {
        Some(host) => host,
        None if derived.is_empty() => {
            let fault = ValueError::Rule("its host is a variable: name it by mirror-host");
            reader.misused("mirror-target", &fault);
            return None;
        }
        None => reader.value("mirror-target", |_| Template::parse(derived))?,
    };
    Some(Mirror {
        target,
        host,
        request_body,
    })
}

#[cfg(test)]
mod tests {
    use crate::annotation::testing::{faults, settings};

    fn read(annotations: &[(&str, &str)]) -> Option<(String, String, bool)> {
        let settings = settings(annotations).unwrap();
        let mirror = settings.location.mirror.as_ref()?;
        Some((
            mirror.target.as_str().to_owned(),
            mirror.host.as_str().to_owned(),
            mirror.request_body,
        ))
    }

    #[test]
    fn the_host_is_that_of_the_target() {
        for (target, host) in [
            ("http://10.99.0.2/shadow", "10.99.0.2"),
            ("https://10.99.0.2$request_uri", "10.99.0.2"),
            ("https://mirror.test:8443/x", "mirror.test:8443"),
        ] {
            let want = (target.to_owned(), host.to_owned(), true);
            assert_eq!(read(&[("mirror-target", target)]), Some(want));
        }
        let own = [
            ("mirror-target", "https://$host/"),
            ("mirror-host", "inner.test"),
            ("mirror-request-body", "off"),
        ];
        assert_eq!(
            read(&own),
            Some(("https://$host/".into(), "inner.test".into(), false))
        );
    }

    #[test]
    fn an_unusable_target_is_no_mirror() {
        for bad in [
            "mirror.test",
            "ftp://mirror.test",
            "http://",
            "https://$host/",
            "http://a b/",
            "http://a\";}",
        ] {
            assert_eq!(read(&[("mirror-target", bad)]), None, "{bad:?}");
            assert_ne!(faults(&[("mirror-target", bad)]), [""; 0], "{bad:?}");
        }
    }
}
