//! Rewriting of paths.

use crate::{config::Risk, layout::LocationSettings, value::Template};

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
    report_captures(reader, "rewrite-target", location.rewrite_target.as_ref());
    location.use_regex = reader.boolean("use-regex").unwrap_or(false);
    location.rewrite_log = reader.boolean("enable-rewrite-log").unwrap_or(false);
    let prefix = reader.template("x-forwarded-prefix", PREFIX);
    location.forwarded_prefix = prefix.filter(|_| location.rewrite_target.is_some());
    report_captures(
        reader,
        "x-forwarded-prefix",
        location.forwarded_prefix.as_ref(),
    );
}

/// Reports a capture that no path of the Ingress has. One that some paths have is empty for the others, as its author may
/// well mean it.
fn report_captures(reader: &mut Reader<'_>, name: &str, template: Option<&Template>) {
    let highest = template.and_then(|template| highest_capture(template.as_str()));
    let groups = reader.paths().map(captures).max();
    let (Some(highest), Some(groups)) = (highest, groups) else {
        return;
    };
    if highest > groups {
        let have = match groups {
            0 => "no path of the Ingress has a group, as /shop/(.*) has one".to_owned(),
            1 => "no path of the Ingress has more than one group".to_owned(),
            _ => format!("no path of the Ingress has more than {groups} groups"),
        };
        reader.warn(name, format!("${highest} is always empty: {have}"));
    }
}

/// The number of the highest capture that a text uses. NGINX knows nine (NGINX docs: rewrite).
fn highest_capture(text: &str) -> Option<usize> {
    let uses = text.split('$').skip(1);
    let numbers = uses.filter_map(|after| after.chars().next()?.to_digit(10));
    let highest = numbers.max().filter(|highest| *highest > 0)?;
    usize::try_from(highest).ok()
}

/// How many groups of a regular expression capture something, those with names too.
fn captures(expression: &str) -> usize {
    let mut count = 0;
    let mut rest = expression.chars();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let after = rest.as_str();
                let is_named = ["?<", "?P<", "?'"].iter().any(|it| after.starts_with(it));
                let looks_behind = after.starts_with("?<=") || after.starts_with("?<!");
                if !after.starts_with(['?', '*']) || is_named && !looks_behind {
                    count += 1;
                }
            }
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::networking::v1::{HTTPIngressPath, HTTPIngressRuleValue, IngressRule};

    use crate::{
        annotation::{
            parse,
            testing::{faults, ingress, settings},
        },
        config::GlobalConfig,
        options::Options,
    };

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
    fn captures_that_no_path_has_are_reported() {
        let told = |paths: &[&str], annotations: &[(&str, &str)]| {
            let mut ingress = ingress(annotations);
            let paths = paths.iter().map(|path| HTTPIngressPath {
                path: Some((*path).to_owned()),
                ..HTTPIngressPath::default()
            });
            let rule = IngressRule {
                http: Some(HTTPIngressRuleValue {
                    paths: paths.collect(),
                }),
                ..IngressRule::default()
            };
            let spec = ingress.spec.get_or_insert_default();
            spec.rules = Some(vec![rule]);
            let mut diagnostics = Vec::new();
            let config = GlobalConfig::default();
            assert!(parse(&ingress, &Options::default(), &config, &mut diagnostics).is_some());
            let messages = diagnostics.into_iter().map(|said| said.message);
            messages.collect::<Vec<_>>()
        };
        let to = |target| [("rewrite-target", target)];
        for (paths, target, want) in [
            (
                &["/"][..],
                "/$1",
                &["$1 is always empty: no path of the Ingress has a group, as /shop/(.*) has one"]
                    [..],
            ),
            (
                &["/a/(.*)", "/b"],
                "/$2",
                &["$2 is always empty: no path of the Ingress has more than one group"],
            ),
            (
                &[r"/a\(.*\)", "/[(]", "/(?:a)", "/(?<=a)b"],
                "/$1",
                &["$1 is always empty: no path of the Ingress has a group, as /shop/(.*) has one"],
            ),
            (&["/a(/|$)(.*)", "/a"], "/$2", &[]),
            (&["/(?<rest>.*)"], "/$1", &[]),
            (&["/"], "/new", &[]),
            (&["/"], "/$0", &[]),
            (&[], "/$1", &[]),
        ] {
            assert_eq!(told(paths, &to(target)), want, "{paths:?} {target}");
        }
        let prefix = [("rewrite-target", "/"), ("x-forwarded-prefix", "/$1")];
        assert_eq!(told(&["/a"], &prefix).len(), 1);
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
