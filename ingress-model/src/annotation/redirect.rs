//! Redirects instead of a backend.

use crate::{
    config::Risk,
    layout::{LocationSettings, Redirect},
    scalar,
    value::{Template, ValueError},
};

use super::{
    grammar::{CAPTURES, URL},
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need, Scope},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "permanent-redirect",
        value: "URL",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Refuse,
        example: "http://new.test/",
        doc: "Redirects instead of asking a backend, for good.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "permanent-redirect-code",
        needs: &[Need::given("permanent-redirect")],
        value: "whole number from 300 to 308",
        default: "301",
        misuse: Misuse::Refuse,
        example: "308",
        doc: "Status of the permanent redirect. Another number is reported, and the default holds.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "temporal-redirect",
        value: "URL with the scheme http or https",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Refuse,
        example: "http://away.test/",
        doc: "Redirects instead of asking a backend, for a while; wins over `permanent-redirect`. A URL of another scheme is reported, and the path is served as if there were no such annotation.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "temporal-redirect-code",
        needs: &[Need::given("temporal-redirect")],
        value: "whole number from 300 to 307",
        default: "302",
        misuse: Misuse::Refuse,
        example: "307",
        doc: "Status of the temporal redirect. Another number is reported, and the default holds.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "app-root",
        value: "path",
        default: "none",
        scope: Scope::Server,
        risk: Risk::Medium,
        example: "/app",
        doc: "Where `/` of the host is redirected to.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "relative-redirects",
        value: "boolean",
        default: "false",
        config_key: Some("relative-redirects"),
        misuse: Misuse::Refuse,
        example: "true",
        doc: "Leaves scheme and host out of redirects that NGINX makes.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "from-to-www-redirect",
        value: "boolean",
        default: "false",
        scope: Scope::Server,
        misuse: Misuse::Refuse,
        example: "true",
        doc: "Redirects `www.` of the host to the host, or the host to itself without `www.`.",
        ..ANNOTATION
    },
];

pub(super) fn read(reader: &mut Reader<'_>, location: &mut LocationSettings) {
    location.app_root = app_root(reader);
    let relative = reader.config.render.relative_redirects;
    location.relative_redirects = reader
        .boolean("relative-redirects")
        .filter(|own| *own != relative);
    let permanent = reader.template("permanent-redirect", URL);
    location.redirect = if let Some(target) = temporal(reader) {
        let code = code(reader, "temporal-redirect-code", 307).unwrap_or(302);
        Some(Redirect { target, code })
    } else if let Some(target) = permanent {
        let code = code(reader, "permanent-redirect-code", 308).unwrap_or(301);
        Some(Redirect { target, code })
    } else {
        None
    };
}

pub(super) fn from_to_www(reader: &mut Reader<'_>) -> bool {
    reader.boolean("from-to-www-redirect").unwrap_or(false)
}

/// A path, not a URL: the request's scheme and host are put in front of it.
fn app_root(reader: &mut Reader<'_>) -> Option<Template> {
    let root = reader.template("app-root", CAPTURES)?;
    if root.as_str().starts_with('/') {
        return Some(root);
    }
    reader.misused("app-root", &ValueError::Rule("a path begins with /"));
    None
}

fn temporal(reader: &mut Reader<'_>) -> Option<Template> {
    let target = reader.template("temporal-redirect", URL)?;
    // RFC 3986, section 3.1: upper case is as good.
    let scheme = target.as_str().split_once("://").map(|(scheme, _)| scheme);
    let is_web = |scheme: &str| {
        ["http", "https"]
            .iter()
            .any(|it| it.eq_ignore_ascii_case(scheme))
    };
    if scheme.is_some_and(is_web) {
        return Some(target);
    }
    let fault = ValueError::Rule("the URL begins with neither http:// nor https://");
    reader.fall_back("temporal-redirect", &fault);
    None
}

/// A status from 300 on. One outside falls back; text that is no number is worse.
fn code(reader: &mut Reader<'_>, name: &str, highest: u16) -> Option<u16> {
    let number = reader.value(name, scalar::integer)?;
    match u16::try_from(number) {
        Ok(code) if (300..=highest).contains(&code) => Some(code),
        _ => {
            reader.fall_back(name, &ValueError::Range(number, 300, highest.into()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    fn redirect(annotations: &[(&str, &str)]) -> Option<(String, u16)> {
        let settings = settings(annotations).unwrap();
        let redirect = settings.location.redirect.as_ref()?;
        Some((redirect.target.as_str().to_owned(), redirect.code))
    }

    #[test]
    fn kinds_and_codes() {
        let to = |code| Some(("http://x.test/".to_owned(), code));
        let permanent = ("permanent-redirect", "http://x.test/");
        let temporal = ("temporal-redirect", "http://x.test/");
        for (annotations, want) in [
            (vec![permanent], to(301)),
            (vec![permanent, ("permanent-redirect-code", "308")], to(308)),
            (vec![permanent, ("permanent-redirect-code", "309")], to(301)),
            (vec![permanent, ("temporal-redirect-code", "303")], to(301)),
            (vec![temporal], to(302)),
            (vec![temporal, ("temporal-redirect-code", "307")], to(307)),
            (vec![temporal, ("temporal-redirect-code", "308")], to(302)),
            (
                vec![("permanent-redirect", "http://y.test/"), temporal],
                to(302),
            ),
            (
                vec![("temporal-redirect", "HTTP://x.test/")],
                Some(("HTTP://x.test/".to_owned(), 302)),
            ),
            (vec![("temporal-redirect", "ftp://x.test/")], None),
            (vec![("temporal-redirect", "http:/x.test/")], None),
            (vec![("temporal-redirect", "")], None),
            (vec![("permanent-redirect-code", "308")], None),
        ] {
            assert_eq!(redirect(&annotations), want, "{annotations:?}");
        }
    }

    #[test]
    fn odd_targets_leave_the_ingress_out() {
        for annotation in [
            ("permanent-redirect", "http://x.test/$request_uri"),
            ("temporal-redirect", "http://x.test/ a"),
        ] {
            assert_eq!(settings(&[annotation]), None, "{annotation:?}");
            assert_ne!(faults(&[annotation]), [""; 0], "{annotation:?}");
        }
    }

    #[test]
    fn an_odd_code_counts_only_where_it_would_be_used() {
        let permanent = ("permanent-redirect", "http://x.test/");
        let temporal = ("temporal-redirect", "http://x.test/");
        let of_permanent = ("permanent-redirect-code", "moved");
        let of_temporal = ("temporal-redirect-code", "moved");
        for used in [[permanent, of_permanent], [temporal, of_temporal]] {
            assert_eq!(settings(&used), None, "{used:?}");
        }
        for unused in [
            &[of_permanent][..],
            &[of_temporal],
            &[permanent, of_temporal],
            &[permanent, temporal, of_permanent],
        ] {
            assert!(settings(unused).is_some(), "{unused:?}");
        }
        assert_eq!(faults(&[of_temporal]).len(), 1);
    }

    #[test]
    fn the_root_is_a_path() {
        for (text, want) in [
            ("/app", Some("/app")),
            ("app", None),
            ("http://x.test/", None),
            ("/a b", None),
        ] {
            let settings = settings(&[("app-root", text)]).unwrap();
            assert_eq!(
                settings.location.app_root.as_ref().map(Template::as_str),
                want
            );
        }
    }
}
