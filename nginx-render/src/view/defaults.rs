//! Settings of the http block that hold for every server.

use std::net::IpAddr;

use crate::{
    capabilities::Module,
    source_map::Note,
    value::{Printed, Unprintable, argument, network, plain, switch, time, word},
};

use super::{
    Context, compression,
    directive::{Directive, directive},
    hashes::Hashes,
    tls,
};

/// Everything but what locations may change.
///
/// # Errors
/// When a setting cannot stand in the configuration.
#[expect(clippy::too_many_lines, reason = "a line a directive")]
pub(crate) fn directives(
    context: &Context<'_>,
    hashes: &Hashes,
    notes: &mut Vec<Note>,
) -> Result<Vec<Directive>, Unprintable> {
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
    if !context.http_names.contains("request_pool_size") {
        // What a proxied request takes with all of its variables, in one part: memory that is given back with each request
        // costs as much as a few of them. A small request needs 9 KiB.
        add("request_pool_size", vec![word("12k")]);
    }
    add("keepalive_timeout", vec![time(config.keep_alive)]);
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
        vec![word(hashes.headers_bucket)],
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
    if let Some(path) = &context.environment.mime_types {
        if !context.http_names.contains("types_hash_max_size") {
            add("types_hash_max_size", vec![word(2_048)]);
        }
        add("include", vec![argument(path)?]);
    }
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
    settings.extend(compression::directives(context, notes)?);
    settings.extend(tls::directives(context)?);
    let mut add = |name, arguments: Vec<Printed>| settings.push(directive(name, arguments));
    add("proxy_ssl_session_reuse", vec![switch(true)]);
    if config.allow_backend_server_header {
        add("proxy_pass_header", vec![word("Server")]);
    }
    for header in &config.hide_headers {
        add("proxy_hide_header", vec![plain(header.as_str())?]);
    }
    for blocked in &config.block_cidrs {
        add("deny", vec![network(blocked)]);
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
            IpAddr::V4(server) => word(server),
            IpAddr::V6(server) => word(format_args!("[{server}]")),
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
pub(crate) fn temp_paths(nginx_dir: &str) -> Result<Vec<Directive>, Unprintable> {
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
