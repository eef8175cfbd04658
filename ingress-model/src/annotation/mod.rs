//! What the annotations of an Ingress mean.
//!
//! One file a family, as a user thinks of them. Each has the registry entries of its annotations and the function that
//! reads them; documentation, validation, risk levels and spelling help all come from the registry.

mod access;
mod affinity;
mod auth;
mod auth_keepalive;
mod balance;
pub(crate) mod buffers;
mod canary;
mod client_auth;
mod cors;
pub(crate) mod custom_errors;
mod custom_headers;
pub(crate) mod external_auth;
mod fastcgi;
pub(crate) mod grammar;
mod guard;
mod limits;
mod log;
mod mirror;
mod modsecurity;
mod need;
mod protocol;
pub(crate) mod proxy;
mod proxy_ssl;
mod reader;
mod redirect;
mod registry;
mod resolve;
mod retired;
mod rewrite;
mod satisfy;
mod server;
mod snippet;
mod ssl_redirect;
mod telemetry;

use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    config::GlobalConfig,
    diagnostic::Diagnostic,
    host::Host,
    layout::{LocationSettings, VerifyClient},
    live::{CookieAffinity, HashBy, LoadBalance, TrafficShaping, UpstreamName},
    object::ObjectName,
    options::Options,
    value::{Literal, Snippet, Template},
};

pub(crate) use self::guard::Guard;
use self::reader::Reader;
pub(crate) use self::reader::Use;
pub(crate) use self::registry::cell;
pub use self::registry::{
    AnnotationInfo, Effect, Misuse, Need, Scope, annotations, annotations_markdown, find,
};
pub(crate) use self::retired::is_meant;

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
    /// That it holds nothing which another Ingress defines too: it is a canary that is switched off.
    pub yields: bool,
    /// That no version of the Ingress is served: its paths are closed.
    pub is_refused: bool,
    /// Raw configuration for the stream block (`stream-snippet`).
    pub stream_snippet: Option<Snippet>,
    /// The Service behind [`LocationSettings::default_backend`].
    pub default_backend: Option<ObjectName>,
    /// What [`IngressSettings::resolve`] has to look up.
    pub references: References,
}

/// What the annotations of an Ingress take from Secrets and ConfigMaps, besides what the settings name already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// How the Secret of [`BasicAuth`](crate::layout::BasicAuth) keeps the users.
    pub users: Option<UsersFormat>,
    /// `auth-proxy-set-headers`: a ConfigMap.
    pub request_headers: Option<ObjectName>,
    /// `custom-headers`: a ConfigMap.
    pub response_headers: Option<ObjectName>,
    /// `fastcgi-params-configmap`: a ConfigMap.
    pub fastcgi_params: Option<ObjectName>,
    /// Whether there is a `proxy-ssl-secret`, which [`UpstreamTls`](crate::layout::UpstreamTls) names.
    pub upstream_tls: bool,
}

impl References {
    /// Whether there is nothing to look up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `auth-secret-type`: how a Secret keeps users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UsersFormat {
    /// One password file, under the key `auth`.
    File,
    /// One key a user.
    Map,
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
    /// `from-to-www-redirect`: the other one of `host` and `www.host` is redirected to the host.
    pub from_to_www_redirect: bool,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
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
/// `None` when the Ingress as a whole must not be served (a too risky annotation, a refused word, or a value for which
/// the registry says [`Misuse::Refuse`]): the diagnostics say why. Any other unusable value is reported and its
/// fall-back holds, except where that would leave a location less protected than its author meant: such a location is
/// [denied](LocationSettings::denied).
#[must_use]
pub fn parse(
    ingress: &Ingress,
    options: &Options,
    config: &GlobalConfig,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<IngressSettings> {
    let mut reader = Reader::new(ingress, options, config, diagnostics);
    let settings = read(&mut reader);
    (!reader.is_refused()).then_some(settings)
}

/// What becomes of the annotations of an Ingress when [`parse`] reads them.
pub(crate) fn uses(ingress: &Ingress, options: &Options, config: &GlobalConfig) -> Vec<Use> {
    let mut diagnostics = Vec::new();
    let mut reader = Reader::new(ingress, options, config, &mut diagnostics);
    let _settings = read(&mut reader);
    reader.uses()
}

/// What the annotations say. It does not count if they make the reader refuse the Ingress.
fn read(reader: &mut Reader<'_>) -> IngressSettings {
    let snippets = snippet::read(reader);
    let mut location = LocationSettings {
        backend_protocol: protocol::read(reader),
        access_log: log::read(reader),
        satisfy: satisfy::read(reader),
        snippet: snippets.location,
        cors: cors::read(reader),
        mirror: mirror::read(reader),
        upstream_tls: proxy_ssl::read(reader),
        fastcgi: fastcgi::read(reader),
        modsecurity: modsecurity::read(reader),
        tracing: telemetry::read(reader),
        http2_push_preload: server::http2_push_preload(reader),
        ..LocationSettings::default()
    };
    rewrite::read(reader, &mut location);
    redirect::read(reader, &mut location);
    ssl_redirect::read(reader, &mut location);
    proxy::read(reader, &mut location);
    access::read(reader, &mut location);
    limits::read(reader, &mut location);
    custom_errors::read(reader, &mut location);
    let users = auth::read(reader).map(|(auth, format)| {
        location.basic_auth = Some(auth);
        format
    });
    let own_auth = external_auth::read(reader).map(Arc::new);
    let global_auth = external_auth::global(reader, own_auth.is_some());
    let request_headers = external_auth::request_headers(reader);
    let references = References {
        users,
        request_headers: request_headers.filter(|_| own_auth.is_some()),
        response_headers: custom_headers::read(reader),
        fastcgi_params: fastcgi::params(reader),
        upstream_tls: location.upstream_tls.is_some(),
    };
    location.external_auth = own_auth.or(global_auth);
    let server = ServerSettings {
        aliases: server::aliases(reader),
        snippet: snippets.server,
        client_auth: client_auth::read(reader),
        ssl_ciphers: server::ssl_ciphers(reader),
        ssl_prefer_server_ciphers: server::ssl_prefer_server_ciphers(reader),
        ssl_passthrough: server::ssl_passthrough(reader),
        from_to_www_redirect: redirect::from_to_www(reader),
    };
    let backend = BackendSettings {
        service_upstream: balance::service_upstream(reader),
        load_balance: balance::load_balance(reader),
        hash_by: balance::hash_by(reader),
        affinity: affinity::read(reader),
        affinity_canary_legacy: affinity::canary_legacy(reader),
    };
    let canary = canary::read(reader);
    let default_backend = custom_errors::default_backend(reader);
    location.default_backend = default_backend.as_ref().map(UpstreamName::stand_in);
    location.denied = reader.denied();
    IngressSettings {
        location: Arc::new(location),
        server,
        backend,
        canary,
        yields: canary::is_dormant(reader),
        is_refused: false,
        stream_snippet: snippets.stream,
        default_backend,
        references,
    }
}

#[cfg(test)]
mod testing {
    //! Annotations without the ceremony of an Ingress.

    use super::*;

    /// An Ingress of the namespace `shop` with these annotations, under the usual prefix unless they have one.
    pub(super) fn ingress(annotations: &[(&str, &str)]) -> Ingress {
        let prefixed = |name: &str| {
            if name.contains('/') {
                name.to_owned()
            } else {
                format!("nginx.ingress.kubernetes.io/{name}")
            }
        };
        let mut ingress = Ingress::default();
        ingress.metadata.namespace = Some("shop".into());
        ingress.metadata.name = Some("web".into());
        ingress.metadata.annotations = Some(
            annotations
                .iter()
                .map(|(name, value)| (prefixed(name), (*value).to_owned()))
                .collect(),
        );
        ingress
    }

    /// With the flags that annotations need.
    fn with_flags() -> Options {
        Options {
            ssl_passthrough: true,
            ..Options::default()
        }
    }

    pub(super) fn settings(annotations: &[(&str, &str)]) -> Option<IngressSettings> {
        settings_with(&GlobalConfig::default(), annotations)
    }

    pub(super) fn settings_with(
        config: &GlobalConfig,
        annotations: &[(&str, &str)],
    ) -> Option<IngressSettings> {
        parse(
            &ingress(annotations),
            &with_flags(),
            config,
            &mut Vec::new(),
        )
    }

    /// What is reported, as text.
    pub(super) fn faults(annotations: &[(&str, &str)]) -> Vec<String> {
        faults_with(&GlobalConfig::default(), annotations)
    }

    pub(super) fn faults_with(config: &GlobalConfig, annotations: &[(&str, &str)]) -> Vec<String> {
        let mut diagnostics = Vec::new();
        let _settings = parse(
            &ingress(annotations),
            &with_flags(),
            config,
            &mut diagnostics,
        );
        diagnostics.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        testing::{faults, ingress, settings, settings_with},
        *,
    };
    use crate::{
        config::Risk,
        diagnostic::{Reason, Severity},
    };

    #[test]
    fn reports_name_the_annotation_the_fault_and_the_cure() {
        let mut diagnostics = Vec::new();
        let annotations = [("proxy-read-timeout", "1m")];
        let ingress = ingress(&annotations);
        let config = GlobalConfig::default();
        assert!(parse(&ingress, &Options::default(), &config, &mut diagnostics).is_some());
        let text = diagnostics.first().unwrap().to_string();
        assert_eq!(
            text,
            "Ingress shop/web: nginx.ingress.kubernetes.io/proxy-read-timeout: \"1m\" is not a whole number; the \
             default holds (it takes: seconds) (AnnotationParsingFailed)"
        );
    }

    #[test]
    fn unknown_names_are_reported_with_a_guess() {
        let faults = faults(&[("rewrite-traget", "/"), ("other.test/rewrite-traget", "/")]);
        assert_eq!(faults.len(), 1);
        assert!(
            faults[0].contains("did you mean rewrite-target?"),
            "{faults:?}"
        );
        assert!(settings(&[("rewrite-traget", "/")]).is_some());
    }

    #[test]
    fn blocked_words_leave_the_ingress_out() {
        let mut config = GlobalConfig::default();
        config.policy.word_blocklist = vec!["evil".into(), String::new()];
        assert!(settings_with(&config, &[("upstream-vhost", "fine.test")]).is_some());
        assert!(settings_with(&config, &[("upstream-vhost", "evil.test")]).is_none());
        assert!(settings_with(&config, &[("no-such-thing", "so evil")]).is_none());
        assert!(settings_with(&config, &[("other.test/note", "evil")]).is_some());
    }

    #[test]
    fn risky_annotations_leave_the_ingress_out() {
        let mut config = GlobalConfig::default();
        config.policy.annotations_risk_level = Risk::Medium;
        assert!(settings_with(&config, &[("rewrite-target", "/")]).is_some());
        assert!(settings_with(&config, &[("server-alias", "a.test")]).is_none());
        assert!(settings_with(&config, &[("auth-url", "")]).is_none());
    }

    #[test]
    fn the_prefix_can_be_another() {
        let options = Options {
            annotations_prefix: "edge.test".into(),
            ..Options::default()
        };
        let annotations = [("edge.test/use-regex", "true"), ("rewrite-target", "/x")];
        let ingress = ingress(&annotations);
        let mut diagnostics = Vec::new();
        let config = GlobalConfig::default();
        let settings = parse(&ingress, &options, &config, &mut diagnostics).unwrap();
        assert!(settings.location.use_regex);
        assert_eq!(settings.location.rewrite_target, None);
        let told: Vec<_> = diagnostics.iter().map(|d| (d.severity, d.reason)).collect();
        assert_eq!(told, [(Severity::Info, Reason::UnknownAnnotation)]);
    }

    #[test]
    fn without_validation_text_is_taken_as_it_is_but_never_control_characters() {
        let options = Options {
            annotation_validation: false,
            ..Options::default()
        };
        let read = |value| {
            let ingress = ingress(&[("upstream-vhost", value)]);
            parse(
                &ingress,
                &options,
                &GlobalConfig::default(),
                &mut Vec::new(),
            )
        };
        let settings = read("odd!host; x").unwrap();
        assert_eq!(
            settings.location.upstream_vhost.as_ref().unwrap().as_str(),
            "odd!host; x"
        );
        assert_eq!(read("a\u{1}b"), None);
    }
}
