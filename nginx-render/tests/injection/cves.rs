//! Faults that were published about ingress-nginx, by their names: injections of directives, and files that are not
//! where they should be. Those that need a running NGINX or the webhook have their tests there.

use crate::{
    hostile::ESCAPES,
    objects::{Given, KNOWN},
    places::{assert_known, assert_plain_names, places_of},
    rows::Served,
    support,
};

const AUTH: (&str, &str) = ("auth-url", "http://auth.test/");

#[track_caller]
fn assert_harmless(served: &Served, what: &str) {
    assert_known(&places_of(served), &KNOWN, what);
    assert_plain_names(served, what);
}

/// That an annotation's value does not leave its place, with checks of its characters and without.
#[track_caller]
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

/// Every field of an Ingress's path and host, with each type of path, and read as a regular expression or not.
fn everywhere(text: &str) -> impl Iterator<Item = Given> {
    let path = format!("/{text}");
    ["Exact", "Prefix", "ImplementationSpecific"]
        .into_iter()
        .flat_map(|path_type| [("true", path_type), ("false", path_type)])
        .map(move |(regex, path_type)| Given {
            path: path.clone(),
            path_type: path_type.into(),
            ..Given::new(&[("use-regex", regex), ("rewrite-target", "/$1")])
        })
}

fn snippets() -> impl Iterator<Item = (&'static str, Given)> {
    let names = [
        "configuration-snippet",
        "server-snippet",
        "stream-snippet",
        "auth-snippet",
        "modsecurity-snippet",
    ];
    names
        .map(|name| (name, Given::new(&[AUTH, (name, "evil on;")])))
        .into_iter()
}

/// Snippets read the controller's token. They are nobody's unless the administrator says so twice.
#[test]
fn cve_2021_25742_raw_configuration() {
    for (name, given) in snippets() {
        let served = given.served();
        assert!(!served.rendered.main.contains("evil"), "{name}");
        assert_harmless(&served, name);
    }
}

/// Paths named the controller's token.
#[test]
fn cve_2021_25745_paths_of_the_controller() {
    for text in [
        "var/run/secrets/kubernetes.io/serviceaccount/",
        "x { alias /var/run/secrets/; } #",
        "x { root /etc/nginx; }",
        "x { content_by_lua 'evil'; }",
    ] {
        for given in everywhere(text) {
            let served = given.served();
            assert_harmless(&served, text);
            let is_served = served.rendered.main.contains("## start server shop.test");
            assert!(!is_served, "{text}");
        }
    }
}

/// Annotations named the controller's token by directives of their own.
#[test]
fn cve_2021_25746_annotations() {
    for (name, prefix) in [
        ("auth-realm", "x"),
        ("upstream-vhost", "x"),
        ("connection-proxy-header", "close"),
        ("proxy-cookie-path", "/a /b"),
        ("server-alias", "a.test"),
        ("whitelist-source-range", "10.0.0.0/8"),
        ("custom-http-errors", "404"),
        ("proxy-next-upstream", "error"),
    ] {
        let users = [("auth-type", "basic"), ("auth-secret", "users")];
        assert_stays(name, prefix, &users);
    }
}

/// Line breaks got paths past the rules about them.
#[test]
fn cve_2021_25748_line_breaks_in_paths() {
    for text in ["x\n{\nevil on;\n}\n", "x\n;evil on;", "x\r\nevil on;\r\n"] {
        for given in everywhere(text) {
            assert_harmless(&given.served(), text);
        }
    }
}

/// Directives in paths, such as one that writes files.
#[test]
fn cve_2022_4886_directives_in_paths() {
    for escape in ESCAPES {
        let text = format!("{escape} log_format evil escape=none x; access_log /tmp/evil evil;");
        for given in everywhere(&text) {
            assert_harmless(&given.served(), &text);
        }
    }
}

/// A snippet ran commands. Where one is allowed only by half, the Ingress is not served; see also CVE-2021-25742.
#[test]
fn cve_2023_5043_snippets_need_two_switches() {
    for (name, mut given) in snippets() {
        given.keys.insert("allow-snippet-annotations", "true");
        let served = given.served();
        assert!(!served.rendered.main.contains("evil"), "{name}");
        let is_served = served.rendered.main.contains("## start server shop.test");
        assert!(!is_served, "{name}");
    }
}

#[test]
fn cve_2023_5044_redirects() {
    assert_stays("permanent-redirect", "http://a.test/", &[]);
    assert_stays("temporal-redirect", "http://a.test/", &[]);
    assert_stays("app-root", "/", &[]);
}

/// Carriage returns got annotations past the rules about them.
#[test]
fn cve_2024_7646_carriage_returns() {
    for name in ["auth-url", "permanent-redirect", "mirror-target"] {
        for value in [
            "http://a.test/\revil on;\r",
            "http://a.test/;\r\nevil on;\r\n",
        ] {
            for validation in [true, false] {
                let given = Given {
                    validation,
                    ..Given::new(&[(name, value)])
                };
                let served = given.served();
                assert_harmless(&served, name);
                assert!(!served.rendered.main.contains('\r'), "{name}");
            }
        }
    }
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
    let mirror = ("mirror-target", "http://mirror.test/");
    assert_stays("mirror-host", "", &[mirror]);
    let mut given = Given::new(&[mirror]);
    for escape in ESCAPES {
        given.host = (*escape).to_owned();
        assert_harmless(&given.served(), escape);
    }
}

/// The UID of an Ingress was written into the configuration as it was, and whatever got in that way was run by the
/// webhook.
#[test]
fn cve_2025_1974_uids() {
    let served = Given::annotated(&[
        ("mirror-target", "http://mirror.test/"),
        ("limit-rps", "1"),
        ("auth-type", "basic"),
        ("auth-secret", "users"),
    ]);
    let has_uid = served.rendered.main.contains("uid");
    assert!(!has_uid, "the test's UID is ../../uid;");
    assert_harmless(&served, "uid");
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
        assert_harmless(&served, secret);
        let mut files = served.rendered.files.keys();
        assert!(
            !files.any(|path| path.as_str().starts_with("auth/")),
            "{secret}"
        );
    }
}

#[test]
fn cve_2025_24514_auth_url() {
    assert_stays("auth-url", "http://auth.test/", &[]);
    assert_stays("auth-signin", "http://auth.test/", &[AUTH]);
    let served = Given::annotated(&[("auth-url", "http://auth.test/#;\nevil on;\n")]);
    let server = support::server_block(&served.rendered.main, "shop.test");
    assert!(server.contains("return 503;"), "{server}");
}

/// Headers of ConfigMaps; and FastCGI parameters, and users of Secrets.
#[test]
fn cve_2025_15566_auth_proxy_set_headers() {
    let uses: &[&[(&str, &str)]] = &[
        &[AUTH, ("auth-proxy-set-headers", "shop/headers")],
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

#[test]
fn cve_2026_1580_auth_method() {
    assert_stays("auth-method", "POST", &[AUTH]);
    assert_stays("auth-request-redirect", "http://a.test/", &[AUTH]);
    assert_stays("auth-cache-key", "$remote_user", &[AUTH]);
    let cached = ("auth-cache-key", "$remote_user");
    assert_stays("auth-cache-duration", "200 5m", &[AUTH, cached]);
    assert_stays("auth-response-headers", "X-User", &[AUTH]);
}

/// Quotes and braces left the path's own.
#[test]
fn cve_2026_24512_paths() {
    for escape in ESCAPES {
        for given in everywhere(escape) {
            assert_harmless(&given.served(), escape);
        }
    }
}

#[test]
fn cve_2026_3288_rewrite_targets() {
    assert_stays("rewrite-target", "/", &[]);
    assert_stays("x-forwarded-prefix", "/", &[("rewrite-target", "/x")]);
    for escape in ESCAPES {
        for mut given in everywhere(escape) {
            given
                .annotations
                .insert("rewrite-target".into(), format!("/{escape}"));
            given.validation = false;
            assert_harmless(&given.served(), escape);
        }
    }
}

/// What a comment names (the host of a server, why a path is closed) does not end it.
#[test]
fn comments() {
    for escape in ESCAPES {
        for given in [
            Given {
                host: format!("a{escape}.test"),
                ..Given::new(&[])
            },
            Given {
                name: format!("web{escape}"),
                ..Given::new(&[])
            },
            Given::new(&[("auth-url", escape)]),
            Given::new(&[("denylist-source-range", escape)]),
        ] {
            assert_harmless(&given.served(), escape);
        }
    }
}
