//! Every annotation, once: its name, what it takes, what it does, how risky it is. Reading, checking, spelling help and
//! the documentation go by this table.

use std::{collections::BTreeMap, fmt, fmt::Write, sync::LazyLock};

use crate::{config::Risk, spelling};

use super::{
    access, affinity, auth, auth_keepalive, balance, buffers, canary, client_auth, cors,
    custom_errors, custom_headers, external_auth, fastcgi, limits, log, mirror, modsecurity, need,
    protocol, proxy, proxy_ssl, redirect, rewrite, satisfy, server, snippet, ssl_redirect,
    telemetry,
};

pub use super::need::Need;

/// Where the effect of an annotation lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The locations of its Ingress.
    Location,
    /// The server of each of its hosts, and so every Ingress of those hosts.
    Server,
    /// The backends that its Ingress creates.
    Backend,
    /// The Ingress as a whole.
    Ingress,
}

/// What it takes for a change to come into force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// NGINX reloads.
    Reload,
    /// A running NGINX is told.
    Dynamic,
}

/// What becomes of a value that cannot be used. It is always reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Misuse {
    /// The fall-back holds.
    FallBack,
    /// The locations of the Ingress (for a server's annotation: its hosts) answer no request.
    Deny,
    /// The Ingress is not served.
    Refuse,
}

/// One annotation.
#[derive(Clone, Copy, Debug)]
pub struct AnnotationInfo {
    /// The name, without prefix.
    pub name: &'static str,
    /// Former names, read when the annotation itself is absent or empty.
    pub aliases: &'static [&'static str],
    /// What its value may be, in words.
    pub value: &'static str,
    /// What holds without it, in words.
    pub default: &'static str,
    /// The ConfigMap's key that sets its fall-back.
    pub config_key: Option<&'static str>,
    /// What other annotations have to say for it to mean anything: one of these is enough.
    pub needs: &'static [Need],
    /// Where its effect lands.
    pub scope: Scope,
    /// How risky it is, for `annotations-risk-level`.
    pub risk: Risk,
    /// What a change takes.
    pub effect: Effect,
    /// What becomes of an unusable value.
    pub misuse: Misuse,
    /// A value that differs from the default.
    pub example: &'static str,
    /// What it does, in Markdown.
    pub doc: &'static str,
}

/// What most annotations have in common; the tables of the families name what differs.
pub(super) const ANNOTATION: AnnotationInfo = AnnotationInfo {
    name: "",
    aliases: &[],
    value: "",
    default: "",
    config_key: None,
    needs: &[],
    scope: Scope::Location,
    risk: Risk::Low,
    effect: Effect::Reload,
    misuse: Misuse::FallBack,
    example: "",
    doc: "",
};

/// The families, in the order of the documentation.
const FAMILIES: &[(&str, &[AnnotationInfo])] = &[
    ("Paths and rewriting", rewrite::ANNOTATIONS),
    ("Redirects", redirect::ANNOTATIONS),
    ("Redirects to HTTPS", ssl_redirect::ANNOTATIONS),
    ("Hosts and TLS", server::ANNOTATIONS),
    ("Client certificates", client_auth::ANNOTATIONS),
    ("Passwords", auth::ANNOTATIONS),
    ("External authentication", external_auth::ANNOTATIONS),
    (
        "Connections to the authenticating service",
        auth_keepalive::ANNOTATIONS,
    ),
    ("Addresses of clients", access::ANNOTATIONS),
    ("Several access checks", satisfy::ANNOTATIONS),
    ("Limits", limits::ANNOTATIONS),
    ("Protocol of the endpoints", protocol::ANNOTATIONS),
    ("Proxying", proxy::ANNOTATIONS),
    ("Buffers", buffers::ANNOTATIONS),
    ("TLS to the endpoints", proxy_ssl::ANNOTATIONS),
    ("FastCGI", fastcgi::ANNOTATIONS),
    ("Balancing", balance::ANNOTATIONS),
    ("Affinity", affinity::ANNOTATIONS),
    ("Canaries", canary::ANNOTATIONS),
    ("Cross-origin requests", cors::ANNOTATIONS),
    ("Response headers", custom_headers::ANNOTATIONS),
    ("Error pages", custom_errors::ANNOTATIONS),
    ("Mirroring", mirror::ANNOTATIONS),
    ("Logs", log::ANNOTATIONS),
    ("Tracing", telemetry::ANNOTATIONS),
    ("ModSecurity", modsecurity::ANNOTATIONS),
    ("Raw configuration", snippet::ANNOTATIONS),
];

/// Name or alias → annotation.
static BY_NAME: LazyLock<BTreeMap<&'static str, &'static AnnotationInfo>> = LazyLock::new(|| {
    annotations()
        .flat_map(|info| {
            let names = std::iter::once(&info.name).chain(info.aliases);
            names.map(move |name| (*name, info))
        })
        .collect()
});

/// Every annotation, by family.
pub fn annotations() -> impl Iterator<Item = &'static AnnotationInfo> {
    FAMILIES.iter().flat_map(|(_, annotations)| *annotations)
}

/// The annotation of that name or former name, without prefix.
#[must_use]
pub fn find(name: &str) -> Option<&'static AnnotationInfo> {
    BY_NAME.get(name).copied()
}

/// The name that somebody who wrote `name` most likely meant.
pub(super) fn suggestion(name: &str) -> Option<&'static str> {
    spelling::nearest(name, BY_NAME.keys().copied())
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Location => "location",
            Self::Server => "server",
            Self::Backend => "backend",
            Self::Ingress => "Ingress",
        })
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reload => "reload",
            Self::Dynamic => "no reload",
        })
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FallBack => "default holds",
            Self::Deny => "closed",
            Self::Refuse => "not served",
        })
    }
}

const INTRODUCTION: &str = "\
# Annotations

Written under the prefix `nginx.ingress.kubernetes.io/` (flag `--annotations-prefix`). This page is generated from the
registry of the crate `ingress-model`; a test keeps the two equal.

* **Scope** is where the effect lands: the locations of the Ingress, the servers of its hosts, its backends, or the Ingress
  itself.
* **Risk**: an Ingress with an annotation above the ConfigMap's `annotations-risk-level` (default `High`) is not served.
* **Change** says whether a changed value reloads NGINX.
* **Misused** is what a value that cannot be used leads to, besides a warning: the default holds, the location or host is
  closed (503, or 403 where client certificates are asked for), or the Ingress is not served. An Ingress that is not
  served goes on keeping out whom it was to keep out: where other Ingresses would answer for its hosts, the paths that
  it would hold answer 503, and client certificates are asked for.
* **Raw configuration** (`…-snippet`) is left out, with a warning, unless the ConfigMap's `allow-snippet-annotations` is
  `true`; where it is, the risk counts.
";

/// The documentation of all annotations, in Markdown.
#[must_use]
pub fn annotations_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let former = annotations().filter(|info| !info.aliases.is_empty());
    // Writing to a String cannot fail.
    let _infallible = writeln!(
        page,
        "\nThere are {} annotations, {} of them with a former name that is read too.",
        annotations().count(),
        former.count(),
    );
    for (title, annotations) in FAMILIES {
        page.push_str("\n## ");
        page.push_str(title);
        page.push_str(
            "\n\n| annotation | value | default | scope | risk | change | misused | meaning |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        for info in *annotations {
            row(&mut page, info);
        }
    }
    page
}

fn row(page: &mut String, info: &AnnotationInfo) {
    let names: Vec<String> = std::iter::once(&info.name)
        .chain(info.aliases)
        .map(|name| format!("`{name}`"))
        .collect();
    let default = match info.config_key {
        Some(key) => format!("{} (key `{key}`)", info.default),
        None => info.default.to_owned(),
    };
    let _infallible = writeln!(
        page,
        "| {} | {} | {} | {} | {:?} | {} | {} | {} |",
        names.join(", formerly "),
        cell(info.value),
        cell(&default),
        info.scope,
        info.risk,
        info.effect,
        info.misuse,
        cell(&meaning(info)),
    );
}

fn meaning(info: &AnnotationInfo) -> String {
    match info.needs {
        [] => info.doc.to_owned(),
        needs => format!("{} Needs {}.", info.doc, need::list(needs, "`")),
    }
}

/// Text for a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_annotation_is_registered_once() {
        assert_eq!(annotations().count(), 136);
        let names: usize = annotations().map(|info| 1 + info.aliases.len()).sum();
        assert_eq!(BY_NAME.len(), names);
        assert_eq!(names, 138);
    }

    #[test]
    fn every_annotation_is_described() {
        for info in annotations() {
            assert!(!info.value.is_empty(), "{}", info.name);
            assert!(!info.default.is_empty(), "{}", info.name);
            assert!(!info.example.is_empty(), "{}", info.name);
            assert!(info.doc.ends_with('.'), "{}", info.name);
            assert_eq!(
                info.risk == Risk::Critical,
                info.name.ends_with("-snippet"),
                "{}",
                info.name
            );
        }
    }

    #[test]
    fn keys_of_fall_backs_exist() {
        for info in annotations() {
            if let Some(key) = info.config_key {
                assert!(
                    crate::config::find_key(key).is_some(),
                    "{}: {key}",
                    info.name
                );
            }
        }
    }

    #[test]
    fn former_names_are_found() {
        let info = find("whitelist-source-range").unwrap();
        assert_eq!(info.name, "allowlist-source-range");
        assert!(find("no-such-thing").is_none());
        assert_eq!(suggestion("proxy-boddy-size"), Some("proxy-body-size"));
    }
}
