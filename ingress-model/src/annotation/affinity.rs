//! Keeping clients on their endpoints.

use crate::{config::Risk, live::CookieAffinity, scalar};

use super::{
    grammar::{PLAIN, URL},
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Effect, Need, Scope},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "affinity",
        value: "`cookie`",
        default: "none",
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        example: "cookie",
        doc: "Keeps a client on its endpoint by a cookie.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "affinity-mode",
        needs: &[Need::given("affinity")],
        value: "`balanced` or `persistent`",
        default: "balanced",
        scope: Scope::Backend,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "persistent",
        doc: "Whether clients may be moved when endpoints are added (`balanced`) or stay where they are (`persistent`).",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "affinity-canary-behavior",
        value: "`sticky` or `legacy`",
        default: "sticky",
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        example: "legacy",
        doc: "Whether a canary takes over the affinity of its main backend. Read on the canary's Ingress.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-name",
        needs: &[Need::given("affinity")],
        value: "plain characters",
        default: "INGRESSCOOKIE",
        scope: Scope::Backend,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "route",
        doc: "Name of the affinity cookie.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-expires",
        needs: &[Need::given("affinity")],
        value: "seconds",
        default: "none",
        scope: Scope::Backend,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "172800",
        doc: "`Expires` of the affinity cookie, counted from now.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-max-age",
        needs: &[Need::given("affinity")],
        value: "seconds",
        default: "none",
        scope: Scope::Backend,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "172800",
        doc: "`Max-Age` of the affinity cookie.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-path",
        needs: &[Need::given("affinity")],
        value: "URL characters",
        default: "the location's path",
        scope: Scope::Backend,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "/shop",
        doc: "`Path` of the affinity cookie; needed with `use-regex`, where the location's path is a pattern.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-domain",
        needs: &[Need::given("affinity")],
        value: "plain characters",
        default: "none",
        scope: Scope::Backend,
        risk: Risk::Medium,
        effect: Effect::Dynamic,
        example: "shop.test",
        doc: "`Domain` of the affinity cookie.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-secure",
        needs: &[Need::given("affinity")],
        value: "boolean",
        default: "as the request came",
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        example: "true",
        doc: "`Secure` of the affinity cookie.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-samesite",
        needs: &[Need::given("affinity")],
        value: "`None`, `Lax` or `Strict`, in any case",
        default: "none",
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        example: "Lax",
        doc: "`SameSite` of the affinity cookie.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-conditional-samesite-none",
        needs: &[Need::one_of("session-cookie-samesite", &["None"])],
        value: "boolean",
        default: "false",
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        example: "true",
        doc: "Leaves `SameSite=None` out for clients known to misread it.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "session-cookie-change-on-failure",
        needs: &[Need::given("affinity")],
        value: "boolean",
        default: "false",
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        example: "true",
        doc: "Sends the client to another endpoint, with a new cookie, once its own fails.",
        ..ANNOTATION
    },
];

const COOKIE: &str = "INGRESSCOOKIE";

/// `None` unless `affinity` is `cookie`: the others mean nothing without it.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<CookieAffinity> {
    reader.word("affinity", &[("cookie", ())])?;
    let modes = [("balanced", false), ("persistent", true)];
    let seconds = |reader: &mut Reader<'_>, name| {
        let seconds = reader.value(name, scalar::integer)?;
        Some(seconds.to_string())
    };
    let text =
        |reader: &mut Reader<'_>, name, grammar| reader.text(name, grammar).map(str::to_owned);
    Some(CookieAffinity {
        persistent: reader.word("affinity-mode", &modes).unwrap_or(false),
        name: text(reader, "session-cookie-name", PLAIN).unwrap_or_else(|| COOKIE.into()),
        expires: seconds(reader, "session-cookie-expires"),
        max_age: seconds(reader, "session-cookie-max-age"),
        locations: std::collections::BTreeMap::new(),
        secure: reader.boolean("session-cookie-secure"),
        path: text(reader, "session-cookie-path", URL),
        domain: text(reader, "session-cookie-domain", PLAIN),
        same_site: same_site(reader),
        conditional_same_site_none: reader
            .boolean("session-cookie-conditional-samesite-none")
            .unwrap_or(false),
        change_on_failure: reader
            .boolean("session-cookie-change-on-failure")
            .unwrap_or(false),
    })
}

/// Whether a canary keeps out of its main backend's affinity.
pub(super) fn canary_legacy(reader: &mut Reader<'_>) -> bool {
    let behaviours = [("sticky", false), ("legacy", true)];
    reader
        .word("affinity-canary-behavior", &behaviours)
        .unwrap_or(false)
}

/// In any case, since cookies are written with one.
fn same_site(reader: &mut Reader<'_>) -> Option<String> {
    let values = [("none", "None"), ("lax", "Lax"), ("strict", "Strict")];
    let value = reader.value("session-cookie-samesite", |text| {
        scalar::word(&text.to_ascii_lowercase(), &values)
    });
    value.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    fn read(more: &[(&str, &str)]) -> Option<CookieAffinity> {
        let mut annotations = vec![("affinity", "cookie")];
        annotations.extend(more);
        settings(&annotations).unwrap().backend.affinity
    }

    #[test]
    fn defaults() {
        assert_eq!(
            read(&[]).unwrap(),
            CookieAffinity {
                name: "INGRESSCOOKIE".into(),
                ..CookieAffinity::default()
            }
        );
        assert_eq!(
            settings(&[("affinity", "ip")]).unwrap().backend.affinity,
            None
        );
        assert_eq!(
            settings(&[("session-cookie-name", "a")])
                .unwrap()
                .backend
                .affinity,
            None
        );
    }

    #[test]
    fn attributes() {
        let affinity = read(&[
            ("affinity-mode", "persistent"),
            ("session-cookie-name", "route"),
            ("session-cookie-expires", "60"),
            ("session-cookie-max-age", "-1"),
            ("session-cookie-path", "/a?b"),
            ("session-cookie-domain", "a.test"),
            ("session-cookie-secure", "true"),
            ("session-cookie-samesite", "lax"),
            ("session-cookie-conditional-samesite-none", "true"),
            ("session-cookie-change-on-failure", "true"),
        ]);
        let want = CookieAffinity {
            persistent: true,
            name: "route".into(),
            expires: Some("60".into()),
            max_age: Some("-1".into()),
            locations: std::collections::BTreeMap::new(),
            secure: Some(true),
            path: Some("/a?b".into()),
            domain: Some("a.test".into()),
            same_site: Some("Lax".into()),
            conditional_same_site_none: true,
            change_on_failure: true,
        };
        assert_eq!(affinity, Some(want));
    }

    #[test]
    fn same_site_is_written_as_cookies_have_it() {
        for (text, want) in [
            ("none", "None"),
            ("None", "None"),
            ("LAX", "Lax"),
            ("strict", "Strict"),
        ] {
            let affinity = read(&[("session-cookie-samesite", text)]).unwrap();
            assert_eq!(affinity.same_site.as_deref(), Some(want), "{text}");
        }
        let conditional = [
            ("affinity", "cookie"),
            ("session-cookie-samesite", "none"),
            ("session-cookie-conditional-samesite-none", "true"),
        ];
        assert_eq!(faults(&conditional), [""; 0]);
    }

    #[test]
    fn misused_attributes_fall_back() {
        let bad = [
            ("affinity", "cookie"),
            ("affinity-mode", "sticky"),
            ("session-cookie-name", "a;b"),
            ("session-cookie-expires", "1h"),
            ("session-cookie-samesite", "Sometimes"),
            (
                "session-cookie-path",
                "/a\"; add_header X-Marker 1 always; #",
            ),
        ];
        assert_eq!(read(&bad), read(&[]));
        assert_eq!(faults(&bad).len(), 5);
    }
}
