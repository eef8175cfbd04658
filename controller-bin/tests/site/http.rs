//! A client that does one request a connection, and says plainly when there is no answer.

use std::{sync::Arc, time::Duration};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The answer to a request for a path of a host; `None` when there is none.
pub(crate) async fn get(port: u16, host: &str, path: &str) -> Option<Response> {
    let request = async {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        exchange(stream, host, path).await
    };
    timeout(PATIENCE, request).await.ok()?
}

/// The same, without a limit to how long the answer may take.
pub(crate) async fn get_patiently(port: u16, host: &str, path: &str) -> Option<Response> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    exchange(stream, host, path).await
}

/// The same over TLS, trusting that certificate and no other.
pub(crate) async fn get_tls(
    port: u16,
    host: &str,
    path: &str,
    trusted: &CertificateDer<'static>,
) -> Option<Response> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("it is a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).expect("it is a host");
    let request = async {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .ok()?;
        exchange(stream, host, path).await
    };
    timeout(PATIENCE, request).await.ok()?
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    host: &str,
    path: &str,
) -> Option<Response> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    // A peer may close without a farewell; what has come counts.
    let _read = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Response {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}
