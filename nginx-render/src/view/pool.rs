//! Connections to endpoints that are kept, and who may share them.
//!
//! NGINX finds a kept connection by nothing but the address, in the upstream block that a location names. What the
//! connection was opened with (a client certificate, a verified name, TLS at all) stays with it. So locations name the
//! same block only if they speak to endpoints in the same way.

use std::collections::BTreeMap;

use ingress_model::{layout::BackendProtocol, value::Snippet};
use ring::digest;

use crate::value::{constant, word};

use super::directive::{Directive, directive};

/// The block of connections without TLS, which everything that asks over HTTP shares.
pub(crate) const PLAIN: &str = "upstream_balancer";

/// Upstream blocks besides [`PLAIN`] by name, and whether they keep connections.
pub(crate) type Pools = BTreeMap<String, bool>;

/// What the levels above a location say about TLS to endpoints.
#[derive(Default)]
pub(crate) struct Inherited<'a> {
    /// Directives of the server by name.
    directives: BTreeMap<&'static str, String>,
    /// Snippets that may say something about it.
    snippets: Vec<&'a Snippet>,
}

/// The upstream block of a location.
pub(crate) struct Pool {
    protocol: BackendProtocol,
    name: String,
    keeps: bool,
    /// What endpoints are called if nobody has given them a name.
    default_name: Option<Directive>,
}

impl<'a> Inherited<'a> {
    pub(crate) fn new(
        directives: &[Directive],
        snippets: impl IntoIterator<Item = &'a Snippet>,
    ) -> Self {
        Self {
            directives: by_name(directives),
            snippets: snippets.into_iter().filter(|it| is_about_tls(it)).collect(),
        }
    }
}

impl Inherited<'_> {
    /// What a location says that asks others than the endpoints, so that what the server says about TLS to these does
    /// not count: neither is the controller's certificate for everybody, nor everybody's from the endpoints' authority.
    pub(crate) fn taken_back(&self) -> Vec<Directive> {
        // Before NGINX 1.25 only a variable can name no file.
        let nothing = || constant("$no_certificate".into());
        let has_certificate = self.directives.contains_key("proxy_ssl_certificate");
        let set = has_certificate.then(|| directive("set", [nothing(), constant("\"\"".into())]));
        let said = self.directives.iter();
        let said = said.filter_map(|(name, text)| {
            let arguments = match *name {
                "proxy_ssl_certificate" | "proxy_ssl_certificate_key" => vec![nothing()],
                "proxy_ssl_ciphers" => vec![word("DEFAULT")],
                "proxy_ssl_name" => vec![constant("$proxy_host".into())],
                "proxy_ssl_protocols" => vec![word("TLSv1.2"), word("TLSv1.3")],
                "proxy_ssl_verify" => vec![word("off")],
                _ => return None,
            };
            let directive = directive(name, arguments);
            (directive.0.to_string() != *text).then_some(directive)
        });
        set.into_iter().chain(said).collect()
    }
}

impl Pool {
    /// The block for a location with these directives and snippets of its own.
    pub(crate) fn new<'a>(
        protocol: BackendProtocol,
        own: &[Directive],
        snippets: impl IntoIterator<Item = &'a Snippet>,
        inherited: &Inherited<'a>,
    ) -> Self {
        let (kind, family, name) = match protocol {
            BackendProtocol::Http => return Self::plain(),
            BackendProtocol::Https => ("https", "proxy_ssl_", "proxy_ssl_name"),
            BackendProtocol::AutoHttp => ("auto", "proxy_ssl_", "proxy_ssl_name"),
            BackendProtocol::Grpcs => ("grpcs", "grpc_ssl_", "grpc_ssl_name"),
            BackendProtocol::Grpc => return Self::without_tls(protocol, "grpc"),
            BackendProtocol::Fcgi => return Self::without_tls(protocol, "fcgi"),
        };
        let mut settings = inherited.directives.clone();
        settings.extend(by_name(own));
        settings.retain(|name, _| name.starts_with(family));
        let own_snippets = snippets.into_iter().filter(|it| is_about_tls(it));
        let snippets: Vec<&str> = inherited
            .snippets
            .iter()
            .copied()
            .chain(own_snippets)
            .map(Snippet::as_str)
            .collect();

        let is_named = settings.contains_key(name) || snippets.iter().any(|it| it.contains(name));
        let asks_for_name = |text: &str| text.contains("_server_name") || text.contains("_verify ");
        let needs_name = settings
            .values()
            .any(|it| asks_for_name(it) && it.ends_with(" on;"))
            || snippets.iter().any(|it| asks_for_name(it));
        // A variable may have another value in the next request.
        let keeps = !settings.values().any(|it| it.contains('$'))
            && !snippets.iter().any(|it| sets_tls_by_variable(it));
        let texts = settings.values().map(String::as_str);
        let texts = texts.chain(["snippets"]).chain(snippets);
        Self {
            protocol,
            name: named(std::iter::once(kind).chain(texts)),
            keeps,
            // NGINX would take the block's own name.
            default_name: (needs_name && !is_named).then(|| directive(name, [word(PLAIN)])),
        }
    }

    fn plain() -> Self {
        Self {
            protocol: BackendProtocol::Http,
            name: PLAIN.into(),
            keeps: true,
            default_name: None,
        }
    }

    fn without_tls(protocol: BackendProtocol, kind: &str) -> Self {
        Self {
            protocol,
            name: named([kind]),
            keeps: true,
            default_name: None,
        }
    }

    /// The directives that send requests to the endpoints. The block is added to those that are needed.
    pub(crate) fn pass(self, pools: &mut Pools) -> impl Iterator<Item = Directive> {
        let Self {
            protocol,
            name,
            keeps,
            default_name,
        } = self;
        let (pass, address) = match protocol {
            BackendProtocol::Http => ("proxy_pass", format!("http://{name}")),
            BackendProtocol::Https => ("proxy_pass", format!("https://{name}")),
            BackendProtocol::AutoHttp => ("proxy_pass", format!("$scheme://{name}_$scheme")),
            BackendProtocol::Grpc => ("grpc_pass", format!("grpc://{name}")),
            BackendProtocol::Grpcs => ("grpc_pass", format!("grpcs://{name}")),
            BackendProtocol::Fcgi => ("fastcgi_pass", name.clone()),
        };
        match protocol {
            BackendProtocol::Http => {}
            BackendProtocol::AutoHttp => {
                pools.insert(format!("{name}_http"), keeps);
                pools.insert(format!("{name}_https"), keeps);
            }
            BackendProtocol::Https
            | BackendProtocol::Grpc
            | BackendProtocol::Grpcs
            | BackendProtocol::Fcgi => {
                pools.insert(name, keeps);
            }
        }
        default_name
            .into_iter()
            .chain([directive(pass, [constant(address)])])
    }
}

/// A name that says nothing but how endpoints are spoken to, so that it stays when other locations change. Whoever
/// finds two texts of one name would share connections with somebody else; hence a hash that is made against that.
fn named<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    const BYTES: usize = 16;
    let mut hash = digest::Context::new(&digest::SHA256);
    for text in texts {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let hash = hash.finish();
    let hex = hash
        .as_ref()
        .iter()
        .take(BYTES)
        .map(|byte| format!("{byte:02x}"));
    format!("{PLAIN}_{}", hex.collect::<String>())
}

/// The texts of directives, the last of each name.
fn by_name(directives: &[Directive]) -> BTreeMap<&'static str, String> {
    directives
        .iter()
        .map(|directive| (directive.0.name, directive.0.to_string()))
        .collect()
}

/// Whether a snippet may say how TLS is spoken to endpoints.
fn is_about_tls(snippet: &Snippet) -> bool {
    ["proxy_ssl_", "grpc_ssl_", "include"]
        .into_iter()
        .any(|text| snippet.as_str().contains(text))
}

fn sets_tls_by_variable(snippet: &str) -> bool {
    snippet
        .split(';')
        .any(|text| text.contains("_ssl_") && text.contains('$'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "proxy_ssl_certificate";
    const NAME: &str = "proxy_ssl_name";
    const VERIFY: &str = "proxy_ssl_verify";

    fn directives(texts: &[(&'static str, &str)]) -> Vec<Directive> {
        texts
            .iter()
            .map(|(name, value)| directive(name, [word(value)]))
            .collect()
    }

    fn pool(
        protocol: BackendProtocol,
        above: &[(&'static str, &str)],
        own: &[(&'static str, &str)],
        snippet: &str,
    ) -> Pool {
        let inherited = Inherited::new(&directives(above), None);
        let snippet = Snippet::new(snippet);
        Pool::new(protocol, &directives(own), &snippet, &inherited)
    }

    fn text(pool: Pool) -> (String, Pools) {
        let mut pools = Pools::new();
        let lines: Vec<_> = pool.pass(&mut pools).map(|it| it.0.to_string()).collect();
        (lines.join(" "), pools)
    }

    #[test]
    fn names_depend_on_protocols() {
        use BackendProtocol::{AutoHttp, Fcgi, Grpc, Grpcs, Http, Https};
        let shown = [Http, Https, AutoHttp, Grpc, Grpcs, Fcgi].map(|protocol| {
            let (line, pools) = text(pool(protocol, &[], &[], ""));
            let names: Vec<_> = pools.into_keys().collect();
            format!("{line} {}", names.join(" "))
        });
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn names_depend_on_every_setting() {
        use BackendProtocol::Https;
        let pools = [
            pool(Https, &[], &[], ""),
            pool(Https, &[], &[(CERTIFICATE, "/a.pem")], ""),
            pool(Https, &[], &[(CERTIFICATE, "/b.pem")], ""),
            pool(Https, &[], &[(CERTIFICATE, "/b.pem"), (NAME, "x")], ""),
            pool(Https, &[(NAME, "y")], &[(CERTIFICATE, "/b.pem")], ""),
            pool(Https, &[], &[], "proxy_ssl_certificate /a.pem;"),
            pool(Https, &[], &[], "include /a.conf;"),
        ];
        let names: std::collections::BTreeSet<_> = pools.iter().map(|pool| &pool.name).collect();
        assert_eq!(names.len(), pools.len(), "{names:?}");
    }

    #[test]
    fn the_same_settings_share_a_name() {
        use BackendProtocol::{Grpc, Https};
        let own = pool(Https, &[], &[(CERTIFICATE, "/a.pem"), (NAME, "x")], "").name;
        for (above, of_location, snippet) in [
            (&[][..], &[(NAME, "x"), (CERTIFICATE, "/a.pem")][..], ""),
            (&[(NAME, "x"), (CERTIFICATE, "/a.pem")], &[], ""),
            (
                &[(NAME, "y")],
                &[(CERTIFICATE, "/a.pem"), (NAME, "x")],
                "gzip off;",
            ),
            (
                &[],
                &[
                    (CERTIFICATE, "/a.pem"),
                    (NAME, "x"),
                    ("grpc_ssl_verify", "on"),
                ],
                "",
            ),
        ] {
            assert_eq!(pool(Https, above, of_location, snippet).name, own);
        }
        let plain = pool(Grpc, &[], &[], "").name;
        assert_eq!(pool(Grpc, &[], &[("grpc_ssl_name", "x")], "").name, plain);
    }

    #[test]
    fn connections_are_not_kept_for_names_that_vary() {
        use BackendProtocol::Https;
        for (own, snippet, keeps) in [
            (&[(NAME, "x")][..], "proxy_set_header A $host;", true),
            (&[(NAME, "$host")], "", false),
            (&[], "proxy_ssl_name x; proxy_set_header A $host;", true),
            (&[], "proxy_ssl_name $host;", false),
        ] {
            let (line, pools) = text(pool(Https, &[], own, snippet));
            let kept: Vec<bool> = pools.into_values().collect();
            assert_eq!(kept, [keeps], "{line}");
        }
    }

    #[test]
    fn others_than_endpoints_are_asked_as_if_nothing_was_said() {
        let above = [
            (CERTIFICATE, "/a.pem"),
            ("proxy_ssl_certificate_key", "/a.pem"),
            ("proxy_ssl_ciphers", "DEFAULT"),
            ("proxy_ssl_protocols", "TLSv1.3"),
            ("proxy_ssl_trusted_certificate", "/ca.pem"),
            (NAME, "x"),
            (VERIFY, "on"),
            ("grpc_ssl_verify", "on"),
        ];
        let inherited = Inherited::new(&directives(&above), None);
        let said: Vec<_> = inherited
            .taken_back()
            .iter()
            .map(|it| it.0.to_string())
            .collect();
        assert_eq!(
            said,
            [
                "set $no_certificate \"\";",
                "proxy_ssl_certificate $no_certificate;",
                "proxy_ssl_certificate_key $no_certificate;",
                "proxy_ssl_name $proxy_host;",
                "proxy_ssl_protocols TLSv1.2 TLSv1.3;",
                "proxy_ssl_verify off;",
            ]
        );
        assert!(Inherited::default().taken_back().is_empty());
    }

    #[test]
    fn a_block_lends_its_name_to_no_endpoint() {
        use BackendProtocol::Https;
        let said = "proxy_ssl_name upstream_balancer;";
        for (own, snippet, is_said) in [
            (&[][..], "", false),
            (&[(VERIFY, "off")], "", false),
            (&[(VERIFY, "on")], "", true),
            (&[("proxy_ssl_server_name", "on")], "", true),
            (&[(VERIFY, "on"), (NAME, "x")], "", false),
            (&[(VERIFY, "on")], "proxy_ssl_name x;", false),
            (&[], "proxy_ssl_verify on;", true),
        ] {
            let (line, _) = text(pool(Https, &[], own, snippet));
            assert_eq!(line.starts_with(said), is_said, "{line}");
        }
    }
}
