//! What annotations take from Secrets and ConfigMaps. Annotations are read once for each version of an Ingress; what
//! they refer to may change at any time, and is looked up here for each merge.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use x509_parser::pem::Pem;

use crate::{
    config::Policy,
    diagnostic::{Diagnostic, Reason, Severity},
    layout::{Authority, LocationSettings},
    object::{ObjectKind, ObjectName, ObjectRef},
    options::Options,
    scalar,
    snapshot::Snapshot,
    value::{Confidential, Literal, Template, ValueError},
};

use super::{IngressSettings, References, UsersFormat, grammar::Grammar};

impl IngressSettings {
    /// The settings of the locations, with what Secrets and ConfigMaps hold filled in. A reference that cannot be used
    /// closes the locations and is reported.
    #[must_use]
    pub fn resolve(
        &self,
        ingress: &ObjectName,
        snapshot: &Snapshot,
        options: &Options,
        policy: &Policy,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Arc<LocationSettings> {
        if self.references.is_empty() || self.location.denied.is_some() {
            return Arc::clone(&self.location);
        }
        let mut location = LocationSettings::clone(&self.location);
        let mut resolver = Resolver {
            ingress,
            snapshot,
            options,
            diagnostics,
        };
        let filled = resolver.fill(&self.references, policy, &mut location);
        if let Err(reason) = filled {
            location.denied = Some(reason);
        }
        Arc::new(location)
    }
}

/// Why a reference cannot be used.
struct Fault {
    reason: Reason,
    message: String,
}

/// Why the locations are closed.
type Closed = String;

struct Resolver<'a> {
    ingress: &'a ObjectName,
    snapshot: &'a Snapshot,
    options: &'a Options,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Resolver<'a> {
    fn fill(
        &mut self,
        references: &References,
        policy: &Policy,
        location: &mut LocationSettings,
    ) -> Result<(), Closed> {
        if let (Some(auth), Some(format)) = (&mut location.basic_auth, references.users) {
            let found = self
                .secret(&auth.secret)
                .and_then(|secret| users(secret, format));
            auth.users = self.report("auth-secret", found)?;
        }
        if let (Some(auth), Some(name)) = (&mut location.external_auth, &references.request_headers)
        {
            let found = self.config_map(name).and_then(request_headers);
            Arc::make_mut(auth).request_headers = self.report("auth-proxy-set-headers", found)?;
        }
        if let Some(name) = &references.response_headers {
            let allowed = &policy.allowed_response_headers;
            let found = self
                .config_map(name)
                .and_then(|data| response_headers(data, allowed));
            location.response_headers = self.report("custom-headers", found)?;
        }
        if let Some(name) = &references.fastcgi_params {
            let found = self.config_map(name).and_then(fastcgi_params);
            location.fastcgi.params = self.report("fastcgi-params-configmap", found)?;
        }
        if let Some(tls) = &mut location.upstream_tls {
            let found = self.secret(&tls.secret).and_then(|secret| {
                let authority = authority(&tls.secret, secret)?;
                let certificate = certificate(secret)?;
                if authority.is_none() && certificate.is_none() {
                    return Err(invalid_secret(
                        "it has neither ca.crt nor tls.crt and tls.key",
                    ));
                }
                Ok((authority, certificate))
            });
            (tls.authority, tls.certificate) = self.report("proxy-ssl-secret", found)?;
        }
        Ok(())
    }

    fn secret(&self, name: &ObjectName) -> Result<&'a Secret, Fault> {
        let secret = self.snapshot.secrets.get(name).map(|secret| &**secret);
        secret.ok_or_else(|| Fault {
            reason: Reason::MissingSecret,
            message: format!("there is no Secret {name}"),
        })
    }

    fn config_map(&self, name: &ObjectName) -> Result<&'a ConfigMap, Fault> {
        let config_map = self.snapshot.config_maps.get(name).map(|map| &**map);
        config_map.ok_or_else(|| Fault {
            reason: Reason::MissingConfigMap,
            message: format!("there is no ConfigMap {name}"),
        })
    }

    fn report<T>(&mut self, annotation: &str, found: Result<T, Fault>) -> Result<T, Closed> {
        found.map_err(|fault| {
            let key = format!("{}/{annotation}", self.options.annotations_prefix);
            let closed = format!("annotation {key} cannot be used: {}", fault.message);
            let message = format!("{}; its locations are closed", fault.message);
            let about = ObjectRef::new(ObjectKind::Ingress, self.ingress.clone());
            self.diagnostics
                .push(Diagnostic::new(about, Severity::Error, fault.reason, message).with_key(key));
            closed
        })
    }
}

fn invalid_secret(message: &str) -> Fault {
    Fault {
        reason: Reason::InvalidSecret,
        message: message.into(),
    }
}

fn invalid_entry(key: &str, error: &ValueError) -> Fault {
    Fault {
        reason: Reason::InvalidAnnotation,
        message: format!("its ConfigMap's key {key:?}: {error}"),
    }
}

/// One file of lines `user:hash`.
fn users(secret: &Secret, format: UsersFormat) -> Result<Confidential, Fault> {
    let empty = BTreeMap::new();
    let data = secret.data.as_ref().unwrap_or(&empty);
    match format {
        UsersFormat::File => {
            let Some(file) = data.get("auth") else {
                return Err(invalid_secret("its Secret has no key auth with the users"));
            };
            text(file).map(Confidential::new)
        }
        UsersFormat::Map => {
            let mut file = String::new();
            for (user, hash) in data {
                let hash = text(hash)?.trim();
                if hash.chars().any(char::is_control) {
                    return Err(invalid_secret("a password of its Secret is not one line"));
                }
                file.extend([user, ":", hash, "\n"]);
            }
            Ok(Confidential::new(&file))
        }
    }
}

fn text(bytes: &ByteString) -> Result<&str, Fault> {
    std::str::from_utf8(&bytes.0)
        .ok()
        .ok_or_else(|| invalid_secret("its Secret does not hold text"))
}

fn entries(config_map: &ConfigMap) -> impl Iterator<Item = (&String, &String)> {
    config_map.data.iter().flatten()
}

/// Headers of a question to an authenticating service; variables are replaced.
fn request_headers(config_map: &ConfigMap) -> Result<Vec<(Literal, Template)>, Fault> {
    entries(config_map)
        .map(|(name, value)| {
            let header = scalar::header_name(name).and_then(|name| {
                let value = Template::parse(value)?;
                Ok((name, value))
            });
            header.map_err(|error| invalid_entry(name, &error))
        })
        .collect()
}

/// Headers of responses, of which the administrator allows each.
fn response_headers(
    config_map: &ConfigMap,
    allowed: &[Literal],
) -> Result<Vec<(Literal, Literal)>, Fault> {
    const NOT_ALLOWED: ValueError = ValueError::Rule(
        "the header is not allowed (ConfigMap key global-allowed-response-headers)",
    );
    entries(config_map)
        .map(|(name, value)| {
            let header = scalar::header_name(name).and_then(|name| {
                if !allowed.contains(&name) {
                    return Err(NOT_ALLOWED);
                }
                match value.chars().find(|c| !c.is_ascii_graphic() && *c != ' ') {
                    Some(c) => Err(ValueError::Character(c, "printable ASCII characters")),
                    None => Ok((name, Literal::parse(value)?)),
                }
            });
            header.map_err(|error| invalid_entry(name, &error))
        })
        .collect()
}

/// FastCGI parameters; variables are replaced.
fn fastcgi_params(config_map: &ConfigMap) -> Result<Vec<(Literal, Template)>, Fault> {
    const NAME: Grammar = Grammar::new("-._", "letters, digits, -, . and _");
    const VALUE: Grammar = Grammar::new("-._${}/", "letters, digits and -._${}/");
    entries(config_map)
        .map(|(name, value)| {
            let parameter = NAME.check(name).and_then(|()| {
                VALUE.check(value)?;
                Ok((Literal::parse(name)?, Template::parse(value)?))
            });
            parameter.map_err(|error| invalid_entry(name, &error))
        })
        .collect()
}

/// The authorities in `ca.crt`, and the revocation list in `ca.crl`.
fn authority(name: &ObjectName, secret: &Secret) -> Result<Option<Authority>, Fault> {
    let data = |key| secret.data.as_ref().and_then(|data| data.get(key));
    let Some(pem) = data("ca.crt") else {
        return Ok(None);
    };
    let crl = data("ca.crl").map(text).transpose()?;
    Ok(Some(Authority {
        secret: name.clone(),
        pem: certificates(text(pem)?)?.into(),
        crl: crl.map(Into::into),
    }))
}

/// The chain and key in `tls.crt` and `tls.key`.
fn certificate(secret: &Secret) -> Result<Option<Confidential>, Fault> {
    let data = |key| secret.data.as_ref().and_then(|data| data.get(key));
    let (Some(chain), Some(key)) = (data("tls.crt"), data("tls.key")) else {
        return Ok(None);
    };
    let chain = certificates(text(chain)?)?;
    let key = text(key)?;
    let has_key = Pem::iter_from_buffer(key.as_bytes())
        .flatten()
        .any(|pem| pem.label.ends_with("PRIVATE KEY"));
    if !has_key {
        return Err(invalid_secret("tls.key of its Secret holds no private key"));
    }
    let pem = format!("{}\n{}\n", chain.trim_end(), key.trim_end());
    Ok(Some(Confidential::new(&pem)))
}

/// The text, if it is one or more certificates.
fn certificates(text: &str) -> Result<&str, Fault> {
    let mut count = 0;
    for pem in Pem::iter_from_buffer(text.as_bytes()) {
        let valid = pem.is_ok_and(|pem| pem.label == "CERTIFICATE" && pem.parse_x509().is_ok());
        if !valid {
            return Err(invalid_secret(
                "its Secret holds something else than certificates",
            ));
        }
        count += 1;
    }
    if count == 0 {
        return Err(invalid_secret("its Secret holds no certificate"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{annotation::testing::settings_with, config::GlobalConfig};

    fn secret(data: &[(&str, &str)]) -> Secret {
        Secret {
            data: Some(
                data.iter()
                    .map(|(key, value)| ((*key).into(), ByteString((*value).into())))
                    .collect(),
            ),
            ..Secret::default()
        }
    }

    fn config_map(data: &[(&str, &str)]) -> ConfigMap {
        ConfigMap {
            data: Some(
                data.iter()
                    .map(|(key, value)| ((*key).into(), (*value).into()))
                    .collect(),
            ),
            ..ConfigMap::default()
        }
    }

    /// A Secret and a ConfigMap, both called `shop/x`.
    fn snapshot(secret: Secret, config_map: ConfigMap) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let name = ObjectName::new("shop", "x");
        snapshot.secrets.insert(name.clone(), secret);
        snapshot.config_maps.insert(name, config_map);
        snapshot
    }

    fn resolve(
        annotations: &[(&str, &str)],
        snapshot: &Snapshot,
    ) -> (Arc<LocationSettings>, Vec<String>) {
        let mut config = GlobalConfig::default();
        config.policy.allowed_response_headers = vec![Literal::constant("X-Team")];
        let settings = settings_with(&config, annotations).unwrap();
        let mut diagnostics = Vec::new();
        let location = settings.resolve(
            &ObjectName::new("shop", "web"),
            snapshot,
            &Options::default(),
            &config.policy,
            &mut diagnostics,
        );
        (
            location,
            diagnostics.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn nothing_is_copied_where_nothing_is_referred_to() {
        let settings = settings_with(&GlobalConfig::default(), &[("use-regex", "true")]).unwrap();
        let location = settings.resolve(
            &ObjectName::new("shop", "web"),
            &Snapshot::default(),
            &Options::default(),
            &Policy::default(),
            &mut Vec::new(),
        );
        assert!(Arc::ptr_eq(&location, &settings.location));
    }

    #[test]
    fn users_come_from_a_file_or_a_map() {
        let secrets = secret(&[("auth", "a:1\n"), ("mira", "$apr1$x\n")]);
        let snapshot = snapshot(secrets, ConfigMap::default());
        let file = [("auth-type", "basic"), ("auth-secret", "x")];
        let users = |annotations: &[_]| {
            let (location, _) = resolve(annotations, &snapshot);
            location
                .basic_auth
                .as_ref()
                .unwrap()
                .users
                .reveal()
                .to_owned()
        };
        assert_eq!(users(&file), "a:1\n");
        let map = [file[0], file[1], ("auth-secret-type", "auth-map")];
        assert_eq!(users(&map), "auth:a:1\nmira:$apr1$x\n");
    }

    #[test]
    fn what_is_missing_closes_the_locations() {
        let snapshot = Snapshot::default();
        for annotations in [
            &[("auth-type", "basic"), ("auth-secret", "x")][..],
            &[
                ("auth-url", "http://a.test/"),
                ("auth-proxy-set-headers", "shop/x"),
            ],
            &[("custom-headers", "shop/x")],
            &[("fastcgi-params-configmap", "x")],
            &[("proxy-ssl-secret", "shop/x")],
        ] {
            let (location, faults) = resolve(annotations, &snapshot);
            assert!(location.denied.is_some(), "{annotations:?}");
            assert_eq!(faults.len(), 1, "{annotations:?}");
        }
    }

    #[test]
    fn unusable_content_closes_the_locations() {
        let headers = [("custom-headers", "shop/x")];
        for (annotations, secret, config_map) in [
            (
                &[("auth-type", "basic"), ("auth-secret", "x")][..],
                secret(&[("other", "a:1")]),
                config_map(&[]),
            ),
            (
                &[
                    ("auth-type", "basic"),
                    ("auth-secret", "x"),
                    ("auth-secret-type", "auth-map"),
                ],
                secret(&[("a", "1\nb:2")]),
                config_map(&[]),
            ),
            (&headers, secret(&[]), config_map(&[("X-Other", "1")])),
            (&headers, secret(&[]), config_map(&[("X-Team", "a\nb")])),
            (&headers, secret(&[]), config_map(&[("X-Team;", "a")])),
            (
                &[("fastcgi-params-configmap", "x")],
                secret(&[]),
                config_map(&[("A", "b;")]),
            ),
            (
                &[("proxy-ssl-secret", "shop/x")],
                secret(&[("ca.crt", "no certificate")]),
                config_map(&[]),
            ),
            (
                &[("proxy-ssl-secret", "shop/x")],
                secret(&[]),
                config_map(&[]),
            ),
        ] {
            let (location, _) = resolve(annotations, &snapshot(secret, config_map.clone()));
            assert!(location.denied.is_some(), "{annotations:?} {config_map:?}");
        }
    }

    #[test]
    fn headers_and_parameters_are_taken_over() {
        let snapshot = snapshot(secret(&[]), config_map(&[("X-Team", "blue")]));
        let (location, _) = resolve(&[("custom-headers", "shop/x")], &snapshot);
        assert_eq!(location.response_headers[0].1.as_str(), "blue");
        let (location, _) = resolve(&[("fastcgi-params-configmap", "x")], &snapshot);
        assert_eq!(location.fastcgi.params[0].0.as_str(), "X-Team");
        let auth = [
            ("auth-url", "http://a.test/"),
            ("auth-proxy-set-headers", "shop/x"),
        ];
        let (location, _) = resolve(&auth, &snapshot);
        assert_eq!(
            location
                .external_auth
                .as_ref()
                .unwrap()
                .request_headers
                .len(),
            1
        );
    }

    #[test]
    fn certificates_for_endpoints() {
        let pair = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        let (chain, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        let all = secret(&[("ca.crt", &chain), ("tls.crt", &chain), ("tls.key", &key)]);
        let (location, faults) = resolve(
            &[("proxy-ssl-secret", "shop/x")],
            &snapshot(all, ConfigMap::default()),
        );
        assert_eq!(faults, [""; 0]);
        let tls = location.upstream_tls.as_ref().unwrap();
        assert_eq!(&*tls.authority.as_ref().unwrap().pem, chain);
        assert!(
            tls.certificate
                .as_ref()
                .unwrap()
                .reveal()
                .contains("PRIVATE KEY")
        );
        let authority = secret(&[("ca.crt", &chain)]);
        let (location, _) = resolve(
            &[("proxy-ssl-secret", "shop/x")],
            &snapshot(authority, ConfigMap::default()),
        );
        assert_eq!(location.upstream_tls.as_ref().unwrap().certificate, None);
    }
}
