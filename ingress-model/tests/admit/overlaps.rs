//! Paths that other Ingresses have already.

use ingress_model::{AdmissionIndex, admit, diagnostic::Reason};
use k8s_openapi::api::networking::v1::Ingress;
use serde_json::json;

use crate::{backend, ingress, of_host, options, rule, snapshot};

/// What is said about an Ingress of `a.test` besides stored ones: the paths that it must not have.
fn overlaps(stored: &[Ingress], candidate: &Ingress) -> Vec<String> {
    let snapshot = snapshot(&[("strict-validate-path-type", "false")], stored.to_vec());
    let whole = admit(candidate, &snapshot, &options());
    let mut index = AdmissionIndex::default();
    let excerpt = index.excerpt(&snapshot, candidate, &options());
    assert_eq!(admit(candidate, &excerpt, &options()), whole);
    assert!(
        whole
            .faults
            .iter()
            .all(|fault| fault.reason == Reason::PathConflict),
        "{whole:?}"
    );
    let lines = whole.refusal().unwrap_or_default();
    lines.lines().map(str::to_owned).collect()
}

#[test]
fn a_path_that_another_ingress_has_is_refused() {
    let first = of_host(
        "first",
        "a.test",
        &[],
        &["Prefix /", "Prefix /bar", "Exact /exact"],
    );
    let canary = ("canary", "true");
    for (annotations, paths, clashes) in [
        (&[][..], &["Prefix /other"][..], 0),
        (&[], &["Prefix /other", "Prefix /bar"], 1),
        (&[], &["Prefix /", "Prefix /bar/", "Exact /exact"], 3),
        (&[], &["ImplementationSpecific /bar"], 1),
        (&[], &["Exact /bar", "Prefix /exact"], 0),
        (&[("use-regex", "true")], &["Exact /bar"], 1),
        (&[canary], &["Prefix /", "Prefix /bar"], 0),
        (&[("canary", "false")], &["Prefix /bar"], 1),
    ] {
        let candidate = of_host("second", "A.test", annotations, paths);
        let found = overlaps(std::slice::from_ref(&first), &candidate);
        assert_eq!(found.len(), clashes, "{paths:?} {found:?}");
        let elsewhere = of_host("second", "b.test", annotations, paths);
        assert_eq!(overlaps(std::slice::from_ref(&first), &elsewhere), [""; 0]);
    }
    let candidate = of_host("second", "a.test", &[], &["Prefix /other", "Prefix /"]);
    assert_eq!(
        overlaps(std::slice::from_ref(&first), &candidate),
        [
            "spec.rules[0].http.paths[1].path: host \"a.test\" and path \"/\" is already defined in ingress shop/first"
        ]
    );
    let foreign = {
        let mut foreign = first;
        foreign.spec.as_mut().unwrap().ingress_class_name = Some("other".into());
        foreign
    };
    assert_eq!(overlaps(&[foreign], &candidate), [""; 0]);
    let first_canary = of_host("first", "a.test", &[canary], &["Prefix /"]);
    assert_eq!(overlaps(&[first_canary], &candidate), [""; 0]);
}

#[test]
fn overlaps_are_found_in_every_rule_and_for_no_host() {
    let first = ingress(
        "first",
        &[],
        &json!({"rules": [rule("", &["Prefix /x"]), rule("a.test", &["Prefix /"])]}),
    );
    let spec = json!({"rules": [rule("clean.test", &["Prefix /"]), rule("a.test", &[ "Prefix "]), rule("", &["Prefix /x"])]});
    let found = overlaps(&[first], &ingress("second", &[], &spec));
    assert_eq!(
        found,
        [
            "spec.rules[2].http.paths[0].path: host \"_\" and path \"/x\" is already defined in ingress shop/first",
            "spec.rules[1].http.paths[0].path: host \"a.test\" and path \"/\" is already defined in ingress shop/first",
        ]
    );
}

#[test]
fn a_default_backend_holds_the_root_of_no_host_but_is_not_held_against_another() {
    let catch_all = |name| ingress(name, &[], &json!({"defaultBackend": backend()}));
    let rule = of_host("second", "", &[], &["Prefix /"]);
    assert_eq!(overlaps(&[catch_all("first")], &rule).len(), 1);
    assert_eq!(
        overlaps(&[catch_all("first")], &catch_all("second")),
        [""; 0]
    );
}

#[test]
fn an_ingress_does_not_clash_with_itself_nor_anew_with_whom_it_shares_already() {
    let stored = of_host("new", "a.test", &[], &["Prefix /"]);
    let changed = of_host(
        "new",
        "a.test",
        &[("limit-rps", "50")],
        &["Prefix /", "Exact /b"],
    );
    assert_eq!(overlaps(std::slice::from_ref(&stored), &changed), [""; 0]);

    let other = of_host("other", "a.test", &[], &["Prefix /", "Exact /b"]);
    let objects = [stored, other.clone()];
    let found = overlaps(&objects, &changed);
    assert!(found.len() == 1 && found[0].contains("\"/b\""), "{found:?}");
    let unchanged = of_host("new", "a.test", &[("limit-rps", "50")], &["Prefix /"]);
    let verdict = admit(&unchanged, &snapshot(&[], objects.to_vec()), &options());
    assert!(verdict.is_allowed());
    let reasons: Vec<_> = verdict.warnings.iter().map(|said| said.reason).collect();
    assert_eq!(reasons, [Reason::PathConflict]);

    let canary = of_host("new", "a.test", &[("canary", "true")], &["Prefix /"]);
    let main = of_host("new", "a.test", &[], &["Prefix /"]);
    assert_eq!(overlaps(&[canary, other], &main).len(), 1);
}
