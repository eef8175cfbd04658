//! The webhook's server, asked over TLS.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failure here fails the test; indexing a JSON value does not panic"
)]

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use controller_bin::admission::{AdmissionError, AdmissionServer, Limits, Review, Settings};
use ingress_model::{ObjectName, Options, Snapshot, Verdict, admit};
use k8s_openapi::api::networking::v1::Ingress;
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
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
const LIMIT: usize = 9 * 1024 * 1024;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A webhook, its certificate in a directory of its own.
struct Webhook {
    address: SocketAddr,
    directory: TempDir,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// A certificate and its key, as PEM.
struct Pair {
    certificate: String,
    key: String,
}

fn pair() -> Pair {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["webhook.test".into()]).unwrap();
    Pair {
        certificate: params.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

fn settings(address: &str, directory: &Path, limits: Limits) -> Settings {
    Settings {
        address: address.into(),
        certificate: directory.join("tls.crt"),
        key: directory.join("tls.key"),
        limits,
    }
}

fn write(directory: &Path, certificate: &str, key: &str) {
    fs::write(directory.join("tls.crt"), certificate).unwrap();
    fs::write(directory.join("tls.key"), key).unwrap();
}

impl Webhook {
    async fn start(limits: Limits, reviewer: impl Review) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pair = pair();
        write(directory.path(), &pair.certificate, &pair.key);
        let settings = settings("127.0.0.1:0", directory.path(), limits);
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
    async fn permissive() -> Self {
        Self::start(Limits::default(), |_: &Ingress| Verdict::default()).await
    }

    fn certificate(&self) -> String {
        fs::read_to_string(self.directory.path().join("tls.crt")).unwrap()
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let client = Client::trusting(&self.certificate());
        client.connect(self.address).await.unwrap()
    }

    async fn ask(&self, request: &[u8]) -> Response {
        exchange(&mut self.connect().await, request).await
    }

    async fn post(&self, body: &[u8]) -> Response {
        self.ask(&post(body)).await
    }

    async fn review(&self, review: &Value) -> Value {
        let response = self.post(review.to_string().as_bytes()).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert!(response.head.contains("content-type: application/json"));
        let answer: Value = serde_json::from_str(&response.body).unwrap();
        answer["response"].clone()
    }
}

/// Who trusts one certificate.
struct Client(ClientConfig);

impl Client {
    fn trusting(certificate: &str) -> Self {
        Self::speaking(certificate, &[&TLS12, &TLS13])
    }

    fn speaking(certificate: &str, versions: &[&'static SupportedProtocolVersion]) -> Self {
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

    async fn connect(&self, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("webhook.test").unwrap();
        let connector = TlsConnector::from(Arc::new(self.0.clone()));
        timeout(PATIENCE, connector.connect(name, stream)).await?
    }
}

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

fn post(body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /any/path?timeout=10s HTTP/1.1\r\nHost: webhook.test\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

async fn exchange(stream: &mut TlsStream<TcpStream>, request: &[u8]) -> Response {
    stream.write_all(request).await.unwrap();
    stream.flush().await.unwrap();
    read(stream).await
}

/// What comes until the other side closes.
async fn read(stream: &mut TlsStream<TcpStream>) -> Response {
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
fn review(name: &str, path: &str) -> Value {
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

#[tokio::test]
async fn ingresses_are_judged_by_the_rules() {
    let stored: Ingress =
        serde_json::from_value(review("first", "/")["request"]["object"].clone()).unwrap();
    let mut snapshot = Snapshot::default();
    let name = ObjectName::new("shop", "first");
    snapshot.ingresses.insert(name, stored);
    let options = Options {
        watch_ingress_without_class: true,
        ..Options::default()
    };
    let judge = move |ingress: &Ingress| admit(ingress, &snapshot, &options);
    let webhook = Webhook::start(Limits::default(), judge).await;
    let uid = "705ab4f5-6393-11e8-b7cc-42010a800002";
    assert_eq!(
        webhook.review(&review("second", "/other")).await,
        json!({"uid": uid, "allowed": true})
    );
    let refused = webhook.review(&review("second", "/")).await;
    assert_eq!(refused["uid"], uid);
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["status"]["code"], 400);
    let message = refused["status"]["message"].as_str().unwrap();
    let expected = "host \"a.test\" and path \"/\" is already defined in ingress shop/first";
    assert!(message.ends_with(expected), "{message}");
}

#[tokio::test]
async fn tls_is_spoken_and_http_1_1_inside() {
    let webhook = Webhook::permissive().await;
    for version in [&TLS12, &TLS13] {
        let client = Client::speaking(&webhook.certificate(), &[version]);
        let mut stream = client.connect(webhook.address).await.unwrap();
        let (_, session) = stream.get_ref();
        assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
        let request = post(review("new", "/").to_string().as_bytes());
        assert_eq!(exchange(&mut stream, &request).await.status, 200);
    }
    let mut plain = TcpStream::connect(webhook.address).await.unwrap();
    plain.write_all(&post(b"{}")).await.unwrap();
    let mut answer = Vec::new();
    let _closed = timeout(PATIENCE, plain.read_to_end(&mut answer))
        .await
        .unwrap();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn one_connection_serves_many_reviews() {
    let webhook = Webhook::permissive().await;
    let mut stream = webhook.connect().await;
    let body = review("new", "/").to_string();
    let length = body.len();
    let request = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"\"allowed\":true}}") {
            let mut buffer = [0; 1024];
            let length = timeout(PATIENCE, stream.read(&mut buffer))
                .await
                .unwrap()
                .unwrap();
            assert_ne!(length, 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(buffer.get(..length).unwrap());
        }
    }
}

#[tokio::test]
async fn what_is_no_review_is_a_bad_request() {
    let webhook = Webhook::permissive().await;
    for body in [
        "",
        "nonsense",
        "{}",
        "[1]",
        r#"{"kind": "AdmissionReview"}"#,
    ] {
        let response = webhook.post(body.as_bytes()).await;
        assert_eq!(response.status, 400, "{body:?}");
        assert!(response.body.contains("AdmissionReview"), "{response:?}");
    }
    let get = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_eq!(webhook.ask(get).await.status, 400);
    assert_eq!(webhook.ask(b"nonsense\r\n\r\n").await.status, 400);
}

#[tokio::test]
async fn other_kinds_are_refused_in_words() {
    let webhook = Webhook::permissive().await;
    let mut other = review("new", "/");
    other["request"]["kind"] = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    let response = webhook.review(&other).await;
    assert_eq!(response["allowed"], false);
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.contains("Deployment"), "{message}");
}

#[tokio::test]
async fn bodies_have_a_limit() {
    let webhook = Webhook::permissive().await;
    for (length, status) in [
        (LIMIT - 1, 400),
        (LIMIT, 413),
        (9_500_000, 413),
        (2 * LIMIT - 1, 413),
    ] {
        let response = webhook.post(&vec![b' '; length]).await;
        assert_eq!(response.status, status, "{length}");
    }
    let mut announced = webhook.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n";
    assert_eq!(exchange(&mut announced, head).await.status, 413);

    let mut chunked = webhook.connect().await;
    let head =
        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    chunked.write_all(head).await.unwrap();
    let chunk = [
        b"100000\r\n".to_vec(),
        vec![b' '; 1 << 20],
        b"\r\n".to_vec(),
    ]
    .concat();
    for _ in 0..10 {
        chunked.write_all(&chunk).await.unwrap();
    }
    assert_eq!(exchange(&mut chunked, b"0\r\n\r\n").await.status, 413);
}

#[tokio::test]
async fn bodies_are_kept_as_long_as_there_is_room() {
    let limits = Limits {
        memory: 2_000,
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;
    for _ in 0..3 {
        // The room is free again after each.
        webhook.review(&review("new", "/")).await;
        assert_eq!(webhook.post(&[b' '; 3_000]).await.status, 503);
    }
}

#[tokio::test]
async fn slow_clients_are_left() {
    let limits = Limits {
        head: Duration::from_millis(200),
        body: Duration::from_millis(200),
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;

    let mut silent = TcpStream::connect(webhook.address).await.unwrap();
    let mut nothing = Vec::new();
    let end = timeout(PATIENCE, silent.read_to_end(&mut nothing)).await;
    assert_eq!(end.unwrap().unwrap(), 0);

    let mut slow_head = webhook.connect().await;
    slow_head
        .write_all(b"POST / HTTP/1.1\r\nHost: ")
        .await
        .unwrap();
    let mut answer = Vec::new();
    // The connection may end without a farewell.
    let _end = timeout(PATIENCE, slow_head.read_to_end(&mut answer))
        .await
        .unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");

    let mut slow_body = webhook.connect().await;
    let head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{";
    assert_eq!(exchange(&mut slow_body, head).await.status, 408);

    webhook.review(&review("new", "/")).await;
}

#[tokio::test]
async fn connections_have_a_limit() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;
    let first = webhook.connect().await;
    let client = Client::trusting(&webhook.certificate());
    let address = webhook.address;
    let mut second = tokio::spawn(async move { client.connect(address).await });
    let soon = timeout(Duration::from_millis(200), &mut second).await;
    assert!(soon.is_err(), "there is no place for a second one");
    drop(first);
    second.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_have_a_limit() {
    let limits = Limits {
        reviews: 2,
        ..Limits::default()
    };
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let reviewer = {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        move |_: &Ingress| {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            begun.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
            running.fetch_sub(1, Ordering::SeqCst);
            Verdict::default()
        }
    };
    let webhook = Arc::new(Webhook::start(limits, reviewer).await);
    let asked: Vec<_> = (0..6)
        .map(|_| {
            let webhook = Arc::clone(&webhook);
            tokio::spawn(async move { webhook.review(&review("new", "/")).await })
        })
        .collect();
    for _ in 0..6 {
        timeout(PATIENCE, begins.recv()).await.unwrap().unwrap();
        if running.load(Ordering::SeqCst) == 2 {
            go.send(()).unwrap();
        }
    }
    for _ in 0..6 {
        go.send(()).unwrap();
    }
    for asked in asked {
        assert_eq!(asked.await.unwrap()["allowed"], true);
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_panic_ends_one_review_only() {
    let webhook = Webhook::start(Limits::default(), |ingress: &Ingress| {
        match ingress.metadata.name.as_deref() {
            Some("bad") => panic!("a rule is wrong"),
            _ => Verdict::default(),
        }
    })
    .await;
    let body = review("bad", "/").to_string();
    for _ in 0..10 {
        let response = webhook.post(body.as_bytes()).await;
        assert_eq!(response.status, 500);
        assert!(!response.body.contains("a rule is wrong"));
    }
    assert_eq!(webhook.review(&review("good", "/")).await["allowed"], true);
}

#[tokio::test]
async fn a_renewed_certificate_is_taken_over() {
    let limits = Limits {
        renewal: Duration::from_millis(10),
        ..Limits::default()
    };
    let webhook = Webhook::start(limits, |_: &Ingress| Verdict::default()).await;
    let directory = webhook.directory.path();
    let old = Client::trusting(&webhook.certificate());
    let renewed = pair();
    let new = Client::trusting(&renewed.certificate);
    assert!(old.connect(webhook.address).await.is_ok());
    assert!(new.connect(webhook.address).await.is_err());

    write(directory, &renewed.certificate, &renewed.key);
    let taken_over = async {
        while new.connect(webhook.address).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, taken_over).await.unwrap();
    assert!(old.connect(webhook.address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_begun_is_answered_at_the_end() {
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let mut webhook = Webhook::start(Limits::default(), move |_: &Ingress| {
        begun.send(()).unwrap();
        gate.lock().unwrap().recv().unwrap();
        Verdict::default()
    })
    .await;
    let mut idle = webhook.connect().await;
    let mut stream = webhook.connect().await;
    let request = post(review("new", "/").to_string().as_bytes());
    stream.write_all(&request).await.unwrap();
    timeout(PATIENCE, begins.recv()).await.unwrap().unwrap();
    webhook.stop.take().unwrap().send(()).unwrap();
    let mut nothing = Vec::new();
    let _end = timeout(PATIENCE, idle.read_to_end(&mut nothing))
        .await
        .unwrap();
    assert_eq!(nothing, b"");
    assert!(TcpStream::connect(webhook.address).await.is_err());
    go.send(()).unwrap();
    assert_eq!(read(&mut stream).await.status, 200);
    timeout(PATIENCE, webhook.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_cannot_be_used_is_said_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (one, other) = (pair(), pair());
    let bind = async |address: &str| {
        let settings = settings(address, directory, Limits::default());
        let reviewer = Arc::new(|_: &Ingress| Verdict::default());
        AdmissionServer::bind(settings, reviewer).await
    };
    let fault = async || {
        let error = bind("127.0.0.1:0").await.unwrap_err();
        let AdmissionError::Identity(cause) = error else {
            panic!("{error:?}");
        };
        cause.to_string()
    };
    assert!(fault().await.starts_with("cannot read"));
    write(directory, "nothing", &one.key);
    assert!(fault().await.contains("a certificate as PEM in"));
    write(directory, &one.certificate, "nothing");
    assert!(fault().await.contains("a key as PEM in"));
    write(directory, &one.certificate, &other.key);
    assert!(fault().await.contains("with the key"));

    write(directory, &one.certificate, &one.key);
    for address in [":0", "127.0.0.1:0", "localhost:0"] {
        let server = bind(address).await.unwrap();
        assert_ne!(server.address().port(), 0);
        assert_eq!(server.address().ip().is_unspecified(), address == ":0");
    }
    for address in ["", ":", "8443", ":https", ":99999", "127.0.0.1"] {
        let error = bind(address).await.unwrap_err();
        assert!(
            error.to_string().contains(&format!("{address:?}")),
            "{error}"
        );
    }
    let taken = bind("127.0.0.1:0").await.unwrap();
    let error = bind(&taken.address().to_string()).await.unwrap_err();
    assert!(matches!(error, AdmissionError::Listen { .. }));
}
