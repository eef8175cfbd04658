//! Annotations that are refused, or have less of an effect than meant.

use ingress_model::{Options, admit, diagnostic::Reason};
use serde_json::json;

use crate::{alone, annotated, assert_fine, assert_refused, ingress, options, snapshot, with};

#[test]
fn the_prefix_that_is_read_is_named() {
    let options = Options {
        annotations_prefix: "edge.example.test".into(),
        ..options()
    };
    let usual = annotated(&[("rewrite-target", "/x")]);
    let verdict = admit(&usual, &snapshot(&[], Vec::new()), &options);
    assert_refused(
        &verdict,
        Reason::UnknownAnnotation,
        &[
            "nginx.ingress.kubernetes.io/rewrite-target",
            "edge.example.test/",
        ],
    );
    let ours = annotated(&[("edge.example.test/rewrite-target", "/x")]);
    assert_fine(&admit(&ours, &snapshot(&[], Vec::new()), &options));
}

#[test]
fn the_administrator_may_refuse_annotations() {
    let words = [(
        "annotation-value-word-blocklist",
        "load_module, content_by_lua,}",
    )];
    let snippets = [
        ("allow-snippet-annotations", "true"),
        ("annotations-risk-level", "Critical"),
    ];
    let medium = [
        ("allow-snippet-annotations", "true"),
        ("annotations-risk-level", "Medium"),
    ];
    let snippet = ("configuration-snippet", "more_set_headers \"A: b\";");
    for (config, annotation, words) in [
        (
            &words[..],
            ("connection-proxy-header", "content_by_lua"),
            &["connection-proxy-header", "content_by_lua"][..],
        ),
        (&words, ("connection-proxy-header", "a;}"), &["\"}\""]),
        (
            &words,
            ("no-such-thing", "load_module x"),
            &["no-such-thing", "load_module"],
        ),
        (&words, ("connection-proxy-header", "keep-alive"), &[]),
        (&words, ("example.test/anything", "load_module"), &[]),
        (
            &[],
            snippet,
            &[
                "configuration-snippet",
                "snippets are not allowed",
                "allow-snippet-annotations",
            ],
        ),
        (&[], ("example.test/my-snippet", "x"), &[]),
        (
            &medium,
            snippet,
            &[
                "configuration-snippet",
                "risk",
                "Critical",
                "annotations-risk-level",
            ],
        ),
        (
            &medium,
            ("server-alias", "also.test"),
            &["server-alias", "risk", "High"],
        ),
        (&medium, ("denylist-source-range", "192.0.2.1/32"), &[]),
        (&snippets, snippet, &[]),
    ] {
        let verdict = with(config, &annotated(&[annotation]));
        if words.is_empty() {
            assert_fine(&verdict);
        } else {
            assert_refused(&verdict, Reason::RefusedAnnotation, words);
        }
    }
}

#[test]
fn values_that_close_or_refuse_an_ingress_are_refused() {
    for (annotation, words) in [
        (
            ("limit-rps", "many"),
            &["nginx.ingress.kubernetes.io/limit-rps"][..],
        ),
        (
            ("permanent-redirect", "http://x.test/$uri"),
            &["permanent-redirect"],
        ),
        (
            ("allowlist-source-range", "10.0.0.0/99"),
            &["allowlist-source-range", "it takes:"],
        ),
        (("limit-whitelist", "everybody"), &["limit-whitelist"]),
    ] {
        let verdict = alone(&annotated(&[annotation]));
        assert_refused(&verdict, Reason::InvalidAnnotation, words);
    }
}

#[test]
fn what_has_less_of_an_effect_than_meant_is_warned_of() {
    for (annotation, words) in [
        (("proxy-connect-timeout", "soon"), "the default holds"),
        (("canary-weight", "10"), "has no effect without"),
        (("rewrite-tarjet", "/x"), "did you mean rewrite-target?"),
        (("influxdb-host", "x"), "there is no such annotation"),
        (
            ("whitelist-source-range", "10.0.0.0/8"),
            "is deprecated; write",
        ),
    ] {
        let verdict = alone(&annotated(&[annotation]));
        assert!(verdict.is_allowed(), "{verdict:?}");
        let warnings: Vec<_> = verdict.warning_lines().collect();
        assert!(
            warnings
                .iter()
                .any(|line| line.contains(annotation.0) && line.contains(words)),
            "{annotation:?}: {warnings:?}"
        );
    }
    let resource = json!({"resource": {"kind": "Bucket", "name": "x"}});
    let spec = json!({"rules": [{"host": "new.test", "http": {"paths": [
        {"path": "/", "pathType": "Prefix", "backend": resource},
    ]}}]});
    let verdict = alone(&ingress("new", &[], &spec));
    assert!(verdict.is_allowed());
    assert_eq!(verdict.warnings[0].reason, Reason::UnsupportedBackend);
}
