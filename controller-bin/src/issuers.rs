//! Certificates of Secrets that lack those of their issuers (`--enable-ssl-chain-completion`).
//!
//! A certificate may say where its issuer's is (RFC 5280, 4.2.2.1). What is missing is asked for there, and put behind the
//! certificates of the Secret for as long as the controller runs; the Secret itself stays as it is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ingress_model::{ObjectName, Snapshot};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use sync_queue::Handle;
use tokio::{sync::mpsc, time::timeout};
use tracing::{info, warn};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension},
    oid_registry::{OID_PKIX_ACCESS_DESCRIPTOR_CA_ISSUERS, Oid},
    pem::Pem,
    prelude::FromDer,
};

use crate::{
    chain::chain,
    download::{DownloadError, Downloads},
    sync::Cause,
};

/// The entry of a Secret with its certificates.
const CERTIFICATES: &str = "tls.crt";

/// How many certificates a chain is completed by.
const MOST_ISSUERS: usize = 5;

/// How many bytes the certificate of an issuer may have.
const LARGEST: usize = 64 << 10;

/// How long an issuer may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long after a failure an issuer is asked again.
const TRY_AGAIN: Duration = Duration::from_mins(1);

/// Why there is no certificate of an issuer.
#[derive(Debug, thiserror::Error)]
enum IssuerError {
    #[error("cannot get the certificate")]
    Get(#[from] DownloadError),
    #[error("the certificate does not come within {} s", PATIENCE.as_secs())]
    Slow,
    #[error("there is no certificate")]
    NoCertificate,
    #[error("there is the certificate of somebody else")]
    Other,
}

/// The certificates of issuers that are known, and who wants to know more.
#[derive(Debug)]
pub(crate) struct Issuers {
    state: Mutex<State>,
    questions: mpsc::UnboundedSender<Question>,
}

#[derive(Debug, Default)]
struct State {
    /// What is known of the issuer of a certificate (DER).
    issuers: BTreeMap<Vec<u8>, Issuer>,
    /// Secrets as they are stored, with what was made of them.
    completed: BTreeMap<ObjectName, (Arc<Secret>, Arc<Secret>)>,
}

#[derive(Clone, Debug)]
enum Issuer {
    Asked,
    /// Its certificate (DER).
    Known(Arc<[u8]>),
    Failed(Instant),
}

/// Whose issuer is looked for, and where.
#[derive(Debug)]
pub(crate) struct Question {
    certificate: Vec<u8>,
    address: String,
}

impl Issuers {
    /// Nobody is known yet. The questions are for [`answer`].
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Question>) {
        let (questions, asked) = mpsc::unbounded_channel();
        let state = Mutex::default();
        (Arc::new(Self { state, questions }), asked)
    }

    /// Puts the certificates of issuers behind those of Secrets that lack them, as far as they are known by now, and asks
    /// for the others.
    pub(crate) fn complete(&self, snapshot: &mut Snapshot) {
        let mut state = self.state();
        let state = &mut *state;
        let mut used = BTreeSet::new();
        let before = std::mem::take(&mut state.completed);
        let secrets: Vec<_> = snapshot
            .secrets
            .iter()
            .filter(|(_, secret)| secret.type_.as_deref() == Some("kubernetes.io/tls"))
            .map(|(name, secret)| (name.clone(), Arc::clone(secret)))
            .collect();
        for (name, secret) in secrets {
            let missing = self.missing(&secret, &mut state.issuers, &mut used);
            if missing.is_empty() {
                continue;
            }
            let made = before
                .get(&name)
                .filter(|(stored, _)| Arc::ptr_eq(stored, &secret));
            let completed = match made {
                Some((_, made)) if certificates(made) == extended(&secret, &missing) => {
                    Arc::clone(made)
                }
                _ => Arc::new(with_certificates(&secret, extended(&secret, &missing))),
            };
            snapshot
                .secrets
                .insert(name.clone(), Arc::clone(&completed));
            state.completed.insert(name, (secret, completed));
        }
        state
            .issuers
            .retain(|certificate, _| used.contains(certificate));
    }

    /// The certificates of issuers that a Secret lacks and that are known. Whose issuers were looked for is added to `used`.
    fn missing(
        &self,
        secret: &Secret,
        issuers: &mut BTreeMap<Vec<u8>, Issuer>,
        used: &mut BTreeSet<Vec<u8>>,
    ) -> Vec<Arc<[u8]>> {
        let mut missing = Vec::new();
        let Some(mut last) = last_certificate(certificates(secret)) else {
            return missing;
        };
        while missing.len() < MOST_ISSUERS {
            let Some(address) = issuer_address(&last) else {
                break;
            };
            used.insert(last.clone());
            match issuers.get(&last) {
                Some(Issuer::Known(issuer)) if is_root(issuer) => break,
                Some(Issuer::Known(issuer)) => {
                    missing.push(Arc::clone(issuer));
                    last = issuer.to_vec();
                    continue;
                }
                Some(Issuer::Asked) => {}
                Some(Issuer::Failed(when)) if when.elapsed() < TRY_AGAIN => {}
                Some(Issuer::Failed(_)) | None => {
                    issuers.insert(last.clone(), Issuer::Asked);
                    // Nobody answers once the controller ends.
                    let _ending = self.questions.send(Question {
                        certificate: last,
                        address,
                    });
                }
            }
            break;
        }
        missing
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers questions as they come, each with a sync that takes the answer up.
pub(crate) async fn answer(
    issuers: Arc<Issuers>,
    mut questions: mpsc::UnboundedReceiver<Question>,
    downloads: Downloads,
    syncs: Handle<Cause>,
) {
    while let Some(question) = questions.recv().await {
        let address = &question.address;
        let issuer = match ask(&downloads, &question).await {
            Ok(issuer) => {
                info!(address, "got the certificate of an issuer");
                Issuer::Known(issuer.into())
            }
            Err(error) => {
                warn!(
                    address,
                    error = chain(&error),
                    "cannot complete the chain of a certificate"
                );
                Issuer::Failed(Instant::now())
            }
        };
        issuers.state().issuers.insert(question.certificate, issuer);
        syncs.enqueue_skippable(Cause::Objects);
    }
}

async fn ask(downloads: &Downloads, question: &Question) -> Result<Vec<u8>, IssuerError> {
    let asked = timeout(PATIENCE, downloads.get(&question.address, LARGEST)).await;
    let file = asked.map_err(|_late| IssuerError::Slow)??;
    // It should be DER, and is PEM at times.
    let der = last_certificate(&file).unwrap_or_else(|| file.to_vec());
    let (_, issuer) =
        X509Certificate::from_der(&der).map_err(|_error| IssuerError::NoCertificate)?;
    let (_, issued) = X509Certificate::from_der(&question.certificate)
        .map_err(|_error| IssuerError::NoCertificate)?;
    if issuer.subject().as_raw() != issued.issuer().as_raw() || !issuer.is_ca() {
        return Err(IssuerError::Other);
    }
    Ok(der)
}

fn certificates(secret: &Secret) -> &[u8] {
    let data = secret.data.as_ref().and_then(|data| data.get(CERTIFICATES));
    data.map_or(&[], |text| &text.0)
}

fn with_certificates(secret: &Secret, text: Vec<u8>) -> Secret {
    let mut secret = secret.clone();
    let data = secret.data.get_or_insert_default();
    data.insert(CERTIFICATES.to_owned(), ByteString(text));
    secret
}

/// The certificates of a Secret with these behind them.
fn extended(secret: &Secret, issuers: &[Arc<[u8]>]) -> Vec<u8> {
    let mut text = certificates(secret).trim_ascii_end().to_vec();
    for issuer in issuers {
        text.push(b'\n');
        text.extend(pem(issuer).bytes());
    }
    text
}

/// The last certificate of a PEM text, as DER.
fn last_certificate(text: &[u8]) -> Option<Vec<u8>> {
    let blocks = Pem::iter_from_buffer(text).map_while(Result::ok);
    let last = blocks.filter(|block| block.label == "CERTIFICATE").last()?;
    Some(last.contents)
}

/// Where the certificate of a certificate's issuer is; `None` for one that is its own issuer, or does not say.
fn issuer_address(der: &[u8]) -> Option<String> {
    const ACCESS: Oid<'_> = OID_PKIX_ACCESS_DESCRIPTOR_CA_ISSUERS;
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    if is_root(der) {
        return None;
    }
    let extensions = certificate.extensions().iter();
    let mut descriptions = extensions
        .filter_map(|extension| {
            let ParsedExtension::AuthorityInfoAccess(access) = extension.parsed_extension() else {
                return None;
            };
            Some(&access.accessdescs)
        })
        .flatten()
        .filter(|description| description.access_method == ACCESS);
    descriptions.find_map(|description| {
        let GeneralName::URI(address) = &description.access_location else {
            return None;
        };
        let is_http = address.starts_with("http://") || address.starts_with("https://");
        is_http.then(|| (*address).to_owned())
    })
}

/// Whether a certificate is its own issuer: clients have it, or do not trust it.
fn is_root(der: &[u8]) -> bool {
    let parsed = X509Certificate::from_der(der);
    parsed.is_ok_and(|(_, it)| it.subject().as_raw() == it.issuer().as_raw())
}

/// A certificate as PEM (RFC 7468).
fn pem(der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in der.chunks(48) {
        for bytes in line.chunks(3) {
            let byte = |place: usize| u32::from(bytes.get(place).copied().unwrap_or_default());
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for place in 0..4 {
                let digit = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or_default();
                let digit = DIGITS.get(digit).copied().map_or('=', char::from);
                text.push(if place <= bytes.len() { digit } else { '=' });
            }
        }
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_written_as_they_are_read() {
        for length in [1, 2, 3, 47, 48, 49, 200] {
            let der: Vec<u8> = (0..length).map(|byte| byte ^ 0xa5).collect();
            assert_eq!(
                last_certificate(pem(&der).as_bytes()),
                Some(der),
                "{length}"
            );
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_issuer() {
        assert_eq!(issuer_address(b"nothing"), None);
        assert_eq!(last_certificate(b"nothing"), None);
        let key = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        assert_eq!(issuer_address(key.cert.der()), None);
        assert!(is_root(key.cert.der()));
    }
}
