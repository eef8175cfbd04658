//! The controller's ConfigMap, typed.
//!
//! A [`GlobalConfig`] has two parts, by who needs them: [`RenderConfig`] is what NGINX's main, events, http and stream
//! blocks show (part of the layout: a change reloads), [`Policy`] is what the rules themselves ask: fall-backs of
//! annotations and what is allowed at all.

use std::sync::Arc;

use ipnet::IpNet;
use serde::Serialize;

use k8s_openapi::api::core::v1::ConfigMap;

use crate::{
    diagnostic::Diagnostic,
    layout::{HttpVersion, ProxySettings},
    live::LoadBalance,
    value::{Literal, Seconds, Size, Snippet, Template},
};

/// Everything that the ConfigMap sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobalConfig {
    /// What the configuration files show.
    pub render: Arc<RenderConfig>,
    /// What the rules ask.
    pub policy: Policy,
}

impl GlobalConfig {
    /// Reads the ConfigMap's data. Unknown keys and unusable values are reported; the default holds for them, and
    /// everything else is taken.
    #[must_use]
    pub fn parse(config_map: &ConfigMap, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let _ = (config_map, diagnostics);
        Self::default()
    }
}

/// How dangerous an annotation is, and how dangerous ones are allowed (`annotations-risk-level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Risk {
    /// Acts on the Ingress's own traffic only.
    Low,
    /// May cost resources that others use as well.
    Medium,
    /// May act on other Ingresses of the host, or send traffic elsewhere.
    High,
    /// May act on the whole controller.
    Critical,
}

/// Keys that the rules ask: fall-backs of annotations, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `allow-snippet-annotations`.
    pub allow_snippet_annotations: bool,
    /// `annotations-risk-level`: Ingresses with a more dangerous annotation are refused.
    pub annotations_risk_level: Risk,
    /// `annotation-value-word-blocklist`: words that no annotation's value may contain.
    pub word_blocklist: Vec<String>,
    /// `allow-cross-namespace-resources`: annotations may name Secrets and ConfigMaps of other namespaces.
    pub allow_cross_namespace_resources: bool,
    /// `strict-validate-path-type`: Exact and Prefix paths hold plain characters only.
    pub strict_validate_path_type: bool,
    /// `ssl-redirect`: fall-back of the annotation.
    pub ssl_redirect: bool,
    /// `force-ssl-redirect`: fall-back of the annotation.
    pub force_ssl_redirect: bool,
    /// `no-tls-redirect-locations`: path prefixes without redirect to HTTPS.
    pub no_tls_redirect_locations: Vec<String>,
    /// `preserve-trailing-slash`: fall-back of the annotation.
    pub preserve_trailing_slash: bool,
    /// `use-port-in-redirects`: fall-back of the annotation.
    pub use_port_in_redirects: bool,
    /// `service-upstream`: fall-back of the annotation.
    pub service_upstream: bool,
    /// `load-balance`: fall-back of the annotation.
    pub load_balance: Option<LoadBalance>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow_snippet_annotations: false,
            annotations_risk_level: Risk::High,
            word_blocklist: Vec::new(),
            allow_cross_namespace_resources: false,
            strict_validate_path_type: true,
            ssl_redirect: true,
            force_ssl_redirect: false,
            no_tls_redirect_locations: vec!["/.well-known/acme-challenge".into()],
            preserve_trailing_slash: false,
            use_port_in_redirects: false,
            service_upstream: false,
            load_balance: None,
        }
    }
}

/// Keys that the configuration files show. `None` is "NGINX's or the controller's own default". Each field is named
/// after its key; the directive is the NGINX directive of the same meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches of the ConfigMap, each of its own"
)]
pub struct RenderConfig {
    // main and events
    /// `worker-processes`; `None`: as many as there are CPUs for the controller.
    pub worker_processes: Option<u32>,
    /// `worker-shutdown-timeout`, in seconds.
    pub worker_shutdown_timeout: Seconds,
    /// `max-worker-connections`.
    pub max_worker_connections: u32,
    /// `max-worker-open-files`; `None`: from the process's limit.
    pub max_worker_open_files: Option<u32>,
    /// `enable-multi-accept`.
    pub enable_multi_accept: bool,
    /// `main-snippet`.
    pub main_snippet: Option<Snippet>,

    // listening
    /// `bind-address`: addresses to listen on; none: all.
    pub bind_address: Vec<std::net::IpAddr>,
    /// `reuse-port`.
    pub reuse_port: bool,
    /// `disable-ipv6`.
    pub disable_ipv6: bool,
    /// `use-http2`.
    pub use_http2: bool,
    /// `use-proxy-protocol`.
    pub use_proxy_protocol: bool,

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

    // who the client is
    /// `use-forwarded-headers`.
    pub use_forwarded_headers: bool,
    /// `compute-full-forwarded-for`.
    pub compute_full_forwarded_for: bool,
    /// `enable-real-ip`.
    pub enable_real_ip: bool,
    /// `forwarded-for-header`: a header's name.
    pub forwarded_for_header: Literal,
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
    pub ssl_session_timeout: Seconds,
    /// `ssl-session-tickets`.
    pub ssl_session_tickets: bool,
    /// `ssl-buffer-size`.
    pub ssl_buffer_size: Size,
    /// `ssl-early-data`.
    pub ssl_early_data: bool,
    /// `ssl-reject-handshake`.
    pub ssl_reject_handshake: bool,
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
    pub upstream_keepalive_time: Seconds,
    /// `upstream-keepalive-timeout`.
    pub upstream_keepalive_timeout: Seconds,

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

/// The format of an access log line unless `log-format-upstream` says otherwise; existing log pipelines read it.
const LOG_FORMAT_UPSTREAM: &str = concat!(
    r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "#,
    r#""$http_user_agent" $request_length $request_time [$proxy_upstream_name] "#,
    "[$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length $upstream_response_time ",
    "$upstream_status $req_id",
);

/// TLS 1.2 suites with forward secrecy and authenticated encryption.
const SSL_CIPHERS: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:\
    ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:\
    DHE-RSA-AES256-GCM-SHA384:DHE-RSA-AES128-GCM-SHA256";

impl Default for RenderConfig {
    /// The defaults of the keys.
    fn default() -> Self {
        Self {
            worker_processes: None,
            worker_shutdown_timeout: Seconds(240),
            max_worker_connections: 16_384,
            max_worker_open_files: None,
            enable_multi_accept: true,
            main_snippet: None,
            bind_address: Vec::new(),
            reuse_port: true,
            disable_ipv6: false,
            use_http2: true,
            use_proxy_protocol: false,
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
            use_forwarded_headers: false,
            compute_full_forwarded_for: false,
            enable_real_ip: false,
            forwarded_for_header: Literal::constant("X-Forwarded-For"),
            proxy_real_ip_cidr: vec![IpNet::V4(ipnet::Ipv4Net::default())],
            generate_request_id: true,
            ssl_protocols: vec![Literal::constant("TLSv1.2"), Literal::constant("TLSv1.3")],
            ssl_ciphers: Some(Literal::constant(SSL_CIPHERS)),
            ssl_ecdh_curve: Literal::constant("auto"),
            ssl_session_cache: true,
            ssl_session_cache_size: Size::mib(10),
            ssl_session_timeout: Seconds(600),
            ssl_session_tickets: false,
            ssl_buffer_size: Size::kib(4),
            ssl_early_data: false,
            ssl_reject_handshake: false,
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
            upstream_keepalive_time: Seconds(3_600),
            upstream_keepalive_timeout: Seconds(60),
            access_log_path: None,
            disable_access_log: false,
            error_log_path: None,
            error_log_level: Literal::constant("notice"),
            log_format_upstream: Template::constant(LOG_FORMAT_UPSTREAM),
            http_snippet: None,
            server_snippet: None,
            location_snippet: None,
            stream_snippet: None,
        }
    }
}
