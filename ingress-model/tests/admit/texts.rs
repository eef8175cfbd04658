//! Hosts, paths and other texts of the specification.

use ingress_model::{Options, admit, diagnostic::Reason};
use serde_json::json;

use crate::{
    UID, alone, annotated, assert_fine, assert_refused, ingress, of_host, options, rule, snapshot,
    with,
};

#[test]
fn suspicious_text_is_refused() {
    let paths = ["ImplementationSpecific /x{root /srv;}"];
    let candidate = of_host("new", "new.test", &[], &paths);
    assert_refused(
        &alone(&candidate),
        Reason::SuspiciousText,
        &["spec.rules[0].http.paths[0].path", "directive root"],
    );
    let trusting = Options {
        deep_inspect: false,
        ..options()
    };
    assert_fine(&admit(&candidate, &snapshot(&[], Vec::new()), &trusting));
}

#[test]
fn the_uid_has_to_be_a_uuid() {
    for (uid, fine) in [
        (Some(UID), true),
        (Some("D0C5B0C2-1F5C-4B8E-9F0E-3A6B1F6F2F11"), true),
        // It has not been stored yet.
        (None, true),
        (Some(""), false),
        (Some("d0c5b0c21f5c4b8e9f0e3a6b1f6f2f11"), false),
        (Some("d0c5b0c2-1f5c-4b8e-9f0e-3a6b1f6f2f1g"), false),
        (Some("d0c5b0c2-1f5c-4b8e-9f0e-3a6b1f6f2f11-"), false),
        (Some("x;} server {"), false),
    ] {
        let mut candidate = annotated(&[]);
        candidate.metadata.uid = uid.map(Into::into);
        let verdict = alone(&candidate);
        if fine {
            assert_fine(&verdict);
        } else {
            assert_refused(&verdict, Reason::SuspiciousText, &["metadata.uid", "UUID"]);
        }
    }
}

#[test]
fn paths_have_to_be_plain_unless_their_type_says_otherwise() {
    for (path, fine) in [
        ("Prefix /", true),
        ("Prefix ", true),
        ("Exact /.well-known/acme_challenge-1/A.txt", true),
        ("ImplementationSpecific /item/[a-z]{3}", true),
        ("Exact /item/[a-z]{3}", false),
        ("Prefix /a b", false),
        ("Prefix /a%20b", false),
        ("Prefix /ä", false),
    ] {
        let candidate = of_host("new", "new.test", &[], &[path]);
        let lax = with(&[("strict-validate-path-type", "false")], &candidate);
        if fine {
            assert_fine(&alone(&candidate));
            assert_fine(&lax);
        } else {
            let (path_type, path) = path.split_once(' ').unwrap();
            let words = format!("path {path:?} cannot be used with pathType {path_type}");
            assert_refused(&alone(&candidate), Reason::InvalidPath, &[&words]);
            assert!(lax.is_allowed());
            let warnings: Vec<_> = lax.warning_lines().collect();
            assert!(
                warnings.len() == 1 && warnings[0].contains(&words),
                "{warnings:?}"
            );
        }
    }
}

#[test]
fn every_bad_path_is_told() {
    let spec = json!({"rules": [
        rule("a.test", &["Prefix /", "Prefix /a*"]),
        rule("b.test", &["Exact /b?", "Exact /b"]),
    ]});
    let verdict = alone(&ingress("new", &[], &spec));
    let text = verdict.refusal().unwrap();
    let starts: Vec<_> = text
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        starts,
        [
            "spec.rules[0].http.paths[1].path",
            "spec.rules[1].http.paths[0].path"
        ]
    );
}

#[test]
fn hosts_and_paths_that_cannot_be_served_are_refused() {
    let candidate = of_host("new", "a b", &[], &["Prefix /"]);
    assert_refused(
        &alone(&candidate),
        Reason::InvalidHost,
        &["spec.rules[0].host"],
    );
    let candidate = of_host("new", "new.test", &[], &["ImplementationSpecific a"]);
    assert_refused(&alone(&candidate), Reason::InvalidPath, &["start with /"]);
}
