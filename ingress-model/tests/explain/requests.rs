//! Which location answers a request, why, and with what.

use ingress_model::{
    ConflictPolicy, ObjectName, Options,
    explain::{Answer, Origin},
    provenance::Rule,
    testing::Fixture,
};

use crate::{explain, ingress, options, rule, served, web};

#[test]
fn who_holds_a_path_is_told_with_the_rule() {
    let manifests = [
        ingress("old", &[], &rule("a.test", "/", "one")),
        ingress("new", &[], &rule("a.test", "/", "two")),
        web("one"),
        web("two"),
    ];
    for (policy, winner, loser, rule, service) in [
        (
            ConflictPolicy::LastDefinitionWins,
            "new",
            "old",
            Rule::CreatedLater,
            "two",
        ),
        (
            ConflictPolicy::OldestWins,
            "old",
            "new",
            Rule::CreatedEarlier,
            "one",
        ),
    ] {
        let fixture = Fixture::from_yaml(&manifests.concat()).unwrap();
        let options = Options {
            conflict_policy: policy,
            ..options()
        };
        let served = fixture.with_options(options).merge();
        let explanation = explain(&served, "A.test:80", "/x?y");
        let [conflict] = &explanation.conflicts[..] else {
            panic!("{:?}", explanation.conflicts)
        };
        assert_eq!(conflict.winner, ObjectName::new("shop", winner));
        assert_eq!(conflict.losers, [ObjectName::new("shop", loser)]);
        assert_eq!(conflict.rule, rule);
        let location = explanation.location.unwrap();
        assert_eq!(location.decision.as_ref(), Some(conflict));
        let upstream = explanation.upstream.unwrap();
        assert_eq!(upstream.service.unwrap().name, service);
        assert_eq!(upstream.endpoints, ["10.0.0.1:8080", "10.0.0.2:8080"]);
        assert_eq!(explanation.answer, Answer::Endpoint { endpoints: 2 });
        assert_eq!(explanation.notices, []);
    }
}

#[test]
fn what_makes_a_location_be_there_is_told() {
    let backend = "  defaultBackend: {service: {name: rest, port: {number: 80}}}\n";
    let served = served(&[
        ingress("a", &[], &rule("a.test", "/a", "one")),
        ingress(
            "b",
            &[],
            &(backend.to_owned() + &rule("b.test", "/b", "one")),
        ),
        ingress("c", &[], backend),
        web("one"),
    ]);
    for (host, path, origin, answer) in [
        (
            "a.test",
            "/a",
            Origin::Path,
            Answer::Endpoint { endpoints: 2 },
        ),
        ("a.test", "/x", Origin::Host, Answer::NotFound),
        ("b.test", "/x", Origin::DefaultBackend, Answer::NoEndpoints),
        ("c.test", "/x", Origin::Path, Answer::NoEndpoints),
    ] {
        let explanation = explain(&served, host, path);
        assert_eq!(explanation.answer, answer, "{host}{path}");
        assert_eq!(explanation.location.unwrap().origin, origin, "{host}{path}");
    }
}

#[test]
fn paths_of_the_controller_itself_are_the_longest_prefix_or_not() {
    let served = served(&[ingress("a", &[], &rule("", "/healthz/more", "one"))]);
    let explainer = served.explainer().with_own_paths(["/healthz".to_owned()]);
    for (host, path, is_own) in [
        ("x.test", "/healthz", true),
        ("x.test", "/healthz/x", true),
        ("x.test", "/healthz/more/x", false),
        ("x.test", "/health", false),
    ] {
        let explanation = explainer.request(host, path).unwrap();
        assert_eq!(explanation.answer == Answer::Controller, is_own, "{path}");
        assert_eq!(explanation.location.is_none(), is_own, "{path}");
    }
}

#[test]
fn what_answers_in_place_of_an_endpoint_is_told() {
    let to_other = [("permanent-redirect", "https://other.test")];
    let served = served(&[
        ingress("a", &[("app-root", "/app")], &rule("a.test", "/x", "one")),
        ingress("b", &to_other, &rule("b.test", "/", "one")),
        ingress(
            "c",
            &[("auth-tls-secret", "shop/gone")],
            &rule("c.test", "/", "one"),
        ),
        ingress(
            "d",
            &[("from-to-www-redirect", "true"), ("default-backend", "one")],
            &rule("d.test", "/", "gone"),
        ),
        web("one"),
    ]);
    for (host, path, want) in [
        ("a.test", "/", (302, "$scheme://$http_host/app")),
        ("b.test", "/x", (301, "https://other.test")),
        ("www.d.test", "/", (308, "$scheme://d.test$request_uri")),
    ] {
        let Answer::Redirect { status, target } = explain(&served, host, path).answer else {
            panic!("{host}{path}")
        };
        assert_eq!((status, target.as_str()), want);
    }
    let answer = explain(&served, "a.test", "/x").answer;
    assert_eq!(answer, Answer::Endpoint { endpoints: 2 });
    let answer = explain(&served, "d.test", "/").answer;
    assert!(
        matches!(answer, Answer::StandIn { endpoints: 2, .. }),
        "{answer:?}"
    );
    let answer = explain(&served, "c.test", "/").answer;
    assert!(
        matches!(answer, Answer::Closed { status: 403, .. }),
        "{answer:?}"
    );
}

#[test]
fn the_canary_that_acts_is_told() {
    let canary = [("canary", "true"), ("canary-weight", "20")];
    let served = served(&[
        ingress("main", &[], &rule("a.test", "/", "one")),
        ingress("first", &canary, &rule("a.test", "/", "two")),
        ingress("second", &canary, &rule("a.test", "/", "three")),
        web("one"),
        web("two"),
        web("three"),
    ]);
    let explanation = explain(&served, "a.test", "/");
    let canaries = explanation.upstream.unwrap().canaries;
    let names: Vec<_> = canaries.iter().map(|canary| canary.name.as_str()).collect();
    assert_eq!(names, ["shop-three-80"]);
    let by = canaries[0].ingress.as_ref().unwrap();
    assert_eq!(by.to_string(), "shop/second");
    let notices: Vec<_> = explanation
        .notices
        .iter()
        .map(|said| format!("{} {}", said.object.name, said.reason))
        .collect();
    assert_eq!(notices, ["shop/first CanaryConflict"]);
}

#[test]
fn path_types_are_told_as_they_are_written() {
    let text = |path_type: &str| {
        rule("a.test", "/x", "one").replace("pathType: Prefix", &format!("pathType: {path_type}"))
    };
    for written in ["Exact", "Prefix", "ImplementationSpecific"] {
        let served = served(&[ingress("a", &[], &text(written))]);
        let told = format!(
            "{:?}",
            explain(&served, "a.test", "/x")
                .location
                .unwrap()
                .location
                .path_type
        );
        assert_eq!(told, written);
        let overview = served.explainer().overview();
        let told = format!("{:?}", overview.hosts[1].paths[0].path_type);
        assert_eq!(told, written);
    }
}

#[test]
fn what_a_missing_service_leads_to_is_told() {
    let stand_in = [("default-backend", "sorry")];
    let served = served(&[
        ingress("a", &[], &rule("a.test", "/x", "gone")),
        ingress("b", &stand_in, &rule("b.test", "/", "lost")),
        ingress("c", &[("canary", "true")], &rule("a.test", "/x", "away")),
        web("sorry"),
    ]);
    let explanation = explain(&served, "a.test", "/x");
    assert_eq!(explanation.answer, Answer::NoEndpoints);
    let said: Vec<_> = explanation
        .notices
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        said,
        [
            "Ingress shop/a: spec.rules[0].http.paths[0].backend: Service shop/gone: it does not exist; requests for \
             a.test/x are answered 503 (MissingService)",
            "Ingress shop/c: spec.rules[0].http.paths[0].backend: Service shop/away: it does not exist; the canary gets \
             no requests (MissingService)",
        ]
    );
    let other = explain(&served, "b.test", "/");
    assert!(matches!(other.answer, Answer::StandIn { endpoints: 2, .. }));
    assert!(
        other.notices[0]
            .message
            .ends_with("go to Service shop/sorry (default-backend), or are answered 503")
    );
}
