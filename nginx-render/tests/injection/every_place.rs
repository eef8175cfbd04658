//! Each place where an author can write a text, with each of the texts that would leave it.

use std::{collections::BTreeSet, sync::LazyLock};

use ingress_model::{Options, annotation::annotations, config::Risk};

use crate::{
    hostile::around,
    objects::{Given, KNOWN},
    places::{assert_known, assert_plain_names, places_of},
    rows::{self, ROWS, Served},
    support,
};

fn assert_harmless(served: &Served, what: &str) {
    assert_known(&places_of(served), &KNOWN, what);
    assert_plain_names(served, what);
}

/// As much of a text as a report should repeat.
fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Annotations whose values do not become configuration, or are configuration.
fn is_raw(name: &str) -> bool {
    annotations().any(|info| info.name == name && info.risk == Risk::Critical)
}

#[test]
fn annotations_of_every_name() {
    let mut tried = BTreeSet::new();
    for (name, accepted, _, _, companions) in ROWS.iter().filter(|(name, ..)| !is_raw(name)) {
        let info = annotations().find(|info| info.name == *name).unwrap();
        // More gets past the checks of texts; that nothing else does with them is tried at random.
        let options = Options {
            annotation_validation: false,
            ..rows::options()
        };
        let mut last = rows::outcome(companions, &options).model.layout;
        for name in std::iter::once(&info.name).chain(info.aliases) {
            tried.insert(*name);
            for text in around(accepted) {
                let set = [*companions, &[(*name, text.as_str())]].concat();
                let outcome = rows::outcome(&set, &options);
                if outcome.model.layout == last {
                    continue;
                }
                last = outcome.model.layout.clone();
                let what = format!("{name}: {:?}", excerpt(&text));
                assert_harmless(&Served::of(outcome), &what);
            }
        }
    }
    let names = annotations().filter(|info| info.risk < Risk::Critical);
    let names = names.flat_map(|info| std::iter::once(info.name).chain(info.aliases.to_vec()));
    assert_eq!(tried, names.collect::<BTreeSet<_>>());
}

/// Raw configuration that is not allowed, however long.
#[test]
fn snippets_that_are_not_allowed() {
    let names = annotations().filter(|info| info.risk == Risk::Critical);
    for name in names.map(|info| info.name) {
        for text in around("evil on;") {
            let served = Given::annotated(&[("auth-url", "http://a.test/"), (name, &text)]);
            assert_harmless(&served, &format!("{name}: {:?}", excerpt(&text)));
            assert!(!served.rendered.main.contains("evil"), "{name}");
        }
    }
}

/// How a text is put into an Ingress.
type Put = fn(&mut Given, String);

#[test]
fn every_field_of_an_ingress() {
    let fields: &[(&str, &str, Put)] = &[
        ("name", "web", |given, text| given.name = text),
        ("host", "shop.test", |given, text| given.host = text),
        ("path", "/", |given, text| given.path = text),
        ("pathType", "Exact", |given, text| given.path_type = text),
        ("service", "web", |given, text| given.service = text),
        ("port", "http", |given, text| given.port = Some(text)),
        ("TLS host", "shop.test", |given, text| {
            given.tls_host = Some(text);
        }),
        ("TLS Secret", "tls", |given, text| {
            given.tls_secret = Some(text);
        }),
    ];
    let plain: &[(&str, &str)] = &[];
    let busy = &[
        ("use-regex", "true"),
        ("limit-rps", "5"),
        ("auth-url", "http://a.test/"),
        ("auth-signin", "http://a.test/start"),
        ("auth-cache-key", "$remote_user"),
        ("mirror-target", "http://mirror.test/"),
        ("custom-http-errors", "404"),
        ("auth-type", "basic"),
        ("auth-secret", "users"),
        ("from-to-www-redirect", "true"),
        ("affinity", "cookie"),
    ];
    for (field, accepted, put) in fields {
        for annotations in [plain, busy] {
            for text in around(accepted) {
                let mut given = Given::new(annotations);
                let what = format!("{field}: {:?}", excerpt(&text));
                put(&mut given, text);
                assert_harmless(&given.served(), &what);
            }
        }
    }
}

/// Annotations, the keys of what they refer to, and a value that such a key may have.
type Reference<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a str);

/// What annotations refer to: keys of Secrets and ConfigMaps, and their values.
#[test]
fn every_reference() {
    static PAIR: LazyLock<String> = LazyLock::new(support::key_pair);
    let (ask, basic) = (("auth-url", "http://a.test/"), ("auth-type", "basic"));
    let users = ("auth-secret", "users");
    let (https, fcgi) = (("backend-protocol", "HTTPS"), ("backend-protocol", "FCGI"));
    let references: &[Reference<'_>] = &[
        (&[basic, users], &["auth"], "mira:hash"),
        (
            &[basic, users, ("auth-secret-type", "auth-map")],
            &["mira"],
            "hash",
        ),
        (
            &[ask, ("auth-proxy-set-headers", "shop/headers")],
            &["X-Team"],
            "shop",
        ),
        (&[("custom-headers", "shop/headers")], &["X-Team"], "shop"),
        (
            &[fcgi, ("fastcgi-params-configmap", "headers")],
            &["SCRIPT"],
            "index",
        ),
        (
            &[https, ("proxy-ssl-secret", "shop/users")],
            &["ca.crt", "tls.crt", "tls.key"],
            &PAIR,
        ),
        (
            &[("auth-tls-secret", "shop/users")],
            &["ca.crt", "ca.crl"],
            &PAIR,
        ),
    ];
    for (annotations, keys, accepted) in references {
        for key in *keys {
            let values = around(accepted).map(|value| ((*key).to_owned(), value));
            let names = around(key).map(|key| (key, (*accepted).to_owned()));
            for (key, value) in values.chain(names) {
                let what = format!("{annotations:?} {:?}: {:?}", excerpt(&key), excerpt(&value));
                let given = Given {
                    data: vec![(key, value)],
                    ..Given::new(annotations)
                };
                assert_harmless(&given.served(), &what);
            }
        }
    }
}
