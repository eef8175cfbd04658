//! Secrets with certificates: what may be served to whom, and which authorities clients have to come from.

mod pairs;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use thiserror::Error;
use x509_parser::{
    certificate::X509Certificate, error::PEMError, extensions::GeneralName, pem::Pem,
    prelude::FromDer, revocation_list::CertificateRevocationList,
};

use crate::{
    key_pair::{Verdict, judge},
    layout::Authority,
    live::{Certificate, CertificateId},
    object::ObjectName,
};

/// How many days before its end a certificate is reported.
const EXPIRY_DAYS: i64 = 10;

/// A usable certificate, and what the rules have to know of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerCertificate {
    pub(crate) secret: ObjectName,
    pub(crate) certificate: Certificate,
    /// One for each type of key.
    leaves: Vec<Leaf>,
    not_after: Timestamp,
}

/// What a server's certificate itself is for.
#[derive(Debug, PartialEq, Eq)]
struct Leaf {
    /// Names of the extension subjectAltName, lower case.
    names: Vec<String>,
    /// The subject's common name, lower case.
    common_name: Option<String>,
}

/// Why a Secret cannot be used.
#[derive(Debug, Error)]
pub(crate) enum SecretError {
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error("{0} is not text")]
    Text(&'static str),
    #[error("{0} is not PEM")]
    Pem(&'static str, #[source] PEMError),
    #[error("{0} holds no {1}")]
    Empty(&'static str, &'static str),
    #[error("{0} holds a malformed {1}")]
    Malformed(&'static str, &'static str),
    #[error("the private key does not belong to the certificate")]
    Mismatch,
}

impl ServerCertificate {
    /// Takes a Secret of type TLS: the chain in `tls.crt`, its first certificate being the server's, and the private
    /// key in `tls.key`. There may be an RSA and an ECDSA certificate, each with its chain and key.
    pub(crate) fn read(name: &ObjectName, secret: &Secret) -> Result<Self, SecretError> {
        let chain = text(secret, "tls.crt")?;
        let key = text(secret, "tls.key")?;
        let malformed = || SecretError::Malformed("tls.crt", "certificate");
        let certificates = certificates(&chain, "tls.crt")?;
        let certificates: Vec<_> = certificates
            .iter()
            .map(Pem::parse_x509)
            .collect::<Result<_, _>>()
            .map_err(|_error| malformed())?;
        let keys = blocks(&key, "tls.key", |label| label.ends_with("PRIVATE KEY"))?;
        let first = certificates.first().ok_or_else(malformed)?;
        let first_key = checked_key(first, &keys)?;
        let pairs = pairs::find(&certificates, &keys, first_key);
        let pem = pairs::text(&pairs, &chain, &key).ok_or_else(malformed)?;
        let leaves = || {
            let leaves = pairs.iter().map(|pair| certificates.get(pair.chain.start));
            leaves.flatten()
        };
        let not_after = leaves().map(|leaf| leaf.validity().not_after.timestamp());
        let id = secret.metadata.uid.clone().filter(|uid| !uid.is_empty());
        let id = id.unwrap_or_else(|| name.to_string());
        Ok(Self {
            secret: name.clone(),
            certificate: Certificate {
                id: CertificateId::new(&id),
                pem: pem.into(),
            },
            leaves: leaves()
                .map(|leaf| Leaf {
                    names: alternative_names(leaf),
                    common_name: common_name(leaf),
                })
                .collect(),
            not_after: not_after
                .min()
                .and_then(|end| Timestamp::from_second(end).ok())
                .unwrap_or(Timestamp::MAX),
        })
    }

    /// Whether the certificate's extension subjectAltName has the host. With several certificates, each one's has to: any
    /// of them may be shown.
    pub(crate) fn names_host(&self, host: &str) -> bool {
        self.leaves.iter().all(|leaf| leaf.names_host(host))
    }

    /// Whether the certificate is for the host, be it by its extension or by its subject.
    pub(crate) fn is_for(&self, host: &str) -> bool {
        self.leaves.iter().all(|leaf| leaf.is_for(host))
    }

    /// What to say about its end: it has passed, or it is less than ten days away.
    pub(crate) fn expiry(&self, now: Timestamp) -> Option<String> {
        let left = self.not_after.as_second() - now.as_second();
        if left <= 0 {
            Some(format!("the certificate expired at {}", self.not_after))
        } else if left <= EXPIRY_DAYS * 24 * 60 * 60 {
            Some(format!("the certificate expires at {}", self.not_after))
        } else {
            None
        }
    }
}

impl Leaf {
    fn names_host(&self, host: &str) -> bool {
        self.names.iter().any(|name| covers(name, host))
    }

    fn is_for(&self, host: &str) -> bool {
        let common_name = self.common_name.as_deref();
        self.names_host(host) || common_name.is_some_and(|name| covers(name, host))
    }
}

/// Whether a certificate's name is the host, or a wildcard for exactly its first label. Both are lower case.
///
/// ```
/// use ingress_model::{Host, testing::Fixture};
///
/// let key = rcgen::KeyPair::generate()?;
/// let chain = rcgen::CertificateParams::new(["*.a.test".to_owned()])?.self_signed(&key)?.pem();
/// let secret = serde_json::json!({
///     "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one", "namespace": "shop"},
///     "stringData": {"tls.crt": chain, "tls.key": key.serialize_pem()},
/// });
/// let ingress = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop}, \
///                spec: {ingressClassName: nginx, tls: [{secretName: one}], rules: [{host: x.a.test}, {host: x.y.a.test}]}}";
/// let served = Fixture::from_yaml(ingress)?.and_yaml(&secret.to_string())?.merge();
/// let has_own = |host| served.outcome().model.live.servers.contains_key(&Host::parse(host).unwrap());
/// assert!(has_own("x.a.test") && !has_own("x.y.a.test"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
fn covers(name: &str, host: &str) -> bool {
    if name == host {
        return true;
    }
    let parent = name.strip_prefix("*.");
    let host = host.split_once('.').map(|(_, parent)| parent);
    parent.is_some() && parent == host
}

/// Takes the authorities of a Secret: `ca.crt`, and the revocation list `ca.crl` if there is one. A list that cannot
/// be used makes the Secret unusable, or revoked certificates would be let in.
pub(crate) fn authority(name: &ObjectName, secret: &Secret) -> Result<Authority, SecretError> {
    let pem = text(secret, "ca.crt")?;
    certificates(&pem, "ca.crt")?;
    let crl = match text(secret, "ca.crl") {
        Ok(crl) => Some(checked_crl(crl)?),
        Err(SecretError::Missing(_)) => None,
        Err(error) => return Err(error),
    };
    Ok(Authority {
        secret: name.clone(),
        pem: pem.into(),
        crl: crl.map(Into::into),
    })
}

fn checked_crl(crl: String) -> Result<String, SecretError> {
    let lists = blocks(&crl, "ca.crl", |label| label == "X509 CRL")?;
    if lists.is_empty() {
        return Err(SecretError::Empty("ca.crl", "revocation list"));
    }
    for list in &lists {
        CertificateRevocationList::from_der(&list.contents)
            .map_err(|_error| SecretError::Malformed("ca.crl", "revocation list"))?;
    }
    Ok(crl)
}

/// A value of a Secret as text; an empty one counts as absent.
fn text(secret: &Secret, key: &'static str) -> Result<String, SecretError> {
    let data = secret.data.as_ref().and_then(|data| data.get(key));
    let plain = secret.string_data.as_ref().and_then(|data| data.get(key));
    let text = match (plain, data) {
        (Some(text), _) => text.clone(),
        (None, Some(ByteString(bytes))) => {
            String::from_utf8(bytes.clone()).map_err(|_error| SecretError::Text(key))?
        }
        (None, None) => String::new(),
    };
    if text.trim().is_empty() {
        return Err(SecretError::Missing(key));
    }
    Ok(text)
}

fn blocks(
    text: &str,
    key: &'static str,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Pem>, SecretError> {
    Pem::iter_from_buffer(text.as_bytes())
        .filter(|block| block.as_ref().map_or(true, |block| wanted(&block.label)))
        .collect::<Result<_, _>>()
        .map_err(|error| SecretError::Pem(key, error))
}

/// The certificates of a text: at least one, all well-formed.
fn certificates(text: &str, key: &'static str) -> Result<Vec<Pem>, SecretError> {
    let blocks = blocks(text, key, |label| label == "CERTIFICATE")?;
    if blocks.is_empty() {
        return Err(SecretError::Empty(key, "certificate"));
    }
    if blocks.iter().any(|block| block.parse_x509().is_err()) {
        return Err(SecretError::Malformed(key, "certificate"));
    }
    Ok(blocks)
}

/// Which of the keys belongs to the certificate: the one that shows it, or else the first one that may.
fn checked_key(leaf: &X509Certificate<'_>, keys: &[Pem]) -> Result<usize, SecretError> {
    if keys.is_empty() {
        return Err(SecretError::Empty("tls.key", "private key"));
    }
    let Ok(public) = leaf.public_key().parsed() else {
        return Ok(0);
    };
    let verdicts: Vec<_> = keys.iter().map(|key| judge(&public, key)).collect();
    let first = |wanted| verdicts.iter().position(|verdict| *verdict == Some(wanted));
    first(Verdict::Match)
        .or_else(|| first(Verdict::Possible))
        .ok_or_else(|| {
            if verdicts.contains(&Some(Verdict::Mismatch)) {
                SecretError::Mismatch
            } else {
                SecretError::Malformed("tls.key", "private key")
            }
        })
}

fn alternative_names(leaf: &X509Certificate<'_>) -> Vec<String> {
    let extension = leaf.subject_alternative_name().ok().flatten();
    let names = extension
        .iter()
        .flat_map(|names| &names.value.general_names);
    names
        .filter_map(|name| {
            let GeneralName::DNSName(name) = name else {
                return None;
            };
            Some(name.to_ascii_lowercase())
        })
        .collect()
}

fn common_name(leaf: &X509Certificate<'_>) -> Option<String> {
    let name = leaf.subject().iter_common_name().next()?;
    name.as_str().ok().map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ED25519};

    use super::*;

    fn secret(entries: &[(&str, &str)]) -> Secret {
        let data: BTreeMap<_, _> = entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().into())))
            .collect();
        Secret {
            data: Some(data),
            ..Secret::default()
        }
    }

    fn pair(names: &[&str], common_name: &str, key: &KeyPair) -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        params.self_signed(key).unwrap().pem()
    }

    fn read(entries: &[(&str, &str)]) -> Result<ServerCertificate, String> {
        ServerCertificate::read(&ObjectName::new("shop", "tls"), &secret(entries))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_certificate_tells_its_hosts() {
        let key = KeyPair::generate().unwrap();
        let chain = pair(&["a.test", "*.B.test"], "C.test", &key);
        let read = read(&[("tls.crt", &chain), ("tls.key", &key.serialize_pem())]).unwrap();
        for (host, named, is_for) in [
            ("a.test", true, true),
            ("x.b.test", true, true),
            ("*.b.test", true, true),
            ("x.y.b.test", false, false),
            ("b.test", false, false),
            ("x.a.test", false, false),
            ("c.test", false, true),
        ] {
            assert_eq!(read.names_host(host), named, "{host}");
            assert_eq!(read.is_for(host), is_for, "{host}");
        }
        assert_eq!(read.certificate.id.as_str(), "shop/tls");
        let pem = &read.certificate.pem;
        assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(pem.contains("-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----"));
    }

    #[test]
    fn the_end_is_told_in_time() {
        let key = KeyPair::generate().unwrap();
        let chain = pair(&["a.test"], "a.test", &key);
        let read = read(&[("tls.crt", &chain), ("tls.key", &key.serialize_pem())]).unwrap();
        let at = |text: &str| read.expiry(text.parse().unwrap());
        assert_eq!(at("2029-12-21T23:59:59Z"), None);
        assert!(
            at("2029-12-22T00:00:00Z")
                .unwrap()
                .contains("expires at 2030-01-01")
        );
        assert!(
            at("2030-01-01T00:00:00Z")
                .unwrap()
                .contains("expired at 2030-01-01")
        );
        assert!(read.expiry(Timestamp::MAX).is_some());
    }

    #[test]
    fn unusable_secrets_say_why() {
        let key = KeyPair::generate().unwrap();
        let other = KeyPair::generate().unwrap().serialize_pem();
        let ed25519 = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let chain = pair(&["a.test"], "a.test", &key);
        let ed_chain = pair(&["a.test"], "a.test", &ed25519);
        let key = key.serialize_pem();
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (chain, key, want) in [
            ("", key.as_str(), "it has no tls.crt"),
            (&chain, " \n", "it has no tls.key"),
            ("text", &key, "tls.crt holds no certificate"),
            (&key, &key, "tls.crt holds no certificate"),
            (broken, &key, "tls.crt holds a malformed certificate"),
            (
                &format!("{chain}{broken}"),
                &key,
                "tls.crt holds a malformed certificate",
            ),
            ("-----BEGIN CERTIFICATE-----\n", &key, "tls.crt is not PEM"),
            (&chain, &chain, "tls.key holds no private key"),
            (
                &chain,
                &other,
                "the private key does not belong to the certificate",
            ),
        ] {
            let read = read(&[("tls.crt", chain), ("tls.key", key)]);
            assert_eq!(read.err().as_deref(), Some(want));
        }
        assert!(
            read(&[
                ("tls.crt", &ed_chain),
                ("tls.key", &ed25519.serialize_pem())
            ])
            .is_ok()
        );
        let mut bytes = secret(&[("tls.key", &key)]);
        let data = bytes.data.as_mut().unwrap();
        data.insert("tls.crt".into(), ByteString(vec![0xff]));
        let error = ServerCertificate::read(&ObjectName::new("a", "b"), &bytes).unwrap_err();
        assert_eq!(error.to_string(), "tls.crt is not text");
    }

    #[test]
    fn authorities_need_usable_revocation_lists() {
        let key = KeyPair::generate().unwrap();
        let chain = pair(&["ca.test"], "ca", &key);
        let name = ObjectName::new("shop", "ca");
        let read = |entries: &[(&str, &str)]| {
            authority(&name, &secret(entries)).map_err(|error| error.to_string())
        };
        let authority = read(&[("ca.crt", &chain)]).unwrap();
        assert_eq!((&*authority.pem, authority.crl), (chain.as_str(), None));
        let broken = "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n";
        for (entries, want) in [
            (&[("tls.crt", chain.as_str())][..], "it has no ca.crt"),
            (
                &[("ca.crt", &key.serialize_pem())],
                "ca.crt holds no certificate",
            ),
            (
                &[("ca.crt", &chain), ("ca.crl", "x")],
                "ca.crl holds no revocation list",
            ),
            (
                &[("ca.crt", &chain), ("ca.crl", broken)],
                "ca.crl holds a malformed revocation list",
            ),
        ] {
            assert_eq!(read(entries).err().as_deref(), Some(want));
        }
    }
}
