//! Files from HTTP servers.

use http_body_util::{BodyExt, Empty, Limited};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::LOCATION,
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tracing::warn;

/// How many redirects are followed.
const MOST_REDIRECTS: usize = 5;

/// Why a file did not come.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    /// The address cannot be used.
    #[error("the address is none")]
    Address(#[source] hyper::http::Error),
    /// Nobody answers there.
    #[error("cannot ask")]
    Ask(#[source] hyper_util::client::legacy::Error),
    /// The answer is no file.
    #[error("the answer has status {0}")]
    Status(StatusCode),
    /// The answer broke off, or is too long.
    #[error("cannot read the answer")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Who asks for files. Servers with TLS are known by the authorities of the system.
#[derive(Clone, Debug)]
pub(crate) struct Downloads(Client<HttpsConnector<HttpConnector>, Empty<Bytes>>);

impl Downloads {
    /// # Errors
    ///
    /// When there is no TLS.
    pub(crate) fn new() -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            warn!(%error, "cannot read certificates of the system's authorities");
        }
        roots.add_parsable_certificates(found.certs);
        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }

    /// The file at an address, of that many bytes at most. Redirects are followed.
    ///
    /// # Errors
    ///
    /// When it does not come.
    pub(crate) async fn get(&self, address: &str, most: usize) -> Result<Bytes, DownloadError> {
        let mut address = address.to_owned();
        for _ in 0..=MOST_REDIRECTS {
            let request = Request::get(&address).body(Empty::new());
            let request = request.map_err(DownloadError::Address)?;
            let response = self.0.request(request).await.map_err(DownloadError::Ask)?;
            match target(&response, &address) {
                Some(target) if response.status().is_redirection() => address = target,
                _ => return content(response, most).await,
            }
        }
        Err(DownloadError::Status(StatusCode::LOOP_DETECTED))
    }
}

/// Where a redirect leads from an address: it may name the path only.
fn target(response: &Response<Incoming>, address: &str) -> Option<String> {
    let target = response.headers().get(LOCATION)?.to_str().ok()?;
    if !target.starts_with('/') {
        return Some(target.to_owned());
    }
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split('/').next()?;
    Some(format!("{scheme}://{host}{target}"))
}

async fn content(response: Response<Incoming>, most: usize) -> Result<Bytes, DownloadError> {
    if response.status() != StatusCode::OK {
        return Err(DownloadError::Status(response.status()));
    }
    let body = Limited::new(response.into_body(), most).collect().await;
    Ok(body.map_err(DownloadError::Read)?.to_bytes())
}
