//! What is told about requests, hosts and the ConfigMap.

#![expect(clippy::unwrap_used, reason = "malformed manifests fail the test")]

use std::fmt::Write;

use ingress_model::{
    ConflictPolicy, ObjectName, Options,
    annotation::{Scope, annotations, find},
    config::Fate,
    explain::{Answer, CertificateSource, Explanation, Origin, Setting, SettingSource, TlsReason},
    live::{Certificate, CertificateId},
    provenance::Rule,
    testing::{Fixture, Served},
};

/// An Ingress of the namespace `shop`: annotations without prefix, and what follows `spec:`.
fn ingress(name: &str, annotations: &[(&str, &str)], spec: &str) -> String {
    let mut text = format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  namespace: shop\n"
    );
    if !annotations.is_empty() {
        text.push_str("  annotations:\n");
    }
    for (name, value) in annotations {
        let value = serde_json::to_string(value).unwrap();
        writeln!(text, "    nginx.ingress.kubernetes.io/{name}: {value}").unwrap();
    }
    let class = if spec.contains("ingressClassName") {
        ""
    } else {
        "  ingressClassName: nginx\n"
    };
    text + "spec:\n" + class + spec + "\n"
}

/// A rule of a host with one path.
fn rule(host: &str, path: &str, service: &str) -> String {
    format!(
        "  rules: [{{host: '{host}', http: {{paths: [{{path: '{path}', pathType: Prefix, \
         backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}]}}}}]\n"
    )
}

fn web(name: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop}}
spec: {{ports: [{{name: http, port: 80, targetPort: 8080}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: shop, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: http, port: 8080}}]
endpoints: [{{addresses: [10.0.0.1, 10.0.0.2]}}]
"
    )
}

fn config(data: &[(&str, &str)]) -> String {
    let mut text = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, namespace: ingress}\ndata:\n".to_owned();
    for (key, value) in data {
        writeln!(text, "  {key}: {value:?}").unwrap();
    }
    text
}

fn options() -> Options {
    Options {
        config_map: Some(ObjectName::new("ingress", "config")),
        generated_certificate: Some(Certificate {
            id: CertificateId::new(CertificateId::GENERATED),
            pem: "".into(),
        }),
        ssl_passthrough: true,
        ..Options::default()
    }
}

fn served(manifests: &[String]) -> Served {
    let fixture = Fixture::from_yaml(&manifests.concat()).unwrap();
    fixture.with_options(options()).merge()
}

fn explain(served: &Served, host: &str, path: &str) -> Explanation {
    served.explainer().request(host, path).unwrap()
}

fn setting<'a>(settings: &'a [Setting], name: &str) -> &'a Setting {
    settings
        .iter()
        .find(|setting| setting.name == name)
        .unwrap()
}

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
        (
            "www.d.test",
            "/",
            (308, "$pass_access_scheme://d.test$redirect_uri"),
        ),
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
fn settings_come_from_annotations_then_the_configmap_then_defaults() {
    let served = served(&[
        ingress(
            "a",
            &[
                ("proxy-body-size", "8m"),
                ("proxy-read-timeout", "soon"),
                ("proxy-send-timeout", "-"),
                ("ssl-ciphers", "HIGH"),
            ],
            &rule("a.test", "/", "one"),
        ),
        ingress("b", &[("ssl-ciphers", "LOW")], &rule("a.test", "/b", "one")),
        config(&[
            ("proxy-body-size", "2m"),
            ("Proxy-Read-Timeout", "120"),
            ("proxy-send-timeout", "never"),
            ("proxy-connect-timeout", "7"),
        ]),
    ]);
    let settings = explain(&served, "a.test", "/").settings;
    let annotation = |ingress: &str, name: &str| SettingSource::Annotation {
        ingress: ObjectName::new("shop", ingress),
        key: format!("nginx.ingress.kubernetes.io/{name}"),
    };
    let key = |key: &str| SettingSource::ConfigMap {
        config_map: ObjectName::new("ingress", "config"),
        key: key.to_owned(),
    };
    for (name, value, source, notes) in [
        (
            "proxy-body-size",
            "8m",
            annotation("a", "proxy-body-size"),
            0,
        ),
        ("proxy-read-timeout", "120", key("Proxy-Read-Timeout"), 1),
        ("proxy-send-timeout", "60", SettingSource::Default, 1),
        (
            "proxy-connect-timeout",
            "7",
            key("proxy-connect-timeout"),
            0,
        ),
        // A setting of the server is held by the newest Ingress, also for the paths of another one.
        ("ssl-ciphers", "LOW", annotation("b", "ssl-ciphers"), 0),
        ("enable-cors", "false", SettingSource::Default, 0),
    ] {
        let setting = setting(&settings, name);
        assert_eq!(setting.value.as_deref(), Some(value), "{name}");
        assert_eq!(setting.source, source, "{name}");
        assert_eq!(setting.notes.len(), notes, "{name}: {:?}", setting.notes);
    }
}

/// An annotation with those without which it means nothing.
fn annotated(name: &'static str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut all = vec![(name, value)];
    let mut next = find(name).and_then(|info| info.needs);
    while let Some(needed) = next.and_then(find) {
        all.push((needed.name, needed.example));
        next = needed.needs;
    }
    let more = match name {
        "proxy-redirect-from" => ("proxy-redirect-to", "http://x.test/"),
        "proxy-redirect-to" => ("proxy-redirect-from", "http://x.test/"),
        "proxy-busy-buffers-size" => ("proxy-buffer-size", "8k"),
        name if name.starts_with("auth-") && all.iter().any(|(name, _)| *name == "auth-type") => {
            ("auth-secret", "users")
        }
        _ => return all,
    };
    if name != more.0 {
        all.push(more);
    }
    all
}

#[test]
fn every_annotation_that_holds_is_told_as_a_setting() {
    let allowing = config(&[
        ("allow-snippet-annotations", "true"),
        ("annotations-risk-level", "Critical"),
    ]);
    for info in annotations().filter(|info| info.scope != Scope::Ingress) {
        for (value, holds) in [(info.example, true), ("\u{1}", false)] {
            let written = ingress(
                "a",
                &annotated(info.name, value),
                &rule("a.test", "/", "one"),
            );
            let served = served(&[allowing.clone(), written]);
            let explanation = explain(&served, "a.test", "/");
            if explanation
                .location
                .as_ref()
                .unwrap()
                .location
                .ingress
                .is_none()
            {
                assert_eq!(explanation.ignored.len(), 1, "{}", info.name);
                continue;
            }
            let setting = setting(&explanation.settings, info.name);
            let annotated = matches!(setting.source, SettingSource::Annotation { .. });
            // Some take any text, and of a list the items that cannot be used are left out.
            let left_out = |note: &String| note.contains("left out");
            let any_text = !holds && annotated && setting.notes.iter().all(left_out);
            assert!(
                annotated == holds || any_text,
                "{} {value:?}: {setting:?}",
                info.name
            );
        }
    }
}

#[test]
fn what_is_not_for_strangers_is_left_out() {
    let backend = "  defaultBackend: {service: {name: rest, port: {number: 80}}}\n";
    let of = |annotations: &[(&str, &str)]| served(&[ingress("a", annotations, backend)]);
    let plain = of(&[]);
    let root = |served: &Served| served.server("").unwrap().locations[0].settings.clone();
    let locations = annotations().filter(|info| {
        info.scope == Scope::Location
            && info.needs.is_none()
            && info.risk < ingress_model::config::Risk::Critical
    });
    let mut left_out = 0;
    for info in locations {
        let served = of(&[(info.name, info.example)]);
        let explanation = explain(&served, "x.test", "/");
        let setting = setting(&explanation.settings, info.name);
        let is_told = setting
            .notes
            .iter()
            .any(|note| note.starts_with("not for requests"));
        if is_told {
            left_out += 1;
            assert_eq!(root(&served), root(&plain), "{}", info.name);
            assert!(
                !matches!(setting.source, SettingSource::Annotation { .. }),
                "{}",
                info.name
            );
        }
    }
    assert!(left_out >= 6, "{left_out}");
}

fn secret(name: &str, hosts: &[&str]) -> String {
    let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
    let pair = rcgen::generate_simple_self_signed(hosts).unwrap();
    let indented = |pem: String| pem.replace('\n', "\n    ");
    format!(
        "---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {{name: {name}, namespace: shop}}\n\
         stringData:\n  tls.crt: |\n    {}\n  tls.key: |\n    {}\n",
        indented(pair.cert.pem()),
        indented(pair.signing_key.serialize_pem()),
    )
}

fn tls(hosts: &str, secret: &str) -> String {
    format!("  tls: [{{hosts: [{hosts}], secretName: {secret}}}]\n")
}

#[test]
fn the_certificate_is_told_with_the_reason() {
    let of = |name: &str, host: &str, section: String| {
        ingress(
            name,
            &[("server-alias", &format!("alias.{host}"))],
            &(section + &rule(host, "/", "one")),
        )
    };
    let served = served(&[
        secret("a", &["a.test"]),
        secret("b", &["b.test", "*.b.test"]),
        of(
            "a",
            "a.test",
            "  tls: [{hosts: [x.test]}, {hosts: [A.test], secretName: a}]\n".into(),
        ),
        of("b", "b.test", tls("", "b")),
        of("c", "c.test", tls("c.test", "a")),
        of("d", "d.test", tls("d.test", "gone")),
        of("e", "e.test", String::new()),
        of("f", "f.test", "  tls: [{hosts: [f.test]}]\n".into()),
    ]);
    let name = |name: &str| ObjectName::new("shop", name);
    let own = |secret: &str| CertificateSource::Secret {
        secret: name(secret),
    };
    for (host, certificate, reason) in [
        (
            "a.test",
            own("a"),
            TlsReason::Listed {
                ingress: name("a"),
                entry: 1,
            },
        ),
        (
            "alias.a.test",
            CertificateSource::Generated,
            TlsReason::NotForAlias,
        ),
        (
            "b.test",
            own("b"),
            TlsReason::NamedByCertificate { ingress: name("b") },
        ),
        (
            "alias.b.test",
            own("b"),
            TlsReason::NamedByCertificate { ingress: name("b") },
        ),
        ("e.test", CertificateSource::Generated, TlsReason::NoSection),
        ("x.test", CertificateSource::Generated, TlsReason::CatchAll),
    ] {
        let report = explain(&served, host, "/").tls;
        assert_eq!(
            (report.certificate, report.reason),
            (certificate, reason),
            "{host}"
        );
    }
    for (host, fault) in [
        (
            "c.test",
            "the certificate in Secret shop/a is not for host c.test",
        ),
        ("d.test", "Secret shop/gone does not exist"),
        ("f.test", "spec.tls[0] names no Secret"),
    ] {
        let TlsReason::Unusable { faults, .. } = explain(&served, host, "/").tls.reason else {
            panic!("{host}")
        };
        assert!(faults.concat().starts_with(fault), "{faults:?}");
    }
    assert!(explain(&served, "a.test", "/").redirects_to_https);
    assert!(!explain(&served, "e.test", "/").redirects_to_https);
}

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
