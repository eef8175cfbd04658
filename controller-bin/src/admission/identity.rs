//! The webhook's certificate and key, and the authority of who may ask it: files that somebody renews while the controller
//! runs.

use std::{
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::{VerifierBuilderError, WebPkiClientVerifier},
    sign::{CertifiedKey, SingleCertAndKey},
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
    /// An authority's certificate is none.
    #[error("cannot trust an authority of {}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// Certificates of clients cannot be checked.
    #[error("cannot check certificates of clients")]
    Clients(#[from] VerifierBuilderError),
    /// TLS as such cannot be had.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}

/// Who the webhook is, and whom it answers, as its files say.
pub(super) struct Identity {
    files: Files,
    current: RwLock<Current>,
}

/// The files.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// Authorities of clients; `None`: whoever asks is answered.
    pub(super) authority: Option<PathBuf>,
}

/// What the files hold.
#[derive(Clone, PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

/// What is in use, and what it was made of.
struct Current {
    content: Content,
    config: Arc<ServerConfig>,
}

impl Identity {
    pub(super) async fn load(files: Files) -> Result<Self, IdentityError> {
        let content = files.read().await?;
        let config = files.parse(&content)?;
        Ok(Self {
            files,
            current: RwLock::new(Current { content, config }),
        })
    }

    /// How connections are to be made now.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.config)
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
        *seen = Some(content.clone());
        let config = parsed?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = current.content != content;
        *current = Current { content, config };
        Ok(is_new)
    }
}

impl Files {
    async fn read(&self) -> Result<Content, IdentityError> {
        Ok(Content {
            certificate: read(&self.certificate).await?,
            key: read(&self.key).await?,
            authority: match &self.authority {
                Some(authority) => read(authority).await?,
                None => Vec::new(),
            },
        })
    }

    /// TLS 1.2 or newer, and HTTP/1.1 inside.
    fn parse(&self, content: &Content) -> Result<Arc<ServerConfig>, IdentityError> {
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(IdentityError::Tls)?;
        let config = match &self.authority {
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(&content.authority, path)? {
                    roots
                        .add(authority)
                        .map_err(|source| IdentityError::Authority {
                            path: path.clone(),
                            source,
                        })?;
                }
                let clients =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(clients.build()?)
            }
            None => config.with_no_client_auth(),
        };
        let mut config = config.with_cert_resolver(Arc::new(self.pair(content)?));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn pair(&self, content: &Content) -> Result<SingleCertAndKey, IdentityError> {
        let chain = certificates(&content.certificate, &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&content.key);
        let key = key.map_err(not_pem("a key", &self.key))?;
        let pair = CertifiedKey::from_der(chain, key, &ring::default_provider());
        let pair = pair.map_err(|source| IdentityError::Pair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        })?;
        Ok(pair.into())
    }
}

/// All certificates of a file, of which there has to be one.
fn certificates(
    content: &[u8],
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(content).collect();
    let chain = chain.and_then(|chain| {
        let some = (!chain.is_empty()).then_some(chain);
        some.ok_or(pem::Error::NoItemsFound)
    });
    chain.map_err(not_pem("a certificate", path))
}

fn not_pem(what: &'static str, path: &Path) -> impl FnOnce(pem::Error) -> IdentityError {
    let path = path.to_owned();
    move |source| IdentityError::Pem { what, path, source }
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
        let files = Files {
            certificate: certificate.clone(),
            key: key.clone(),
            authority: None,
        };
        let identity = Identity::load(files).await.unwrap();
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
            String::from_utf8(current.content.certificate.clone()).unwrap()
        };
        assert_eq!(current(&identity), old);

        fs::write(&certificate, &new).unwrap();
        fs::write(&key, &new_key).unwrap();
        assert!(identity.renew(&mut seen).await.unwrap());
        assert_eq!(current(&identity), new);
        assert!(!identity.renew(&mut seen).await.unwrap());
    }
}
