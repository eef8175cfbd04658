//! A certificate that the controller makes for its webhook, so that nobody else has to.
//!
//! ```text
//!  first replica ──create──▶ Secret ◀──get── other replicas         files ──▶ identity ──▶ TLS
//!                              └──▶ ca.crt ──update──▶ ValidatingWebhookConfiguration: caBundle
//! ```
//!
//! The Service, the Secret and the ValidatingWebhookConfiguration have the same name. The Secret holds an authority of
//! ten years and a certificate of one, so that a new certificate needs no change of the configuration. Replicas agree
//! by creating, and by writing the version that was read: who comes second takes what the first one has written.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use ingress_model::ObjectName;
use jiff::{Span, Timestamp, ToSpan, civil::Date, tz::TimeZone};
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Secret},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};
use x509_parser::pem::parse_x509_pem;

use crate::{
    chain::chain,
    nginx::files::{self, Access, WriteError},
};

/// How long the authority is valid.
const AUTHORITY_YEARS: i64 = 10;

/// How long a certificate is valid.
const CERTIFICATE_DAYS: i64 = 365;

/// How long before its end a certificate is replaced, in seconds.
const RENEW_BEFORE: i64 = 60 * 86_400;

/// How often everything is looked at.
const LOOK: Duration = Duration::from_mins(1);

/// How long to wait after something has failed.
const RETRY: Duration = Duration::from_secs(5);

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(10);

/// Why the webhook has no certificate of its own making, or the API server does not know it.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    /// It cannot be made.
    #[error("cannot make a certificate for the webhook")]
    Make(#[from] rcgen::Error),
    /// It cannot be written where the webhook reads it.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The API server refuses something, or cannot be reached.
    #[error("cannot {act}")]
    Request {
        /// What.
        act: &'static str,
        /// Why.
        source: Box<kube::Error>,
    },
    /// The API server does not answer.
    #[error("cannot {0} in time")]
    Late(&'static str),
    /// The Secret holds something else.
    #[error("cannot use the Secret {0}: it lacks tls.crt, tls.key or ca.crt")]
    Foreign(ObjectName),
}

/// A certificate for the webhook, and those who have to know of it.
#[derive(Debug)]
pub struct SelfSigned {
    /// The namespace, and the name that Service, Secret and ValidatingWebhookConfiguration share.
    name: ObjectName,
    directory: PathBuf,
    /// Made at the start; used unless there is one already.
    bundle: Bundle,
}

/// What the Secret holds, as PEM.
#[derive(Clone, PartialEq, Eq)]
struct Bundle {
    authority: String,
    /// `None` where somebody else looks after the Secret.
    authority_key: Option<String>,
    certificate: String,
    key: String,
}

impl SelfSigned {
    /// Makes a certificate, and writes it into the directory. `name` is that of the Service by which the API server
    /// reaches the webhook.
    ///
    /// # Errors
    ///
    /// When there is no randomness to make it from, or the directory cannot be written.
    pub fn prepare(
        name: ObjectName,
        directory: &Path,
        now: Timestamp,
    ) -> Result<Self, SelfSignedError> {
        let own = Self {
            bundle: Bundle::make(&name, now)?,
            directory: directory.to_owned(),
            name,
        };
        own.write(&own.bundle)?;
        Ok(own)
    }

    /// The file with the certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("tls.crt")
    }

    /// The file with its key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.directory.join("tls.key")
    }

    /// Does once what [`Self::keep`] does, before anybody is answered: a replica that comes later has the certificate of
    /// the others from the start.
    pub async fn begin(&self, client: &Client) {
        if let Err(error) = self.agree(client, Timestamp::now()).await {
            debug!(
                error = chain(&error),
                "the webhook begins with a certificate of its own"
            );
        }
    }

    /// Keeps the files the same as the Secret, and has the API server trust it; for ever.
    pub async fn keep(self, client: Client) {
        let mut fault = String::new();
        loop {
            match self.agree(&client, Timestamp::now()).await {
                Ok(()) => {
                    fault.clear();
                    sleep(LOOK).await;
                }
                Err(error) => {
                    let text = chain(&error);
                    if text == fault {
                        debug!(
                            error = text,
                            "the API server still does not trust the webhook"
                        );
                    } else {
                        warn!(
                            error = text,
                            "the API server may not trust the webhook; trying again"
                        );
                        fault = text;
                    }
                    sleep(RETRY).await;
                }
            }
        }
    }

    async fn agree(&self, client: &Client, now: Timestamp) -> Result<(), SelfSignedError> {
        let bundle = self.shared(client, now).await?;
        // The authority first: who is answered with the certificate has to trust it.
        self.announce(client, &bundle.authority).await?;
        self.write(&bundle)
    }

    /// What the Secret holds; written by us if there is none, or if it is about to end.
    async fn shared(&self, client: &Client, now: Timestamp) -> Result<Bundle, SelfSignedError> {
        let secrets = Api::<Secret>::namespaced(client.clone(), self.name.namespace());
        let name = self.name.name();
        let params = PostParams::default();
        let Some(mut secret) = request("read the webhook's Secret", secrets.get_opt(name)).await?
        else {
            let mut secret = Secret {
                type_: Some("kubernetes.io/tls".into()),
                data: Some(self.bundle.data()),
                ..Secret::default()
            };
            secret.metadata.name = Some(name.to_owned());
            let created = secrets.create(&params, &secret);
            request("create the webhook's Secret", created).await?;
            info!(secret = %self.name, "made a certificate for the webhook");
            return Ok(self.bundle.clone());
        };
        let bundle = Bundle::read(&secret);
        let bundle = bundle.ok_or_else(|| SelfSignedError::Foreign(self.name.clone()))?;
        let Some(renewed) = bundle.renewed(&self.name, now)? else {
            return Ok(bundle);
        };
        secret.data.get_or_insert_default().extend(renewed.data());
        let replaced = secrets.replace(name, &params, &secret);
        request("renew the webhook's Secret", replaced).await?;
        info!(secret = %self.name, "renewed the webhook's certificate");
        Ok(renewed)
    }

    /// Has the API server trust an authority where it asks our Service.
    async fn announce(&self, client: &Client, authority: &str) -> Result<(), SelfSignedError> {
        let kind = ApiResource::erase::<ValidatingWebhookConfiguration>(&());
        let configurations = Api::<DynamicObject>::all_with(client.clone(), &kind);
        let name = self.name.name();
        let read = configurations.get(name);
        let mut configuration = request("read the ValidatingWebhookConfiguration", read).await?;
        if !self.trust(&mut configuration.data, authority) {
            return Ok(());
        }
        let params = PostParams::default();
        let replaced = configurations.replace(name, &params, &configuration);
        request("update the ValidatingWebhookConfiguration", replaced).await?;
        info!(
            configuration = name,
            "the API server trusts the webhook's certificate"
        );
        Ok(())
    }

    /// Sets `caBundle` where it is another one. Answers whether it was.
    fn trust(&self, configuration: &mut Value, authority: &str) -> bool {
        let bundle = json!(ByteString(authority.as_bytes().to_vec()));
        let webhooks = configuration
            .get_mut("webhooks")
            .and_then(Value::as_array_mut);
        let mut changed = false;
        for webhook in webhooks.into_iter().flatten() {
            let Some(client) = webhook.get_mut("clientConfig") else {
                continue;
            };
            let service = client.get("service");
            let field = |field| service.and_then(|service| service.get(field)?.as_str());
            let is_ours = field("namespace") == Some(self.name.namespace())
                && field("name") == Some(self.name.name());
            if is_ours && client.get("caBundle") != Some(&bundle) {
                client["caBundle"] = bundle.clone();
                changed = true;
            }
        }
        changed
    }

    fn write(&self, bundle: &Bundle) -> Result<(), SelfSignedError> {
        // The webhook takes over only pairs that fit, so that the order does not matter.
        files::write(&self.key(), bundle.key.as_bytes(), Access::Private)?;
        let certificate = bundle.certificate.as_bytes();
        files::write(&self.certificate(), certificate, Access::Private)?;
        Ok(())
    }
}

impl Bundle {
    fn make(name: &ObjectName, now: Timestamp) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let params = authority(now);
        let authority = params.self_signed(&key)?.pem();
        let authority_key = Some(key.serialize_pem());
        let issuer = Issuer::from_params(&params, key);
        let (certificate, key) = certificate(name, &issuer, now)?;
        Ok(Self {
            authority,
            authority_key,
            certificate,
            key,
        })
    }

    fn read(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let text = |key: &str| {
            let ByteString(bytes) = data.get(key)?;
            String::from_utf8(bytes.clone()).ok()
        };
        Some(Self {
            authority: text("ca.crt")?,
            authority_key: text("ca.key"),
            certificate: text("tls.crt")?,
            key: text("tls.key")?,
        })
    }

    fn data(&self) -> BTreeMap<String, ByteString> {
        let parts = [
            ("ca.crt", Some(&self.authority)),
            ("ca.key", self.authority_key.as_ref()),
            ("tls.crt", Some(&self.certificate)),
            ("tls.key", Some(&self.key)),
        ];
        let parts = parts.into_iter();
        parts
            .filter_map(|(key, text)| Some((key.to_owned(), ByteString(text?.as_bytes().to_vec()))))
            .collect()
    }

    /// One with a longer life, if this one is about to end and the authority's key is there.
    fn renewed(&self, name: &ObjectName, now: Timestamp) -> Result<Option<Self>, rcgen::Error> {
        let is_ending = |pem: &str| {
            let end = end(pem);
            end.is_none_or(|end| end - now.as_second() < RENEW_BEFORE)
        };
        let Some(authority_key) = &self.authority_key else {
            return Ok(None);
        };
        if is_ending(&self.authority) {
            return Self::make(name, now).map(Some);
        }
        if !is_ending(&self.certificate) {
            return Ok(None);
        }
        // Whoever is issued by the same name and key is issued by the same authority.
        let issuer_key = KeyPair::from_pem(authority_key)?;
        let params = authority(now);
        let issuer = Issuer::from_params(&params, issuer_key);
        let (certificate, key) = certificate(name, &issuer, now)?;
        Ok(Some(Self {
            certificate,
            key,
            ..self.clone()
        }))
    }
}

/// Keys are never printed.
impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle").finish_non_exhaustive()
    }
}

async fn request<T>(
    act: &'static str,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, SelfSignedError> {
    match timeout(REQUEST, request).await {
        Ok(answer) => answer.map_err(|source| SelfSignedError::Request {
            act,
            source: Box::new(source),
        }),
        Err(_) => Err(SelfSignedError::Late(act)),
    }
}

fn authority(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("nginx-ingress-controller webhook authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    limit(&mut params, now, AUTHORITY_YEARS.years());
    params
}

/// A certificate for the Service, and its key.
fn certificate(
    name: &ObjectName,
    issuer: &Issuer<'_, KeyPair>,
    now: Timestamp,
) -> Result<(String, String), rcgen::Error> {
    let (namespace, service) = (name.namespace(), name.name());
    let names = [
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
    ];
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named(service);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    limit(&mut params, now, CERTIFICATE_DAYS.days());
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// Sets from when and until when a certificate is valid: clocks may differ by a day.
fn limit(params: &mut CertificateParams, now: Timestamp, life: Span) {
    let midnight = |date: Date| {
        // The months and days of a date are in range.
        let number = |number: i8| u8::try_from(number).unwrap_or(1);
        rcgen::date_time_ymd(date.year().into(), number(date.month()), number(date.day()))
    };
    let today = now.to_zoned(TimeZone::UTC).date();
    params.not_before = midnight(today.saturating_sub(1.day()));
    params.not_after = midnight(today.saturating_add(life));
}

/// When the first certificate ends, in seconds of Unix time.
fn end(pem: &str) -> Option<i64> {
    let (_, block) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = block.parse_x509().ok()?;
    Some(certificate.validity().not_after.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> ObjectName {
        ObjectName::new("ours", "webhook")
    }

    fn days(days: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + days * 86_400).unwrap()
    }

    #[test]
    fn a_certificate_is_renewed_by_the_same_authority_and_ends_with_it() {
        let first = Bundle::make(&name(), days(0)).unwrap();
        assert_eq!(first.renewed(&name(), days(300)).unwrap(), None);
        let second = first.renewed(&name(), days(310)).unwrap().unwrap();
        assert_eq!(second.authority, first.authority);
        assert_ne!(second.certificate, first.certificate);
        assert!(end(&second.certificate) > end(&first.certificate));
        let verify = |bundle: &Bundle| {
            let (_, authority) = parse_x509_pem(bundle.authority.as_bytes()).unwrap();
            let (_, leaf) = parse_x509_pem(bundle.certificate.as_bytes()).unwrap();
            let (authority, leaf) = (authority.parse_x509().unwrap(), leaf.parse_x509().unwrap());
            assert_eq!(leaf.issuer(), authority.subject());
            assert!(leaf.validity().not_after <= authority.validity().not_after);
        };
        verify(&first);
        verify(&second);
        let third = second.renewed(&name(), days(3600)).unwrap().unwrap();
        assert_ne!(third.authority, first.authority);
        let foreign = Bundle {
            authority_key: None,
            ..first
        };
        assert_eq!(foreign.renewed(&name(), days(310)).unwrap(), None);
    }

    #[test]
    fn a_secret_holds_all_of_it() {
        let bundle = Bundle::make(&name(), days(0)).unwrap();
        let mut secret = Secret {
            data: Some(bundle.data()),
            ..Secret::default()
        };
        assert_eq!(Bundle::read(&secret), Some(bundle));
        secret.data.as_mut().unwrap().remove("ca.crt");
        assert_eq!(Bundle::read(&secret), None);
    }

    #[test]
    fn only_webhooks_that_ask_our_service_are_changed() {
        let directory = tempfile::tempdir().unwrap();
        let own = SelfSigned::prepare(name(), directory.path(), days(0)).unwrap();
        let client = |name: &str| json!({"service": {"namespace": "ours", "name": name}});
        let mut configuration = json!({"webhooks": [
            {"name": "a", "clientConfig": client("webhook")},
            {"name": "b", "clientConfig": client("other")},
            {"name": "c", "clientConfig": {"url": "https://x.test"}},
        ]});
        let before = configuration.clone();
        assert!(own.trust(&mut configuration, "pem"));
        let hook = &configuration["webhooks"];
        assert_eq!(hook[0]["clientConfig"]["caBundle"], "cGVt");
        assert_eq!(hook[1], before["webhooks"][1]);
        assert_eq!(hook[2], before["webhooks"][2]);
        assert!(!own.trust(&mut configuration, "pem"), "it is the same");
    }
}
