//! The http block: what holds for every server is said here once.

use ingress_model::{Layout, layout::BackendProtocol, value::Literal};

use crate::{
    capabilities::Module,
    source_map::Sources,
    value::{Printed, Unprintable, map_key, plain, switch, word},
};

use super::{
    Context, SnippetView,
    access::ZonesView,
    compression, dictionaries,
    directive::{Directive, directive},
    errors,
    external_auth::AuthUpstreamView,
    extras::Shared,
    fastcgi,
    forwarded::ForwardedView,
    hashes::Hashes,
    headers, listen,
    location::protocol,
    logs::Logs,
    tls,
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
    pub(crate) skipped_urls: Vec<Printed>,
    pub(crate) agents: Vec<Printed>,
    pub(crate) referers: Vec<Printed>,
    pub(crate) forwarded: ForwardedView,
    pub(crate) generate_request_id: bool,
    /// What endpoints are told about the connection unless it is to be upgraded.
    pub(crate) no_upgrade: Printed,
    pub(crate) hsts: Option<Printed>,
    pub(crate) has_headers_more: bool,
    pub(crate) clears_server: bool,
    pub(crate) inherited: Vec<&'a Directive>,
    pub(crate) headers: Vec<Directive>,
    pub(crate) fastcgi: Vec<Directive>,
    pub(crate) errors: Vec<Directive>,
    pub(crate) zones: Vec<ZonesView>,
    pub(crate) auth_cache: Option<Printed>,
    pub(crate) auth_upstreams: Vec<AuthUpstreamView>,
    pub(crate) snippet: Option<SnippetView>,
    pub(crate) keepalive: Vec<Directive>,
    pub(crate) default_listen: Vec<Directive>,
    pub(crate) status_port: u16,
    pub(crate) body_limit: Printed,
    pub(crate) health_path: Printed,
    pub(crate) has_status: bool,
}

impl<'a> HttpView<'a> {
    pub(crate) fn new(
        layout: &Layout,
        shared: &Shared,
        context: &'a Context<'_>,
        logs: &'a Logs,
        sources: &mut Sources,
    ) -> Result<Self, Unprintable> {
        let (config, environment) = (context.config, context.environment);
        let agents = map_keys(&config.block_user_agents)?;
        let referers = map_keys(&config.block_referers)?;
        let skipped_urls = map_keys(&config.skip_access_log_urls)?;
        let keys = [&agents, &referers, &skipped_urls].into_iter().flatten();
        let hashes = Hashes::new(layout, keys.map(|key| key.0.len()).max().unwrap_or(0));
        let uses = |wanted: &[BackendProtocol]| {
            let mut locations = layout.servers.values().flat_map(|server| &server.locations);
            locations.any(|location| wanted.contains(&protocol(location)))
        };
        let grpc = uses(&[BackendProtocol::Grpc, BackendProtocol::Grpcs]);
        let mut headers = headers::all(config, BackendProtocol::Http, headers::Own::default());
        if grpc {
            headers.extend(headers::all(
                config,
                BackendProtocol::Grpc,
                headers::Own::default(),
            ));
        }
        let is_used = |directive: &&Directive| grpc || !directive.0.name.starts_with("grpc_");
        Ok(Self {
            lua_path: plain(&format!("{}/?.lua;;", environment.lua_dir))?,
            lua_json: dictionaries::lua_string(&format!("{}/lua.json", environment.nginx_dir))?,
            dictionaries: dictionaries::directives(context),
            metrics: environment.metrics.is_some(),
            hooks_certificates: !context.hooks_certificates_by_server,
            certificates: tls::certificates(context)?,
            settings: settings(context, &hashes)?,
            temp_paths: temp_paths(&environment.nginx_dir)?,
            logs,
            skipped_urls,
            agents,
            referers,
            forwarded: ForwardedView::new(context)?,
            generate_request_id: config.generate_request_id,
            no_upgrade: if config.upstream_keepalive_connections > 0 {
                plain("")?
            } else {
                word("close")
            },
            hsts: config.hsts.then(|| tls::hsts(config)).transpose()?,
            has_headers_more: context.capabilities.has(Module::HeadersMore),
            clears_server: !config.server_tokens,
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
            keepalive: keepalive(context),
            default_listen: listen::of_port(context, environment.ports.default_server),
            status_port: environment.ports.status,
            body_limit: dictionaries::body_limit(context),
            health_path: plain(&environment.health_path)?,
            has_status: context.capabilities.has(Module::StubStatus),
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

#[expect(clippy::too_many_lines, reason = "a line a directive")]
fn settings(context: &Context<'_>, hashes: &Hashes) -> Result<Vec<Directive>, Unprintable> {
    let (config, capabilities) = (context.config, context.capabilities);
    let (large_number, large_size) = &config.large_client_header_buffers;
    let mut settings = Vec::new();
    let mut add = |name, arguments: Vec<Printed>| settings.push(directive(name, arguments));
    if capabilities.has(Module::Threads) {
        add("aio", vec![word("threads")]);
        if config.enable_aio_write {
            add("aio_write", vec![switch(true)]);
        }
    }
    add("tcp_nopush", vec![switch(true)]);
    add("log_subrequest", vec![switch(true)]);
    add("reset_timedout_connection", vec![switch(true)]);
    add(
        "keepalive_timeout",
        vec![crate::value::time(config.keep_alive)],
    );
    add("keepalive_requests", vec![word(config.keep_alive_requests)]);
    if capabilities.has_keepalive_min_timeout() && config.keep_alive.0 > 0 {
        // Long enough for a client to send the request that it is about to send when a reload starts.
        add("keepalive_min_timeout", vec![word("300ms")]);
    }
    add(
        "client_header_buffer_size",
        vec![word(&config.client_header_buffer_size)],
    );
    add(
        "client_header_timeout",
        vec![word(config.client_header_timeout)],
    );
    add(
        "large_client_header_buffers",
        vec![word(large_number), word(large_size)],
    );
    add(
        "client_body_timeout",
        vec![word(config.client_body_timeout)],
    );
    if config.grpc_buffer_size_kb > 0 {
        add(
            "grpc_buffer_size",
            vec![word(format_args!("{}k", config.grpc_buffer_size_kb))],
        );
    }
    if capabilities.has(Module::HttpV2) {
        if config.use_http2 && capabilities.has_http2_directive() {
            add("http2", vec![switch(true)]);
        }
        add(
            "http2_max_concurrent_streams",
            vec![word(config.http2_max_concurrent_streams)],
        );
        if let (Some(field), Some(header)) =
            (&config.http2_max_field_size, &config.http2_max_header_size)
        {
            add("http2_max_field_size", vec![word(field)]);
            add("http2_max_header_size", vec![word(header)]);
        }
        if config.http2_max_requests > 0 {
            add("http2_max_requests", vec![word(config.http2_max_requests)]);
        }
    }
    if config.limit_rate > 0 {
        add(
            "limit_rate",
            vec![word(format_args!("{}k", config.limit_rate))],
        );
    }
    if config.limit_rate_after > 0 {
        add(
            "limit_rate_after",
            vec![word(format_args!("{}k", config.limit_rate_after))],
        );
    }
    add("limit_req_status", vec![word(config.limit_req_status_code)]);
    add(
        "limit_conn_status",
        vec![word(config.limit_conn_status_code)],
    );
    add("server_names_hash_max_size", vec![word(hashes.names_max)]);
    add(
        "server_names_hash_bucket_size",
        vec![word(hashes.names_bucket)],
    );
    add("map_hash_bucket_size", vec![word(hashes.map_bucket)]);
    add(
        "proxy_headers_hash_max_size",
        vec![word(config.proxy_headers_hash_max_size)],
    );
    add(
        "proxy_headers_hash_bucket_size",
        vec![word(config.proxy_headers_hash_bucket_size)],
    );
    add(
        "variables_hash_max_size",
        vec![word(config.variables_hash_max_size)],
    );
    add(
        "variables_hash_bucket_size",
        vec![word(config.variables_hash_bucket_size)],
    );
    add(
        "underscores_in_headers",
        vec![switch(config.enable_underscores_in_headers)],
    );
    add(
        "ignore_invalid_headers",
        vec![switch(config.ignore_invalid_headers)],
    );
    add("default_type", vec![plain(config.default_type.as_str())?]);
    add("server_tokens", vec![switch(config.server_tokens)]);
    add("uninitialized_variable_warn", vec![switch(false)]);
    add("server_name_in_redirect", vec![switch(false)]);
    add("port_in_redirect", vec![switch(false)]);
    if config.relative_redirects {
        add("absolute_redirect", vec![switch(false)]);
    }
    if let Some(resolver) = resolver(context) {
        settings.push(resolver);
    }
    settings.extend(compression::directives(config, capabilities)?);
    settings.extend(tls::directives(config)?);
    let mut add = |name, arguments: Vec<Printed>| settings.push(directive(name, arguments));
    add("proxy_ssl_session_reuse", vec![switch(true)]);
    if config.allow_backend_server_header {
        add("proxy_pass_header", vec![word("Server")]);
    }
    for header in &config.hide_headers {
        add("proxy_hide_header", vec![plain(header.as_str())?]);
    }
    for network in &config.block_cidrs {
        add("deny", vec![word(network)]);
    }
    Ok(settings)
}

/// `resolver`, if there is a name server that can be used.
pub(crate) fn resolver(context: &Context<'_>) -> Option<Directive> {
    let disable_v6 = context
        .config
        .disable_ipv6_dns
        .unwrap_or(!context.environment.ipv6);
    let servers: Vec<Printed> = context
        .environment
        .resolvers
        .iter()
        .filter(|server| server.is_ipv4() || !disable_v6)
        .map(|server| match server {
            std::net::IpAddr::V4(server) => word(server),
            std::net::IpAddr::V6(server) => word(format_args!("[{server}]")),
        })
        .collect();
    if servers.is_empty() {
        return None;
    }
    let options = std::iter::once(word("valid=30s")).chain(disable_v6.then(|| word("ipv6=off")));
    Some(directive("resolver", servers.into_iter().chain(options)))
}

/// Where NGINX keeps bodies that do not fit into memory. All of them are named: NGINX makes their directories at its
/// start, and the ones it was built with may not be writable.
fn temp_paths(nginx_dir: &str) -> Result<Vec<Directive>, Unprintable> {
    [
        ("client_body_temp_path", "client-body"),
        ("proxy_temp_path", "proxy"),
        ("fastcgi_temp_path", "fastcgi"),
        ("scgi_temp_path", "scgi"),
        ("uwsgi_temp_path", "uwsgi"),
    ]
    .into_iter()
    .map(|(name, directory)| {
        Ok(directive(
            name,
            [plain(&format!("{nginx_dir}/run/{directory}"))?],
        ))
    })
    .collect()
}

/// How connections to endpoints are kept.
fn keepalive(context: &Context<'_>) -> Vec<Directive> {
    let config = context.config;
    if config.upstream_keepalive_connections == 0 {
        return Vec::new();
    }
    let time = context.capabilities.has_keepalive_time().then(|| {
        directive(
            "keepalive_time",
            [crate::value::round_time(config.upstream_keepalive_time)],
        )
    });
    std::iter::once(directive(
        "keepalive",
        [word(config.upstream_keepalive_connections)],
    ))
    .chain(time)
    .chain([
        directive(
            "keepalive_timeout",
            [word(config.upstream_keepalive_timeout)],
        ),
        directive(
            "keepalive_requests",
            [word(config.upstream_keepalive_requests)],
        ),
    ])
    .collect()
}
