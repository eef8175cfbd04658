//! The controller's ConfigMap, typed.
//!
//! A [`GlobalConfig`] has two parts, by who needs them: [`RenderConfig`] is what NGINX's main, events, http and stream
//! blocks show (part of the layout: a change reloads), [`Policy`] is what the rules themselves ask: fall-backs of
//! annotations and what is allowed at all.

mod exemption;
mod fate;
mod keys;
mod referred;
mod render;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ipnet::IpNet;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;

use crate::{
    annotation::{buffers, external_auth, proxy},
    diagnostic::{Diagnostic, Reason, Severity},
    layout::{ExternalAuth, ProxySettings},
    live::LoadBalance,
    object::{ObjectKind, ObjectName, ObjectRef},
    scalar,
    value::{Literal, Template, ValueError},
};

use self::keys::Instead;
pub use self::{
    fate::{Fate, KeyUse, key_uses},
    keys::{Context, KeyInfo, Status, config_keys_markdown, find_key, keys},
    referred::{DhParameters, References},
    render::{OpenTelemetry, RenderConfig},
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
    /// Reads the ConfigMap's data. Unknown keys and unusable values are reported; the default holds for them, unless
    /// it would open what the key protects, and everything else is taken.
    #[must_use]
    pub fn parse(config_map: &ConfigMap, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let mut report = Report {
            fates: BTreeMap::new(),
            about: ObjectRef::new(
                ObjectKind::ConfigMap,
                ObjectName::new(
                    config_map.metadata.namespace.as_deref().unwrap_or_default(),
                    config_map.metadata.name.as_deref().unwrap_or_default(),
                ),
            ),
            diagnostics,
        };
        Self::read(config_map, &mut report)
    }

    fn read(config_map: &ConfigMap, report: &mut Report<'_>) -> Self {
        let empty = BTreeMap::new();
        let data = config_map.data.as_ref().unwrap_or(&empty);
        let mut entries: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
        for (written, value) in data {
            let Some(key) = find_key(written) else {
                let hint = keys::suggestion(written)
                    .map(|name| format!("; did you mean {name}?"))
                    .unwrap_or_default();
                let message = format!("there is no such key{hint}");
                report.tell(written, Reason::UnknownConfigKey, Fate::Unknown, message);
                continue;
            };
            if key.status == Status::NotYet {
                let message = if key.is_read() {
                    "has no effect: this version does not act on it yet"
                } else {
                    "has no effect, as in ingress-nginx"
                };
                report.tell(
                    written,
                    Reason::UnsupportedConfigKey,
                    Fate::NotYet,
                    message.into(),
                );
            }
            // The key as documented wins over one in another case.
            if !data.contains_key(key.name) || written == key.name {
                entries.insert(key.name, (written, value));
            } else {
                report.fates.insert(written.clone(), Fate::Overridden);
            }
        }
        let mut draft = Draft::default();
        for key in keys() {
            let Some((written, value)) = entries.get(key.name) else {
                continue;
            };
            if let Err(error) = key.set(&mut draft, value.trim()) {
                if key.instead == Instead::Closed {
                    draft.policy.unusable.insert(key.name);
                }
                let message = format!("{error}; {} (it takes: {})", key.instead, key.value);
                report.tell(written, Reason::InvalidConfigKey, Fate::Refused, message);
            }
            for error in draft.left_out.drain(..) {
                let message = format!("an item is left out: {error}");
                report.tell(written, Reason::InvalidConfigKey, Fate::InPart, message);
            }
        }
        draft.finish(&entries, report)
    }
}

/// The settings while keys are read.
#[derive(Default)]
struct Draft {
    render: RenderConfig,
    policy: Policy,
    auth: external_auth::Parts,
    /// Items of the list being read that cannot be used.
    left_out: Vec<ValueError>,
}

impl Draft {
    /// Items of a list. Those that cannot be used are left out, unless that would leave nothing.
    fn items<T, C: FromIterator<T>>(
        &mut self,
        text: &str,
        read: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Result<C, ValueError> {
        let mut good = Vec::new();
        let mut bad = Vec::new();
        for item in scalar::items(text) {
            match read(item) {
                Ok(item) => good.push(item),
                Err(error) => bad.push(error),
            }
        }
        if good.is_empty() && !bad.is_empty() {
            return Err(bad.swap_remove(0));
        }
        self.left_out = bad;
        Ok(good.into_iter().collect())
    }

    /// Settles what depends on several keys. `entries` are those that are there, as written.
    fn finish(
        mut self,
        entries: &BTreeMap<&str, (&str, &str)>,
        report: &mut Report<'_>,
    ) -> GlobalConfig {
        let defaults = RenderConfig::default().proxy;
        let proxy = &mut self.render.proxy;
        if let Err(error) = buffers::check(proxy, &ProxySettings::default()) {
            let message = format!("{error}; the defaults hold for all four keys of proxy buffers");
            let there = buffers::BUFFERS.iter().filter_map(|key| entries.get(key));
            let there: Vec<_> = there.map(|(written, _)| *written).collect();
            // The one that the message begins with is at fault.
            let at_fault = there.iter().find(|written| message.starts_with(**written));
            if let Some(written) = at_fault.or_else(|| there.first()) {
                report.tell(written, Reason::InvalidConfigKey, Fate::Refused, message);
            }
            for written in there {
                report.fates.insert(written.to_owned(), Fate::Refused);
            }
            proxy.buffer_size = defaults.buffer_size;
            proxy.buffers_number = defaults.buffers_number;
            proxy.busy_buffers_size = defaults.busy_buffers_size;
            proxy.max_temp_file_size = defaults.max_temp_file_size;
        }
        if let Some(words) = &mut proxy.next_upstream {
            let known = words.iter().any(|word| word.as_str() == "non_idempotent");
            if self.policy.retry_non_idempotent && !known {
                words.push(Literal::constant("non_idempotent"));
            }
        }
        let connections = self.render.max_worker_connections;
        if let Some(files) = self.render.max_worker_open_files
            && files < connections
        {
            let message = format!(
                "a worker has no files for the {connections} connections of max-worker-connections"
            );
            let reason = Reason::InvalidConfigKey;
            report.tell("max-worker-open-files", reason, Fate::Accepted, message);
        }
        if self.render.enable_syslog && self.render.syslog_host.is_none() {
            let message = "syslog-host is not set; logs go to files".to_owned();
            let reason = Reason::InvalidConfigKey;
            report.tell("enable-syslog", reason, Fate::Refused, message);
        }
        let policy = &self.policy;
        let redirect =
            proxy::redirect_arguments(&policy.proxy_redirect_from, &policy.proxy_redirect_to);
        proxy.redirect = redirect.or(defaults.redirect);
        self.policy.global_auth = self.auth.build().map(Arc::new);
        GlobalConfig {
            render: Arc::new(self.render),
            policy: self.policy,
        }
    }
}

/// Where faults of the ConfigMap go.
struct Report<'a> {
    about: ObjectRef,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// Keys, as written, that are not simply accepted.
    fates: BTreeMap<String, Fate>,
}

impl Report<'_> {
    fn tell(&mut self, key: &str, reason: Reason, fate: Fate, message: String) {
        let about = self.about.clone();
        let known = self.fates.entry(key.to_owned()).or_insert(fate);
        if *known != Fate::NotYet {
            *known = fate;
        }
        self.diagnostics
            .push(Diagnostic::new(about, Severity::Warning, reason, message).with_key(key));
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
    /// `retry-non-idempotent`: retries include requests that may not be repeated.
    pub retry_non_idempotent: bool,
    /// `proxy-redirect-from`: fall-back of the annotation.
    pub proxy_redirect_from: Template,
    /// `proxy-redirect-to`: fall-back of the annotation.
    pub proxy_redirect_to: Template,
    /// `whitelist-source-range`: fall-back of the annotation.
    pub allowlist_source_range: Vec<IpNet>,
    /// `denylist-source-range`: fall-back of the annotation.
    pub denylist_source_range: Vec<IpNet>,
    /// `no-auth-locations`: path prefixes without authentication.
    pub no_auth_locations: Vec<String>,
    /// `global-allowed-response-headers`: headers that `custom-headers` may set.
    pub allowed_response_headers: Vec<Literal>,
    /// `proxy-ssl-location-only`: `proxy-ssl-*` annotations leave the server alone.
    pub proxy_ssl_location_only: bool,
    /// `global-auth-*`: the service that decides about requests of locations without one of their own.
    pub global_auth: Option<Arc<ExternalAuth>>,
    /// Keys that protect locations and whose values cannot be used: what they would protect is closed.
    pub unusable: BTreeSet<&'static str>,
    /// Objects whose content [`GlobalConfig::resolve`] looks up.
    pub references: References,
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
            retry_non_idempotent: false,
            proxy_redirect_from: Template::constant("off"),
            proxy_redirect_to: Template::constant("off"),
            allowlist_source_range: Vec::new(),
            denylist_source_range: Vec::new(),
            no_auth_locations: vec!["/.well-known/acme-challenge".into()],
            allowed_response_headers: Vec::new(),
            proxy_ssl_location_only: false,
            global_auth: None,
            unusable: BTreeSet::new(),
            references: References::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(data: &[(&str, &str)]) -> (GlobalConfig, Vec<String>) {
        let config_map = ConfigMap {
            data: Some(
                data.iter()
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                    .collect(),
            ),
            ..ConfigMap::default()
        };
        let mut diagnostics = Vec::new();
        let config = GlobalConfig::parse(&config_map, &mut diagnostics);
        let faults = diagnostics.iter().map(ToString::to_string).collect();
        (config, faults)
    }

    /// Keys that mean something only together with another one.
    fn companions(name: &str) -> &'static [(&'static str, &'static str)] {
        match name {
            "proxy-redirect-to" => &[("proxy-redirect-from", "http://inner.test/")],
            "enable-syslog" => &[("syslog-host", "logs.test")],
            "global-auth-url" => &[],
            "global-auth-signin-redirect-param" => &[
                ("global-auth-url", "http://auth.test/"),
                ("global-auth-signin", "http://auth.test/start"),
            ],
            "global-auth-cache-duration" => &[
                ("global-auth-url", "http://auth.test/"),
                ("global-auth-cache-key", "$remote_user"),
            ],
            name if name.starts_with("global-auth-") => &[("global-auth-url", "http://auth.test/")],
            _ => &[],
        }
    }

    #[test]
    fn every_supported_key_changes_the_configuration() {
        for key in keys().filter(|key| key.status == Status::Supported) {
            let (base, _) = parse(companions(key.name));
            let mut all = companions(key.name).to_vec();
            all.push((key.name, key.example));
            let (config, faults) = parse(&all);
            assert_eq!(faults, [""; 0], "{}", key.name);
            assert_ne!(config, base, "{}", key.name);
            if config.render != base.render {
                assert_ne!(
                    base.render.changed_keys(&config.render),
                    [""; 0],
                    "{}",
                    key.name
                );
            }
        }
    }

    #[test]
    fn a_bad_value_is_reported_and_the_default_holds() {
        let (default, _) = parse(&[]);
        for key in keys() {
            let Some(bad) = key.bad.filter(|_| key.is_read()) else {
                continue;
            };
            let expected = 1 + usize::from(key.status == Status::NotYet);
            let (config, faults) = parse(&[(key.name, bad)]);
            assert_eq!(faults.len(), expected, "{}: {faults:?}", key.name);
            let is_default = config == default;
            assert_eq!(is_default, key.instead == Instead::Default, "{}", key.name);
        }
    }

    #[test]
    fn an_unknown_level_of_risk_is_the_lowest() {
        for (text, want) in [
            ("CRITICAL", Risk::Critical),
            ("medium", Risk::Medium),
            ("lowest", Risk::Low),
            ("", Risk::Low),
        ] {
            let (config, faults) = parse(&[("annotations-risk-level", text)]);
            assert_eq!(config.policy.annotations_risk_level, want, "{text:?}");
            assert_eq!(faults.is_empty(), want != Risk::Low, "{text:?}");
        }
    }

    #[test]
    fn one_bad_value_leaves_the_others_alone() {
        let (config, faults) =
            parse(&[("keep-alive", "long"), ("hsts", "false"), ("no-such", "1")]);
        assert!(!config.render.hsts);
        assert_eq!(config.render.keep_alive, RenderConfig::default().keep_alive);
        assert_eq!(faults.len(), 2);
    }

    #[test]
    fn buffers_that_contradict_each_other_are_told_of_by_the_keys_that_are_there() {
        let (config, faults) = parse(&[("proxy-max-temp-file-size", "1k"), ("keep-alive", "9")]);
        assert_eq!(config.render.proxy, RenderConfig::default().proxy);
        let [fault] = &faults[..] else {
            panic!("{faults:?}")
        };
        assert!(fault.contains(": proxy-max-temp-file-size: "), "{fault}");
        let both = [
            ("proxy-max-temp-file-size", "1k"),
            ("proxy-buffer-size", "2k"),
        ];
        assert_eq!(parse(&both).1.len(), 1);
    }

    #[test]
    fn one_bad_item_leaves_the_others_alone() {
        let (config, faults) = parse(&[("custom-http-errors", "200,what,502, 404")]);
        assert_eq!(config.render.custom_http_errors, [404, 502]);
        assert_eq!(
            faults
                .iter()
                .filter(|fault| fault.contains("left out"))
                .count(),
            2
        );
        let (config, _) = parse(&[("bind-address", "192.0.2.1, nowhere,[2001:db8::1]")]);
        assert_eq!(config.render.bind_address.len(), 2);
        let (config, _) = parse(&[("proxy-real-ip-cidr", "everybody, 10.0.0.0/8")]);
        assert_eq!(
            config.render.proxy_real_ip_cidr,
            ["10.0.0.0/8".parse().unwrap()]
        );
        let (config, _) = parse(&[("proxy-real-ip-cidr", "")]);
        assert!(config.render.proxy_real_ip_cidr.is_empty());
    }

    #[test]
    fn what_cannot_be_used_never_opens_or_trusts_more() {
        let (config, faults) = parse(&[("proxy-real-ip-cidr", "10.0.0.0/8 192.0.2.0/24")]);
        assert!(config.render.proxy_real_ip_cidr.is_empty());
        assert!(faults.concat().contains("nobody is trusted"), "{faults:?}");
        let (config, faults) = parse(&[("whitelist-source-range", "office, 10.0.0.0/8")]);
        assert_eq!(config.policy.allowlist_source_range.len(), 1);
        assert!(config.policy.unusable.is_empty());
        assert_eq!(faults.len(), 1, "{faults:?}");
        let key = "whitelist-source-range";
        let (config, faults) = parse(&[(key, "10.0.0.0/8 192.0.2.0/24")]);
        assert!(config.policy.unusable.contains(key));
        assert!(faults.concat().contains("answers 503"), "{faults:?}");
    }

    #[test]
    fn sizes_that_no_request_fits_in_are_refused() {
        for (key, bad) in [
            ("client-header-buffer-size", "0"),
            ("client-body-buffer-size", "0k"),
            ("large-client-header-buffers", "0 8k"),
            ("large-client-header-buffers", "4 0"),
            ("large-client-header-buffers", "4 511"),
            ("proxy-buffer-size", "0"),
            ("max-worker-open-files", "5"),
            ("custom-http-errors", "499"),
        ] {
            let (config, faults) = parse(&[(key, bad)]);
            assert_eq!(config, GlobalConfig::default(), "{key}: {bad}");
            assert_eq!(faults.len(), 1, "{key}: {bad}: {faults:?}");
        }
    }

    #[test]
    fn fewer_files_than_connections_are_reported() {
        let few = |files, connections| {
            let (config, faults) = parse(&[
                ("max-worker-open-files", files),
                ("max-worker-connections", connections),
            ]);
            assert!(config.render.max_worker_open_files.is_some());
            !faults.is_empty()
        };
        assert!(few("2048", "4096"));
        assert!(!few("4096", "4096"));
        assert!(!few("2048", "0"));
    }

    #[test]
    fn names_are_found_in_any_case_and_guessed() {
        let (config, faults) = parse(&[("Keep-Alive", "10"), ("keep-alive", "20")]);
        assert_eq!(config.render.keep_alive.0, 20);
        assert_eq!(faults, [""; 0]);
        let (config, _) = parse(&[("Keep-Alive", "10")]);
        assert_eq!(config.render.keep_alive.0, 10);
        let (_, faults) = parse(&[("keepalive", "10")]);
        assert!(
            faults.concat().contains("did you mean keep-alive?"),
            "{faults:?}"
        );
    }

    #[test]
    fn numbers_and_booleans_are_those_of_ingress_nginx() {
        let (config, faults) = parse(&[
            ("keep-alive", "0x10"),
            ("client-body-timeout", "010"),
            ("max-worker-connections", ""),
            ("hsts", ""),
            ("enable-real-ip", "T\n"),
        ]);
        assert_eq!(faults, [""; 0]);
        assert_eq!(config.render.keep_alive.0, 16);
        assert_eq!(config.render.client_body_timeout.0, 8);
        assert_eq!(config.render.max_worker_connections, 0);
        assert!(!config.render.hsts);
        assert!(config.render.enable_real_ip);
    }

    #[test]
    fn a_general_key_yields_to_a_special_one() {
        let (config, _) = parse(&[
            ("access-log-path", "/tmp/a.log"),
            ("stream-access-log-path", "/tmp/s.log"),
            ("disable-http-access-log", "true"),
            ("bind-address", "192.0.2.1"),
            ("bind-address-ipv6", "2001:db8::1"),
        ]);
        let path = |path: &Option<Literal>| path.as_ref().unwrap().as_str().to_owned();
        assert_eq!(path(&config.render.access_log_path), "/tmp/a.log");
        assert_eq!(path(&config.render.stream_access_log_path), "/tmp/s.log");
        assert!(config.render.disable_access_log);
        assert!(!config.render.disable_stream_access_log);
        assert_eq!(config.render.bind_address.len(), 2);
    }

    #[test]
    fn contradicting_buffers_fall_back_together() {
        let (config, faults) = parse(&[
            ("proxy-busy-buffers-size", "1m"),
            ("proxy-buffers-number", "8"),
        ]);
        assert_eq!(config, GlobalConfig::default());
        assert_eq!(faults.len(), 1);
    }

    #[test]
    fn syslog_needs_a_host() {
        let (_, faults) = parse(&[("enable-syslog", "true")]);
        assert!(faults.concat().contains("syslog-host"), "{faults:?}");
    }

    #[test]
    fn replacements_and_retries_are_settled_together() {
        let words = |words: &Option<Vec<Template>>| -> Vec<String> {
            words
                .iter()
                .flatten()
                .map(|word| word.as_str().to_owned())
                .collect()
        };
        let (config, _) = parse(&[
            ("proxy-redirect-from", "http://a/"),
            ("proxy-redirect-to", "http://b/"),
        ]);
        assert_eq!(
            words(&config.render.proxy.redirect),
            ["http://a/", "http://b/"]
        );
        let (config, _) = parse(&[("proxy-redirect-from", "http://a/")]);
        assert_eq!(words(&config.render.proxy.redirect), ["off"]);
        let (config, _) = parse(&[("retry-non-idempotent", "true")]);
        assert_eq!(config.render.proxy.next_upstream.as_ref().unwrap().len(), 3);
    }
}
