//! Rewriting of paths.

use crate::{config::Risk, layout::LocationSettings};

use super::{
    grammar::{CAPTURES, Grammar},
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need, Scope},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "rewrite-target",
        value: "path, may hold captures",
        default: "none",
        risk: Risk::Medium,
        example: "/$1",
        doc: "What the matched path is replaced by. Makes the paths of the host regular expressions.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "use-regex",
        value: "boolean",
        default: "false",
        scope: Scope::Server,
        example: "true",
        doc: "Makes the paths of the host regular expressions.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "x-forwarded-prefix",
        needs: &[Need::given("rewrite-target")],
        value: "path, may hold captures",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Refuse,
        example: "/shop",
        doc: "`X-Forwarded-Prefix` for the endpoints, together with `rewrite-target`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "enable-rewrite-log",
        value: "boolean",
        default: "false",
        example: "true",
        doc: "Logs rewrites, at the level notice.",
        ..ANNOTATION
    },
];

const PREFIX: Grammar = Grammar::new("-._~/:$ ", "letters, digits, spaces and -._~/:$");

pub(super) fn read(reader: &mut Reader<'_>, location: &mut LocationSettings) {
    location.rewrite_target = reader.template("rewrite-target", CAPTURES);
    location.use_regex = reader.boolean("use-regex").unwrap_or(false);
    location.rewrite_log = reader.boolean("enable-rewrite-log").unwrap_or(false);
    let prefix = reader.template("x-forwarded-prefix", PREFIX);
    location.forwarded_prefix = prefix.filter(|_| location.rewrite_target.is_some());
}

#[cfg(test)]
mod tests {
    use crate::annotation::testing::{faults, settings};

    #[test]
    fn a_target_may_hold_captures_and_nothing_odd() {
        for (text, taken) in [
            ("/$2", true),
            ("/", true),
            ("/landing/page", true),
            ("other", true),
            ("/x; return 200", false),
            ("/a\"; add_header X-Marker 1 always; #", false),
            ("/$1}", false),
            ("/a b", false),
        ] {
            let annotations = [("rewrite-target", text)];
            let settings = settings(&annotations).unwrap();
            assert_eq!(
                settings.location.rewrite_target.is_some(),
                taken,
                "{text:?}"
            );
            assert_eq!(faults(&annotations).is_empty(), taken, "{text:?}");
        }
    }

    #[test]
    fn the_prefix_needs_a_rewrite() {
        let with = settings(&[("x-forwarded-prefix", "/p"), ("rewrite-target", "/")]).unwrap();
        assert_eq!(
            with.location.forwarded_prefix.as_ref().unwrap().as_str(),
            "/p"
        );
        let spaced = settings(&[("x-forwarded-prefix", "/p q"), ("rewrite-target", "/")]);
        assert!(spaced.unwrap().location.forwarded_prefix.is_some());
        let without = settings(&[("x-forwarded-prefix", "/p")]).unwrap();
        assert_eq!(without.location.forwarded_prefix, None);
        assert_eq!(faults(&[("x-forwarded-prefix", "/p")]).len(), 1);
        assert!(settings(&[("x-forwarded-prefix", "/p;")]).is_none());
    }
}
