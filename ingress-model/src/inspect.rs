//! Deep inspection (`--deep-inspect`): text that has no business in a host or a path, but could do harm if it ever got
//! into a configuration file unquoted. It is a second line of defence: every text is quoted anyway.

use k8s_openapi::api::networking::v1::{Ingress, IngressSpec};

use crate::{
    class::Refusal,
    diagnostic::{Reason, Severity},
};

/// Files and directories that no request has to reach.
const PROTECTED: [&str; 6] = [
    "/etc/passwd",
    "/etc/shadow",
    "/etc/group",
    "/etc/nginx",
    "/etc/ingress-controller",
    "/var/run/secrets",
];

/// An Ingress is refused as a whole when one of its hosts, paths, TLS hosts or TLS Secret names holds an `alias` or
/// `root` directive, the name of a protected directory, or the name of a Lua directive.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default().and_ingress("shop/a", &[], &["a.test/ web:80", "a.test/etc/nginx web:80"]).merge();
/// served.assert_hosts([]);
/// ```
pub(crate) fn inspect(ingress: &Ingress) -> Result<(), Refusal> {
    let Some(spec) = &ingress.spec else {
        return Ok(());
    };
    let found = texts(spec).find_map(|(field, text)| suspicion(text).map(|what| (field, what)));
    let Some((field, what)) = found else {
        return Ok(());
    };
    Err(Refusal {
        severity: Severity::Error,
        reason: Reason::SuspiciousText,
        key: field.to_string(),
        message: format!("{what} stands in it (flag --deep-inspect)"),
    })
}

/// Where a text stands.
#[derive(Clone, Copy)]
enum Field {
    Host(usize),
    Path(usize, usize),
    TlsHost(usize, usize),
    TlsSecret(usize),
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(rule) => write!(f, "spec.rules[{rule}].host"),
            Self::Path(rule, path) => write!(f, "spec.rules[{rule}].http.paths[{path}].path"),
            Self::TlsHost(entry, host) => write!(f, "spec.tls[{entry}].hosts[{host}]"),
            Self::TlsSecret(entry) => write!(f, "spec.tls[{entry}].secretName"),
        }
    }
}

fn texts(spec: &IngressSpec) -> impl Iterator<Item = (Field, &str)> {
    let rules = spec.rules.iter().flatten().enumerate();
    let rules = rules.flat_map(|(i, rule)| {
        let host = rule.host.as_deref().map(|host| (Field::Host(i), host));
        let paths = rule.http.iter().flat_map(|http| &http.paths).enumerate();
        let paths =
            paths.filter_map(move |(j, path)| Some((Field::Path(i, j), path.path.as_deref()?)));
        host.into_iter().chain(paths)
    });
    let tls = spec.tls.iter().flatten().enumerate();
    let tls = tls.flat_map(|(i, entry)| {
        let secret = entry.secret_name.as_deref();
        let secret = secret.map(|name| (Field::TlsSecret(i), name));
        let hosts = entry.hosts.iter().flatten().enumerate();
        let hosts = hosts.map(move |(j, host)| (Field::TlsHost(i, j), host.as_str()));
        secret.into_iter().chain(hosts)
    });
    rules.chain(tls)
}

/// What is suspicious about a text. Most texts have none of the bytes with which a suspicion could begin.
fn suspicion(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    for (i, byte) in bytes.iter().enumerate() {
        let rest = bytes.get(i..).unwrap_or_default();
        match byte {
            b'/' => {
                let found = PROTECTED
                    .iter()
                    .find(|name| rest.starts_with(name.as_bytes()));
                if let Some(name) = found {
                    return Some(name);
                }
            }
            b'_' if rest.starts_with(b"_by_lua") => return Some("the name of a Lua directive"),
            _ => {}
        }
    }
    directive(text)
}

/// A directive of one of two names and an argument, at any place of a text that a semicolon follows.
fn directive(text: &str) -> Option<&'static str> {
    let (text, _) = text.rsplit_once(';')?;
    [
        ("alias", "the directive alias"),
        ("root", "the directive root"),
    ]
    .into_iter()
    .find(|(name, _)| {
        text.match_indices(name).any(|(at, _)| {
            let rest = text.get(at + name.len()..).unwrap_or_default();
            rest.starts_with(char::is_whitespace)
        })
    })
    .map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::networking::v1::{
        HTTPIngressPath, HTTPIngressRuleValue, IngressRule, IngressTLS,
    };

    use super::*;

    #[test]
    fn texts_are_suspicious_or_not() {
        for (text, want) in [
            ("/pub{alias /srv/data;}location ~* ^/open", true),
            ("/x{root\t/srv;}", true),
            ("/alias/x;", false),
            ("/root", false),
            ("/alias x", false),
            ("/etc/nginx", true),
            ("/x/etc/passwd", true),
            ("/etc/ingress-controller/ssl", true),
            ("/etcetera", false),
            ("/etc/other", false),
            ("/var/run/secrets/x", true),
            ("/var/run", false),
            ("/content_by_lua_block", true),
            ("/by_lua", false),
            ("/a_b;c", false),
            ("", false),
            ("/ä;root ö", false),
            ("/a;root b;c;d", true),
            ("/a;rooted;alias", false),
        ] {
            assert_eq!(suspicion(text).is_some(), want, "{text:?}");
        }
    }

    /// Whoever writes an Ingress must not make everybody wait.
    #[test]
    fn long_texts_are_read_once() {
        let text = "/x;".repeat(500_000);
        assert_eq!(suspicion(&text), None);
    }

    #[test]
    fn the_field_is_named() {
        let bad = "/etc/nginx".to_owned();
        let rule = |host: &str, path: &str| IngressRule {
            host: Some(host.into()),
            http: Some(HTTPIngressRuleValue {
                paths: vec![HTTPIngressPath {
                    path: Some(path.into()),
                    ..HTTPIngressPath::default()
                }],
            }),
        };
        let tls = |host: &str, secret: &str| IngressTLS {
            hosts: Some(vec![host.into()]),
            secret_name: Some(secret.into()),
        };
        for (rules, tls, want) in [
            (vec![rule("a", "/")], vec![tls("a", "s")], None),
            (
                vec![rule("a", "/"), rule(&bad, "/")],
                vec![],
                Some("spec.rules[1].host"),
            ),
            (
                vec![rule("a", &bad)],
                vec![],
                Some("spec.rules[0].http.paths[0].path"),
            ),
            (vec![], vec![tls(&bad, "s")], Some("spec.tls[0].hosts[0]")),
            (vec![], vec![tls("a", &bad)], Some("spec.tls[0].secretName")),
        ] {
            let ingress = Ingress {
                spec: Some(IngressSpec {
                    rules: Some(rules),
                    tls: Some(tls),
                    ..IngressSpec::default()
                }),
                ..Ingress::default()
            };
            let found = inspect(&ingress).err().map(|refusal| refusal.key);
            assert_eq!(found.as_deref(), want);
        }
        assert!(inspect(&Ingress::default()).is_ok());
    }
}
