//! The certificates that hosts show: when they end, and who made them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ingress_model::{
    Host, ObjectName, Outcome,
    live::{Certificate, CertificateId},
};
use prometheus::{IntGaugeVec, Opts, Registry};
use x509_parser::{
    certificate::X509Certificate,
    oid_registry::{
        OID_KEY_TYPE_DSA, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519,
        OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME, OID_X509_SERIALNUMBER, Oid,
    },
    pem::parse_x509_pem,
    x509::X509Name,
};

use super::{NAMESPACE, controller::keep};
use crate::store::Store;

/// What the certificate that the controller makes is called, as in ingress-nginx.
const GENERATED: &str = "default-fake-certificate";

/// What a certificate says of itself, as far as people ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The Secret that it comes from; `None` for the certificate that the controller makes.
    pub(crate) secret: Option<ObjectName>,
    /// Seconds of Unix time.
    pub(crate) not_after: i64,
    /// Decimal.
    pub(crate) serial: String,
    pub(crate) issuer_common_name: String,
    issuer_organization: String,
    /// The attribute serialNumber of the issuer's name.
    issuer_serial: String,
    algorithm: &'static str,
}

/// Reads certificates, each once.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    read: Mutex<Read>,
}

/// What was read, and what it was read from.
type Read = HashMap<CertificateId, (Arc<str>, Arc<Facts>)>;

impl Certificates {
    /// The certificates of all hosts that have one of their own.
    pub(crate) fn of_hosts<'a>(
        &self,
        outcome: &'a Outcome,
        store: &Store,
    ) -> Vec<(&'a Host, Arc<Facts>)> {
        let live = &outcome.model.live;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.retain(|id, _| live.certificates.contains_key(id));
        let is_read = |read: &Read, new: &Certificate| {
            let known = read.get(&new.id);
            known.is_some_and(|(pem, _)| Arc::ptr_eq(pem, &new.pem))
        };
        let mut new = live
            .certificates
            .values()
            .filter(|new| !is_read(&read, new));
        if let Some(first) = new.next() {
            let secrets = secrets(store);
            let new: Vec<_> = std::iter::once(first).chain(new).collect();
            for certificate in new {
                let secret = secrets.get(certificate.id.as_str()).cloned();
                if let Some(facts) = facts(&certificate.pem, secret) {
                    let entry = (Arc::clone(&certificate.pem), Arc::new(facts));
                    read.insert(certificate.id.clone(), entry);
                }
            }
        }
        let facts = |id| read.get(id).map(|(_, facts)| Arc::clone(facts));
        live.servers
            .iter()
            .filter_map(|(host, id)| Some((host, facts(id)?)))
            .collect()
    }
}

/// Gauges about certificates.
#[derive(Debug)]
pub struct CertificateMetrics {
    class: String,
    certificates: Certificates,
    expiry: IntGaugeVec,
    info: IntGaugeVec,
}

impl CertificateMetrics {
    /// Makes and registers them. `class` is `--controller-class`.
    ///
    /// # Errors
    /// When one of the names is taken in the registry.
    pub fn register(registry: &Registry, class: &str) -> Result<Self, prometheus::Error> {
        let opts = |name: &str, help: &str| Opts::new(format!("{NAMESPACE}_{name}"), help);
        let expiry = opts(
            "ssl_expire_time_seconds",
            "When the certificate of a host ends, in seconds of Unix time; shown by the leader",
        );
        let info = opts(
            "ssl_certificate_info",
            "1 for each host with a certificate; the labels describe it",
        );
        let labels = ["class", "host", "identifier", "namespace", "secret_name"];
        let more = [
            "issuer_common_name",
            "issuer_organization",
            "public_key_algorithm",
            "serial_number",
        ];
        let all: Vec<_> = labels.into_iter().chain(more).collect();
        Ok(Self {
            class: class.to_owned(),
            certificates: Certificates::default(),
            expiry: keep(registry, IntGaugeVec::new(expiry, &labels)?)?,
            info: keep(registry, IntGaugeVec::new(info, &all)?)?,
        })
    }

    /// Shows the certificates of an outcome; when they end only if that is for us to tell.
    pub(super) fn refresh(&self, outcome: &Outcome, store: &Store, shows_expiry: bool) {
        self.expiry.reset();
        self.info.reset();
        for (host, facts) in self.certificates.of_hosts(outcome, store) {
            let identifier = format!("{}-{}", facts.issuer_serial, facts.serial);
            let secret = facts.secret.as_ref();
            let labels = [
                self.class.as_str(),
                host.as_str(),
                identifier.as_str(),
                secret.map_or("", ObjectName::namespace),
                secret.map_or(GENERATED, ObjectName::name),
            ];
            if shows_expiry && facts.not_after > 0 {
                let expiry = self.expiry.with_label_values(&labels);
                expiry.set(facts.not_after);
            }
            let more = [
                facts.issuer_common_name.as_str(),
                &facts.issuer_organization,
                facts.algorithm,
                &facts.serial,
            ];
            let all: Vec<_> = labels.into_iter().chain(more).collect();
            self.info.with_label_values(&all).set(1);
        }
    }
}

/// Secrets by what certificates are known by: their UID, or their name where they have none.
fn secrets(store: &Store) -> HashMap<String, ObjectName> {
    let snapshot = store.snapshot();
    let secrets = snapshot.secrets.iter();
    secrets
        .map(|(name, secret)| {
            let uid = secret.metadata.uid.clone().filter(|uid| !uid.is_empty());
            (uid.unwrap_or_else(|| name.to_string()), name.clone())
        })
        .collect()
}

/// What the first certificate of a chain says.
fn facts(pem: &str, secret: Option<ObjectName>) -> Option<Facts> {
    let (_, block) = parse_x509_pem(pem.as_bytes()).ok()?;
    let leaf = block.parse_x509().ok()?;
    let issuer = leaf.issuer();
    Some(Facts {
        secret,
        not_after: leaf.validity().not_after.timestamp(),
        serial: leaf.tbs_certificate.serial.to_string(),
        issuer_common_name: attribute(issuer, &OID_X509_COMMON_NAME),
        issuer_organization: attribute(issuer, &OID_X509_ORGANIZATION_NAME),
        issuer_serial: attribute(issuer, &OID_X509_SERIALNUMBER),
        algorithm: algorithm(&leaf),
    })
}

/// The first attribute of that kind in a name; empty if there is none.
fn attribute(name: &X509Name<'_>, kind: &Oid<'_>) -> String {
    let mut attributes = name.iter_by_oid(kind);
    let text = attributes.find_map(|attribute| attribute.as_str().ok());
    text.unwrap_or_default().to_owned()
}

/// The kind of the public key, by the names of Go's `x509.PublicKeyAlgorithm`.
fn algorithm(certificate: &X509Certificate<'_>) -> &'static str {
    let algorithm = &certificate.public_key().algorithm.algorithm;
    let known = [
        (OID_PKCS1_RSAENCRYPTION, "RSA"),
        (OID_KEY_TYPE_EC_PUBLIC_KEY, "ECDSA"),
        (OID_SIG_ED25519, "Ed25519"),
        (OID_KEY_TYPE_DSA, "DSA"),
    ];
    let name = known.iter().find(|(oid, _)| oid == algorithm);
    name.map_or("0", |(_, name)| name)
}
