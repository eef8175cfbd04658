//! Certificates, and further names of hosts.

use ingress_model::{
    ObjectName,
    explain::{CertificateSource, PlainHttp, SettingSource, TlsReason},
};

use crate::{explain, ingress, rule, served, setting, web};

pub(crate) fn secret(name: &str, hosts: &[&str]) -> String {
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

pub(crate) fn tls(hosts: &str, secret: &str) -> String {
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
}

#[test]
fn what_plain_http_gets_is_told() {
    let of = |name: &str, annotations: &[(&str, &str)]| {
        let host = format!("{name}.test");
        let spec = tls(&host, name) + &rule(&host, "/", "one");
        ingress(name, annotations, &spec)
    };
    let clients = ("auth-tls-secret", "shop/clients");
    let served = served(&[
        secret("clients", &["ca.test"]).replace("tls.crt", "ca.crt"),
        ingress("plain", &[], &rule("plain.test", "/", "one")),
        of("secure", &[("from-to-www-redirect", "true")]),
        of("certified", &[clients]),
        of("named", &[clients, ("auth-tls-match-cn", "CN=alice")]),
        of("root", &[("app-root", "/app")]),
        of("moved", &[("permanent-redirect", "http://a.test/")]),
        of("closed", &[("auth-type", "basic"), ("auth-secret", "gone")]),
        of(
            "refused",
            &[
                ("auth-tls-secret", "shop/gone"),
                ("auth-tls-match-cn", "CN=a"),
            ],
        ),
    ]);
    for (host, path, want) in [
        ("plain.test", "/", PlainHttp::Served),
        ("secure.test", "/", PlainHttp::Redirected),
        ("www.secure.test", "/", PlainHttp::Served),
        ("certified.test", "/", PlainHttp::Redirected),
        ("named.test", "/", PlainHttp::NoCertificate),
        ("root.test", "/", PlainHttp::Served),
        ("root.test", "/app", PlainHttp::Redirected),
        ("moved.test", "/", PlainHttp::Served),
        ("closed.test", "/", PlainHttp::Served),
        ("refused.test", "/", PlainHttp::Served),
        ("unknown.test", "/", PlainHttp::Served),
    ] {
        assert_eq!(
            explain(&served, host, path).plain_http,
            want,
            "{host}{path}"
        );
    }
}

#[test]
fn further_names_and_what_is_wrong_with_them_are_told() {
    let names = [
        ("server-alias", "old.test,b.test"),
        ("from-to-www-redirect", "true"),
    ];
    let served = served(&[
        ingress("a", &names, &rule("a.test", "/", "one")),
        ingress("b", &[], &rule("b.test", "/", "one")),
        ingress("www", &[], &rule("www.a.test", "/", "one")),
        web("one"),
    ]);
    let host = served.explainer().host("a.test");
    let aliases: Vec<_> = host
        .summary
        .aliases
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(aliases, ["old.test"]);
    let said: Vec<_> = host
        .notices
        .iter()
        .map(|said| said.message.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "www.a.test is not redirected to a.test: it is served or redirected already",
            "b.test is no alias of host a.test: it has a server of its own",
        ]
    );
}

#[test]
fn tls_that_is_passed_through_is_told() {
    let served = served(&[
        ingress(
            "a",
            &[("ssl-passthrough", "true")],
            &rule("a.test", "/", "one"),
        ),
        ingress("b", &[], &rule("a.test", "/b", "one")),
        web("one"),
    ]);
    let explanation = explain(&served, "a.test", "/b");
    let passthrough = explanation.tls.passthrough.unwrap();
    assert_eq!(passthrough.as_str(), "shop-one-80");
    let setting = setting(&explanation.settings, "ssl-passthrough");
    assert_eq!(setting.value.as_deref(), Some("true"));
    assert!(
        matches!(&setting.source, SettingSource::Annotation { ingress, .. } if ingress.name() == "a")
    );
    assert!(setting.notes[0].starts_with("TLS goes to shop-one-80 as it is"));
    assert_eq!(explain(&served, "other.test", "/").tls.passthrough, None);
}
