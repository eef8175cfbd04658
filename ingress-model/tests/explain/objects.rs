//! What is not served, and what all hosts and keys come to.

use ingress_model::{ObjectName, Options, config::Fate, explain::Answer, testing::Fixture};

use crate::{
    config, explain, ingress, options, rule, served,
    tls::{secret, tls},
    web,
};

#[test]
fn what_is_not_served_is_told_with_the_reason() {
    let served = served(&[
        ingress("ours", &[], &rule("a.test", "/", "one")),
        ingress(
            "theirs",
            &[],
            &("  ingressClassName: other\n".to_owned() + &rule("a.test", "/b", "one")),
        ),
        ingress(
            "refused",
            &[("auth-url", "\u{7}")],
            &rule("b.test", "/", "one"),
        ),
        ingress("odd", &[], &rule("a.test", "/etc/nginx", "one")),
        ingress(
            "canary",
            &[("canary", "true"), ("canary-weight", "5")],
            &rule("z.test", "/", "one"),
        ),
        web("one"),
    ]);
    let reasons = |ignored: Vec<ingress_model::explain::Ignored>| -> Vec<String> {
        let ignored = ignored.into_iter();
        ignored
            .map(|ignored| format!("{} {}", ignored.ingress, ignored.reasons[0].reason))
            .collect()
    };
    let all = served.explainer().overview();
    assert_eq!(
        reasons(all.ignored),
        ["shop/odd SuspiciousText", "shop/theirs MissingClass"]
    );
    let notices: Vec<_> = all
        .notices
        .iter()
        .map(|said| said.object.name.name())
        .collect();
    assert_eq!(notices, ["canary", "refused", "config"]);
    let explanation = explain(&served, "a.test", "/b");
    assert_eq!(
        reasons(explanation.ignored),
        ["shop/odd SuspiciousText", "shop/theirs MissingClass"]
    );
    assert_eq!(reasons(explain(&served, "b.test", "/").ignored), [""; 0]);
    assert!(matches!(
        explain(&served, "b.test", "/").answer,
        Answer::Closed { status: 503, .. }
    ));
}

#[test]
fn an_overview_has_each_path_once() {
    let served = served(&[
        ingress("a", &[], &rule("a.test", "/a", "one")),
        ingress("b", &[], &rule("a.test", "/a", "two")),
        web("one"),
    ]);
    let overview = served.explainer().overview();
    let paths = overview.hosts.iter().flat_map(|host| {
        let paths = host.paths.iter();
        paths.map(|path| format!("{}{} {:?}", host.host, path.path, path.answer))
    });
    let paths: Vec<_> = paths.collect();
    assert_eq!(
        paths,
        ["_/ NotFound", "a.test/a NoEndpoints", "a.test/ NotFound"]
    );
    let [conflict] = &overview.conflicts[..] else {
        panic!("{:?}", overview.conflicts)
    };
    assert_eq!(conflict.host.as_str(), "a.test");
    let host = served.explainer().host("a.test");
    assert!(host.is_served() && host.conflicts.len() == 1);
    assert!(!served.explainer().host("b.test").is_served());
}

#[test]
fn an_overview_has_canaries_beside_their_paths() {
    let canary = [("canary", "true"), ("canary-weight", "20")];
    let served = served(&[
        ingress("main", &[], &rule("a.test", "/", "one")),
        ingress("next", &canary, &rule("a.test", "/", "two")),
        web("one"),
        web("two"),
    ]);
    let overview = served.explainer().overview();
    let host = overview
        .hosts
        .iter()
        .find(|host| host.host.as_str() == "a.test")
        .unwrap();
    let canary = host.paths[0].canary.as_ref().unwrap();
    assert_eq!(canary.ingress.as_ref().unwrap().to_string(), "shop/next");
    assert_eq!((canary.weight, canary.endpoints.len()), (20, 2));
}

#[test]
fn what_a_canary_wants_of_a_header_is_told() {
    let by = |more: (&'static str, &'static str)| {
        [("canary", "true"), ("canary-by-header", "x-region"), more]
    };
    for (more, value, pattern) in [
        (("canary-weight", "0"), None, None),
        (("canary-by-header-value", "eu"), Some("eu"), None),
        (("canary-by-header-pattern", "^eu"), None, Some("^eu")),
    ] {
        let served = served(&[
            ingress("main", &[], &rule("a.test", "/", "one")),
            ingress("next", &by(more), &rule("a.test", "/", "two")),
            web("one"),
            web("two"),
        ]);
        let explanation = served.explainer().request("a.test", "/").unwrap();
        let canary = &explanation.upstream.unwrap().canaries[0];
        assert_eq!(canary.header.as_deref(), Some("x-region"));
        assert_eq!(canary.header_value.as_deref(), value);
        assert_eq!(canary.header_pattern.as_deref(), pattern);
    }
}

#[test]
fn backends_are_told_with_their_services() {
    let config = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: tcp, namespace: shop}\n\
        data: {'9000': 'shop/two:80', '9001': 'shop/gone:80'}\n";
    let canary = [("canary", "true"), ("canary-weight", "20")];
    let shared = [("canary", "true"), ("canary-by-header", "x")];
    let manifests = [
        ingress(
            "main",
            &[("default-backend", "two")],
            &rule("a.test", "/", "one"),
        ),
        ingress("next", &canary, &rule("a.test", "/", "two")),
        ingress("other", &[], &rule("b.test", "/", "two")),
        ingress("third", &shared, &rule("b.test", "/", "three")),
        web("one"),
        web("two"),
        web("three"),
        config.to_owned(),
    ];
    let options = Options {
        tcp_services: Some(ObjectName::new("shop", "tcp")),
        default_backend_service: Some(ObjectName::new("shop", "one")),
        ..options()
    };
    let fixture = Fixture::from_yaml(&manifests.concat()).unwrap();
    let served = fixture.with_options(options).merge();
    let backends = served.explainer().backends();
    let mut told: Vec<_> = backends
        .iter()
        .map(|backend| {
            let service = backend.service.as_ref();
            let service = service.map_or_else(|| "-".to_owned(), ToString::to_string);
            format!("{:?} {service} {}", backend.role, backend.endpoints.len())
        })
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            "Canary shop/three 2",
            "Canary shop/two 2",
            "Default shop/one 2",
            "Paths shop/one 2",
            "Paths shop/two 2",
            "StandIn shop/two 2",
            "Tcp shop/gone 0",
            "Tcp shop/two 2",
        ]
    );
}

#[test]
fn keys_of_the_configmap_are_told_with_what_becomes_of_them() {
    let served = served(&[config(&[
        ("proxy-body-size", "8m"),
        ("proxy-read-timeout", "soon"),
        ("proxy-bodi-size", "1m"),
        ("proxy-real-ip-cidr", "10.0.0.0/8,x"),
        ("proxy-buffering", "on"),
        ("PROXY-BUFFERING", "off"),
        ("ssl-session-ticket-key", "c2VjcmV0c2VjcmV0"),
    ])]);
    let report = served.explainer().config().unwrap();
    assert!(report.exists);
    for (key, fate, suggestion, notes) in [
        ("proxy-body-size", Fate::Accepted, None, 0),
        ("proxy-read-timeout", Fate::Refused, None, 1),
        ("proxy-bodi-size", Fate::Unknown, Some("proxy-body-size"), 1),
        ("proxy-real-ip-cidr", Fate::InPart, None, 1),
        ("proxy-buffering", Fate::Accepted, None, 0),
        ("PROXY-BUFFERING", Fate::Overridden, None, 0),
    ] {
        let used = report.keys.iter().find(|used| used.key == key).unwrap();
        assert_eq!((used.fate, used.suggestion), (fate, suggestion), "{key}");
        assert_eq!(used.notes.len(), notes, "{key}: {:?}", used.notes);
    }
    let mut tickets = report.keys.iter();
    let tickets = tickets
        .find(|used| used.key == "ssl-session-ticket-key")
        .unwrap();
    assert_eq!(tickets.value, None);
    let missing = Fixture::default().with_options(options()).merge();
    assert!(!missing.explainer().config().unwrap().exists);
    assert_eq!(Fixture::default().merge().explainer().config(), None);
}

#[test]
fn what_secrets_hold_is_never_told() {
    let users = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: users, namespace: shop}\nstringData: {auth: 'mira:$apr1$hash'}\n";
    let broken = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: broken, namespace: shop}\nstringData: {tls.crt: private-text, tls.key: private-text}\n";
    let auth = [("auth-type", "basic"), ("auth-secret", "users")];
    let served = served(&[
        secret("a", &["a.test"]),
        users.to_owned(),
        broken.to_owned(),
        ingress(
            "a",
            &auth,
            &(tls("a.test", "a") + &rule("a.test", "/", "one")),
        ),
        ingress(
            "b",
            &[],
            &(tls("b.test", "broken") + &rule("b.test", "/", "one")),
        ),
    ]);
    let explainer = served.explainer();
    let mut told = serde_json::to_string(&explainer.overview()).unwrap();
    for host in ["a.test", "b.test"] {
        told += &serde_json::to_string(&explain(&served, host, "/")).unwrap();
        told += &serde_json::to_string(&explainer.host(host)).unwrap();
    }
    for hidden in ["BEGIN", "PRIVATE", "private-text", "apr1", "mira"] {
        assert!(!told.contains(hidden), "{hidden}");
    }
    assert!(told.contains("shop/users") || told.contains("users"));
}
