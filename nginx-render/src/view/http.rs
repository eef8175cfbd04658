//! The http block: what holds for every server is said here once.

use std::sync::Arc;

use ingress_model::{
    Layout,
    config::RenderConfig,
    layout::BackendProtocol,
    value::{Literal, Snippet},
};

use crate::{
    capabilities::Module,
    source_map::{END, Mark, Note, Source, Sources},
    value::{Printed, Unprintable, argument, constant, map_key, plain, switch, template, word},
};

use super::{
    Context, SnippetView,
    access::ZonesView,
    cors, defaults, dictionaries,
    directive::{Directive, directive},
    errors,
    external_auth::AuthUpstreamView,
    extras::Shared,
    fastcgi,
    forwarded::{self, ForwardedView},
    geoip::{self, DatabaseView},
    hashes::Hashes,
    headers, http3, listen,
    logs::Logs,
    modsecurity::{self, ModSecurityView},
    note, pool,
    routing::protocol,
    snippets_of_requests, telemetry, templates_of_requests, tls,
};

/// The http block without its servers.
pub(crate) struct HttpView<'a> {
    pub(crate) lua_path: Printed,
    pub(crate) lua_json: Printed,
    pub(crate) dictionaries: Vec<Directive>,
    pub(crate) metrics: bool,
    pub(crate) hooks_certificates: bool,
    pub(crate) certificates: Vec<Directive>,
    pub(crate) settings: Vec<Directive>,
    pub(crate) temp_paths: Vec<Directive>,
    pub(crate) logs: &'a Logs,
    /// Tables of requests: which are logged, which are refused.
    pub(crate) tables: Vec<TableView>,
    pub(crate) forwarded: ForwardedView,
    pub(crate) modsecurity: ModSecurityView,
    pub(crate) telemetry: Vec<Directive>,
    pub(crate) geoip: Vec<DatabaseView>,
    pub(crate) generate_request_id: bool,
    /// Whether the Lua side makes identifiers of requests, which costs less than NGINX's own ones.
    pub(crate) lua_names_requests: bool,
    /// What the Lua side reports of a request.
    pub(crate) request_record: Printed,
    /// What endpoints are told about the connection unless it is to be upgraded.
    pub(crate) no_upgrade: Printed,
    pub(crate) hsts: Option<Printed>,
    /// How clients learn of HTTP/3.
    pub(crate) alt_svc: Option<Printed>,
    pub(crate) has_headers_more: bool,
    pub(crate) clears_server: bool,
    /// Headers of every response (`add-headers`).
    pub(crate) response_headers: Vec<Directive>,
    pub(crate) inherited: Vec<&'a Directive>,
    pub(crate) headers: Vec<Directive>,
    pub(crate) fastcgi: Vec<Directive>,
    pub(crate) errors: Vec<Directive>,
    pub(crate) zones: Vec<ZonesView>,
    pub(crate) auth_cache: Option<Printed>,
    pub(crate) auth_upstreams: Vec<AuthUpstreamView>,
    pub(crate) snippet: Option<SnippetView>,
    pub(crate) pools: Vec<PoolView<'a>>,
    pub(crate) keepalive: Vec<Directive>,
    pub(crate) default_listen: Vec<Directive>,
    pub(crate) status_port: u16,
    /// What keeps modules off requests of the controller.
    pub(crate) unwatched: Vec<Directive>,
    pub(crate) body_limit: Printed,
    pub(crate) health_path: Printed,
    pub(crate) has_status: bool,
}

impl<'a> HttpView<'a> {
    pub(crate) fn new(
        layout: &Layout,
        shared: &'a Shared,
        context: &'a Context<'_>,
        logs: &'a Logs,
        sources: &mut Sources,
        notes: &mut Vec<Note>,
    ) -> Result<Self, Unprintable> {
        let (config, environment) = (context.config, context.environment);
        let tables = tables(config, sources)?;
        let keys = tables.iter().flat_map(|table| &table.keys);
        let longest_key = keys.map(|key| key.0.len()).max().unwrap_or(0);
        let hashes = Hashes::new(layout, shared, longest_key);
        let uses = |wanted: &[BackendProtocol]| {
            let mut locations = layout.servers.values().flat_map(|server| &server.locations);
            locations.any(|location| wanted.contains(&protocol(location)))
        };
        let grpc = uses(&[BackendProtocol::Grpc, BackendProtocol::Grpcs]);
        http3::note_lack(context, notes);
        let forwarded = ForwardedView::new(context)?;
        let keeps_variables = snippets(layout, config).any(forwarded::names_variables);
        let source = (!keeps_variables).then_some(&forwarded);
        let headers = request_headers(context, grpc, source, notes)?;
        let is_used = |directive: &&Directive| grpc || !directive.0.name.starts_with("grpc_");
        Ok(Self {
            lua_path: plain(&format!("{}/?.lua;;", environment.lua_dir))?,
            lua_json: dictionaries::lua_string(&format!("{}/lua.json", environment.nginx_dir))?,
            dictionaries: dictionaries::directives(context),
            metrics: environment.metrics.is_some(),
            hooks_certificates: !context.hooks_certificates_by_server,
            certificates: tls::certificates(context)?,
            settings: defaults::directives(context, &hashes, notes)?,
            temp_paths: defaults::temp_paths(&environment.nginx_dir)?,
            logs,
            tables,
            forwarded,
            modsecurity: ModSecurityView::new(context, sources, notes)?,
            telemetry: telemetry::inherited(layout, context, notes)?,
            geoip: geoip::databases(context, notes)?,
            generate_request_id: config.generate_request_id,
            lua_names_requests: config.generate_request_id
                && !shared.reads_request_id
                && !reads_request_id(config),
            request_record: constant(RECORD.join("\\t")),
            no_upgrade: if config.upstream_keepalive_connections > 0 {
                plain("")?
            } else {
                word("close")
            },
            hsts: config.hsts.then(|| tls::hsts(config)).transpose()?,
            alt_svc: http3::alt_svc(context)?,
            has_headers_more: context.capabilities.has(Module::HeadersMore),
            clears_server: !config.server_tokens,
            response_headers: config
                .add_headers
                .iter()
                .map(|(name, value)| {
                    cors::response_header(context, name.as_str(), &template(value.as_str())?)
                })
                .collect::<Result<_, _>>()?,
            inherited: context.inherited.iter().filter(is_used).collect(),
            headers,
            fastcgi: if uses(&[BackendProtocol::Fcgi]) {
                fastcgi::standard()
            } else {
                Vec::new()
            },
            errors: errors::inherited(config),
            zones: shared
                .zones
                .iter()
                .map(|(id, zones)| ZonesView::new(*id, zones, context))
                .collect::<Result<_, _>>()?,
            auth_cache: shared
                .caches_answers
                .then(|| plain(&format!("{}/run/auth-cache", environment.nginx_dir)))
                .transpose()?,
            auth_upstreams: shared
                .auth_upstreams
                .iter()
                .map(|(id, upstream)| AuthUpstreamView::new(*id, upstream, sources))
                .collect::<Result<_, _>>()?,
            snippet: SnippetView::of_config(config.http_snippet.as_ref(), "http-snippet", sources),
            pools: pools(shared),
            keepalive: keepalive(context)?,
            default_listen: listen::of_port(context, environment.ports.default_server),
            status_port: environment.ports.status,
            unwatched: unwatched(layout, context),
            body_limit: dictionaries::body_limit(context),
            health_path: plain(&environment.health_path)?,
            has_status: context.capabilities.has(Module::StubStatus),
        })
    }
}

/// The variables of a record of a request, in the order in which the controller reads them. The path is last: nothing
/// keeps it from having a separator in it.
const RECORD: [&str; 14] = [
    "$host",
    "$namespace",
    "$ingress_name",
    "$service_name",
    "$proxy_alternative_upstream_name",
    "$request_method",
    "$status",
    "$request_length",
    "$request_time",
    "$bytes_sent",
    "$upstream_connect_time",
    "$upstream_header_time",
    "$upstream_response_time",
    "$location_path",
];

/// Whether something for all servers reads `$request_id`, which is another identifier than the Lua side's, or `$req_id`
/// before the Lua side has set it.
fn reads_request_id(config: &RenderConfig) -> bool {
    let own = |text: &str| text.contains("request_id");
    snippets_of_requests(config).any(|text| own(text) || text.contains("req_id"))
        || templates_of_requests(config).any(own)
}

/// Tables of requests: which are logged, which are refused.
fn tables(config: &RenderConfig, sources: &mut Sources) -> Result<Vec<TableView>, Unprintable> {
    let tables = [
        (
            "skip-access-log-urls",
            "$request_uri",
            "$loggable",
            [1, 0],
            &config.skip_access_log_urls,
        ),
        (
            "block-user-agents",
            "$http_user_agent",
            "$block_ua",
            [0, 1],
            &config.block_user_agents,
        ),
        (
            "block-referers",
            "$http_referer",
            "$block_ref",
            [0, 1],
            &config.block_referers,
        ),
    ];
    // Snippets and logs of their own may ask whether a request is to be logged.
    tables
        .into_iter()
        .filter(|(_, _, to, _, texts)| !texts.is_empty() || *to == "$loggable")
        .map(|(key, from, to, values, texts)| TableView::new(key, from, to, values, texts, sources))
        .collect()
}

/// All snippets of the http block.
fn snippets<'a>(layout: &'a Layout, config: &'a RenderConfig) -> impl Iterator<Item = &'a Snippet> {
    let of_servers = layout.servers.values().flat_map(|server| {
        let own = server.snippet.as_ref().map(|owned| &owned.value);
        let of_locations = server.locations.iter().flat_map(|location| {
            let settings = &*location.settings;
            let auth = settings.external_auth.as_ref();
            [
                settings.snippet.as_ref(),
                auth.and_then(|auth| auth.snippet.as_ref()),
            ]
        });
        std::iter::once(own).chain(of_locations)
    });
    let of_config = [
        config.http_snippet.as_ref(),
        config.server_snippet.as_ref(),
        config.location_snippet.as_ref(),
    ];
    of_config.into_iter().chain(of_servers).flatten()
}

/// Headers for endpoints, for each module that speaks to some. Where nothing sets the variables of `forwarded`, headers
/// have those that they are made of: a map costs a request as much as two headers do.
fn request_headers(
    context: &Context<'_>,
    grpc: bool,
    forwarded: Option<&ForwardedView>,
    notes: &mut Vec<Note>,
) -> Result<Vec<Directive>, Unprintable> {
    let own = || headers::Own {
        port: forwarded.and_then(ForwardedView::same_as_port),
        scheme: forwarded.and_then(ForwardedView::same_as_scheme),
        ..headers::Own::default()
    };
    let mut headers = headers::all(context, BackendProtocol::Http, own())?;
    if grpc {
        for (name, _) in &context.config.proxy_set_headers {
            if name.as_str().len() > headers::LONGEST_OF_GRPC {
                let text = format!(
                    "the header {} is not sent to gRPC endpoints: NGINX has no room for its name",
                    name.as_str()
                );
                notes.push(note("proxy-set-headers", text));
            }
        }
        headers.extend(headers::all(context, BackendProtocol::Grpc, own())?);
    }
    Ok(headers)
}

/// What keeps ModSecurity and tracing off a server that only the controller asks.
fn unwatched(layout: &Layout, context: &Context<'_>) -> Vec<Directive> {
    let modsecurity =
        modsecurity::is_on(context).then(|| directive("modsecurity", [switch(false)]));
    let is_traced = telemetry::is_wanted(layout) && telemetry::is_possible(context);
    let telemetry = is_traced.then(|| directive("opentelemetry", [switch(false)]));
    modsecurity.into_iter().chain(telemetry).collect()
}

/// A map from texts of the ConfigMap to one of two values.
pub(crate) struct TableView {
    pub(crate) begin: Mark,
    pub(crate) end: Mark,
    pub(crate) from: Printed,
    pub(crate) to: Printed,
    pub(crate) keys: Vec<Printed>,
    /// The value of what is in the list, and of everything else.
    pub(crate) listed: u8,
    pub(crate) other: u8,
}

impl TableView {
    fn new(
        key: &'static str,
        from: &str,
        to: &str,
        [other, listed]: [u8; 2],
        texts: &[Literal],
        sources: &mut Sources,
    ) -> Result<Self, Unprintable> {
        let source = Source {
            host: None,
            path: None,
            ingress: None,
            what: key,
        };
        Ok(Self {
            begin: sources.begin(Arc::new(source)),
            end: END,
            from: constant(from.into()),
            to: constant(to.into()),
            keys: map_keys(texts)?,
            listed,
            other,
        })
    }
}

/// Keys of a map, each once: NGINX refuses a second one of the same letters.
fn map_keys(texts: &[Literal]) -> Result<Vec<Printed>, Unprintable> {
    let mut seen = std::collections::BTreeSet::new();
    let is_new = |text: &&Literal| seen.insert(text.as_str().to_lowercase());
    texts
        .iter()
        .filter(is_new)
        .map(|text| map_key(text.as_str()))
        .collect()
}

/// An upstream block of endpoints that the Lua side chooses.
pub(crate) struct PoolView<'a> {
    pub(crate) name: &'a str,
    pub(crate) keeps: bool,
}

fn pools(shared: &Shared) -> Vec<PoolView<'_>> {
    let own = shared.pools.iter();
    std::iter::once((pool::PLAIN, true))
        .chain(own.map(|(name, keeps)| (name.as_str(), *keeps)))
        .map(|(name, keeps)| PoolView { name, keeps })
        .collect()
}

/// How connections to endpoints are kept.
fn keepalive(context: &Context<'_>) -> Result<Vec<Directive>, Unprintable> {
    let config = context.config;
    if config.upstream_keepalive_connections == 0 {
        return Ok(Vec::new());
    }
    let mut directives = vec![directive(
        "keepalive",
        [word(config.upstream_keepalive_connections)],
    )];
    if context.capabilities.has_keepalive_time() {
        let time = argument(config.upstream_keepalive_time.as_str())?;
        directives.push(directive("keepalive_time", [time]));
    }
    directives.extend([
        directive(
            "keepalive_timeout",
            [word(config.upstream_keepalive_timeout)],
        ),
        directive(
            "keepalive_requests",
            [word(config.upstream_keepalive_requests)],
        ),
    ]);
    Ok(directives)
}
