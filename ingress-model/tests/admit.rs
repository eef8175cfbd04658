//! What a webhook says about Ingresses.

#![expect(clippy::unwrap_used, reason = "malformed objects fail the test")]

use std::collections::{BTreeMap, BTreeSet};

use ingress_model::{
    AdmissionIndex, ObjectName, Options, Snapshot, Verdict, admit, diagnostic::Reason,
};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret, Service},
    networking::v1::Ingress,
};
use serde_json::{Value, json};

const UID: &str = "d0c5b0c2-1f5c-4b8e-9f0e-3a6b1f6f2f11";

/// An Ingress for everybody, of the namespace `shop`: its annotations, with the usual prefix unless they have one, and
/// its specification.
fn ingress(name: &str, annotations: &[(&str, &str)], spec: &Value) -> Ingress {
    let key = |name: &str| match name.split_once('/') {
        Some(_) => name.to_owned(),
        None => format!("nginx.ingress.kubernetes.io/{name}"),
    };
    let annotations: BTreeMap<_, _> = annotations
        .iter()
        .map(|(name, value)| (key(name), *value))
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"namespace": "shop", "name": name, "uid": UID, "annotations": annotations},
        "spec": spec,
    }))
    .unwrap()
}

fn backend() -> Value {
    json!({"service": {"name": "web", "port": {"number": 80}}})
}

/// One rule with these paths; the type stands in front of the path.
fn rule(host: &str, paths: &[&str]) -> Value {
    let paths = paths.iter().map(|text| {
        let (path_type, path) = text.split_once(' ').unwrap();
        json!({"path": path, "pathType": path_type, "backend": backend()})
    });
    json!({"host": host, "http": {"paths": paths.collect::<Vec<_>>()}})
}

/// An Ingress of one host with these annotations and paths.
fn of_host(name: &str, host: &str, annotations: &[(&str, &str)], paths: &[&str]) -> Ingress {
    ingress(name, annotations, &json!({"rules": [rule(host, paths)]}))
}

/// An Ingress without peculiarities but these annotations.
fn annotated(annotations: &[(&str, &str)]) -> Ingress {
    of_host("new", "new.test", annotations, &["Prefix /"])
}

fn options() -> Options {
    Options {
        watch_ingress_without_class: true,
        config_map: Some(ObjectName::new("ingress", "config")),
        ..Options::default()
    }
}

fn snapshot(config: &[(&str, &str)], stored: Vec<Ingress>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let data = config.iter();
    let data = data.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let config = ConfigMap {
        data: Some(data.collect()),
        ..ConfigMap::default()
    };
    snapshot
        .config_maps
        .insert(ObjectName::new("ingress", "config"), config);
    let service = json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}});
    let service: Service = serde_json::from_value(service).unwrap();
    snapshot
        .services
        .insert(ObjectName::new("shop", "web"), service);
    for ingress in stored {
        let name = ingress.metadata.name.clone().unwrap();
        snapshot
            .ingresses
            .insert(ObjectName::new("shop", &name), ingress);
    }
    snapshot
}

fn with(config: &[(&str, &str)], candidate: &Ingress) -> Verdict {
    admit(candidate, &snapshot(config, Vec::new()), &options())
}

fn alone(candidate: &Ingress) -> Verdict {
    with(&[], candidate)
}

/// Whether it is refused for that reason alone, in words that include these.
#[track_caller]
fn assert_refused(verdict: &Verdict, reason: Reason, words: &[&str]) {
    let reasons: Vec<_> = verdict.faults.iter().map(|fault| fault.reason).collect();
    assert_eq!(reasons, [reason], "{verdict:?}");
    let text = verdict.refusal().unwrap();
    for words in words {
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }
}

#[track_caller]
fn assert_fine(verdict: &Verdict) {
    assert!(verdict.is_allowed(), "{verdict:?}");
    assert_eq!(verdict.refusal(), None);
    assert_eq!(verdict.warnings, []);
}

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
