//! Which key of the ConfigMap is behind a directive outside of servers.

/// Directives whose key has another name than the directive with `-` for `_`.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("absolute_redirect", "relative-redirects"),
    ("access_log", "access-log-path"),
    ("aio_write", "enable-aio-write"),
    ("brotli", "enable-brotli"),
    ("brotli_comp_level", "brotli-level"),
    ("client_max_body_size", "proxy-body-size"),
    ("debug_connection", "debug-connections"),
    ("deny", "block-cidrs"),
    ("error_log", "error-log-path"),
    ("error_page", "custom-http-errors"),
    ("geoip2", "use-geoip2"),
    ("grpc_buffer_size", "grpc-buffer-size-kb"),
    ("gzip", "use-gzip"),
    ("gzip_comp_level", "gzip-level"),
    ("keepalive", "upstream-keepalive-connections"),
    ("keepalive_time", "upstream-keepalive-time"),
    ("keepalive_timeout", "keep-alive"),
    ("keepalive_requests", "keep-alive-requests"),
    ("limit_conn_status", "limit-conn-status-code"),
    ("limit_req_status", "limit-req-status-code"),
    ("limit_conn_zone", "limit-conn-zone-variable"),
    ("limit_req_zone", "limit-conn-zone-variable"),
    ("log_format", "log-format-upstream"),
    ("lua_shared_dict", "lua-shared-dicts"),
    ("modsecurity", "enable-modsecurity"),
    ("modsecurity_rules_file", "enable-owasp-modsecurity-crs"),
    ("multi_accept", "enable-multi-accept"),
    ("proxy_buffers", "proxy-buffers-number"),
    ("proxy_hide_header", "hide-headers"),
    ("proxy_intercept_errors", "custom-http-errors"),
    ("proxy_pass_header", "allow-backend-server-header"),
    ("proxy_protocol_timeout", "proxy-protocol-header-timeout"),
    ("proxy_redirect", "proxy-redirect-from"),
    ("proxy_responses", "proxy-stream-responses"),
    ("real_ip_header", "forwarded-for-header"),
    (
        "server_names_hash_bucket_size",
        "server-name-hash-bucket-size",
    ),
    ("server_names_hash_max_size", "server-name-hash-max-size"),
    ("ssl_dhparam", "ssl-dh-param"),
    ("set_real_ip_from", "proxy-real-ip-cidr"),
    ("underscores_in_headers", "enable-underscores-in-headers"),
    ("worker_connections", "max-worker-connections"),
    ("worker_rlimit_nofile", "max-worker-open-files"),
];

/// Directives whose key is the directive with `-` for `_`.
const SAME_NAMES: &[&str] = &[
    "brotli-min-length",
    "brotli-types",
    "client-body-buffer-size",
    "client-body-timeout",
    "client-header-buffer-size",
    "client-header-timeout",
    "default-type",
    "gzip-disable",
    "gzip-min-length",
    "gzip-types",
    "http2-max-concurrent-streams",
    "http2-max-field-size",
    "http2-max-header-size",
    "http2-max-requests",
    "ignore-invalid-headers",
    "large-client-header-buffers",
    "limit-rate",
    "limit-rate-after",
    "map-hash-bucket-size",
    "opentelemetry-config",
    "opentelemetry-operation-name",
    "proxy-buffer-size",
    "proxy-buffering",
    "proxy-busy-buffers-size",
    "proxy-connect-timeout",
    "proxy-cookie-domain",
    "proxy-cookie-path",
    "proxy-headers-hash-bucket-size",
    "proxy-headers-hash-max-size",
    "proxy-http-version",
    "proxy-max-temp-file-size",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-read-timeout",
    "proxy-request-buffering",
    "proxy-send-timeout",
    "server-tokens",
    "ssl-buffer-size",
    "ssl-ciphers",
    "ssl-early-data",
    "ssl-ecdh-curve",
    "ssl-protocols",
    "ssl-session-cache",
    "ssl-session-ticket-key",
    "ssl-session-tickets",
    "ssl-session-timeout",
    "variables-hash-bucket-size",
    "variables-hash-max-size",
    "worker-cpu-affinity",
    "worker-processes",
    "worker-shutdown-timeout",
];

/// Directives of the stream block whose key is another one there.
const IN_STREAM: &[(&str, &str)] = &[
    ("access_log", "stream-access-log-path"),
    ("log_format", "log-format-stream"),
    ("proxy_next_upstream", "proxy-stream-next-upstream"),
    (
        "proxy_next_upstream_timeout",
        "proxy-stream-next-upstream-timeout",
    ),
    (
        "proxy_next_upstream_tries",
        "proxy-stream-next-upstream-tries",
    ),
    ("proxy_timeout", "proxy-stream-timeout"),
];

/// The key behind a line; `None` for what the controller says on its own account.
pub(crate) fn key_of(line: &str, in_stream: bool) -> Option<&'static str> {
    let directive = line.trim_start().split([' ', ';']).next()?;
    let stream = IN_STREAM
        .iter()
        .find(|(name, _)| in_stream && *name == directive);
    if let Some((_, key)) = stream {
        return Some(key);
    }
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == directive);
    if let Some((_, key)) = other {
        return Some(key);
    }
    let key = directive.replace('_', "-");
    SAME_NAMES.iter().find(|same| **same == key).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_directive() {
        for (line, stream, want) in [
            ("    ssl_ciphers \"x\";", false, Some("ssl-ciphers")),
            (
                "    client_max_body_size 1m;",
                false,
                Some("proxy-body-size"),
            ),
            ("worker_processes 1;", false, Some("worker-processes")),
            (
                "    proxy_next_upstream on;",
                true,
                Some("proxy-stream-next-upstream"),
            ),
            (
                "    proxy_next_upstream error;",
                false,
                Some("proxy-next-upstream"),
            ),
            ("    lua_package_path \"x\";", false, None),
            ("}", false, None),
            ("", true, None),
        ] {
            assert_eq!(key_of(line, stream), want, "{line}");
        }
    }
}
