//! What the ConfigMap takes from other ConfigMaps and from Secrets. These may change at any time, and are looked up for
//! each merge.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::Serialize;
use x509_parser::{der_parser::der::parse_der, pem::Pem};

use crate::{
    diagnostic::{Diagnostic, Reason, Severity},
    object::{ObjectKind, ObjectMap, ObjectName, ObjectRef},
    scalar,
    snapshot::Snapshot,
    value::{Literal, Template, ValueError},
};

use super::GlobalConfig;

/// Objects that the ConfigMap names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// `add-headers`: a ConfigMap.
    pub add_headers: Option<ObjectName>,
    /// `proxy-set-headers`: a ConfigMap.
    pub proxy_set_headers: Option<ObjectName>,
    /// `ssl-dh-param`: a Secret.
    pub ssl_dh_param: Option<ObjectName>,
}

impl References {
    /// The ConfigMaps and Secrets, as far as they are named.
    pub fn objects(&self) -> impl Iterator<Item = ObjectRef> {
        let maps = [&self.add_headers, &self.proxy_set_headers];
        let maps = maps.into_iter().flatten();
        let maps = maps.map(|name| ObjectRef::new(ObjectKind::ConfigMap, name.clone()));
        let secret = self.ssl_dh_param.iter();
        maps.chain(secret.map(|name| ObjectRef::new(ObjectKind::Secret, name.clone())))
    }

    /// Whether the objects are the same ones in both snapshots.
    pub(crate) fn are_current(&self, old: &Snapshot, new: &Snapshot) -> bool {
        fn is_same<K>(old: &ObjectMap<K>, new: &ObjectMap<K>, name: &ObjectName) -> bool {
            old.get(name).map(Arc::as_ptr) == new.get(name).map(Arc::as_ptr)
        }
        let mut maps = [&self.add_headers, &self.proxy_set_headers]
            .into_iter()
            .flatten();
        let mut secret = self.ssl_dh_param.iter();
        maps.all(|name| is_same(&old.config_maps, &new.config_maps, name))
            && secret.all(|name| is_same(&old.secrets, &new.secrets, name))
    }
}

/// Diffie-Hellman parameters (NGINX docs: `ssl_dhparam`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DhParameters {
    /// The Secret that they come from.
    pub secret: ObjectName,
    /// The parameters, PEM.
    pub pem: Arc<str>,
}

impl GlobalConfig {
    /// Fills in what the ConfigMaps and Secrets hold that the ConfigMap `map` names. What cannot be used is reported and
    /// left out.
    pub fn resolve(
        &mut self,
        map: &ObjectName,
        snapshot: &Snapshot,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let references = self.policy.references.clone();
        if references == References::default() {
            return;
        }
        let mut resolver = Resolver {
            map,
            snapshot,
            diagnostics,
        };
        let add = resolver.headers("add-headers", references.add_headers.as_ref());
        let set = resolver.headers("proxy-set-headers", references.proxy_set_headers.as_ref());
        let dh = references
            .ssl_dh_param
            .and_then(|secret| resolver.dh_parameters(secret));
        let render = Arc::make_mut(&mut self.render);
        render.add_headers = add;
        render.proxy_set_headers = set;
        render.ssl_dh_param = dh;
    }
}

struct Resolver<'a> {
    map: &'a ObjectName,
    snapshot: &'a Snapshot,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Resolver<'_> {
    /// The headers of a ConfigMap, by name.
    fn headers(
        &mut self,
        key: &'static str,
        named: Option<&ObjectName>,
    ) -> Vec<(Literal, Template)> {
        let Some(name) = named else { return Vec::new() };
        let Some(config_map) = self.snapshot.config_maps.get(name) else {
            let message = format!("there is no ConfigMap {name}");
            self.tell(key, Reason::MissingConfigMap, message);
            return Vec::new();
        };
        let mut headers = Vec::new();
        for read in headers_of(config_map) {
            match read {
                Ok(header) => headers.push(header),
                Err((header, error)) => {
                    let message =
                        format!("the header {header:?} of ConfigMap {name} is left out: {error}");
                    self.tell(key, Reason::InvalidConfigKey, message);
                }
            }
        }
        headers
    }

    fn dh_parameters(&mut self, name: ObjectName) -> Option<DhParameters> {
        let key = "ssl-dh-param";
        let Some(secret) = self.snapshot.secrets.get(&name) else {
            let message = format!("there is no Secret {name}");
            self.tell(key, Reason::MissingSecret, message);
            return None;
        };
        match dh_parameters_of(secret) {
            Ok(pem) => Some(DhParameters { secret: name, pem }),
            Err(fault) => {
                let message = format!("Secret {name} cannot be used: {fault}");
                self.tell(key, Reason::InvalidSecret, message);
                None
            }
        }
    }

    fn tell(&mut self, key: &'static str, reason: Reason, message: String) {
        let about = ObjectRef::new(ObjectKind::ConfigMap, self.map.clone());
        self.diagnostics
            .push(Diagnostic::new(about, Severity::Warning, reason, message).with_key(key));
    }
}

/// The entries of a ConfigMap, sorted by name; two names that differ in case only are one header.
fn headers_of(
    config_map: &ConfigMap,
) -> impl Iterator<Item = Result<(Literal, Template), (&str, ValueError)>> {
    let mut seen = BTreeSet::new();
    config_map.data.iter().flatten().map(move |(name, value)| {
        let header = scalar::header_name(name).and_then(|header| {
            if !seen.insert(name.to_ascii_lowercase()) {
                return Err(ValueError::Rule("it is there already, in another case"));
            }
            Ok((header, Template::parse(value.trim())?))
        });
        header.map_err(|error| (name.as_str(), error))
    })
}

/// OpenSSL refuses shorter ones at the security level that distributions set.
const SHORTEST_PRIME: usize = 2_048;

/// The text of `dhparam.pem`, if it is what PKCS #3 calls `DHParameter`.
fn dh_parameters_of(secret: &Secret) -> Result<Arc<str>, String> {
    let data = secret
        .data
        .as_ref()
        .and_then(|data| data.get("dhparam.pem"));
    let bytes = data.ok_or("it has no key dhparam.pem")?;
    let text = std::str::from_utf8(&bytes.0)
        .ok()
        .ok_or("dhparam.pem is no text")?;
    let pem = Pem::iter_from_buffer(text.as_bytes())
        .next()
        .and_then(Result::ok)
        .filter(|pem| pem.label == "DH PARAMETERS")
        .ok_or("dhparam.pem is no PEM of DH PARAMETERS")?;
    match prime_length(&pem.contents) {
        None => Err("dhparam.pem holds no prime and generator".into()),
        Some(bits) if bits < SHORTEST_PRIME => Err(format!(
            "its prime has {bits} bits, of which OpenSSL wants {SHORTEST_PRIME}"
        )),
        Some(_) => Ok(text.into()),
    }
}

/// The bits of the prime: the first of the numbers in a sequence.
fn prime_length(der: &[u8]) -> Option<usize> {
    let (_, sequence) = parse_der(der).ok()?;
    let [prime, generator, ..] = &sequence.as_sequence().ok()?[..] else {
        return None;
    };
    generator.as_biguint().ok()?;
    let bits = prime.as_biguint().ok()?.bits();
    usize::try_from(bits).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::ByteString;

    use super::*;
    use crate::{merge::Merger, options::Options};

    fn map(data: &[(&str, &str)]) -> Arc<ConfigMap> {
        let data = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Arc::new(ConfigMap {
            data: Some(data.collect()),
            ..ConfigMap::default()
        })
    }

    fn secret(file: &str, text: &str) -> Arc<Secret> {
        let file = (file.to_owned(), ByteString(text.as_bytes().to_vec()));
        Arc::new(Secret {
            data: Some([file].into()),
            ..Secret::default()
        })
    }

    /// The controller's ConfigMap, and the objects that it names.
    fn snapshot(data: &[(&str, &str)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot
            .config_maps
            .insert(ObjectName::new("ingress", "config"), map(data));
        snapshot
    }

    /// What a controller makes of it, and what it says of its ConfigMap.
    fn merge(
        merger: &mut Merger,
        snapshot: &Snapshot,
    ) -> (Arc<crate::config::RenderConfig>, Vec<String>) {
        let options = Options {
            config_map: Some(ObjectName::new("ingress", "config")),
            ..Options::default()
        };
        let outcome = merger.merge(snapshot, &options, Timestamp::UNIX_EPOCH);
        let said = outcome.diagnostics.iter().map(|said| said.message.clone());
        (Arc::clone(&outcome.model.layout.config), said.collect())
    }

    fn texts(headers: &[(Literal, Template)]) -> Vec<String> {
        let text =
            |(name, value): &(Literal, Template)| format!("{}: {}", name.as_str(), value.as_str());
        headers.iter().map(text).collect()
    }

    #[test]
    fn headers_follow_the_config_map_that_is_named() {
        let mut merger = Merger::default();
        let named = ObjectName::new("ingress", "headers");
        let mut objects = snapshot(&[
            ("add-headers", "ingress/headers"),
            ("proxy-set-headers", "ingress/headers"),
        ]);
        let (config, said) = merge(&mut merger, &objects);
        assert!(config.add_headers.is_empty());
        assert_eq!(said, ["there is no ConfigMap ingress/headers"; 2]);

        objects
            .config_maps
            .insert(named.clone(), map(&[("X-B", "b"), ("X-A", " from $host ")]));
        let (config, said) = merge(&mut merger, &objects);
        assert_eq!(texts(&config.add_headers), ["X-A: from $host", "X-B: b"]);
        assert_eq!(config.proxy_set_headers, config.add_headers);
        assert_eq!(said, [""; 0]);

        objects
            .config_maps
            .insert(named.clone(), map(&[("X-B", "other")]));
        assert_eq!(
            texts(&merge(&mut merger, &objects).0.add_headers),
            ["X-B: other"]
        );
        objects.config_maps.remove(&named);
        assert!(merge(&mut merger, &objects).0.add_headers.is_empty());
    }

    #[test]
    fn one_bad_header_leaves_the_others_alone() {
        let mut objects = snapshot(&[("add-headers", "ingress/headers")]);
        let headers = [("X-A", "a"), ("x-a", "b"), ("X B", "c"), ("X-D", "d\ne")];
        objects
            .config_maps
            .insert(ObjectName::new("ingress", "headers"), map(&headers));
        let (config, said) = merge(&mut Merger::default(), &objects);
        assert_eq!(texts(&config.add_headers), ["X-A: a"]);
        assert_eq!(said.len(), 3, "{said:?}");
    }

    /// Parameters with a prime of so many bytes.
    fn parameters(bytes: u16, label: &str) -> String {
        let [high, low] = (bytes + 1).to_be_bytes();
        let mut der = vec![2, 0x82, high, low, 0];
        der.extend(std::iter::repeat_n(0xff, bytes.into()));
        der.extend([2, 1, 2]);
        let [high, low] = u16::try_from(der.len()).unwrap().to_be_bytes();
        der.splice(0..0, [0x30, 0x82, high, low]);
        let base64 = serde_json::to_value(ByteString(der)).unwrap();
        format!(
            "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
            base64.as_str().unwrap()
        )
    }

    #[test]
    fn parameters_are_checked_before_nginx_does() {
        let good = parameters(256, "DH PARAMETERS");
        let mut merger = Merger::default();
        for (file, text, fault) in [
            ("dhparam.pem", &*good, None),
            ("other.pem", &good, Some("it has no key dhparam.pem")),
            ("dhparam.pem", "x", Some("no PEM of DH PARAMETERS")),
            (
                "dhparam.pem",
                &parameters(256, "CERTIFICATE"),
                Some("no PEM of DH PARAMETERS"),
            ),
            (
                "dhparam.pem",
                &parameters(128, "DH PARAMETERS"),
                Some("its prime has 1024 bits"),
            ),
            (
                "dhparam.pem",
                "-----BEGIN DH PARAMETERS-----\nMAA=\n-----END DH PARAMETERS-----\n",
                Some("no prime and generator"),
            ),
        ] {
            let mut objects = snapshot(&[("ssl-dh-param", "ingress/dh")]);
            objects
                .secrets
                .insert(ObjectName::new("ingress", "dh"), secret(file, text));
            let (config, said) = merge(&mut merger, &objects);
            assert_eq!(config.ssl_dh_param.is_some(), fault.is_none(), "{text}");
            let said = said.concat();
            assert!(
                fault.map_or(said.is_empty(), |fault| said.contains(fault)),
                "{fault:?} {said}"
            );
        }
        let (config, said) = merge(&mut merger, &snapshot(&[("ssl-dh-param", "ingress/dh")]));
        assert_eq!(config.ssl_dh_param, None);
        assert_eq!(said, ["there is no Secret ingress/dh"]);
    }
}
