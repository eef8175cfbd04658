//! A webhook in this process, and a client that asks it over TLS.

use std::{fs, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use controller_bin::admission::{AdmissionServer, Limits, Review, Settings};
use ingress_model::Verdict;
use k8s_openapi::api::networking::v1::Ingress;
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    sign::{CertifiedKey, SingleCertAndKey},
    version::{TLS12, TLS13},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A body has to be smaller.
pub(super) const LIMIT: usize = 9 * 1024 * 1024;

/// How long anything may take.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);

/// A webhook, its certificate in a directory of its own.
pub(super) struct Webhook {
    pub(super) address: SocketAddr,
    pub(super) directory: TempDir,
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) served: JoinHandle<()>,
}

/// A certificate and its key, as PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

pub(super) fn pair() -> Pair {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["webhook.test".into()]).unwrap();
    Pair {
        certificate: params.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

pub(super) fn settings(address: &str, directory: &Path, limits: Limits) -> Settings {
    Settings {
        address: address.into(),
        certificate: directory.join("tls.crt"),
        key: directory.join("tls.key"),
        client_authority: None,
        limits,
    }
}

pub(super) fn write(directory: &Path, certificate: &str, key: &str) {
    fs::write(directory.join("tls.crt"), certificate).unwrap();
    fs::write(directory.join("tls.key"), key).unwrap();
}

impl Webhook {
    pub(super) async fn start(limits: Limits, reviewer: impl Review) -> Self {
        Self::start_for(limits, reviewer, None).await
    }

    /// Starts one that answers only clients of that authority, whose certificate this is.
    pub(super) async fn start_for(
        limits: Limits,
        reviewer: impl Review,
        authority: Option<&str>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pair = pair();
        write(directory.path(), &pair.certificate, &pair.key);
        let mut settings = settings("127.0.0.1:0", directory.path(), limits);
        settings.client_authority = authority.map(|authority| {
            let path = directory.path().join("ca.crt");
            fs::write(&path, authority).unwrap();
            path
        });
        let server = AdmissionServer::bind(settings, Arc::new(reviewer))
            .await
            .unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        Self {
            address: server.address(),
            directory,
            stop: Some(stop),
            served: tokio::spawn(server.serve(async {
                let _told = stopped.await;
            })),
        }
    }

    /// One that allows everything.
    pub(super) async fn permissive() -> Self {
        Self::start(Limits::default(), |_: &Ingress| Verdict::default()).await
    }

    pub(super) fn certificate(&self) -> String {
        fs::read_to_string(self.directory.path().join("tls.crt")).unwrap()
    }

    pub(super) async fn connect(&self) -> TlsStream<TcpStream> {
        let client = Client::trusting(&self.certificate());
        client.connect(self.address).await.unwrap()
    }

    pub(super) async fn ask(&self, request: &[u8]) -> Response {
        exchange(&mut self.connect().await, request).await
    }

    pub(super) async fn post(&self, body: &[u8]) -> Response {
        self.ask(&post(body)).await
    }

    pub(super) async fn review(&self, review: &Value) -> Value {
        let response = self.post(review.to_string().as_bytes()).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert!(response.head.contains("content-type: application/json"));
        let answer: Value = serde_json::from_str(&response.body).unwrap();
        answer["response"].clone()
    }
}

/// Who trusts one certificate.
pub(super) struct Client(ClientConfig);

impl Client {
    pub(super) fn trusting(certificate: &str) -> Self {
        Self::speaking(certificate, &[&TLS12, &TLS13])
    }

    /// Shows a certificate of its own.
    pub(super) fn showing(mut self, pair: &Pair) -> Self {
        let chain = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let shown = CertifiedKey::from_der(vec![chain], key, &provider).unwrap();
        self.0.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(shown));
        self
    }

    pub(super) fn speaking(
        certificate: &str,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        roots.add(certificate).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self(config)
    }

    pub(super) async fn connect(
        &self,
        address: SocketAddr,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("webhook.test").unwrap();
        let connector = TlsConnector::from(Arc::new(self.0.clone()));
        timeout(PATIENCE, connector.connect(name, stream)).await?
    }
}

#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

pub(super) fn post(body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /any/path?timeout=10s HTTP/1.1\r\nHost: webhook.test\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub(super) async fn exchange(stream: &mut TlsStream<TcpStream>, request: &[u8]) -> Response {
    stream.write_all(request).await.unwrap();
    stream.flush().await.unwrap();
    read(stream).await
}

/// What comes until the other side closes.
pub(super) async fn read(stream: &mut TlsStream<TcpStream>) -> Response {
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer))
        .await
        .unwrap()
        .unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    Response {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// The review of an Ingress with this path of `a.test`.
pub(super) fn review(name: &str, path: &str) -> Value {
    let kind = json!({"group": "networking.k8s.io", "version": "v1", "kind": "Ingress"});
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let paths = json!([{"path": path, "pathType": "Prefix", "backend": backend}]);
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": kind,
            "operation": "CREATE",
            "name": name,
            "namespace": "shop",
            "object": {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "Ingress",
                "metadata": {
                    "name": name,
                    "namespace": "shop",
                    "uid": "d0c5b0c2-1f5c-4b8e-9f0e-3a6b1f6f2f11",
                },
                "spec": {"rules": [{"host": "a.test", "http": {"paths": paths}}]},
            },
        },
    })
}
