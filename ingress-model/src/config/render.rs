//! What the configuration files show of the ConfigMap.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use ipnet::IpNet;
use serde::Serialize;

use crate::{
    layout::{HttpVersion, ProxySettings},
    value::{Confidential, Literal, Seconds, Size, Snippet, Template, Time},
};

use super::{DhParameters, keys::keys};

/// Keys that the configuration files show. `None` is "NGINX's or the controller's own default". Each field is named
/// after its key; the directive is the NGINX directive of the same meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RenderConfig {
    // main and events
    /// `worker-processes`; `None`: as many as there are CPUs for the controller.
    pub worker_processes: Option<u32>,
    /// `worker-shutdown-timeout`.
    pub worker_shutdown_timeout: Time,
    /// `max-worker-connections`.
    pub max_worker_connections: u32,
    /// `max-worker-open-files`; `None`: from the process's limit.
    pub max_worker_open_files: Option<u32>,
    /// `enable-multi-accept`.
    pub enable_multi_accept: bool,
    /// `main-snippet`.
    pub main_snippet: Option<Snippet>,
    /// `worker-cpu-affinity`: `auto` and masks.
    pub worker_cpu_affinity: Vec<Literal>,
    /// `debug-connections`.
    pub debug_connections: Vec<IpNet>,
    /// `enable-serial-reloads`: a reload waits until the workers of the one before have ended.
    pub enable_serial_reloads: bool,

    // listening
    /// `bind-address`: addresses to listen on; none: all.
    pub bind_address: Vec<IpAddr>,
    /// `reuse-port`.
    pub reuse_port: bool,
    /// `disable-ipv6`.
    pub disable_ipv6: bool,
    /// `use-http2`.
    pub use_http2: bool,
    /// `use-http3`.
    pub use_http3: bool,
    /// `use-proxy-protocol`.
    pub use_proxy_protocol: bool,
    /// `disable-ipv6-dns`; `None`: where IPv6 does not work.
    pub disable_ipv6_dns: Option<bool>,

    // client side
    /// `keep-alive` (NGINX docs: `keepalive_timeout`).
    pub keep_alive: Seconds,
    /// `keep-alive-requests`.
    pub keep_alive_requests: u32,
    /// `client-header-buffer-size`.
    pub client_header_buffer_size: Size,
    /// `client-header-timeout`.
    pub client_header_timeout: Seconds,
    /// `large-client-header-buffers`: how many, and how large.
    pub large_client_header_buffers: (u32, Size),
    /// `client-body-buffer-size`.
    pub client_body_buffer_size: Size,
    /// `client-body-timeout`.
    pub client_body_timeout: Seconds,
    /// `proxy-body-size` (NGINX docs: `client_max_body_size`).
    pub proxy_body_size: Size,
    /// `http2-max-concurrent-streams`.
    pub http2_max_concurrent_streams: u32,
    /// `enable-underscores-in-headers`.
    pub enable_underscores_in_headers: bool,
    /// `ignore-invalid-headers`.
    pub ignore_invalid_headers: bool,
    /// `server-tokens`.
    pub server_tokens: bool,
    /// `http2-max-field-size`, for NGINX before 1.19.7.
    pub http2_max_field_size: Option<Size>,
    /// `http2-max-header-size`, for NGINX before 1.19.7.
    pub http2_max_header_size: Option<Size>,
    /// `http2-max-requests`, for NGINX before 1.19.7; 0: NGINX's own default.
    pub http2_max_requests: u32,
    /// `limit-rate`, in kilobytes a second; 0: as fast as it goes.
    pub limit_rate: u32,
    /// `limit-rate-after`, in kilobytes.
    pub limit_rate_after: u32,
    /// `limit-req-status-code`.
    pub limit_req_status_code: u16,
    /// `limit-conn-status-code`.
    pub limit_conn_status_code: u16,
    /// `limit-conn-zone-variable`: what tells clients apart.
    pub limit_conn_zone_variable: Template,
    /// `block-cidrs`.
    pub block_cidrs: Vec<IpNet>,
    /// `block-user-agents`: texts, or patterns behind `~` or `~*`.
    pub block_user_agents: Vec<Literal>,
    /// `block-referers`: texts, or patterns behind `~` or `~*`.
    pub block_referers: Vec<Literal>,
    /// `nginx-status-ipv4-whitelist`.
    pub nginx_status_ipv4_whitelist: Vec<IpNet>,
    /// `nginx-status-ipv6-whitelist`.
    pub nginx_status_ipv6_whitelist: Vec<IpNet>,

    // who the client is
    /// `use-forwarded-headers`.
    pub use_forwarded_headers: bool,
    /// `compute-full-forwarded-for`.
    pub compute_full_forwarded_for: bool,
    /// `enable-real-ip`.
    pub enable_real_ip: bool,
    /// `forwarded-for-header`: a header's name.
    pub forwarded_for_header: Literal,
    /// `forwarded-for-proxy-protocol-header`: a header's name.
    pub forwarded_for_proxy_protocol_header: Literal,
    /// `forwarded-host-header`: a header's name.
    pub forwarded_host_header: Literal,
    /// `proxy-real-ip-cidr`.
    pub proxy_real_ip_cidr: Vec<IpNet>,
    /// `generate-request-id`.
    pub generate_request_id: bool,

    // TLS
    /// `ssl-protocols`, each a word that NGINX knows.
    pub ssl_protocols: Vec<Literal>,
    /// `ssl-ciphers`; `None`: OpenSSL's default.
    pub ssl_ciphers: Option<Literal>,
    /// `ssl-ecdh-curve`.
    pub ssl_ecdh_curve: Literal,
    /// `ssl-session-cache`.
    pub ssl_session_cache: bool,
    /// `ssl-session-cache-size`.
    pub ssl_session_cache_size: Size,
    /// `ssl-session-timeout`.
    pub ssl_session_timeout: Time,
    /// `ssl-session-tickets`.
    pub ssl_session_tickets: bool,
    /// `ssl-buffer-size`.
    pub ssl_buffer_size: Size,
    /// `ssl-early-data`.
    pub ssl_early_data: bool,
    /// `ssl-reject-handshake`.
    pub ssl_reject_handshake: bool,
    /// `ssl-session-ticket-key`: base64 of 48 or 80 bytes; `None`: NGINX makes one.
    pub ssl_session_ticket_key: Option<Confidential>,
    /// `ssl-dh-param`: what its Secret holds.
    pub ssl_dh_param: Option<DhParameters>,
    /// `enable-ocsp`.
    pub enable_ocsp: bool,
    /// `http-redirect-code`.
    pub http_redirect_code: u16,
    /// `hsts`.
    pub hsts: bool,
    /// `hsts-max-age`.
    pub hsts_max_age: Seconds,
    /// `hsts-include-subdomains`.
    pub hsts_include_subdomains: bool,
    /// `hsts-preload`.
    pub hsts_preload: bool,

    // upstream side
    /// `proxy-*` keys that are fall-backs of annotations; `busy_buffers_size` alone may be unset.
    pub proxy: ProxySettings,
    /// `upstream-keepalive-connections`; 0: none are kept.
    pub upstream_keepalive_connections: u32,
    /// `upstream-keepalive-requests`.
    pub upstream_keepalive_requests: u32,
    /// `upstream-keepalive-time`.
    pub upstream_keepalive_time: Time,
    /// `upstream-keepalive-timeout`.
    pub upstream_keepalive_timeout: Seconds,
    /// `grpc-buffer-size-kb`; 0: NGINX's own default.
    pub grpc_buffer_size_kb: u32,

    // headers, errors and redirects
    /// `add-headers`: headers for responses, from its ConfigMap.
    pub add_headers: Vec<(Literal, Template)>,
    /// `proxy-set-headers`: headers for endpoints, from its ConfigMap.
    pub proxy_set_headers: Vec<(Literal, Template)>,
    /// `hide-headers`: header names.
    pub hide_headers: Vec<Literal>,
    /// `allow-backend-server-header`.
    pub allow_backend_server_header: bool,
    /// `proxy-add-original-uri-header`.
    pub proxy_add_original_uri_header: bool,
    /// `default-type`: a media type.
    pub default_type: Literal,
    /// `custom-http-errors`, sorted.
    pub custom_http_errors: Vec<u16>,
    /// `disable-proxy-intercept-errors`.
    pub disable_proxy_intercept_errors: bool,
    /// `relative-redirects`.
    pub relative_redirects: bool,

    // logs
    /// `access-log-path` or `http-access-log-path`; `None`: the controller's log directory.
    pub access_log_path: Option<Literal>,
    /// `disable-access-log` or `disable-http-access-log`.
    pub disable_access_log: bool,
    /// `error-log-path`; `None`: the controller's log directory.
    pub error_log_path: Option<Literal>,
    /// `error-log-level`: a word that NGINX knows.
    pub error_log_level: Literal,
    /// `log-format-upstream`.
    pub log_format_upstream: Template,
    /// `stream-access-log-path` or `access-log-path`; `None`: the controller's log directory.
    pub stream_access_log_path: Option<Literal>,
    /// `disable-access-log` or `disable-stream-access-log`.
    pub disable_stream_access_log: bool,
    /// `access-log-params`: further parameters of `access_log`, such as `buffer=16k`.
    pub access_log_params: Vec<Literal>,
    /// `log-format-stream`.
    pub log_format_stream: Template,
    /// `log-format-escape-json`.
    pub log_format_escape_json: bool,
    /// `log-format-escape-none`; wins over JSON.
    pub log_format_escape_none: bool,
    /// `skip-access-log-urls`: request URIs, or patterns behind `~` or `~*`.
    pub skip_access_log_urls: Vec<Literal>,
    /// `enable-access-log-for-default-backend`.
    pub enable_access_log_for_default_backend: bool,
    /// `enable-auth-access-log`.
    pub enable_auth_access_log: bool,
    /// `enable-syslog`: logs go to the server below.
    pub enable_syslog: bool,
    /// `syslog-host`.
    pub syslog_host: Option<Literal>,
    /// `syslog-port`.
    pub syslog_port: u16,

    // compression
    /// `use-gzip`.
    pub use_gzip: bool,
    /// `gzip-level`.
    pub gzip_level: u32,
    /// `gzip-min-length`, in bytes.
    pub gzip_min_length: u32,
    /// `gzip-types`: media types.
    pub gzip_types: Vec<Literal>,
    /// `gzip-disable`: a regular expression for user agents.
    pub gzip_disable: Option<Literal>,
    /// `enable-brotli`.
    pub enable_brotli: bool,
    /// `brotli-level`.
    pub brotli_level: u32,
    /// `brotli-min-length`, in bytes.
    pub brotli_min_length: u32,
    /// `brotli-types`: media types.
    pub brotli_types: Vec<Literal>,

    // memory
    /// `server-name-hash-max-size`; more where the names need it.
    pub server_name_hash_max_size: u32,
    /// `server-name-hash-bucket-size`; 0: as the names need.
    pub server_name_hash_bucket_size: u32,
    /// `map-hash-bucket-size`.
    pub map_hash_bucket_size: u32,
    /// `proxy-headers-hash-max-size`.
    pub proxy_headers_hash_max_size: u32,
    /// `proxy-headers-hash-bucket-size`.
    pub proxy_headers_hash_bucket_size: u32,
    /// `variables-hash-max-size`.
    pub variables_hash_max_size: u32,
    /// `variables-hash-bucket-size`.
    pub variables_hash_bucket_size: u32,
    /// `lua-shared-dicts`: sizes that differ from the controller's own, by name.
    pub lua_shared_dicts: BTreeMap<String, Size>,
    /// `enable-aio-write`.
    pub enable_aio_write: bool,

    // stream
    /// `proxy-stream-timeout`.
    pub proxy_stream_timeout: Time,
    /// `proxy-stream-next-upstream`.
    pub proxy_stream_next_upstream: bool,
    /// `proxy-stream-next-upstream-timeout`.
    pub proxy_stream_next_upstream_timeout: Time,
    /// `proxy-stream-next-upstream-tries`.
    pub proxy_stream_next_upstream_tries: u32,
    /// `proxy-stream-responses`.
    pub proxy_stream_responses: u32,
    /// `proxy-protocol-header-timeout`: longest time for the PROXY header (NGINX docs: `proxy_protocol_timeout`).
    pub proxy_protocol_header_timeout: Seconds,

    // optional modules
    /// `enable-modsecurity`.
    pub enable_modsecurity: bool,
    /// `enable-owasp-modsecurity-crs`.
    pub enable_owasp_modsecurity_crs: bool,
    /// `modsecurity-snippet`: rules, instead of the file of rules.
    pub modsecurity_snippet: Option<Snippet>,
    /// `use-geoip2`.
    pub use_geoip2: bool,
    /// `geoip2-autoreload-in-minutes`; 0: never.
    pub geoip2_autoreload_in_minutes: u32,
    /// `enable-opentelemetry` and its companions.
    pub opentelemetry: OpenTelemetry,

    // raw configuration
    /// `http-snippet`.
    pub http_snippet: Option<Snippet>,
    /// `server-snippet`.
    pub server_snippet: Option<Snippet>,
    /// `location-snippet`.
    pub location_snippet: Option<Snippet>,
    /// `stream-snippet`.
    pub stream_snippet: Option<Snippet>,
}

/// Tracing with OpenTelemetry (`opentelemetry-*`, `otel-*`, `otlp-*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenTelemetry {
    /// `enable-opentelemetry`.
    pub enable: bool,
    /// `opentelemetry-config`: a file; `None`: one that the controller writes.
    pub config: Option<Literal>,
    /// `opentelemetry-operation-name`.
    pub operation_name: Option<Template>,
    /// `opentelemetry-trust-incoming-span`.
    pub trust_incoming_span: bool,
    /// `otlp-collector-host`.
    pub collector_host: Option<Literal>,
    /// `otlp-collector-port`.
    pub collector_port: u16,
    /// `otel-service-name`.
    pub service_name: Literal,
    /// `otel-sampler`: a word that the module knows.
    pub sampler: Literal,
    /// `otel-sampler-ratio`: a decimal fraction from 0 to 1.
    pub sampler_ratio: Literal,
    /// `otel-sampler-parent-based`.
    pub sampler_parent_based: bool,
    /// `otel-max-queuesize`.
    pub max_queue_size: u32,
    /// `otel-max-export-batch-size`.
    pub max_export_batch_size: u32,
    /// `otel-schedule-delay-millis`.
    pub schedule_delay_millis: u32,
}

impl Default for OpenTelemetry {
    /// The defaults of the keys.
    fn default() -> Self {
        Self {
            enable: false,
            config: None,
            operation_name: None,
            trust_incoming_span: true,
            collector_host: None,
            collector_port: 4_317,
            service_name: Literal::constant("nginx"),
            sampler: Literal::constant("AlwaysOn"),
            sampler_ratio: Literal::constant("0.01"),
            sampler_parent_based: true,
            max_queue_size: 2_048,
            max_export_batch_size: 512,
            schedule_delay_millis: 5_000,
        }
    }
}

/// The format of an access log line unless `log-format-upstream` says otherwise; existing log pipelines read it.
const LOG_FORMAT_UPSTREAM: &str = concat!(
    r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "#,
    r#""$http_user_agent" $request_length $request_time [$proxy_upstream_name] "#,
    "[$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length $upstream_response_time ",
    "$upstream_status $req_id",
);

/// The same of the log of TCP and UDP connections.
const LOG_FORMAT_STREAM: &str =
    "[$remote_addr] [$time_local] $protocol $status $bytes_sent $bytes_received $session_time";

/// Media types that are worth compressing. NGINX compresses `text/html` in any case.
const COMPRESSIBLE: [&str; 17] = [
    "application/atom+xml",
    "application/javascript",
    "application/x-javascript",
    "application/json",
    "application/rss+xml",
    "application/vnd.ms-fontobject",
    "application/x-font-ttf",
    "application/x-web-app-manifest+json",
    "application/xhtml+xml",
    "application/xml",
    "font/opentype",
    "image/svg+xml",
    "image/x-icon",
    "text/css",
    "text/javascript",
    "text/plain",
    "text/x-component",
];

/// TLS 1.2 suites with forward secrecy and authenticated encryption.
const SSL_CIPHERS: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:\
    ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
    DHE-RSA-AES256-GCM-SHA384:DHE-RSA-AES128-GCM-SHA256";

impl RenderConfig {
    /// The keys whose values differ, in the order of the documentation.
    #[must_use]
    pub fn changed_keys(&self, other: &Self) -> Vec<&'static str> {
        keys()
            .filter(|key| key.differs(self, other))
            .map(|key| key.name)
            .collect()
    }
}

impl Default for RenderConfig {
    /// The defaults of the keys.
    #[expect(clippy::too_many_lines, reason = "a line a key")]
    fn default() -> Self {
        Self {
            worker_processes: None,
            worker_shutdown_timeout: Time::seconds(240),
            max_worker_connections: 16_384,
            max_worker_open_files: None,
            enable_multi_accept: true,
            main_snippet: None,
            worker_cpu_affinity: Vec::new(),
            debug_connections: Vec::new(),
            enable_serial_reloads: false,
            bind_address: Vec::new(),
            reuse_port: true,
            disable_ipv6: false,
            use_http2: true,
            use_http3: false,
            use_proxy_protocol: false,
            disable_ipv6_dns: None,
            keep_alive: Seconds(75),
            keep_alive_requests: 1_000,
            client_header_buffer_size: Size::kib(1),
            client_header_timeout: Seconds(60),
            large_client_header_buffers: (4, Size::kib(8)),
            client_body_buffer_size: Size::kib(8),
            client_body_timeout: Seconds(60),
            proxy_body_size: Size::mib(1),
            http2_max_concurrent_streams: 128,
            enable_underscores_in_headers: false,
            ignore_invalid_headers: true,
            server_tokens: false,
            http2_max_field_size: None,
            http2_max_header_size: None,
            http2_max_requests: 0,
            limit_rate: 0,
            limit_rate_after: 0,
            limit_req_status_code: 503,
            limit_conn_status_code: 503,
            limit_conn_zone_variable: Template::constant("$binary_remote_addr"),
            block_cidrs: Vec::new(),
            block_user_agents: Vec::new(),
            block_referers: Vec::new(),
            nginx_status_ipv4_whitelist: vec![IpAddr::V4(Ipv4Addr::LOCALHOST).into()],
            nginx_status_ipv6_whitelist: vec![IpAddr::V6(Ipv6Addr::LOCALHOST).into()],
            use_forwarded_headers: false,
            compute_full_forwarded_for: false,
            enable_real_ip: false,
            forwarded_for_header: Literal::constant("X-Forwarded-For"),
            forwarded_for_proxy_protocol_header: Literal::constant(
                "X-Forwarded-For-Proxy-Protocol",
            ),
            forwarded_host_header: Literal::constant("X-Forwarded-Host"),
            proxy_real_ip_cidr: vec![IpNet::V4(ipnet::Ipv4Net::default())],
            generate_request_id: true,
            ssl_protocols: vec![Literal::constant("TLSv1.2"), Literal::constant("TLSv1.3")],
            ssl_ciphers: Some(Literal::constant(SSL_CIPHERS)),
            ssl_ecdh_curve: Literal::constant("auto"),
            ssl_session_cache: true,
            ssl_session_cache_size: Size::mib(10),
            ssl_session_timeout: Time::minutes(10),
            ssl_session_tickets: false,
            ssl_buffer_size: Size::kib(4),
            ssl_early_data: false,
            ssl_reject_handshake: false,
            ssl_session_ticket_key: None,
            ssl_dh_param: None,
            enable_ocsp: false,
            http_redirect_code: 308,
            hsts: true,
            hsts_max_age: Seconds(31_536_000),
            hsts_include_subdomains: true,
            hsts_preload: false,
            proxy: ProxySettings {
                connect_timeout: Some(Seconds(5)),
                send_timeout: Some(Seconds(60)),
                read_timeout: Some(Seconds(60)),
                buffering: Some(false),
                request_buffering: Some(true),
                buffer_size: Some(Size::kib(4)),
                buffers_number: Some(4),
                busy_buffers_size: None,
                max_temp_file_size: Some(Size::mib(1024)),
                http_version: Some(HttpVersion::Http11),
                next_upstream: Some(vec![
                    Literal::constant("error"),
                    Literal::constant("timeout"),
                ]),
                next_upstream_timeout: Some(Seconds(0)),
                next_upstream_tries: Some(3),
                cookie_domain: Some(vec![Template::constant("off")]),
                cookie_path: Some(vec![Template::constant("off")]),
                redirect: Some(vec![Template::constant("off")]),
            },
            upstream_keepalive_connections: 320,
            upstream_keepalive_requests: 10_000,
            upstream_keepalive_time: Time::hours(1),
            upstream_keepalive_timeout: Seconds(60),
            grpc_buffer_size_kb: 0,
            add_headers: Vec::new(),
            proxy_set_headers: Vec::new(),
            hide_headers: Vec::new(),
            allow_backend_server_header: false,
            proxy_add_original_uri_header: false,
            default_type: Literal::constant("text/html"),
            custom_http_errors: Vec::new(),
            disable_proxy_intercept_errors: false,
            relative_redirects: false,
            access_log_path: None,
            disable_access_log: false,
            error_log_path: None,
            error_log_level: Literal::constant("notice"),
            log_format_upstream: Template::constant(LOG_FORMAT_UPSTREAM),
            stream_access_log_path: None,
            disable_stream_access_log: false,
            access_log_params: Vec::new(),
            log_format_stream: Template::constant(LOG_FORMAT_STREAM),
            log_format_escape_json: false,
            log_format_escape_none: false,
            skip_access_log_urls: Vec::new(),
            enable_access_log_for_default_backend: false,
            enable_auth_access_log: false,
            enable_syslog: false,
            syslog_host: None,
            syslog_port: 514,
            use_gzip: false,
            gzip_level: 1,
            gzip_min_length: 256,
            gzip_types: COMPRESSIBLE
                .iter()
                .copied()
                .map(Literal::constant)
                .collect(),
            gzip_disable: None,
            enable_brotli: false,
            brotli_level: 4,
            brotli_min_length: 20,
            brotli_types: std::iter::once("application/xml+rss")
                .chain(COMPRESSIBLE)
                .map(Literal::constant)
                .collect(),
            server_name_hash_max_size: 1_024,
            server_name_hash_bucket_size: 0,
            map_hash_bucket_size: 64,
            proxy_headers_hash_max_size: 512,
            proxy_headers_hash_bucket_size: 64,
            variables_hash_max_size: 2_048,
            variables_hash_bucket_size: 256,
            lua_shared_dicts: BTreeMap::new(),
            enable_aio_write: true,
            proxy_stream_timeout: Time::seconds(600),
            proxy_stream_next_upstream: true,
            proxy_stream_next_upstream_timeout: Time::seconds(600),
            proxy_stream_next_upstream_tries: 3,
            proxy_stream_responses: 1,
            proxy_protocol_header_timeout: Seconds(5),
            enable_modsecurity: false,
            enable_owasp_modsecurity_crs: false,
            modsecurity_snippet: None,
            use_geoip2: false,
            geoip2_autoreload_in_minutes: 0,
            opentelemetry: OpenTelemetry::default(),
            http_snippet: None,
            server_snippet: None,
            location_snippet: None,
            stream_snippet: None,
        }
    }
}
