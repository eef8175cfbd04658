//! Whatever stands in annotations, hosts, paths, and in the Secrets and ConfigMaps that they refer to, the configuration
//! has the directives that the program means to have. Faults of that kind that were published about ingress-nginx have
//! tests of their own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

#[path = "support/grammar.rs"]
#[allow(dead_code, reason = "these tests need a part of it")]
mod grammar;
#[path = "support/annotations.rs"]
#[allow(dead_code, reason = "these tests need a part of it")]
mod rows;
mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use ingress_model::{
    ObjectName, Options, Snapshot,
    annotation::{Status, annotations},
    config::Risk,
    merge,
    testing::Fixture,
};
use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{ConfigMap, Secret},
        networking::v1::Ingress,
    },
};
use proptest::prelude::*;

use grammar::Statement;
use rows::{ROWS, Served};

/// A directive, those around it, and how many arguments it has.
type Place = (String, usize);

/// Directives that take any number of arguments.
const LISTS: &[&str] = &[
    "server_name",
    "proxy_cookie_domain",
    "proxy_cookie_path",
    "proxy_next_upstream",
    "proxy_redirect",
    "proxy_ssl_protocols",
    "proxy_cache_valid",
    "proxy_buffers",
    "add_header",
    // A path by itself, or one behind `=` or `~*`.
    "location",
];

fn places(statements: &[Statement], around: &str, found: &mut BTreeSet<Place>) {
    for statement in statements {
        let name = statement.name();
        let place = format!("{around}/{name}");
        if let Some(block) = &statement.block {
            places(block, &place, found);
        }
        let count = statement.words.len() - 1;
        let count = if LISTS.contains(&name) { 0 } else { count };
        found.insert((place, count));
    }
}

fn places_of(served: &Served) -> BTreeSet<Place> {
    let mut found = BTreeSet::new();
    places(&grammar::parse(&served.rendered.main), "", &mut found);
    found
}

/// What values that are accepted lead to: each by itself, and nearly all at once for each protocol of endpoints.
static KNOWN: LazyLock<BTreeSet<Place>> = LazyLock::new(|| {
    const APART: &[&str] = &["canary", "redirect", "global-auth", "backend-protocol"];
    let authority = support::certificate();
    let mut known = BTreeSet::new();
    for location in ["location", "location/if"] {
        known.insert((format!("/http/server/{location}/return"), 1));
    }
    known.insert(("/http/server/return".into(), 1));
    let mut all: Vec<(&str, &str)> = vec![("key:global-allowed-response-headers", "X-Team")];
    for (name, value, _, _, companions) in ROWS {
        if name.ends_with("-snippet") {
            continue;
        }
        let set = [*companions, &[(*name, *value)]].concat();
        known.extend(places_of(&Served::new(&authority, &set)));
        if !APART.iter().any(|part| name.contains(part)) {
            all.extend(companions.iter().filter(|(name, _)| !name.contains(':')));
            all.push((name, value));
        }
    }
    all.retain(|(name, _)| *name != "backend-protocol");
    for protocol in ["HTTP", "HTTPS", "AUTO_HTTP", "GRPC", "GRPCS", "FCGI"] {
        for further in [
            ("with:tls", ""),
            ("key:use-http2", "false"),
            ("denylist-source-range", ""),
        ] {
            let set = [all.as_slice(), &[("backend-protocol", protocol), further]].concat();
            known.extend(places_of(&Served::new(&authority, &set)));
        }
    }
    known
});

/// What an Ingress and what it refers to say.
#[derive(Clone, Debug)]
struct Given {
    annotations: BTreeMap<String, String>,
    host: String,
    path: String,
    path_type: &'static str,
    tls_secret: Option<String>,
    data: Vec<(String, String)>,
    validation: bool,
}

impl Given {
    /// An Ingress with these annotations, and nothing else out of the ordinary.
    fn new(annotations: &[(&str, &str)]) -> Self {
        let annotations = annotations.iter();
        Self {
            annotations: annotations
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            host: "shop.test".into(),
            path: "/".into(),
            path_type: "Prefix",
            tls_secret: None,
            data: Vec::new(),
            validation: true,
        }
    }

    fn annotated(annotations: &[(&str, &str)]) -> Served {
        Self::new(annotations).served()
    }

    fn served(&self) -> Served {
        let options = Options {
            annotation_validation: self.validation,
            ..rows::options()
        };
        Served::of(merge(
            &self.snapshot(),
            &options,
            jiff::Timestamp::UNIX_EPOCH,
        ))
    }

    fn snapshot(&self) -> Snapshot {
        static AUTHORITY: LazyLock<String> = LazyLock::new(support::certificate);
        let keys = BTreeMap::from([
            ("annotations-risk-level", "High"),
            ("strict-validate-path-type", "false"),
            ("global-allowed-response-headers", "X-Team,X-Other"),
        ]);
        let objects = rows::objects(&AUTHORITY, &keys);
        let mut snapshot = Fixture::from_yaml(&objects).unwrap().snapshot();
        let annotations: BTreeMap<String, &str> = self
            .annotations
            .iter()
            .map(|(name, value)| {
                (
                    format!("nginx.ingress.kubernetes.io/{name}"),
                    value.as_str(),
                )
            })
            .collect();
        let tls = self.tls_secret.as_ref();
        let tls =
            tls.map(|secret| serde_json::json!([{"hosts": [self.host], "secretName": secret}]));
        let ingress: Ingress = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "../../uid;", "annotations": annotations},
            "spec": {
                "ingressClassName": "nginx",
                "tls": tls,
                "rules": [{"host": self.host, "http": {"paths": [{
                    "path": self.path,
                    "pathType": self.path_type,
                    "backend": {"service": {"name": "web", "port": {"number": 80}}},
                }]}}],
            },
        }))
        .unwrap();
        snapshot
            .ingresses
            .insert(ObjectName::new("shop", "web"), ingress);
        if !self.data.is_empty() {
            let data = self.data.iter().cloned().collect();
            let bytes = self.data.iter().cloned();
            let bytes = bytes.map(|(key, value)| (key, ByteString(value.into_bytes())));
            let config_map = ConfigMap {
                data: Some(data),
                ..ConfigMap::default()
            };
            let secret = Secret {
                data: Some(bytes.collect()),
                ..Secret::default()
            };
            snapshot
                .config_maps
                .insert(ObjectName::new("shop", "headers"), config_map);
            snapshot
                .secrets
                .insert(ObjectName::new("shop", "users"), secret);
        }
        snapshot
    }
}

/// Text of what means something to NGINX, to shells and to Lua, and of what does not.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "\"",
        "'",
        "\\",
        ";",
        "{",
        "}",
        "$",
        "${",
        "#",
        " ",
        "\n",
        "\r",
        "\t",
        "\0",
        "\u{1}",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "ä",
        "~",
        "=",
        "@",
        "(",
        ")",
        "|",
        "*",
        "..",
        "../",
        "/",
        "%0a",
        "$1",
        "$uri",
        "]]",
        "-",
        "return 200",
        "add_header X-Marker 1;",
        "}\n}\n",
        "\\\"",
        "evil x;",
        "a",
        "http://a.test/",
    ]);
    prop_oneof![
        6 => prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
        1 => Just("x;".repeat(3_000)),
    ]
}

/// A value that is accepted, one that is not, or something in between.
fn value() -> impl Strategy<Value = (String, String)> {
    let values: Vec<(&str, &str)> = annotations()
        .filter(|info| info.status == Status::Supported && info.risk < Risk::Critical)
        .map(|info| (info.name, info.example))
        .collect();
    let chosen = prop::sample::select(values);
    (chosen, hostile(), 0..4_u8).prop_map(|((name, example), hostile, kind)| {
        let value = match kind {
            0 => hostile,
            1 => format!("{example}{hostile}"),
            2 => format!("{hostile}{example}"),
            _ => example.to_owned(),
        };
        (name.to_owned(), value)
    })
}

fn given() -> impl Strategy<Value = Given> {
    let host = prop_oneof![3 => Just("shop.test".to_owned()), 1 => hostile()];
    let path = prop_oneof![
        1 => Just("/".to_owned()),
        1 => hostile().prop_map(|text| format!("/{text}")),
    ];
    let path_type = prop::sample::select(vec!["Exact", "Prefix", "ImplementationSpecific"]);
    let tls_secret = prop::option::of(hostile());
    let key = prop_oneof![
        1 => hostile(),
        2 => prop::sample::select(vec!["X-Team", "X-Other", "auth", "mira", "ca.crt", "tls.crt", "tls.key"])
            .prop_map(str::to_owned),
    ];
    let data = prop::collection::vec((key, hostile()), 0..3);
    let annotations = prop::collection::vec(value(), 0..10);
    (
        annotations,
        host,
        path,
        path_type,
        tls_secret,
        data,
        any::<bool>(),
    )
        .prop_map(
            |(annotations, host, path, path_type, tls_secret, data, validation)| Given {
                annotations: annotations.into_iter().collect(),
                host,
                path,
                path_type,
                tls_secret,
                data,
                validation,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_directive(given in given()) {
        let found = places_of(&given.served());
        let unknown: Vec<_> = found.difference(&KNOWN).collect();
        prop_assert!(unknown.is_empty(), "{unknown:?}");
    }

    /// Texts name no file outside of the directory that is meant for them.
    #[test]
    fn no_text_names_another_file(given in given()) {
        let served = given.served();
        for path in served.rendered.files.keys() {
            let parts = path.as_str().split('/');
            for part in parts {
                let named = !part.is_empty()
                    && !part.starts_with('.')
                    && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
                prop_assert!(named, "{path:?}");
            }
        }
    }
}

/// Texts that were published for leaving their directive, each of which would add a directive of its own.
const ESCAPES: &[&str] = &[
    "x#;\nevil on;\n",
    "x;}}}\nevil on;\nhttp { server {",
    "x\" ; evil on; #",
    "x'; evil on; #",
    "x\\\"; evil on; #",
    "x\r\nevil on;",
    "x${evil};evil on;",
];

fn assert_harmless(served: &Served, what: &str) {
    let found = places_of(served);
    let unknown: Vec<_> = found.difference(&KNOWN).collect();
    assert!(unknown.is_empty(), "{what}: {unknown:?}");
}

/// That an annotation's value does not leave its place, with checks of its characters and without.
fn assert_stays(name: &str, prefix: &str, companions: &[(&str, &str)]) {
    for escape in ESCAPES {
        let value = format!("{prefix}{escape}");
        for validation in [true, false] {
            let set = [companions, &[(name, value.as_str())]].concat();
            let given = Given {
                validation,
                ..Given::new(&set)
            };
            assert_harmless(&given.served(), &format!("{name}: {value:?}"));
        }
    }
}

#[test]
fn cve_2025_24514_auth_url() {
    assert_stays("auth-url", "http://auth.test/", &[]);
    assert_stays(
        "auth-signin",
        "http://auth.test/",
        &[("auth-url", "http://auth.test/")],
    );
    let served = Given::annotated(&[("auth-url", "http://auth.test/#;\nevil on;\n")]);
    let server = support::server_block(&served.rendered.main, "shop.test");
    assert!(server.contains("return 503;"), "{server}");
}

#[test]
fn cve_2025_1097_auth_tls_match_cn() {
    let secret = [("auth-tls-secret", "shop/authority")];
    assert_stays("auth-tls-match-cn", "CN=", &secret);
    assert_stays("auth-tls-error-page", "http://shop.test/", &secret);
    assert_stays("auth-tls-secret", "shop/", &[]);
}

#[test]
fn cve_2025_1098_mirror() {
    assert_stays("mirror-target", "http://mirror.test/", &[]);
    assert_stays(
        "mirror-host",
        "",
        &[("mirror-target", "http://mirror.test/")],
    );
    let mut given = Given::new(&[("mirror-target", "http://mirror.test/")]);
    for escape in ESCAPES {
        given.host = (*escape).to_owned();
        assert_harmless(&given.served(), escape);
    }
}

/// The names of Secrets became parts of paths.
#[test]
fn cve_2025_24513_names_of_files() {
    for secret in [
        "../../etc/passwd",
        "shop/../../x",
        "..",
        "other/../shop/users",
        "/etc/passwd",
        "a/b/c",
    ] {
        let basic = ("auth-type", "basic");
        let served = Given::annotated(&[basic, ("auth-secret", secret)]);
        let server = support::server_block(&served.rendered.main, "shop.test");
        assert!(server.contains("return 503;"), "{secret}: {server}");
        let files = served.rendered.files.iter();
        let mut files = files.map(|(path, _)| path.as_str());
        assert!(
            !files.any(|path| path.contains("..") || path.starts_with("auth/")),
            "{secret}"
        );
    }
}

/// The UID of an Ingress was written into the configuration as it was.
#[test]
fn cve_2025_1974_uids() {
    let served = Given::annotated(&[
        ("mirror-target", "http://mirror.test/"),
        ("limit-rps", "1"),
        ("auth-type", "basic"),
        ("auth-secret", "users"),
    ]);
    assert!(
        !served.rendered.main.contains("uid"),
        "the test's UID is ../../uid;"
    );
    assert_harmless(&served, "uid");
}

#[test]
fn cve_2021_25742_raw_configuration() {
    let snippets = [
        "configuration-snippet",
        "server-snippet",
        "stream-snippet",
        "auth-snippet",
        "modsecurity-snippet",
    ];
    for name in snippets {
        let served = Given::annotated(&[("auth-url", "http://a.test/"), (name, "evil on;")]);
        assert!(!served.rendered.main.contains("evil"), "{name}");
    }
}

/// Paths left their location: CVE-2021-25748 by line breaks, CVE-2023-5044 and CVE-2026-24512 by quotes.
#[test]
fn cve_2021_25748_paths() {
    for escape in ESCAPES {
        for path_type in ["Exact", "Prefix", "ImplementationSpecific"] {
            for regex in ["true", "false"] {
                let annotations = [("use-regex", regex), ("rewrite-target", "/$1")];
                let given = Given {
                    path: format!("/{escape}"),
                    path_type,
                    ..Given::new(&annotations)
                };
                assert_harmless(&given.served(), escape);
            }
        }
    }
}

#[test]
fn cve_2023_5044_redirects() {
    assert_stays("permanent-redirect", "http://a.test/", &[]);
    assert_stays("temporal-redirect", "http://a.test/", &[]);
    assert_stays("app-root", "/", &[]);
}

#[test]
fn cve_2026_3288_rewrite_targets() {
    assert_stays("rewrite-target", "/", &[]);
    assert_stays("x-forwarded-prefix", "/", &[("rewrite-target", "/x")]);
}

/// Headers and FastCGI parameters of ConfigMaps, and users of Secrets (CVE-2025-15566).
#[test]
fn cve_2025_15566_referred_to() {
    let uses: &[&[(&str, &str)]] = &[
        &[
            ("auth-url", "http://a.test/"),
            ("auth-proxy-set-headers", "shop/headers"),
        ],
        &[("custom-headers", "shop/headers")],
        &[
            ("backend-protocol", "FCGI"),
            ("fastcgi-params-configmap", "headers"),
        ],
        &[
            ("auth-type", "basic"),
            ("auth-secret", "users"),
            ("auth-secret-type", "auth-map"),
        ],
    ];
    for annotations in uses {
        for escape in ESCAPES {
            for data in [("X-Team", *escape), (*escape, "value")] {
                let given = Given {
                    data: vec![(data.0.to_owned(), data.1.to_owned())],
                    ..Given::new(annotations)
                };
                assert_harmless(&given.served(), &format!("{annotations:?} {data:?}"));
            }
        }
    }
}
