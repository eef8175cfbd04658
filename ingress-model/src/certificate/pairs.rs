//! A Secret with a certificate for each type of key: ECDSA, which is fast, and RSA for clients that know nothing else.
//!
//! `tls.crt` has the chains one behind the other, `tls.key` the keys in any order. OpenSSL shows each client the one that
//! it can verify.

use std::ops::Range;

use x509_parser::{certificate::X509Certificate, pem::Pem, public_key::PublicKey};

use super::{alternative_names, common_name};
use crate::key_pair::{Verdict, judge};

/// A chain and its key, by their places in the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The certificates of the chain; the first one is the leaf.
    pub(super) chain: Range<usize>,
    pub(super) key: usize,
}

/// The types of keys of which OpenSSL keeps one certificate each.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyType {
    Rsa,
    Ec,
}

/// The chain that the first certificate begins, with its key, and those of other types of keys. A later certificate
/// begins a chain of its own if one of the keys is its key and it has a name of the first one: neither an issuer nor
/// another host's certificate does.
pub(super) fn find(
    certificates: &[X509Certificate<'_>],
    keys: &[Pem],
    first_key: usize,
) -> Vec<Pair> {
    let mut pairs = vec![Pair {
        chain: 0..certificates.len(),
        key: first_key,
    }];
    let Some(first) = certificates.first() else {
        return pairs;
    };
    let mut seen: Vec<_> = key_type(first).into_iter().collect();
    for (index, certificate) in certificates.iter().enumerate().skip(1) {
        let Some(kind) = key_type(certificate).filter(|kind| !seen.contains(kind)) else {
            continue;
        };
        if !share_a_name(first, certificate) {
            continue;
        }
        let Some(key) = key_of(certificate, keys) else {
            continue;
        };
        if let Some(before) = pairs.last_mut() {
            before.chain.end = index;
        }
        pairs.push(Pair {
            chain: index..certificates.len(),
            key,
        });
        seen.push(kind);
    }
    pairs
}

/// Which of the keys shows that it is the certificate's.
fn key_of(certificate: &X509Certificate<'_>, keys: &[Pem]) -> Option<usize> {
    let public = certificate.public_key().parsed().ok()?;
    keys.iter()
        .position(|key| judge(&public, key) == Some(Verdict::Match))
}

/// The pairs as one text, each chain followed by its key, and nothing else of what the Secret has; `None` if the texts do
/// not have the blocks.
pub(super) fn text(pairs: &[Pair], certificates: &str, keys: &str) -> Option<String> {
    let certificates = blocks(certificates, |label| label == "CERTIFICATE");
    let keys = blocks(keys, |label| label.ends_with("PRIVATE KEY"));
    let mut text = String::new();
    for pair in pairs {
        let chain = certificates.get(pair.chain.clone())?;
        for block in chain.iter().chain([keys.get(pair.key)?]) {
            text.push_str(block);
            text.push('\n');
        }
    }
    Some(text)
}

/// The blocks of a PEM text whose label is wanted, as they are written; read as `Pem::iter_from_buffer` does, by lines.
fn blocks(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut blocks = Vec::new();
    let (mut at, mut begun) = (0, None);
    for line in text.split_inclusive('\n') {
        let end = at + line.trim_end().len();
        match begun {
            None => {
                let label = line.strip_prefix("-----BEGIN ");
                let label = label.and_then(|rest| rest.split('-').next());
                begun = label.map(|label| (at, label));
            }
            Some((start, label)) if line.starts_with("-----END ") => {
                blocks.extend(text.get(start..end).filter(|_| wanted(label)));
                begun = None;
            }
            Some(_) => {}
        }
        at += line.len();
    }
    blocks
}

fn key_type(certificate: &X509Certificate<'_>) -> Option<KeyType> {
    let public = certificate.public_key().parsed().ok()?;
    if matches!(public, PublicKey::RSA(_)) {
        Some(KeyType::Rsa)
    } else if matches!(public, PublicKey::EC(_)) {
        Some(KeyType::Ec)
    } else {
        None
    }
}

fn share_a_name(one: &X509Certificate<'_>, other: &X509Certificate<'_>) -> bool {
    let names = alternative_names(one);
    let common = common_name(one);
    let others = alternative_names(other);
    others.iter().any(|name| names.contains(name))
        || (common.is_some() && common == common_name(other))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{ByteString, api::core::v1::Secret};
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    use crate::{certificate::ServerCertificate, object::ObjectName};

    /// A certificate for a.test that ends late, and its key.
    const RSA: &str = include_str!("test_rsa.pem");

    /// An ECDSA certificate for a host, the one of its issuer, and its key.
    fn ecdsa(host: &str) -> [String; 3] {
        let (issuer_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut authority = CertificateParams::new([host.to_owned()]).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = authority.self_signed(&issuer_key).unwrap().pem();
        let authority = Issuer::new(authority, issuer_key);
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let leaf = params.signed_by(&key, &authority).unwrap().pem();
        [leaf, issuer, key.serialize_pem()]
    }

    fn rsa() -> (&'static str, &'static str) {
        let (before, key) = RSA.split_once("-----BEGIN PRIVATE KEY-----").unwrap();
        (
            before,
            RSA.strip_prefix(before)
                .filter(|_| !key.is_empty())
                .unwrap(),
        )
    }

    fn read(chain: &str, keys: &str) -> Result<ServerCertificate, String> {
        let entries = [("tls.crt", chain), ("tls.key", keys)];
        let data = entries.map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().into())));
        let secret = Secret {
            data: Some(data.into()),
            ..Secret::default()
        };
        ServerCertificate::read(&ObjectName::new("shop", "tls"), &secret)
            .map_err(|error| error.to_string())
    }

    /// The labels of the blocks that the data plane gets.
    fn labels(read: &ServerCertificate) -> Vec<&str> {
        let lines = read.certificate.pem.lines();
        lines
            .filter_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"))
            .collect()
    }

    #[test]
    fn a_secret_may_have_a_certificate_for_each_type_of_key() {
        let (rsa, rsa_key) = rsa();
        let [leaf, issuer, key] = ecdsa("a.test");
        for (chain, keys, want) in [
            (
                format!("{leaf}{issuer}{rsa}"),
                format!("{key}{rsa_key}"),
                [
                    "CERTIFICATE",
                    "CERTIFICATE",
                    "PRIVATE KEY",
                    "CERTIFICATE",
                    "PRIVATE KEY",
                ],
            ),
            (
                format!("{rsa}{leaf}{issuer}"),
                format!("{key}{rsa_key}"),
                [
                    "CERTIFICATE",
                    "PRIVATE KEY",
                    "CERTIFICATE",
                    "CERTIFICATE",
                    "PRIVATE KEY",
                ],
            ),
        ] {
            let read = read(&chain, &keys).unwrap();
            assert_eq!(labels(&read), want);
            assert!(read.names_host("a.test") && !read.names_host("b.test"));
            let near = "2029-12-25T00:00:00Z".parse().unwrap();
            assert!(
                read.expiry(near).unwrap().contains("2030-01-01"),
                "the earlier end"
            );
            // Each chain stands before its own key.
            let rsa_at = read.certificate.pem.find(rsa.trim()).unwrap();
            let after = read.certificate.pem.get(rsa_at..).unwrap();
            let rsa_key_at = after.find(rsa_key.trim()).unwrap();
            assert!(after.find(key.trim()).is_none_or(|at| at > rsa_key_at));
        }
    }

    #[test]
    fn only_what_was_looked_at_is_handed_on() {
        let (rsa, rsa_key) = rsa();
        let [leaf, _, key] = ecdsa("a.test");
        // A key within the chain, words before and behind, beginnings that are none.
        let chain = format!("# -----BEGIN CERTIFICATE-----\r\n{leaf}{rsa_key}{rsa} -----END\n");
        let keys = format!("words -----BEGIN X-----\n{key}\n-----BEGIN words\n");
        let read = read(&chain, &keys);
        assert_eq!(read.err().as_deref(), Some("tls.key is not PEM"));
        let keys = format!("words -----BEGIN X-----\n{key}\nwords");
        let read = self::read(&chain, &keys).unwrap();
        let (leaf, rsa, key) = (leaf.trim(), rsa.trim(), key.trim());
        assert_eq!(&*read.certificate.pem, format!("{leaf}\n{rsa}\n{key}\n"));
    }

    #[test]
    fn other_certificates_and_keys_begin_no_pair() {
        let (rsa, rsa_key) = rsa();
        let [leaf, issuer, key] = ecdsa("a.test");
        let [stranger, _, stranger_key] = ecdsa("b.test");
        // Its key is missing, it is of the same type, and it is of another host.
        for (chain, keys) in [
            (format!("{leaf}{issuer}{rsa}"), key.clone()),
            (
                format!("{leaf}{issuer}{rsa}"),
                format!("{key}{stranger_key}"),
            ),
            (
                format!("{leaf}{issuer}{stranger}"),
                format!("{key}{stranger_key}"),
            ),
            (
                format!("{rsa}{stranger}"),
                format!("{rsa_key}{stranger_key}"),
            ),
        ] {
            let read = read(&chain, &keys).unwrap();
            assert_eq!(labels(&read).last(), Some(&"PRIVATE KEY"));
            assert_eq!(
                labels(&read)
                    .iter()
                    .filter(|label| **label == "PRIVATE KEY")
                    .count(),
                1
            );
        }
        // The key of the first certificate may stand anywhere; without it there is nothing to serve.
        assert!(read(&leaf, &format!("{stranger_key}{key}")).is_ok());
        assert_eq!(
            read(&leaf, &format!("{stranger_key}{rsa_key}"))
                .err()
                .as_deref(),
            Some("the private key does not belong to the certificate")
        );
    }
}
