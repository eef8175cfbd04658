//! Cross-origin requests of browsers.

use crate::{
    config::Risk,
    layout::{Cors, Origin},
    scalar,
    value::{Literal, ValueError},
};

use super::{
    grammar::Grammar,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "enable-cors",
        value: "boolean",
        default: "false",
        example: "true",
        doc: "Answers cross-origin requests of browsers.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-allow-origin",
        needs: &[Need::on("enable-cors")],
        value: "list of origins, or `*`",
        default: "*",
        risk: Risk::Medium,
        example: "https://a.test,https://*.b.test",
        doc: "Origins that may ask. What is no origin is left out, and never taken for all.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-allow-methods",
        needs: &[Need::on("enable-cors")],
        value: "list of methods",
        default: "GET, PUT, POST, DELETE, PATCH, OPTIONS",
        risk: Risk::Medium,
        example: "GET, POST",
        doc: "Methods that they may use.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-allow-headers",
        needs: &[Need::on("enable-cors")],
        value: "list of header names",
        default: "DNT, Keep-Alive, User-Agent, X-Requested-With, If-Modified-Since, Cache-Control, Content-Type, Range, Authorization",
        risk: Risk::Medium,
        example: "X-Token",
        doc: "Headers that they may send.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-expose-headers",
        needs: &[Need::on("enable-cors")],
        value: "list of header names, or `*`",
        default: "none",
        risk: Risk::Medium,
        example: "X-Total",
        doc: "Headers that they may read.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-allow-credentials",
        needs: &[Need::on("enable-cors")],
        value: "boolean",
        default: "true",
        example: "false",
        doc: "Whether they may send credentials.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "cors-max-age",
        needs: &[Need::on("enable-cors")],
        value: "seconds",
        default: "1728000",
        example: "600",
        doc: "How long a browser may remember the answer.",
        ..ANNOTATION
    },
];

const METHODS: Grammar = Grammar::new(", ", "letters, commas and spaces");
const HEADERS: Grammar = Grammar::new("-_, ", "letters, digits, -, _, commas and spaces");
const EXPOSED: Grammar = Grammar::new("-_*, ", "letters, digits, -, _, *, commas and spaces");

const DEFAULT_METHODS: &str = "GET, PUT, POST, DELETE, PATCH, OPTIONS";
const DEFAULT_HEADERS: &str = "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization";

/// Twenty days.
const DEFAULT_MAX_AGE: i64 = 1_728_000;

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Cors> {
    if !reader.boolean("enable-cors").unwrap_or(false) {
        return None;
    }
    Some(Cors {
        origins: origins(reader),
        methods: reader
            .literal("cors-allow-methods", METHODS)
            .unwrap_or_else(|| Literal::constant(DEFAULT_METHODS)),
        headers: reader
            .literal("cors-allow-headers", HEADERS)
            .unwrap_or_else(|| Literal::constant(DEFAULT_HEADERS)),
        expose: reader.literal("cors-expose-headers", EXPOSED),
        credentials: reader.boolean("cors-allow-credentials").unwrap_or(true),
        max_age: reader
            .value("cors-max-age", scalar::integer)
            .unwrap_or(DEFAULT_MAX_AGE),
    })
}

/// Who may ask; `None`: everybody. Items that are no origin are left out rather than taken for everybody.
fn origins(reader: &mut Reader<'_>) -> Option<Vec<Origin>> {
    let text = reader.value("cors-allow-origin", Ok)?;
    let mut origins = Vec::new();
    for item in scalar::items(text) {
        if item == "*" {
            return None;
        }
        match origin(item) {
            Ok(origin) => origins.push(origin),
            Err(error) => reader.warn(
                "cors-allow-origin",
                format!("{:?} is left out: {error}", ValueError::excerpt(item)),
            ),
        }
    }
    Some(origins)
}

/// `scheme://host`, with `*.` in front of the host and a port behind it or not; or `null`.
fn origin(text: &str) -> Result<Origin, ValueError> {
    const SCHEME: Grammar = Grammar::new("+-.", "letters, digits, +, - and .");
    const HOST: Grammar = Grammar::new("-._", "letters, digits, -, . and _");
    if text == "null" {
        return Ok(Origin::Null);
    }
    let (scheme, rest) = text
        .split_once("://")
        .ok_or(ValueError::Rule("an origin is scheme://host"))?;
    let (host, port) = match rest.split_once(':') {
        Some((host, port)) => {
            let port = scalar::within(scalar::integer(port)?, 1, u16::MAX.into())?;
            (host, u16::try_from(port).ok())
        }
        None => (rest, None),
    };
    let (wildcard, host) = match host.strip_prefix("*.") {
        Some(host) => (true, host),
        None => (false, host),
    };
    if scheme.is_empty() || host.is_empty() {
        return Err(ValueError::Rule("an origin is scheme://host"));
    }
    SCHEME.check(scheme)?;
    HOST.check(host)?;
    Ok(Origin::Page {
        scheme: scheme.to_owned(),
        wildcard,
        host: host.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    fn read(more: &[(&str, &str)]) -> Cors {
        let mut annotations = vec![("enable-cors", "true")];
        annotations.extend(more);
        settings(&annotations)
            .unwrap()
            .location
            .cors
            .clone()
            .unwrap()
    }

    #[test]
    fn off_unless_asked_for() {
        for annotations in [&[][..], &[("enable-cors", "false"), ("cors-max-age", "1")]] {
            assert_eq!(settings(annotations).unwrap().location.cors, None);
        }
        let cors = read(&[]);
        assert_eq!(cors.origins, None);
        assert_eq!(cors.methods.as_str(), DEFAULT_METHODS);
        assert!(cors.credentials);
    }

    #[test]
    fn origins_are_read_one_by_one() {
        let texts = |text| -> Option<Vec<String>> {
            let origins = read(&[("cors-allow-origin", text)]).origins?;
            Some(origins.iter().map(ToString::to_string).collect())
        };
        assert_eq!(
            texts("https://a.test, ,http://*.b.test:8080,app://localhost,null,").unwrap(),
            [
                "https://a.test",
                "http://*.b.test:8080",
                "app://localhost",
                "null"
            ]
        );
        assert_eq!(texts("*"), None);
        assert_eq!(texts("https://a.test,*"), None);
        for bad in [
            "a.test",
            "https://",
            "https://a.test:0",
            "https://a b",
            "https://*",
            "https://a.test/x",
            "/a\"; x #",
        ] {
            assert_eq!(texts(bad).unwrap(), [""; 0], "{bad:?}");
            assert_ne!(
                faults(&[("enable-cors", "true"), ("cors-allow-origin", bad)]),
                [""; 0]
            );
        }
    }

    #[test]
    fn lists_are_kept_as_written() {
        let cors = read(&[
            ("cors-allow-methods", "POST, GET"),
            ("cors-allow-headers", "X-A, X-B"),
            ("cors-expose-headers", "*"),
            ("cors-allow-credentials", "false"),
            ("cors-max-age", "-1"),
        ]);
        assert_eq!(cors.methods.as_str(), "POST, GET");
        assert_eq!(cors.headers.as_str(), "X-A, X-B");
        assert_eq!(cors.expose.unwrap().as_str(), "*");
        assert!(!cors.credentials);
        assert_eq!(cors.max_age, -1);
    }
}
