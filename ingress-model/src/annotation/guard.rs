//! What a refused Ingress asks of clients all the same: what it guards must not be open to everybody because of a
//! mistake in it.

use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    config::GlobalConfig,
    layout::{LocationSettings, VerifyClient},
    options::Options,
};

use super::{
    ClientAuthSettings, IngressSettings, ServerSettings, access, auth, external_auth, read,
    reader::Reader, registry::Misuse,
};

/// Annotations of which each decides by itself who is let in.
const GUARDS: [&str; 5] = [
    "auth-type",
    "auth-url",
    "auth-tls-secret",
    "allowlist-source-range",
    "denylist-source-range",
];

/// What the locations of a refused Ingress say.
const REFUSED: &str = "the Ingress is refused, and guards its paths";

/// Who is to be let in by an Ingress that is refused.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// What its annotations say; not all of it can be used.
    settings: IngressSettings,
    /// Why it cannot be told who is to be let in by its locations.
    fault: Option<String>,
}

impl Guard {
    /// `None` if the Ingress guards nothing. A canary does not: it takes over the protection of others. One that asks
    /// for nothing itself, but has the ConfigMap's authenticating service asked, does.
    pub(crate) fn read(
        ingress: &Ingress,
        options: &Options,
        config: &GlobalConfig,
    ) -> Option<Self> {
        let mut diagnostics = Vec::new();
        let mut reader = Reader::new(ingress, options, config, &mut diagnostics);
        let mut settings = read(&mut reader);
        let asks = settings.location.external_auth.is_some()
            || GUARDS.iter().any(|name| reader.asks_for(name));
        if settings.canary.is_some() || !asks {
            return None;
        }
        if reader.is_withheld("auth-tls-") {
            let fault = "an auth-tls annotation of it is not allowed".to_owned();
            settings.server.client_auth = Some(ClientAuthSettings::closed(fault));
        }
        let protecting = [
            auth::ANNOTATIONS,
            external_auth::ANNOTATIONS,
            access::ANNOTATIONS,
        ];
        let misused = protecting
            .into_iter()
            .flatten()
            .find(|info| info.misuse != Misuse::FallBack && reader.is_misused(info.name));
        let fault = misused.map(|info| format!("annotation {} cannot be used", info.name));
        Some(Self { settings, fault })
    }

    /// What holds of the Ingress while no version of it is served: its paths, where it holds them, are closed, also
    /// under its hosts' further names, and clients of its hosts are asked for certificates.
    pub(crate) fn into_settings(self) -> IngressSettings {
        let location = &self.settings.location;
        IngressSettings {
            location: Arc::new(LocationSettings {
                denied: Some(REFUSED.to_owned()),
                use_regex: location.use_regex,
                rewrite_target: location.rewrite_target.clone(),
                ..LocationSettings::default()
            }),
            server: ServerSettings {
                client_auth: self.settings.server.client_auth,
                aliases: self.settings.server.aliases,
                ..ServerSettings::default()
            },
            yields: self.settings.yields,
            is_refused: true,
            ..IngressSettings::default()
        }
    }

    /// Has an earlier version of the Ingress let in nobody whom the refused one is meant to keep out, as far as that
    /// version is open to everybody.
    pub(crate) fn tighten(&self, earlier: &mut Arc<IngressSettings>) {
        let client_auth = &self.settings.server.client_auth;
        if earlier.server.client_auth.is_none() && client_auth.is_some() {
            Arc::make_mut(earlier)
                .server
                .client_auth
                .clone_from(client_auth);
        }
        if earlier.yields && !self.settings.yields {
            Arc::make_mut(earlier).yields = false;
        }
        let aliases = &self.settings.server.aliases;
        let named = &earlier.server.aliases;
        if aliases.iter().any(|alias| !named.contains(alias)) {
            let named = &mut Arc::make_mut(earlier).server.aliases;
            named.extend(aliases.iter().cloned());
            named.sort_unstable();
            named.dedup();
        }
        let location = &earlier.location;
        let own = &self.settings.location;
        let is_open = location.basic_auth.is_none() && location.external_auth.is_none();
        let asks = own.basic_auth.is_some() || own.external_auth.is_some();
        let lists = (!own.allow.is_empty() && location.allow.is_empty())
            || own
                .deny
                .iter()
                .any(|network| !location.deny.contains(network));
        if !(is_open && (self.fault.is_some() || asks) || lists) {
            return;
        }
        let earlier = Arc::make_mut(earlier);
        let location = Arc::make_mut(&mut earlier.location);
        if is_open {
            location.denied = location.denied.take().or_else(|| self.fault.clone());
            location.basic_auth.clone_from(&own.basic_auth);
            location.external_auth.clone_from(&own.external_auth);
            location.satisfy = own.satisfy;
            let references = &self.settings.references;
            earlier.references.users = references.users;
            earlier
                .references
                .request_headers
                .clone_from(&references.request_headers);
        }
        if location.allow.is_empty() {
            location.allow.clone_from(&own.allow);
        }
        location.deny.extend(&own.deny);
        location.deny.sort_unstable();
        location.deny.dedup();
    }
}

impl ClientAuthSettings {
    /// Lets nobody in.
    pub(super) fn closed(fault: String) -> Self {
        Self {
            secret: Err(fault),
            verify: VerifyClient::On,
            depth: 1,
            error_page: None,
            match_cn: None,
            pass_certificate: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{annotation::testing::ingress, config::Risk};

    const REFUSED: (&str, &str) = ("limit-rps", "many");
    const CLIENTS: (&str, &str) = ("auth-tls-secret", "shop/ca");
    const BASIC: [(&str, &str); 2] = [("auth-type", "basic"), ("auth-secret", "users")];

    fn guard_at(level: Risk, annotations: &[(&str, &str)]) -> Option<Guard> {
        let mut config = GlobalConfig::default();
        config.policy.annotations_risk_level = level;
        Guard::read(&ingress(annotations), &Options::default(), &config)
    }

    fn guard(annotations: &[(&str, &str)]) -> Option<Guard> {
        guard_at(Risk::High, annotations)
    }

    #[test]
    fn what_protects_guards() {
        for annotation in [
            BASIC[0],
            ("auth-type", "token"),
            ("auth-url", "http://auth.test/"),
            ("auth-url", "odd"),
            CLIENTS,
            ("allowlist-source-range", "10.0.0.0/8"),
            ("whitelist-source-range", "10.0.0.0/8"),
            ("denylist-source-range", "10.0.0.0/8"),
        ] {
            let settings = guard(&[REFUSED, annotation]).unwrap().into_settings();
            assert!(settings.location.denied.is_some(), "{annotation:?}");
            assert!(settings.is_refused, "{annotation:?}");
        }
        for annotations in [
            &[REFUSED][..],
            &[REFUSED, ("auth-type", " ")],
            &[REFUSED, BASIC[1]],
            &[REFUSED, BASIC[0], BASIC[1], ("canary", "true")],
        ] {
            assert!(guard(annotations).is_none(), "{annotations:?}");
        }
    }

    #[test]
    fn certificates_are_asked_for_as_far_as_can_be_told() {
        let secret = |annotations: &[_]| {
            let settings = guard(annotations).unwrap().into_settings();
            settings.server.client_auth.unwrap().secret
        };
        assert_eq!(secret(&[REFUSED, CLIENTS]).unwrap().to_string(), "shop/ca");
        for bad in [
            ("auth-tls-match-cn", "alice"),
            ("auth-tls-error-page", "@;"),
            ("auth-tls-pass-certificate-to-upstream", "si"),
        ] {
            assert!(secret(&[CLIENTS, bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_not_allowed_closes() {
        let match_cn = ("auth-tls-match-cn", "CN=alice");
        for level in [Risk::Low, Risk::Medium] {
            let settings = guard_at(level, &[CLIENTS, match_cn])
                .unwrap()
                .into_settings();
            assert!(settings.server.client_auth.unwrap().secret.is_err());
        }
        let url = ("auth-url", "http://auth.test/");
        assert!(guard_at(Risk::Medium, &[url]).is_some());
    }

    #[test]
    fn earlier_versions_are_no_more_open() {
        let tightened = |refused: &[_], earlier: &[_]| {
            let mut settings = Arc::new(crate::annotation::testing::settings(earlier).unwrap());
            guard(refused).unwrap().tighten(&mut settings);
            settings
        };
        let token = [("auth-type", "token"), BASIC[1]];
        assert!(tightened(&token, &[]).location.denied.is_some());
        assert_eq!(tightened(&token, &BASIC).location.denied, None);
        let other = [REFUSED, BASIC[0], BASIC[1]];
        assert_eq!(tightened(&other, &[]).location.denied, None);
        let odd = [CLIENTS, ("auth-tls-match-cn", "alice")];
        let closed = tightened(&odd, &[]).server.client_auth.clone();
        assert!(closed.unwrap().secret.is_err());
        let known = tightened(&odd, &[CLIENTS]).server.client_auth.clone();
        assert!(known.unwrap().secret.is_ok());
    }

    #[test]
    fn earlier_versions_ask_what_the_refused_one_asks() {
        let tightened = |refused: &[_], earlier: &[_]| {
            let mut settings = Arc::new(crate::annotation::testing::settings(earlier).unwrap());
            guard(refused).unwrap().tighten(&mut settings);
            settings
        };
        let open = tightened(&[REFUSED, BASIC[0], BASIC[1]], &[]);
        assert!(open.location.basic_auth.is_some() && open.references.users.is_some());
        let url = ("auth-url", "http://auth.test/");
        let asking = tightened(&[REFUSED, url], &[]);
        assert!(asking.location.external_auth.is_some());
        let another = tightened(&[REFUSED, url], &BASIC);
        assert!(another.location.external_auth.is_none() && another.location.basic_auth.is_some());
        let list = ("allowlist-source-range", "10.0.0.0/8");
        assert_eq!(tightened(&[REFUSED, list], &[]).location.allow.len(), 1);
        let other = ("allowlist-source-range", "192.0.2.0/24");
        let kept = tightened(&[REFUSED, list], &[other]);
        assert_eq!(kept.location.allow[0].to_string(), other.1);
        let both = [
            ("denylist-source-range", "192.0.2.1"),
            ("denylist-source-range", "192.0.2.2"),
        ];
        assert_eq!(
            tightened(&[REFUSED, both[0]], &[both[1]])
                .location
                .deny
                .len(),
            2
        );
    }

    #[test]
    fn the_config_maps_service_is_asked_for_by_all() {
        let mut config = GlobalConfig::default();
        let data = [("global-auth-url".to_owned(), "http://auth.test/".to_owned())];
        let map = k8s_openapi::api::core::v1::ConfigMap {
            data: Some(data.into()),
            ..Default::default()
        };
        config.clone_from(&GlobalConfig::parse(&map, &mut Vec::new()));
        let guard =
            |annotations: &[_]| Guard::read(&ingress(annotations), &Options::default(), &config);
        assert!(guard(&[REFUSED]).is_some());
        assert!(guard(&[REFUSED, ("enable-global-auth", "false")]).is_none());
    }

    #[test]
    fn a_guard_keeps_its_place_and_its_names() {
        let guard = |annotations: &[_]| guard(annotations).unwrap().into_settings();
        let url = ("auth-url", "http://auth.test/");
        let named = guard(&[REFUSED, url, ("server-alias", "b.test")]);
        assert_eq!(named.server.aliases[0].as_str(), "b.test");
        assert!(!named.yields);
        assert!(guard(&[REFUSED, url, ("canary", "false"), ("canary-weight", "5")]).yields);
    }
}
