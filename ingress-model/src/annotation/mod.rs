//! What the annotations of an Ingress mean.
//!
//! One file a family, as a user thinks of them. Each has the registry entries of its annotations and the function that
//! reads them; documentation, validation, risk levels and spelling help all come from the registry.

mod access;
mod affinity;
mod auth;
mod balance;
mod canary;
mod client_auth;
mod cors;
mod custom_errors;
mod custom_headers;
mod external_auth;
mod fastcgi;
pub(crate) mod grammar;
mod limits;
mod log;
mod mirror;
mod modsecurity;
mod protocol;
pub(crate) mod proxy;
mod proxy_ssl;
mod reader;
mod redirect;
mod registry;
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
    live::{CookieAffinity, HashBy, LoadBalance, TrafficShaping},
    object::ObjectName,
    options::Options,
    value::{Literal, Snippet, Template},
};

use self::reader::Reader;
pub(crate) use self::registry::cell;
pub use self::registry::{
    AnnotationInfo, Effect, Misuse, Scope, Status, annotations, annotations_markdown, find,
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
    let snippets = snippet::read(&reader);
    let mut location = LocationSettings {
        backend_protocol: protocol::read(&mut reader),
        access_log: log::read(&mut reader),
        satisfy: satisfy::read(&mut reader),
        snippet: snippets.location,
        ..LocationSettings::default()
    };
    rewrite::read(&mut reader, &mut location);
    redirect::read(&mut reader, &mut location);
    ssl_redirect::read(&mut reader, &mut location);
    proxy::read(&mut reader, &mut location);
    let server = ServerSettings {
        aliases: server::aliases(&mut reader),
        snippet: snippets.server,
        client_auth: client_auth::read(&mut reader),
        ssl_ciphers: server::ssl_ciphers(&mut reader),
        ssl_prefer_server_ciphers: server::ssl_prefer_server_ciphers(&mut reader),
        ssl_passthrough: server::ssl_passthrough(&mut reader),
    };
    let backend = BackendSettings {
        service_upstream: balance::service_upstream(&mut reader),
        load_balance: balance::load_balance(&mut reader),
        hash_by: balance::hash_by(&mut reader),
        affinity: affinity::read(&mut reader),
        affinity_canary_legacy: affinity::canary_legacy(&mut reader),
    };
    let canary = canary::read(&mut reader);
    if reader.is_refused() {
        return None;
    }
    location.denied = reader.denied();
    Some(IngressSettings {
        location: Arc::new(location),
        server,
        backend,
        canary,
        stream_snippet: snippets.stream,
    })
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

    pub(super) fn settings(annotations: &[(&str, &str)]) -> Option<IngressSettings> {
        settings_with(&GlobalConfig::default(), annotations)
    }

    pub(super) fn settings_with(
        config: &GlobalConfig,
        annotations: &[(&str, &str)],
    ) -> Option<IngressSettings> {
        parse(
            &ingress(annotations),
            &Options::default(),
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
            &Options::default(),
            config,
            &mut diagnostics,
        );
        diagnostics.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        testing::{faults, faults_with, ingress, settings, settings_with},
        *,
    };
    use crate::{
        config::{Policy, Risk},
        diagnostic::{Reason, Severity},
    };

    /// Annotations that mean something only together with another one.
    fn companions(name: &str) -> &'static [(&'static str, &'static str)] {
        match name {
            "affinity" | "canary" | "auth-tls-secret" | "upstream-hash-by" => &[],
            "x-forwarded-prefix" => &[("rewrite-target", "/")],
            "permanent-redirect-code" => &[("permanent-redirect", "http://x.test/")],
            "temporal-redirect-code" => &[("temporal-redirect", "http://x.test/")],
            "proxy-redirect-from" => &[("proxy-redirect-to", "http://x.test/")],
            "proxy-redirect-to" => &[("proxy-redirect-from", "http://x.test/")],
            "proxy-busy-buffers-size" => &[("proxy-buffer-size", "8k")],
            name if name.starts_with("upstream-hash-by-") => &[("upstream-hash-by", "$host")],
            name if name.starts_with("session-cookie-") || name == "affinity-mode" => {
                &[("affinity", "cookie")]
            }
            name if name.starts_with("canary-") => &[("canary", "true")],
            name if name.starts_with("auth-tls-") => &[("auth-tls-secret", "shop/ca")],
            _ => &[],
        }
    }

    fn permissive() -> GlobalConfig {
        GlobalConfig {
            policy: Policy {
                allow_snippet_annotations: true,
                annotations_risk_level: Risk::Critical,
                ..Policy::default()
            },
            ..GlobalConfig::default()
        }
    }

    #[test]
    fn every_supported_annotation_changes_the_settings() {
        let config = permissive();
        for info in annotations().filter(|info| info.status == Status::Supported) {
            let companions = companions(info.name);
            let base = settings_with(&config, companions);
            let mut all = companions.to_vec();
            all.push((info.name, info.example));
            assert_eq!(faults_with(&config, &all), [""; 0], "{}", info.name);
            assert_ne!(settings_with(&config, &all), base, "{}", info.name);
            for alias in info.aliases {
                all.pop();
                all.push((alias, info.example));
                assert_ne!(settings_with(&config, &all), base, "{alias}");
            }
        }
    }

    #[test]
    fn unusable_values_have_the_consequence_of_the_registry() {
        for info in annotations().filter(|info| info.status == Status::Supported) {
            if info.risk == Risk::Critical {
                continue;
            }
            let companions = companions(info.name);
            let base = settings(companions).unwrap();
            let mut all = companions.to_vec();
            all.push((info.name, "\u{1}\n;"));
            assert_ne!(faults(&all), [""; 0], "{}", info.name);
            let read = settings(&all);
            match info.misuse {
                Misuse::Refuse => assert_eq!(read, None, "{}", info.name),
                Misuse::Deny if info.scope == Scope::Server => {
                    assert_ne!(read.unwrap().server, base.server, "{}", info.name);
                }
                Misuse::Deny => assert!(read.unwrap().location.denied.is_some(), "{}", info.name),
                Misuse::FallBack if info.name.starts_with("proxy-redirect-") => {}
                Misuse::FallBack => assert_eq!(read, Some(base), "{}", info.name),
            }
        }
    }

    #[test]
    fn annotations_that_are_not_acted_upon_say_so() {
        let config = permissive();
        for info in annotations().filter(|info| info.status == Status::NotYet) {
            let used = [(info.name, info.example)];
            assert_eq!(
                settings_with(&config, &used),
                settings_with(&config, &[]),
                "{}",
                info.name
            );
            assert_eq!(faults_with(&config, &used).len(), 1, "{}", info.name);
        }
    }

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
