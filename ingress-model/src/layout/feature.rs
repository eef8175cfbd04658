//! What a location may have besides its proxy settings: access checks, limits, headers, mirroring.

use std::fmt;

use ipnet::IpNet;
use serde::Serialize;

use crate::{
    object::ObjectName,
    value::{Confidential, Literal, Seconds, Snippet, Template},
};

use super::Authority;

/// How much a client may ask for (`limit-*`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Connections at once; 0: any number (`limit-connections`).
    pub connections: u32,
    /// Requests in a second; 0: any number (`limit-rps`).
    pub per_second: u32,
    /// Requests in a minute; 0: any number (`limit-rpm`).
    pub per_minute: u32,
    /// How many times a rate may be exceeded at once, at least 1 (`limit-burst-multiplier`).
    pub burst_multiplier: u32,
    /// Clients without limits (`limit-allowlist`).
    pub exempt: Vec<IpNet>,
}

/// Answers to cross-origin requests (`enable-cors`, `cors-*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cors {
    /// Who may ask; `None`: everybody.
    pub origins: Option<Vec<Origin>>,
    /// `Access-Control-Allow-Methods`.
    pub methods: Literal,
    /// `Access-Control-Allow-Headers`.
    pub headers: Literal,
    /// `Access-Control-Expose-Headers`.
    pub expose: Option<Literal>,
    /// `Access-Control-Allow-Credentials`.
    pub credentials: bool,
    /// `Access-Control-Max-Age`, in seconds; negative: not to be remembered.
    pub max_age: i64,
}

/// An origin that may ask: `scheme://host[:port]`, or `null`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Origin {
    /// What browsers send for pages without an origin.
    Null,
    /// Pages of a host.
    Page {
        /// Letters, digits, `+`, `-` and `.`.
        scheme: String,
        /// Whether the host stands for the names one level below it.
        wildcard: bool,
        /// Letters, digits, `-`, `.` and `_`.
        host: String,
        /// The port, where it is not the scheme's own.
        port: Option<u16>,
    },
}

impl Origin {
    /// A regular expression for exactly this origin, without anchors: its special characters are escaped.
    #[must_use]
    pub fn pattern(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Page {
                scheme,
                wildcard,
                host,
                port,
            } => {
                let level = if *wildcard { "[A-Za-z0-9_-]+\\." } else { "" };
                let scheme = regex::escape(scheme);
                let host = regex::escape(host);
                let port = port.map(|port| format!(":{port}")).unwrap_or_default();
                format!("{scheme}://{level}{host}{port}")
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Page {
                scheme,
                wildcard,
                host,
                port,
            } => {
                let level = if *wildcard { "*." } else { "" };
                write!(f, "{scheme}://{level}{host}")?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
        }
    }
}

/// A question for a user and a password (`auth-type` and its companions).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BasicAuth {
    /// How the password travels.
    pub scheme: AuthScheme,
    /// Shown with the question; never `off`, which NGINX takes for "no question".
    pub realm: Literal,
    /// The Secret with the users.
    pub secret: ObjectName,
    /// The users, as a password file (NGINX docs: `auth_basic_user_file`).
    pub users: Confidential,
}

/// `auth-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum AuthScheme {
    /// As it is (RFC 7617).
    Basic,
    /// As a digest (RFC 7616); needs a module that NGINX does not come with.
    Digest,
}

/// A service that decides about each request (`auth-url` and its companions, `global-auth-*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExternalAuth {
    /// Where it is asked: `http://` or `https://`, a host, and the rest.
    pub url: Template,
    /// The URL's host, without port.
    pub host: Template,
    /// The URL's host and port; without a port where the URL names none.
    pub authority: Template,
    /// Method of the question; `None`: GET.
    pub method: Option<Literal>,
    /// Where a client that was refused with 401 is sent.
    pub signin: Option<SignIn>,
    /// Headers of the answer that endpoints get.
    pub response_headers: Vec<Literal>,
    /// `X-Auth-Request-Redirect`; `None`: the request's URI.
    pub request_redirect: Option<Template>,
    /// Further headers of the question.
    pub request_headers: Vec<(Literal, Template)>,
    /// Keeping answers.
    pub cache: Option<AuthCache>,
    /// Whether cookies of the answer are passed on whatever the status of the response.
    pub always_set_cookie: bool,
    /// Keeping connections to the service.
    pub keepalive: Option<AuthKeepalive>,
    /// Raw configuration for the location that asks.
    pub snippet: Option<Snippet>,
}

/// Where a client is sent to sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignIn {
    /// The page.
    pub url: Template,
    /// What stands between the page's URL and the URL that the client came from: `?rd=` or `&rd=`. `None`: the page's
    /// URL says itself where to go back to.
    pub back: Option<Literal>,
}

/// Keeping answers of an authenticating service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthCache {
    /// Under which key.
    pub key: Template,
    /// How long, by status.
    pub valid: Vec<CacheValid>,
}

/// How long answers of some statuses are kept (NGINX docs: `proxy_cache_valid`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheValid {
    /// The statuses; none: 200, 301 and 302.
    pub statuses: Vec<u16>,
    /// How long.
    pub time: Seconds,
}

/// Keeping connections to an authenticating service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthKeepalive {
    /// How many idle ones.
    pub connections: u32,
    /// How many requests each serves.
    pub requests: u32,
    /// How long each may be idle.
    pub timeout: Seconds,
    /// Whether the question shares the request's variables.
    pub share_variables: bool,
}

/// A copy of each request (`mirror-*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mirror {
    /// Where it is sent.
    pub target: Template,
    /// Its `Host`.
    pub host: Template,
    /// Whether it has the body.
    pub request_body: bool,
}

/// TLS spoken to the endpoints (`proxy-ssl-*`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpstreamTls {
    /// The Secret that certificates come from.
    pub secret: ObjectName,
    /// Authorities of the endpoints' certificates.
    pub authority: Option<Authority>,
    /// The controller's certificate chain and key, PEM.
    pub certificate: Option<Confidential>,
    /// `proxy_ssl_ciphers`.
    pub ciphers: Literal,
    /// `proxy_ssl_protocols`, oldest first.
    pub protocols: Vec<Literal>,
    /// `proxy_ssl_name`.
    pub name: Option<Template>,
    /// `proxy_ssl_server_name`.
    pub server_name: bool,
    /// `proxy_ssl_verify`.
    pub verify: bool,
    /// `proxy_ssl_verify_depth`.
    pub verify_depth: u32,
}

/// FastCGI (`fastcgi-*`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FastCgi {
    /// `fastcgi_index`.
    pub index: Option<Literal>,
    /// `fastcgi_param`, by name.
    pub params: Vec<(Literal, Template)>,
}

/// ModSecurity in a location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModSecurity {
    /// Whether it looks at requests; `None`: as the ConfigMap has it.
    pub enable: Option<bool>,
    /// Whether it has the OWASP core rule set, in addition to what the ConfigMap has.
    pub core_rules: bool,
    /// Identity of a request in its log.
    pub transaction_id: Option<Template>,
    /// Rules, instead of the file of rules.
    pub rules: Option<Snippet>,
}

/// Tracing of a location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tracing {
    /// Whether requests are traced; `None`: as the ConfigMap has it.
    pub enable: Option<bool>,
    /// Whether a trace that the client began is continued; `None`: as the ConfigMap has it.
    pub trust_incoming_span: Option<bool>,
    /// Name of the span.
    pub operation_name: Option<Literal>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_their_origin_only() {
        let page = |wildcard, port| Origin::Page {
            scheme: "https".into(),
            wildcard,
            host: "shop.test".into(),
            port,
        };
        for (origin, text, matches, misses) in [
            (
                page(false, None),
                "https://shop.test",
                "https://shop.test",
                "https://shopxtest",
            ),
            (
                page(true, Some(8080)),
                "https://*.shop.test:8080",
                "https://a-b.shop.test:8080",
                "https://shop.test:8080",
            ),
            (Origin::Null, "null", "null", "nul"),
        ] {
            assert_eq!(origin.to_string(), text);
            let pattern = regex::Regex::new(&format!("^{}$", origin.pattern())).unwrap();
            assert!(pattern.is_match(matches), "{pattern}");
            assert!(!pattern.is_match(misses), "{pattern}");
        }
    }
}
