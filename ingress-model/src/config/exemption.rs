//! Paths that the ConfigMap exempts from redirects to HTTPS or from authentication.

use std::sync::Arc;

use crate::layout::LocationSettings;

use super::Policy;

impl Policy {
    /// The settings for a path of an Ingress, as its rule writes it: without redirects to HTTPS below a prefix of
    /// `no-tls-redirect-locations`, without authentication below one of `no-auth-locations`. A location that is denied
    /// stays denied.
    #[must_use]
    pub fn exempt(&self, settings: &Arc<LocationSettings>, path: &str) -> Arc<LocationSettings> {
        let below = |prefixes: &[String]| prefixes.iter().any(|prefix| path.starts_with(prefix));
        let redirects = settings.ssl_redirect || settings.force_ssl_redirect;
        let asks = settings.basic_auth.is_some() || settings.external_auth.is_some();
        let no_redirect = redirects && below(&self.no_tls_redirect_locations);
        let no_auth = asks && below(&self.no_auth_locations);
        if !no_redirect && !no_auth {
            return Arc::clone(settings);
        }
        let mut settings = LocationSettings::clone(settings);
        if no_redirect {
            settings.ssl_redirect = false;
            settings.force_ssl_redirect = false;
        }
        if no_auth {
            settings.basic_auth = None;
            settings.external_auth = None;
        }
        Arc::new(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        layout::{AuthScheme, BasicAuth},
        object::ObjectName,
        value::{Confidential, Literal},
    };

    #[test]
    fn paths_are_exempt_by_prefix() {
        let policy = Policy {
            no_tls_redirect_locations: vec!["/plain".into()],
            no_auth_locations: vec!["/open".into()],
            ..Policy::default()
        };
        let settings = Arc::new(LocationSettings {
            ssl_redirect: true,
            basic_auth: Some(BasicAuth {
                scheme: AuthScheme::Basic,
                realm: Literal::constant(""),
                secret: ObjectName::new("shop", "users"),
                users: Confidential::new(""),
            }),
            ..LocationSettings::default()
        });
        for (path, redirects, asks) in [
            ("/", true, true),
            ("/plain/a", false, true),
            ("/openly", true, false),
            ("/a/open", true, true),
        ] {
            let exempt = policy.exempt(&settings, path);
            assert_eq!(exempt.ssl_redirect, redirects, "{path}");
            assert_eq!(exempt.basic_auth.is_some(), asks, "{path}");
        }
        assert!(Arc::ptr_eq(&policy.exempt(&settings, "/"), &settings));
    }
}
