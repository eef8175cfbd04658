//! The validating webhook: asked by the API server whether an Ingress may be stored.
//!
//! ```text
//! API server ──TLS──▶ [server]: connections ──▶ body ──▶ protocol: AdmissionReview ──▶ [`Review`] ──▶ answer
//!                        ▲
//!                     identity ◀── certificate and key files, read again and again ◀── [`SelfSigned`], or somebody else
//! ```
//!
//! Whoever reaches the port may ask, not only the API server, so that everything has a bound: connections, headers,
//! bodies, what is kept of them at one time, reviews at one time, and how long each may take.
//!
//! | request | answer |
//! |---|---|
//! | an AdmissionReview of `admission.k8s.io/v1`, on any path, by any method | 200 and an AdmissionReview |
//! | anything else that is read in time | 400 |
//! | a body of 9 MiB or more | 413 |
//! | a body that does not come in time | 408 |
//! | more large bodies at one time than are kept | 503 |
//! | one whose review panics | 500 |
//!
//! The AdmissionReview refuses Ingresses that [`Review`] finds fault with, those that cannot be read, and objects that
//! are no Ingresses of `networking.k8s.io/v1`, which the webhook should not be asked about. It allows deletions and
//! changes of subresources, since neither changes what is served.

mod body;
mod identity;
mod inspector;
mod protocol;
mod reviewer;
mod sandbox;
mod seats;
mod self_signed;
mod server;

use std::{io, num::NonZero, path::PathBuf, thread, time::Duration};

use ingress_model::Verdict;
use k8s_openapi::api::networking::v1::Ingress;

use crate::args::AdmissionArgs;

pub(crate) use self::reviewer::Course;
pub use self::{
    identity::IdentityError,
    inspector::Inspector,
    protocol::{QuestionError, answer},
    reviewer::Reviewer,
    sandbox::{Sandbox, SandboxError},
    self_signed::{SelfSigned, SelfSignedError},
    server::AdmissionServer,
};

/// Judges Ingresses. It may take a moment: reviews have threads of their own.
pub trait Review: Send + Sync + 'static {
    /// Whether the Ingress may be stored.
    fn review(&self, ingress: &Ingress) -> Verdict;
}

impl<F> Review for F
where
    F: Fn(&Ingress) -> Verdict + Send + Sync + 'static,
{
    fn review(&self, ingress: &Ingress) -> Verdict {
        self(ingress)
    }
}

/// Where the webhook listens, and as whom.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `:port` for all addresses of the machine, or `host:port`.
    pub address: String,
    /// File with the certificate and those between it and the authority, as PEM.
    pub certificate: PathBuf,
    /// File with the certificate's key, as PEM.
    pub key: PathBuf,
    /// File with authorities, as PEM, one of which has signed what a client has to show; `None`: nobody has to show a
    /// certificate.
    pub client_authority: Option<PathBuf>,
    /// How much anybody may ask for.
    pub limits: Limits,
}

impl Settings {
    /// What the flags say; `None` when there is to be no webhook.
    ///
    /// # Errors
    ///
    /// When the certificate's or the key's flag is missing.
    pub fn from_flags(flags: &AdmissionArgs) -> Result<Option<Self>, AdmissionError> {
        let Some(address) = flags.validating_webhook.clone() else {
            return Ok(None);
        };
        let path = |path: &Option<PathBuf>, flag| path.clone().ok_or(AdmissionError::Missing(flag));
        let certificate = &flags.validating_webhook_certificate;
        Ok(Some(Self {
            address,
            certificate: path(certificate, "--validating-webhook-certificate")?,
            key: path(&flags.validating_webhook_key, "--validating-webhook-key")?,
            client_authority: flags.validating_webhook_client_ca.clone(),
            limits: Limits::default(),
        }))
    }
}

/// How much anybody may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long the TLS handshake may take, and the head of a request, the wait for it included.
    pub head: Duration,
    /// How long the body of a request may take.
    pub body: Duration,
    /// How many connections there are at one time. When there is one more, the one goes that has waited longest for a
    /// peer's request, of the address that has most; the next ones wait if there is none.
    pub connections: usize,
    /// How many bytes of bodies are kept at one time.
    pub memory: usize,
    /// How many reviews there are at one time; the next ones wait.
    pub reviews: usize,
    /// How often the certificate is looked at.
    pub renewal: Duration,
    /// How long requests that have begun may take once the webhook ends.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // The API server waits for 10 seconds by default, and 30 at most.
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            connections: 128,
            memory: 64 << 20,
            // They only compute: more of them would make each other wait.
            reviews: thread::available_parallelism().map_or(2, NonZero::get),
            renewal: Duration::from_secs(5),
            drain: Duration::from_secs(5),
        }
    }
}

/// Why there is no webhook.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// A flag is missing.
    #[error("flag --validating-webhook needs {0}")]
    Missing(&'static str),
    /// The certificate or its key cannot be used.
    #[error("cannot use the webhook's certificate")]
    Identity(#[from] IdentityError),
    /// No certificate can be made.
    #[error(transparent)]
    SelfSigned(#[from] SelfSignedError),
    /// NGINX cannot be asked as `--admission-nginx-test` wants it.
    #[error("cannot do what flag --admission-nginx-test asks for")]
    Sandbox(#[from] SandboxError),
    /// The address cannot be listened at.
    #[error("cannot listen for the webhook at {address:?}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Args;

    #[test]
    fn a_webhook_needs_a_certificate_and_a_key() {
        let settings = |flags: &[&str]| {
            let words = ["nginx-ingress-controller"].iter().chain(flags);
            let args = Args::try_parse_from(words).unwrap();
            Settings::from_flags(&args.admission)
        };
        let certificate = "--validating-webhook-certificate=/tls/cert";
        let key = "--validating-webhook-key=/tls/key";
        assert!(settings(&[certificate, key]).unwrap().is_none());
        let given = settings(&["--validating-webhook=:8443", certificate, key]);
        let given = given.unwrap().unwrap();
        assert_eq!(given.address, ":8443");
        assert_eq!(given.certificate.as_os_str(), "/tls/cert");
        assert_eq!(given.key.as_os_str(), "/tls/key");
        for (flag, missing) in [(certificate, "-key"), (key, "-certificate")] {
            let error = settings(&["--validating-webhook=:8443", flag]).unwrap_err();
            assert!(error.to_string().ends_with(missing), "{error}");
        }
    }
}
