//! What templates show. Every decision is made here, so that templates only print.

pub(crate) mod access;
pub(crate) mod client_auth;
pub(crate) mod compression;
pub(crate) mod cors;
pub(crate) mod defaults;
pub(crate) mod dictionaries;
pub(crate) mod directive;
pub(crate) mod errors;
pub(crate) mod external_auth;
pub(crate) mod extras;
pub(crate) mod fastcgi;
pub(crate) mod forwarded;
pub(crate) mod frame;
pub(crate) mod geoip;
pub(crate) mod h2c;
pub(crate) mod hashes;
pub(crate) mod headers;
pub(crate) mod http;
pub(crate) mod http3;
pub(crate) mod internal;
pub(crate) mod listen;
pub(crate) mod location;
pub(crate) mod logs;
pub(crate) mod mirror;
pub(crate) mod modsecurity;
pub(crate) mod pool;
pub(crate) mod proxy;
pub(crate) mod routing;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod telemetry;
pub(crate) mod tls;
pub(crate) mod upstream_tls;

use std::{collections::BTreeSet, sync::Arc};

use ingress_model::{Layout, config::RenderConfig, value::Snippet};

use crate::{
    capabilities::{Capabilities, Module},
    environment::{Environment, PassthroughPorts},
    source_map::{END, Mark, Note, Source, Sources},
    statements,
    value::{Printed, Unprintable, plain, raw},
};

use self::directive::{Directive, directive};

/// What every server depends on besides itself.
pub(crate) struct Context<'a> {
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) environment: &'a Environment,
    pub(crate) config: &'a RenderConfig,
    /// Directives that the `http-snippet` has at its top level.
    pub(crate) http_names: BTreeSet<&'a str>,
    /// Whether the `http-snippet` sets headers for endpoints.
    pub(crate) headers_are_lost: bool,
    /// Whether the hook for certificates stands in each server rather than in the http block: a snippet may bring TLS
    /// servers with certificates of their own.
    pub(crate) hooks_certificates_by_server: bool,
    /// Whether something of the ConfigMap reads the name of the group of endpoints as `$proxy_host`.
    pub(crate) reads_proxy_host: bool,
    /// What the http block says about proxying.
    pub(crate) inherited: Vec<Directive>,
    /// Where connections of the HTTP port go on, if these may be HTTP/2 and HTTP/1.1.
    pub(crate) split: Option<h2c::Split>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        capabilities: &'a Capabilities,
        environment: &'a Environment,
        layout: &'a Layout,
    ) -> Result<Self, Unprintable> {
        let config = &*layout.config;
        let http_names = snippet_names(config.http_snippet.as_ref());
        let has_servers_of_others = http_names.contains("server");
        Ok(Self {
            capabilities,
            environment,
            config,
            headers_are_lost: sets_headers(config.http_snippet.as_ref()),
            reads_proxy_host: texts_of_requests(config).any(|text| text.contains(PROXY_HOST)),
            hooks_certificates_by_server: has_servers_of_others,
            split: h2c::Split::new(layout, capabilities, environment, has_servers_of_others)?,
            inherited: proxy::inherited(config, &http_names)?,
            http_names,
        })
    }

    /// Whether to listen on IPv6 addresses.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.environment.ipv6 && !self.config.disable_ipv6
    }

    /// Where TLS of some hosts is passed through, if this NGINX can do that.
    pub(crate) fn passthrough(&self) -> Option<PassthroughPorts> {
        let needed = [
            Module::Stream,
            Module::StreamSslPreread,
            Module::StreamJs,
            Module::RealIp,
        ];
        let can = needed
            .into_iter()
            .all(|module| self.capabilities.has(module));
        self.environment.ports.passthrough.filter(|_| can)
    }

    /// The certificate that is shown as long as the Lua side has none.
    pub(crate) fn default_certificate(&self) -> Vec<Directive> {
        if self.environment.default_certificate_pem.is_none() {
            return Vec::new();
        }
        let path = format!("{}/{DEFAULT_CERTIFICATE}", self.environment.nginx_dir);
        ["ssl_certificate", "ssl_certificate_key"]
            .into_iter()
            .filter_map(|name| Some(directive(name, [plain(&path).ok()?])))
            .collect()
    }
}

/// The file of the certificate that is shown as long as the Lua side has none.
pub(crate) const DEFAULT_CERTIFICATE: &str = "ssl/default.pem";

/// A piece of configuration that a user wrote, with marks around it.
pub(crate) struct SnippetView {
    pub(crate) begin: Mark,
    pub(crate) text: Printed,
    pub(crate) end: Mark,
}

impl SnippetView {
    pub(crate) fn new(snippet: &Snippet, source: Arc<Source>, sources: &mut Sources) -> Self {
        Self {
            begin: sources.begin_raw(source),
            text: raw(snippet),
            end: END,
        }
    }

    /// A snippet of the ConfigMap, outside of servers.
    fn of_config(
        snippet: Option<&Snippet>,
        what: &'static str,
        sources: &mut Sources,
    ) -> Option<Self> {
        let source = Arc::new(Source {
            host: None,
            path: None,
            ingress: None,
            what,
        });
        snippet.map(|snippet| Self::new(snippet, source, sources))
    }
}

/// A variable of NGINX's own, which would be the name of the Lua upstream.
pub(crate) const PROXY_HOST: &str = "proxy_host";

/// What the ConfigMap has NGINX evaluate for the requests of every server: snippets, headers, the line of the log.
fn texts_of_requests(config: &RenderConfig) -> impl Iterator<Item = &str> {
    snippets_of_requests(config).chain(templates_of_requests(config))
}

/// The snippets among them.
fn snippets_of_requests(config: &RenderConfig) -> impl Iterator<Item = &str> {
    let snippets = [
        &config.http_snippet,
        &config.server_snippet,
        &config.location_snippet,
    ];
    snippets.into_iter().flatten().map(Snippet::as_str)
}

/// The others among them.
fn templates_of_requests(config: &RenderConfig) -> impl Iterator<Item = &str> {
    let headers = config.proxy_set_headers.iter().chain(&config.add_headers);
    let headers = headers.map(|(_, value)| value.as_str());
    headers.chain([config.log_format_upstream.as_str()])
}

/// What is to be said about a setting of the ConfigMap.
pub(crate) fn note(what: &'static str, text: String) -> Note {
    let source = Source {
        host: None,
        path: None,
        ingress: None,
        what,
    };
    Note {
        source: Arc::new(source),
        text,
    }
}

/// The names of the directives at a snippet's top level.
fn snippet_names(snippet: Option<&Snippet>) -> BTreeSet<&str> {
    snippet
        .map(|snippet| statements::names(snippet.as_str()))
        .unwrap_or_default()
}

/// Whether a snippet sets headers for endpoints, which would keep those of the levels above from being inherited.
fn sets_headers(snippet: Option<&Snippet>) -> bool {
    snippet.is_some_and(|snippet| {
        snippet.as_str().contains("_set_header") || snippet.as_str().contains("include")
    })
}
