//! What an annotation needs to mean anything: that another one says something.

use std::fmt;

use crate::{config::GlobalConfig, scalar};

/// Something that another annotation has to say.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The other annotation.
    pub name: &'static str,
    says: Says,
    /// Whether the ConfigMap says it where the annotation is absent.
    above: Option<fn(&GlobalConfig) -> bool>,
}

#[derive(Clone, Copy, Debug)]
enum Says {
    /// It has to be there, with whatever value.
    Anything,
    /// It has to be true.
    True,
    /// One of these words, in any case.
    OneOf(&'static [&'static str]),
}

impl Need {
    /// The annotation has to be there, with whatever value.
    pub(super) const fn given(name: &'static str) -> Self {
        Self {
            name,
            says: Says::Anything,
            above: None,
        }
    }

    /// The switch has to be on.
    pub(super) const fn on(name: &'static str) -> Self {
        Self {
            says: Says::True,
            ..Self::given(name)
        }
    }

    /// The annotation has to be one of the words.
    pub(super) const fn one_of(name: &'static str, words: &'static [&'static str]) -> Self {
        Self {
            says: Says::OneOf(words),
            ..Self::given(name)
        }
    }

    /// The ConfigMap will do where the annotation is absent.
    pub(super) const fn or_above(self, above: fn(&GlobalConfig) -> bool) -> Self {
        Self {
            above: Some(above),
            ..self
        }
    }

    /// A value of the other annotation that will do; `None`: any.
    #[must_use]
    pub const fn value(&self) -> Option<&'static str> {
        match self.says {
            Says::Anything => None,
            Says::True => Some("true"),
            Says::OneOf(words) => words.first().copied(),
        }
    }

    /// Whether the value of the other annotation, or what the ConfigMap has without one, will do.
    pub(super) fn is_met(&self, value: Option<&str>, config: &GlobalConfig) -> bool {
        let Some(value) = value.map(str::trim) else {
            return self.above.is_some_and(|above| above(config));
        };
        match self.says {
            Says::Anything => true,
            Says::True => scalar::boolean(value) == Ok(true),
            Says::OneOf(words) => words.iter().any(|word| word.eq_ignore_ascii_case(value)),
        }
    }

    /// Whether the other annotation switches something on or off.
    pub(super) const fn is_switch(&self) -> bool {
        matches!(self.says, Says::True)
    }

    /// Whether the other annotation has to be one of some words.
    pub(super) const fn is_choice(&self) -> bool {
        matches!(self.says, Says::OneOf(_))
    }
}

/// As it would be written.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match self.says {
            Says::Anything => Ok(()),
            Says::True => f.write_str(": \"true\""),
            Says::OneOf(words) => write!(f, ": {}", words.join(" or ")),
        }
    }
}

/// The needs, of which one has to be met, for a sentence.
pub(super) fn list(needs: &[Need], quote: &str) -> String {
    let needs: Vec<String> = needs
        .iter()
        .map(|need| {
            let above = match need.above {
                Some(_) => ", here or in the ConfigMap",
                None => "",
            };
            format!("{quote}{need}{quote}{above}")
        })
        .collect();
    needs.join(" or ")
}

#[cfg(test)]
mod tests {
    use crate::{
        annotation::{
            annotations, find,
            testing::{faults, faults_with},
        },
        config::GlobalConfig,
    };

    type Idle = (
        &'static [(&'static str, &'static str)],
        &'static str,
        &'static str,
    );

    /// Annotations that do nothing as they stand: the one that is reported, and what the report says.
    const IDLE: &[Idle] = &[
        (
            &[CANARY, ("canary-weight-total", "50")],
            "canary-weight-total",
            "without canary-weight",
        ),
        (
            &[CANARY, ("canary-by-header-value", "x")],
            "canary-by-header-value",
            "without canary-by-header",
        ),
        (
            &[CANARY, ("canary-by-header-pattern", "x")],
            "canary-by-header-pattern",
            "without canary-by-header",
        ),
        (
            &[CANARY, ("canary-weight", "101")],
            "canary-weight",
            "every request",
        ),
        (
            &[
                CANARY,
                ("canary-weight", "11"),
                ("canary-weight-total", "10"),
            ],
            "canary-weight",
            "every request",
        ),
        (
            &[CANARY, ("canary-weight", "-1")],
            "canary-weight",
            "not between",
        ),
        (&[("canary-weight", "5")], "canary-weight", "without canary"),
        (&[("auth-method", "GET")], "auth-method", "without auth-url"),
        (
            &[("auth-signin", "http://a.test/")],
            "auth-signin",
            "without auth-url",
        ),
        (
            &[("auth-cache-key", "$host")],
            "auth-cache-key",
            "without auth-url",
        ),
        (
            &[("auth-keepalive", "5")],
            "auth-keepalive",
            "without auth-url",
        ),
        (
            &[("auth-proxy-set-headers", "shop/x")],
            "auth-proxy-set-headers",
            "it protects nothing",
        ),
        (
            &[AUTH, ("auth-cache-duration", "200 5m")],
            "auth-cache-duration",
            "without auth-cache-key",
        ),
        (
            &[AUTH, ("auth-keepalive-timeout", "5")],
            "auth-keepalive-timeout",
            "without auth-keepalive",
        ),
        (
            &[AUTH, ("auth-signin-redirect-param", "x")],
            "auth-signin-redirect-param",
            "without auth-signin",
        ),
        (
            &[("auth-secret", "users")],
            "auth-secret",
            "it protects nothing",
        ),
        (&[("auth-realm", "x")], "auth-realm", "without auth-type"),
        (
            &[("session-cookie-name", "x")],
            "session-cookie-name",
            "without affinity",
        ),
        (
            &[("affinity", "ip"), ("session-cookie-name", "x")],
            "affinity",
            "\"ip\"",
        ),
        (
            &[("limit-burst-multiplier", "3")],
            "limit-burst-multiplier",
            "without limit-rps or limit-rpm",
        ),
        (
            &[("limit-connections", "3"), ("limit-burst-multiplier", "3")],
            "limit-burst-multiplier",
            "without limit-rps",
        ),
        (
            &[("limit-allowlist", "10.0.0.0/8")],
            "limit-allowlist",
            "or limit-connections",
        ),
        (
            &[("limit-whitelist", "10.0.0.0/8")],
            "limit-whitelist",
            "or limit-connections",
        ),
        (
            &[("limit-rate-after", "8")],
            "limit-rate-after",
            "without limit-rate",
        ),
        (&[("limit-rps", "-1")], "limit-rps", "there is no limit"),
        (&[("limit-rpm", "-1")], "limit-rpm", "there is no limit"),
        (
            &[("limit-connections", "-1")],
            "limit-connections",
            "there is no limit",
        ),
        (
            &[("auth-tls-verify-client", "on")],
            "auth-tls-verify-client",
            "without auth-tls-secret",
        ),
        (
            &[("auth-tls-match-cn", "CN=x")],
            "auth-tls-match-cn",
            "without auth-tls-secret",
        ),
        (
            &[("proxy-ssl-verify", "on")],
            "proxy-ssl-verify",
            "without proxy-ssl-secret",
        ),
        (
            &[("proxy-ssl-secret", "shop/x")],
            "proxy-ssl-secret",
            "backend-protocol: HTTPS",
        ),
        (
            &[("proxy-ssl-secret", "shop/x"), ("backend-protocol", "GRPC")],
            "proxy-ssl-secret",
            "or GRPCS",
        ),
        (
            &[("fastcgi-index", "x.php")],
            "fastcgi-index",
            "backend-protocol: FCGI",
        ),
        (
            &[("mirror-host", "x.test")],
            "mirror-host",
            "without mirror-target",
        ),
        (
            &[("mirror-request-body", "off")],
            "mirror-request-body",
            "without mirror-target",
        ),
        (
            &[("cors-max-age", "5")],
            "cors-max-age",
            "without enable-cors: \"true\"",
        ),
        (
            &[("enable-cors", "false"), ("cors-max-age", "5")],
            "cors-max-age",
            "without enable-cors",
        ),
        (
            &[("enable-owasp-core-rules", "true")],
            "enable-owasp-core-rules",
            "without enable-modsecurity",
        ),
        (
            &[("modsecurity-transaction-id", "x")],
            "modsecurity-transaction-id",
            "or in the ConfigMap",
        ),
        (
            &[("opentelemetry-operation-name", "x")],
            "opentelemetry-operation-name",
            "without enable-opentelemetry",
        ),
        (
            &[("upstream-hash-by-subset", "true")],
            "upstream-hash-by-subset",
            "without upstream-hash-by",
        ),
        (
            &[("permanent-redirect-code", "308")],
            "permanent-redirect-code",
            "without permanent-redirect",
        ),
    ];

    const CANARY: (&str, &str) = ("canary", "true");
    const AUTH: (&str, &str) = ("auth-url", "http://auth.test/");

    #[test]
    fn what_does_nothing_is_reported() {
        for (annotations, name, text) in IDLE {
            let told = faults(annotations);
            assert_eq!(told.len(), 1, "{annotations:?}: {told:?}");
            let key = format!("Ingress shop/web: nginx.ingress.kubernetes.io/{name}: ");
            assert!(told[0].starts_with(&key), "{told:?}");
            assert!(told[0].contains(text), "{text}: {told:?}");
        }
    }

    #[test]
    fn what_has_what_it_needs_is_not_reported() {
        for annotations in [
            &[CANARY, ("canary-weight", "100")][..],
            &[CANARY, ("canary-weight", "0"), ("canary-weight-total", "1")],
            &[("limit-rpm", "1"), ("limit-burst-multiplier", "3")],
            &[
                ("limit-connections", "1"),
                ("limit-whitelist", "10.0.0.0/8"),
            ],
            &[
                ("proxy-ssl-secret", "shop/x"),
                ("backend-protocol", "grpcs"),
            ],
            &[
                ("enable-modsecurity", "true"),
                ("enable-owasp-core-rules", "true"),
            ],
            &[("enable-cors", "T"), ("cors-max-age", "5")],
        ] {
            assert_eq!(faults(annotations), [""; 0], "{annotations:?}");
        }
    }

    #[test]
    fn the_config_map_may_say_what_is_needed() {
        let mut config = GlobalConfig::default();
        let render = std::sync::Arc::make_mut(&mut config.render);
        render.enable_modsecurity = true;
        render.limit_rate = 8;
        let rules = ("enable-owasp-core-rules", "true");
        for annotations in [rules, ("limit-rate-after", "8")] {
            assert_eq!(faults(&[annotations]).len(), 1);
            assert_eq!(faults_with(&config, &[annotations]), [""; 0]);
        }
        let off = [("enable-modsecurity", "false"), rules];
        assert_eq!(faults_with(&config, &off).len(), 1);
    }

    #[test]
    fn needs_are_annotations_and_lead_to_an_end() {
        for info in annotations() {
            let mut next = info.needs.first();
            let mut seen = vec![info.name];
            while let Some(need) = next {
                let needed = find(need.name).unwrap();
                assert!(!seen.contains(&needed.name), "{}", info.name);
                seen.push(needed.name);
                next = needed.needs.first();
            }
            assert!(info.needs.iter().all(|need| find(need.name).is_some()));
        }
    }
}
