//! The half of the model that NGINX's configuration files show: servers, locations and settings. It names upstreams
//! but knows nothing of their endpoints, so that a change of those cannot reload.

mod feature;

use std::{collections::BTreeMap, fmt, sync::Arc};

use ipnet::IpNet;
use serde::Serialize;

use crate::{
    config::RenderConfig,
    host::Host,
    live::{PortRef, UpstreamName},
    object::ObjectName,
    shared_map::SharedMap,
    text::Text,
    value::{Literal, Seconds, Size, Snippet, Template},
};

pub use self::feature::{
    AuthCache, AuthKeepalive, AuthScheme, BasicAuth, CacheValid, Cors, ExternalAuth, FastCgi,
    Limits, Mirror, ModSecurity, Origin, SignIn, Tracing, UpstreamTls,
};

/// What the configuration files show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Settings of the ConfigMap that act on NGINX as a whole.
    pub config: Arc<RenderConfig>,
    /// Servers by host. The one for [`Host::catch_all`] is always there.
    pub servers: SharedMap<Host, Arc<Server>>,
    /// TCP services by external port.
    pub tcp: BTreeMap<u16, StreamServer>,
    /// UDP services by external port.
    pub udp: BTreeMap<u16, StreamServer>,
    /// Raw configuration for the stream block, in Ingress order (`stream-snippet`).
    pub stream_snippets: Vec<Owned<Snippet>>,
}

/// A value together with the Ingress that set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Owned<T> {
    /// The Ingress.
    pub ingress: ObjectName,
    /// What it set.
    pub value: T,
}

/// One NGINX server: everything of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Server {
    /// The host.
    pub host: Host,
    /// Further names (`server-alias`), sorted, none of them a host of another server.
    pub aliases: Vec<Host>,
    /// The other one of `host` and `www.host`, from which clients are redirected to this host (`from-to-www-redirect`).
    pub redirected: Option<Host>,
    /// Whether an Ingress has a TLS section for this host, so that plain HTTP is redirected.
    pub tls: bool,
    /// Client certificates (`auth-tls-*`).
    pub client_auth: Option<Box<Owned<ClientAuth>>>,
    /// Cipher suites of this host (`ssl-ciphers`).
    pub ssl_ciphers: Option<Literal>,
    /// `ssl-prefer-server-ciphers`.
    pub ssl_prefer_server_ciphers: Option<bool>,
    /// TLS spoken to the endpoints of locations that say nothing else (`proxy-ssl-*`, unless the ConfigMap's
    /// `proxy-ssl-location-only` is set).
    pub upstream_tls: Option<Box<Owned<UpstreamTls>>>,
    /// Raw configuration (`server-snippet`).
    pub snippet: Option<Owned<Snippet>>,
    /// In the order of the file.
    pub locations: Vec<Location>,
}

/// How NGINX matches a location's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Modifier {
    /// `location = "path"`.
    Exact,
    /// `location "path"`.
    Prefix,
    /// `location ~* "^path"`: every location of a host of which one uses a regular expression.
    Regex,
}

/// How an Ingress asks a path to be matched. ImplementationSpecific counts as Prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum PathType {
    /// The path and nothing else.
    Exact,
    /// The path and what lies below it.
    Prefix,
}

/// One NGINX location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// How [`Location::path`] is matched.
    pub modifier: Modifier,
    /// The path as the location names it.
    pub path: Text,
    /// The path as the Ingress writes it, `/` when it writes none: `$location_path`.
    pub ingress_path: Text,
    /// The path type that the Ingress asks for.
    pub path_type: PathType,
    /// Who defines it; `None` for what the controller adds itself.
    pub ingress: Option<ObjectName>,
    /// The Service that the rule names.
    pub service: Option<Arc<ServicePort>>,
    /// Where requests go.
    pub upstream: UpstreamName,
    /// Settings from the Ingress's annotations, shared by its locations.
    pub settings: Arc<LocationSettings>,
}

/// A Service and one of its ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ServicePort {
    /// The Service's name; its namespace is the Ingress's.
    pub name: String,
    /// The port as the rule names it.
    pub port: PortRef,
}

/// What the annotations of an Ingress set for its locations. `None` always means "as the level above has it".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LocationSettings {
    /// Why requests are answered 503: an annotation that protects the location cannot be used.
    pub denied: Option<String>,
    /// Protocol spoken to the endpoints (`backend-protocol`).
    pub backend_protocol: BackendProtocol,
    /// Redirect plain HTTP where the host has a TLS section (`ssl-redirect`).
    pub ssl_redirect: bool,
    /// Redirect plain HTTP in any case (`force-ssl-redirect`).
    pub force_ssl_redirect: bool,
    /// Keep a final `/` in redirects (`preserve-trailing-slash`).
    pub preserve_trailing_slash: bool,
    /// Name the HTTPS port in redirects (`use-port-in-redirects`).
    pub use_port_in_redirects: bool,
    /// Where `/` of the host is redirected to (`app-root`).
    pub app_root: Option<Template>,
    /// A redirect instead of a backend (`permanent-redirect`, `temporal-redirect`).
    pub redirect: Option<Redirect>,
    /// What the path is replaced by (`rewrite-target`).
    pub rewrite_target: Option<Template>,
    /// Paths are regular expressions (`use-regex`).
    pub use_regex: bool,
    /// `X-Forwarded-Prefix` (`x-forwarded-prefix`), with a rewrite only.
    pub forwarded_prefix: Option<Template>,
    /// `Host` for the endpoints (`upstream-vhost`).
    pub upstream_vhost: Option<Template>,
    /// Largest request body (`proxy-body-size`; NGINX docs: `client_max_body_size`).
    pub body_size: Option<Size>,
    /// `client-body-buffer-size`.
    pub body_buffer_size: Option<Size>,
    /// `connection-proxy-header`.
    pub connection_header: Option<Literal>,
    /// Timeouts, buffers and retries of the proxy.
    pub proxy: ProxySettings,
    /// Whether requests are logged (`enable-access-log`).
    pub access_log: Option<bool>,
    /// `enable-rewrite-log`.
    pub rewrite_log: bool,
    /// `satisfy`.
    pub satisfy: Option<Satisfy>,
    /// Raw configuration (`configuration-snippet`).
    pub snippet: Option<Snippet>,
    /// Clients that are let in (`allowlist-source-range`); none: everybody who is not refused.
    pub allow: Vec<IpNet>,
    /// Clients that are refused (`denylist-source-range`). Lists of a location replace those above it, so that the
    /// ConfigMap's `block-cidrs` stands here too where the location has any.
    pub deny: Vec<IpNet>,
    /// How much a client may ask for.
    pub limits: Option<Limits>,
    /// Kilobytes a second in which a response is sent; 0: as fast as it goes (`limit-rate`).
    pub limit_rate: Option<u32>,
    /// Kilobytes that are sent before that (`limit-rate-after`).
    pub limit_rate_after: Option<u32>,
    /// A question for a password.
    pub basic_auth: Option<BasicAuth>,
    /// A service that decides about each request: the Ingress's own or the ConfigMap's.
    pub external_auth: Option<Arc<ExternalAuth>>,
    /// Answers to cross-origin requests.
    pub cors: Option<Cors>,
    /// Further response headers (`custom-headers`).
    pub response_headers: Vec<(Literal, Literal)>,
    /// Statuses whose response the default backend gives, sorted; they replace the ConfigMap's (`custom-http-errors`).
    pub custom_http_errors: Option<Vec<u16>>,
    /// The backend that answers while the location's own has no endpoint, and that gives the responses of its own
    /// `custom_http_errors` (`default-backend`).
    pub default_backend: Option<UpstreamName>,
    /// Leaves error responses of endpoints as they are (`disable-proxy-intercept-errors`).
    pub disable_proxy_intercept_errors: bool,
    /// Leaves scheme and host out of redirects (`relative-redirects`).
    pub relative_redirects: Option<bool>,
    /// `http2-push-preload`.
    pub http2_push_preload: bool,
    /// A copy of each request.
    pub mirror: Option<Mirror>,
    /// TLS spoken to the endpoints.
    pub upstream_tls: Option<UpstreamTls>,
    /// FastCGI.
    pub fastcgi: FastCgi,
    /// ModSecurity.
    pub modsecurity: ModSecurity,
    /// Tracing.
    pub tracing: Tracing,
}

/// `proxy-*` annotations of a location (NGINX docs: ngx_http_proxy_module).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProxySettings {
    /// `proxy_connect_timeout`.
    pub connect_timeout: Option<Seconds>,
    /// `proxy_send_timeout`.
    pub send_timeout: Option<Seconds>,
    /// `proxy_read_timeout`.
    pub read_timeout: Option<Seconds>,
    /// `proxy_buffering`.
    pub buffering: Option<bool>,
    /// `proxy_request_buffering`.
    pub request_buffering: Option<bool>,
    /// `proxy_buffer_size`.
    pub buffer_size: Option<Size>,
    /// How many `proxy_buffers`.
    pub buffers_number: Option<u32>,
    /// `proxy_busy_buffers_size`.
    pub busy_buffers_size: Option<Size>,
    /// `proxy_max_temp_file_size`.
    pub max_temp_file_size: Option<Size>,
    /// `proxy_http_version`.
    pub http_version: Option<HttpVersion>,
    /// `proxy_next_upstream`: conditions, each a word that NGINX knows.
    pub next_upstream: Option<Vec<Literal>>,
    /// `proxy_next_upstream_timeout`.
    pub next_upstream_timeout: Option<Seconds>,
    /// `proxy_next_upstream_tries`.
    pub next_upstream_tries: Option<u32>,
    /// `proxy_cookie_domain`, as its arguments.
    pub cookie_domain: Option<Vec<Template>>,
    /// `proxy_cookie_path`, as its arguments.
    pub cookie_path: Option<Vec<Template>>,
    /// `proxy_redirect`, as its arguments.
    pub redirect: Option<Vec<Template>>,
}

/// HTTP version spoken to the endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum HttpVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

impl fmt::Display for HttpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http10 => "1.0",
            Self::Http11 => "1.1",
        })
    }
}

/// Protocol spoken to the endpoints (`backend-protocol`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum BackendProtocol {
    /// HTTP.
    #[default]
    Http,
    /// HTTP over TLS.
    Https,
    /// As the client came: HTTP or HTTPS.
    AutoHttp,
    /// gRPC without TLS.
    Grpc,
    /// gRPC over TLS.
    Grpcs,
    /// FastCGI.
    Fcgi,
}

/// A redirect in place of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// Where to.
    pub target: Template,
    /// The status.
    pub code: u16,
}

/// `satisfy` (NGINX docs: ngx_http_core_module).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Satisfy {
    /// All access checks have to allow.
    All,
    /// One is enough.
    Any,
}

/// Client certificates that a host asks for (`auth-tls-*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientAuth {
    /// Why every request is refused: the Secret cannot be used.
    pub denied: Option<String>,
    /// The authorities that client certificates have to come from.
    pub authority: Option<Authority>,
    /// Whether a certificate is required.
    pub verify: VerifyClient,
    /// Longest chain accepted (NGINX docs: `ssl_verify_depth`).
    pub depth: u32,
    /// Where a client without a valid certificate is sent (`auth-tls-error-page`).
    pub error_page: Option<Template>,
    /// Regular expression that the certificate's subject has to match (`auth-tls-match-cn`).
    pub match_cn: Option<Literal>,
    /// Whether the certificate is passed on in a header.
    pub pass_certificate: bool,
}

/// Certificates of authorities, written to files next to the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Authority {
    /// The Secret that they come from.
    pub secret: ObjectName,
    /// The certificates, PEM.
    pub pem: Arc<str>,
    /// The revocation list, PEM.
    pub crl: Option<Arc<str>>,
}

/// `ssl_verify_client` (NGINX docs: ngx_http_ssl_module).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum VerifyClient {
    /// A valid certificate is required.
    #[default]
    On,
    /// Not asked for.
    Off,
    /// Checked if there is one.
    Optional,
    /// Passed on unchecked if there is one.
    OptionalNoCa,
}

impl fmt::Display for VerifyClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Optional => "optional",
            Self::OptionalNoCa => "optional_no_ca",
        })
    }
}

/// A TCP or UDP service: a port that NGINX's stream module listens on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamServer {
    /// Where connections go.
    pub upstream: UpstreamName,
    /// Whether clients send a PROXY header (TCP only).
    pub proxy_protocol_in: bool,
    /// Whether the endpoints are sent one (TCP only).
    pub proxy_protocol_out: bool,
}
