//! The webhook's certificate and key: files that somebody renews while the controller runs.

use std::{
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use rustls::{
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{fs, time::interval};
use tracing::{info, warn};

use crate::chain::chain;

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds something else.
    #[error("cannot find {what} as PEM in {}", path.display())]
    Pem {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What it holds instead.
        source: pem::Error,
    },
    /// The two do not belong together, or are of a kind that is not supported.
    #[error("cannot use {} with the key {}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// TLS as such cannot be had.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}

/// The certificate and key in use.
#[derive(Debug)]
pub(super) struct Identity {
    files: Files,
    current: RwLock<Arc<CertifiedKey>>,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What the files hold.
#[derive(PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Identity {
    pub(super) async fn load(certificate: PathBuf, key: PathBuf) -> Result<Self, IdentityError> {
        let files = Files { certificate, key };
        let content = files.read().await?;
        Ok(Self {
            current: RwLock::new(Arc::new(files.parse(&content)?)),
            files,
        })
    }

    /// Takes over what the files hold, whenever that is something else. What cannot be used is not taken over, so that
    /// files may be replaced one after the other.
    pub(super) async fn follow(&self, every: Duration) -> Infallible {
        let mut ticks = interval(every);
        let mut seen = None;
        let mut fault = String::new();
        loop {
            ticks.tick().await;
            match self.renew(&mut seen).await {
                Ok(true) => info!("took over the webhook's certificate"),
                Ok(false) => continue,
                Err(error) => {
                    let text = chain(&error);
                    if text != fault {
                        warn!(
                            error = text,
                            "the webhook goes on with the certificate before"
                        );
                        fault = text;
                    }
                    continue;
                }
            }
            fault.clear();
        }
    }

    async fn renew(&self, seen: &mut Option<Content>) -> Result<bool, IdentityError> {
        let content = self.files.read().await?;
        if seen.as_ref() == Some(&content) {
            return Ok(false);
        }
        let parsed = self.files.parse(&content);
        *seen = Some(content);
        let parsed = Arc::new(parsed?);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = current.cert != parsed.cert;
        *current = parsed;
        Ok(is_new)
    }
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

impl Files {
    async fn read(&self) -> Result<Content, IdentityError> {
        Ok(Content {
            certificate: read(&self.certificate).await?,
            key: read(&self.key).await?,
        })
    }

    fn parse(&self, content: &Content) -> Result<CertifiedKey, IdentityError> {
        let pem = |what, path: &Path| {
            let path = path.to_owned();
            move |source| IdentityError::Pem { what, path, source }
        };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(&content.certificate).collect();
        let chain = chain.and_then(|chain| {
            let some = (!chain.is_empty()).then_some(chain);
            some.ok_or(pem::Error::NoItemsFound)
        });
        let chain = chain.map_err(pem("a certificate", &self.certificate))?;
        let key = PrivateKeyDer::from_pem_slice(&content.key);
        let key = key.map_err(pem("a key", &self.key))?;
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|source| {
            IdentityError::Pair {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
                source,
            }
        })
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    fs::read(path).await.map_err(|source| IdentityError::Read {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["webhook.test".to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[tokio::test]
    async fn only_a_whole_new_pair_replaces_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name| directory.path().join(name);
        let (certificate, key) = (file("tls.crt"), file("tls.key"));
        let (old, old_key) = pair();
        let (new, new_key) = pair();
        fs::write(&certificate, &old).unwrap();
        fs::write(&key, &old_key).unwrap();
        let identity = Identity::load(certificate.clone(), key.clone())
            .await
            .unwrap();
        let mut seen = None;
        assert!(!identity.renew(&mut seen).await.unwrap());

        fs::write(&certificate, &new).unwrap();
        let fault = identity.renew(&mut seen).await.unwrap_err();
        assert!(matches!(fault, IdentityError::Pair { .. }), "{fault:?}");
        // It is not said again and again.
        assert!(!identity.renew(&mut seen).await.unwrap());
        fs::write(&certificate, "nonsense").unwrap();
        let fault = identity.renew(&mut seen).await.unwrap_err();
        assert!(matches!(fault, IdentityError::Pem { .. }), "{fault:?}");
        fs::remove_file(&certificate).unwrap();
        let fault = identity.renew(&mut seen).await.unwrap_err();
        assert!(matches!(fault, IdentityError::Read { .. }), "{fault:?}");
        let current = |identity: &Identity| {
            let current = identity.current.read().unwrap();
            current.cert.first().cloned()
        };
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).ok();
        assert_eq!(current(&identity), der(&old));

        fs::write(&certificate, &new).unwrap();
        fs::write(&key, &new_key).unwrap();
        assert!(identity.renew(&mut seen).await.unwrap());
        assert_eq!(current(&identity), der(&new));
        assert!(!identity.renew(&mut seen).await.unwrap());
    }
}
