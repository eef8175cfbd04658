//! Canaries: Ingresses that take a part of another one's requests.

use regex::Regex;

use crate::{config::Risk, live::TrafficShaping, scalar};

use super::{
    grammar::{PATTERN, PLAIN},
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Effect, Need, Scope},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "canary",
        value: "boolean",
        default: "false",
        scope: Scope::Ingress,
        effect: Effect::Dynamic,
        example: "true",
        doc: "Makes the Ingress a canary: it takes a part of the requests that go to the same Service as those of its hosts and paths, for other hosts too. One that is switched off but has settings of a canary takes no path from another Ingress.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "canary-weight",
        value: "whole number",
        default: "0",
        scope: Scope::Ingress,
        effect: Effect::Dynamic,
        example: "30",
        doc: "Share of the requests that the canary gets, out of `canary-weight-total`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "canary-weight-total",
        needs: &[Need::given("canary-weight")],
        value: "whole number",
        default: "100",
        scope: Scope::Ingress,
        effect: Effect::Dynamic,
        example: "1000",
        doc: "What the weight is a share of.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "canary-by-header",
        value: "plain characters",
        default: "none",
        scope: Scope::Ingress,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "X-Canary",
        doc: "Header that decides: `always` goes to the canary, `never` does not.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "canary-by-header-value",
        needs: &[Need::given("canary-by-header")],
        value: "plain characters",
        default: "none",
        scope: Scope::Ingress,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "beta",
        doc: "Value of that header which goes to the canary, instead of `always`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "canary-by-header-pattern",
        needs: &[Need::given("canary-by-header")],
        value: "regular expression",
        default: "none",
        scope: Scope::Ingress,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "(de|fr)",
        doc: "Regular expression for that header, unless a value is given.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "canary-by-cookie",
        value: "plain characters",
        default: "none",
        scope: Scope::Ingress,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "canary",
        doc: "Cookie that decides: `always` goes to the canary, `never` does not.",
        ..ANNOTATION
    },
];

const SETTINGS: [&str; 5] = [
    "canary-weight",
    "canary-by-header",
    "canary-by-header-value",
    "canary-by-header-pattern",
    "canary-by-cookie",
];

/// Which requests the canary gets; `None`: the Ingress is not one.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<TrafficShaping> {
    if !reader.boolean("canary").unwrap_or(false) {
        for name in SETTINGS {
            if reader.has(name) {
                let message = "has no effect without canary: \"true\"; the Ingress is served as an ordinary one, \
                     which takes no path from another";
                reader.warn(name, message.into());
            }
        }
        return None;
    }
    let text = |reader: &mut Reader<'_>, name, grammar| {
        reader
            .text(name, grammar)
            .map(str::to_owned)
            .unwrap_or_default()
    };
    let weight = number(reader, "canary-weight", 0).unwrap_or(0);
    let weight_total = number(reader, "canary-weight-total", 1).unwrap_or(100);
    if weight > weight_total {
        let message = format!(
            "{weight} is more than canary-weight-total, {weight_total}: the canary gets every request that nothing else \
             decides about"
        );
        reader.warn("canary-weight", message);
    }
    Some(TrafficShaping {
        weight,
        weight_total,
        header: text(reader, "canary-by-header", PLAIN),
        header_value: text(reader, "canary-by-header-value", PLAIN),
        header_pattern: header_pattern(reader),
        cookie: text(reader, "canary-by-cookie", PLAIN),
    })
}

/// Whether an Ingress that is no canary was or will be one: it has settings of a canary, or nobody can tell what
/// `canary` says. Switching a canary off must not give it everything.
pub(super) fn is_dormant(reader: &Reader<'_>) -> bool {
    let text = |name| reader.entry(name).map_or("", |entry| entry.value.trim());
    match scalar::boolean(text("canary")) {
        Ok(true) => false,
        Err(_) if reader.says("canary") => true,
        Ok(false) | Err(_) => SETTINGS
            .into_iter()
            .any(|name| !matches!(text(name), "" | "0")),
    }
}

/// The pattern as written: the data plane reads it as PCRE does, and sends requests with the header to the main Service
/// if it cannot.
fn header_pattern(reader: &mut Reader<'_>) -> String {
    let pattern = reader
        .text("canary-by-header-pattern", PATTERN)
        .unwrap_or_default();
    if Regex::new(pattern).is_err() && !may_be_pcre(pattern) {
        let message =
            "is no regular expression: requests with the header stay with the main Service";
        reader.warn("canary-by-header-pattern", message.into());
    }
    pattern.to_owned()
}

/// Whether PCRE may know what the crate `regex` does not: groups of its own, escapes, possessive quantifiers, and
/// brackets and braces that stand for themselves.
fn may_be_pcre(pattern: &str) -> bool {
    let only_there = ["(?", "\\", "{", "++", "*+", "?+"];
    only_there.iter().any(|text| pattern.contains(text)) || pattern.matches('[').count() > 1
}

fn number(reader: &mut Reader<'_>, name: &str, lowest: u32) -> Option<u32> {
    reader.number(name, lowest, 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    #[test]
    fn who_gets_the_canary() {
        let annotations = [
            ("canary", "true"),
            ("canary-weight", "30"),
            ("canary-weight-total", "50"),
            ("canary-by-header", "X-Canary"),
            ("canary-by-header-value", "beta"),
            ("canary-by-header-pattern", "^b.*"),
            ("canary-by-cookie", "canary"),
        ];
        let want = TrafficShaping {
            weight: 30,
            weight_total: 50,
            header: "X-Canary".into(),
            header_value: "beta".into(),
            header_pattern: "^b.*".into(),
            cookie: "canary".into(),
        };
        assert_eq!(settings(&annotations).unwrap().canary, Some(want));
        assert_eq!(faults(&annotations).len(), 0);
    }

    #[test]
    fn settings_without_the_switch_are_reported() {
        for switch in ["false", "yes"] {
            let annotations = [("canary", switch), ("canary-weight", "30")];
            assert_eq!(settings(&annotations).unwrap().canary, None);
            assert!(
                faults(&annotations)
                    .iter()
                    .any(|fault| fault.contains("canary-weight"))
            );
        }
    }

    #[test]
    fn canaries_that_are_switched_off_yield() {
        let yields = |annotations: &[_]| settings(annotations).unwrap().yields;
        let weight = ("canary-weight", "30");
        for annotations in [
            &[("canary", "false"), weight][..],
            &[weight],
            &[("canary", ""), ("canary-by-cookie", "beta")],
            &[("canary", "yes")],
        ] {
            assert!(yields(annotations), "{annotations:?}");
        }
        for annotations in [
            &[("canary", "true"), weight][..],
            &[("canary", "false")],
            &[
                ("canary", "false"),
                ("canary-weight", "0"),
                ("canary-by-header", ""),
            ],
            &[],
        ] {
            assert!(!yields(annotations), "{annotations:?}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_reported() {
        let told = |pattern| {
            let annotations = [
                ("canary", "true"),
                ("canary-by-header", "x-lang"),
                ("canary-by-header-pattern", pattern),
            ];
            let shaping = settings(&annotations).unwrap().canary.unwrap();
            assert_eq!(shaping.header_pattern, pattern);
            faults(&annotations).len()
        };
        for pattern in ["(de|fr", "*", "[a-", "a)"] {
            assert_eq!(told(pattern), 1, "{pattern}");
        }
        for pattern in ["(de|fr)", "^b.*", "(?=a)b", "a++", "[[]", "a{", r"(a)\1"] {
            assert_eq!(told(pattern), 0, "{pattern}");
        }
    }

    #[test]
    fn misused_settings_fall_back() {
        let bad = [
            ("canary", "true"),
            ("canary-weight", "-1"),
            ("canary-weight-total", "0"),
            ("canary-by-header", "a;b"),
        ];
        let want = TrafficShaping {
            weight_total: 100,
            ..TrafficShaping::default()
        };
        assert_eq!(settings(&bad).unwrap().canary, Some(want));
        assert_eq!(faults(&bad).len(), 3);
    }
}
