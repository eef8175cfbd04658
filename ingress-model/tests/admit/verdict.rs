//! What is allowed, what is warned of, and what is none of our business.

use std::collections::BTreeSet;

use ingress_model::{ObjectName, Options, Verdict, admit, diagnostic::Reason};
use k8s_openapi::api::{core::v1::Secret, networking::v1::Ingress};
use serde_json::{Value, json};

use crate::{
    alone, assert_fine, assert_refused, backend, ingress, of_host, options, rule, snapshot,
};

#[test]
fn a_good_ingress_is_allowed_without_a_word() {
    let spec = json!({
        "tls": [{"hosts": ["new.test"]}],
        "defaultBackend": backend(),
        "rules": [rule("new.test", &["Prefix /", "Exact /.well-known/x_1", "ImplementationSpecific /a+(b)"]), {"host": "bare.test"}],
    });
    let annotations = [
        ("limit-rps", "5"),
        ("connection-proxy-header", "keep-alive"),
    ];
    assert_fine(&alone(&ingress("new", &annotations, &spec)));
}

#[test]
fn what_is_missing_is_warned_of_and_may_still_come() {
    let backend =
        |name: &str, port: u16| json!({"service": {"name": name, "port": {"number": port}}});
    let path = |path: &str, backend: Value| json!({"path": path, "pathType": "Prefix", "backend": backend});
    let spec = json!({
        "tls": [{"hosts": ["new.test"], "secretName": "pair"}],
        "rules": [{"host": "new.test", "http": {"paths": [
            path("/none", backend("nobody", 80)),
            path("/port", backend("web", 81)),
            path("/", backend("web", 80)),
        ]}}],
    });
    let annotations = [
        ("auth-type", "basic"),
        ("auth-secret", "users"),
        ("custom-headers", "shop/headers"),
    ];
    let candidate = ingress("new", &annotations, &spec);
    let mut snapshot = snapshot(&[], Vec::new());
    let verdict = admit(&candidate, &snapshot, &options());
    assert!(verdict.is_allowed(), "{verdict:?}");
    let reasons = |verdict: &Verdict| {
        let warnings = verdict.warnings.iter();
        warnings
            .map(|warning| warning.reason)
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        reasons(&verdict),
        BTreeSet::from([
            Reason::MissingService,
            Reason::MissingServicePort,
            Reason::MissingSecret,
        ])
    );
    let lines = verdict.warning_lines().collect::<Vec<_>>().join("\n");
    for words in ["shop/users", "shop/pair", "shop/nobody", "81"] {
        assert!(lines.contains(words), "{words}: {lines}");
    }
    // What is there, but cannot be used, is no fault of the Ingress either.
    for name in ["users", "pair"] {
        let name = ObjectName::new("shop", name);
        snapshot.secrets.insert(name, Secret::default());
    }
    let verdict = admit(&candidate, &snapshot, &options());
    assert!(verdict.is_allowed(), "{verdict:?}");
    assert!(
        reasons(&verdict).contains(&Reason::InvalidSecret),
        "{verdict:?}"
    );
}

#[test]
fn what_is_not_ours_is_allowed_whatever_it_holds() {
    let bad = |change: &dyn Fn(&mut Ingress)| {
        let annotations = [("limit-rps", "many"), ("server-snippet", "x")];
        let mut ingress = of_host(
            "new",
            "a b",
            &annotations,
            &["Exact /etc/nginx[", "Exact x"],
        );
        ingress.metadata.uid = None;
        change(&mut ingress);
        ingress
    };
    assert!(!alone(&bad(&|_| {})).is_allowed());
    assert_fine(&alone(&bad(&|ingress| {
        let time = serde_json::from_value(json!("2026-01-01T00:00:00Z"));
        ingress.metadata.deletion_timestamp = Some(time.unwrap());
    })));
    assert_fine(&alone(&bad(&|ingress| {
        ingress.spec.as_mut().unwrap().ingress_class_name = Some("other".into());
    })));
    let elsewhere = Options {
        watch_namespace: Some("bank".into()),
        ..options()
    };
    let verdict = admit(&bad(&|_| {}), &snapshot(&[], Vec::new()), &elsewhere);
    assert_fine(&verdict);
    let of_a_class = Options {
        watch_ingress_without_class: false,
        ..options()
    };
    let verdict = admit(&bad(&|_| {}), &snapshot(&[], Vec::new()), &of_a_class);
    assert_fine(&verdict);
}

#[test]
fn default_backends_are_refused_where_they_are_disabled() {
    let candidate = ingress("new", &[], &json!({"defaultBackend": backend()}));
    assert_fine(&alone(&candidate));
    let disabled = Options {
        disable_catch_all: true,
        ..options()
    };
    let verdict = admit(&candidate, &snapshot(&[], Vec::new()), &disabled);
    assert_refused(
        &verdict,
        Reason::CatchAllDisabled,
        &["spec.defaultBackend", "--disable-catch-all"],
    );
    let without_host = of_host("new", "", &[], &["Prefix /"]);
    assert_fine(&admit(&without_host, &snapshot(&[], Vec::new()), &disabled));
}

#[test]
fn all_faults_are_told_the_most_general_first() {
    let annotations = [
        ("limit-rps", "many"),
        ("allowlist-source-range", "nobody"),
        ("server-snippet", "x"),
        ("proxy-connect-timeout", "soon"),
    ];
    let mut candidate = of_host("new", "new.test", &annotations, &["Exact /a*"]);
    candidate.metadata.uid = Some("x".into());
    let verdict = alone(&candidate);
    let reasons: Vec<_> = verdict.faults.iter().map(|fault| fault.reason).collect();
    assert_eq!(
        reasons,
        [
            Reason::SuspiciousText,
            Reason::InvalidPath,
            Reason::RefusedAnnotation,
            Reason::InvalidAnnotation,
            Reason::InvalidAnnotation,
        ]
    );
    assert_eq!(verdict.refusal().unwrap().lines().count(), 5);
    let mut warnings = verdict.warning_lines();
    assert!(warnings.any(|line| line.contains("proxy-connect-timeout")));
}
