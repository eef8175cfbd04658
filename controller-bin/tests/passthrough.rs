//! TLS that is passed through to endpoints, with a real NGINX, real handshakes and endpoints that end TLS themselves.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod site;

use std::{
    io,
    net::Ipv4Addr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use rcgen::{CertifiedKey, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};
use site::{
    Site,
    backend::{annotated, ingress, service},
    echo::echo,
    free_ports,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinHandle,
    time::{Instant, Sleep, sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// An address of this host that clients come from.
const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

const PASSED: &str = "{nginx.ingress.kubernetes.io/ssl-passthrough: 'true', \
    nginx.ingress.kubernetes.io/backend-protocol: HTTPS}";

fn pair(host: &str) -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed([host.to_owned()]).unwrap()
}

fn der(pair: &CertifiedKey<KeyPair>) -> CertificateDer<'static> {
    CertificateDer::from(pair.cert.der().to_vec())
}

fn secret(name: &str, pair: &CertifiedKey<KeyPair>) -> String {
    let indented = |pem: String| pem.replace('\n', "\n    ");
    format!(
        "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {{name: {name}}}\nstringData:\n  tls.crt: |\n    \
         {}\n  tls.key: |\n    {}\n---\n",
        indented(pair.cert.pem()),
        indented(pair.signing_key.serialize_pem()),
    )
}

/// An endpoint that ends TLS itself, and answers every request with its name.
struct TlsEndpoint {
    port: u16,
    certificate: CertificateDer<'static>,
    serving: JoinHandle<()>,
}

impl TlsEndpoint {
    async fn start(name: &'static str, host: &str) -> Self {
        let pair = pair(host);
        let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![der(&pair)], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await?;
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(stream.read_u8().await?);
                    }
                    let length = name.len();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{name}"
                    );
                    stream.write_all(answer.as_bytes()).await?;
                    stream.shutdown().await
                });
            }
        });
        Self {
            port,
            certificate: der(&pair),
            serving,
        }
    }

    fn service(&self, name: &str) -> String {
        service(name, self.port)
    }
}

impl Drop for TlsEndpoint {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// How a client connects.
#[derive(Clone, Default)]
struct Manner {
    /// What it sends before the handshake.
    before: String,
    /// Whether what it sends comes in small pieces, with pauses.
    hesitates: bool,
    /// Protocols that it offers besides.
    protocols: Vec<Vec<u8>>,
}

/// What a host answers over TLS to a client that trusts this certificate only; `None` when there is no answer.
async fn ask(
    port: u16,
    host: &str,
    trusted: &CertificateDer<'static>,
    manner: &Manner,
) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols.clone_from(&manner.protocols);
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let exchange = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((CLIENT, 0).into())?;
        let mut stream = socket.connect((Ipv4Addr::LOCALHOST, port).into()).await?;
        stream.set_nodelay(true)?;
        stream.write_all(manner.before.as_bytes()).await?;
        let stream = Hesitant {
            stream,
            pause: manner.hesitates.then(|| Box::pin(sleep(Duration::ZERO))),
        };
        let mut stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        // A peer may close without a farewell; what has come counts.
        let _read = stream.read_to_end(&mut answer).await;
        io::Result::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = timeout(PATIENCE, exchange).await.ok()?.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
}

/// A connection that may write little at a time, and pause each time.
struct Hesitant {
    stream: TcpStream,
    pause: Option<Pin<Box<Sleep>>>,
}

impl AsyncWrite for Hesitant {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        const PIECE: usize = 100;
        let this = &mut *self;
        let Some(pause) = &mut this.pause else {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        };
        ready!(pause.as_mut().poll(context));
        let piece = bytes.get(..PIECE).unwrap_or(bytes);
        let written = ready!(Pin::new(&mut this.stream).poll_write(context, piece))?;
        pause
            .as_mut()
            .reset(Instant::now() + Duration::from_millis(3));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncRead for Hesitant {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

/// A controller that passes TLS through, with these flags and manifests besides.
async fn start(flags: &[&str], files: &[(&str, &str)]) -> Site {
    let [https, relay] = free_ports();
    let own = [
        "--enable-ssl-passthrough".to_owned(),
        format!("--ssl-passthrough-proxy-port={https}"),
        format!("--stream-port={relay}"),
    ];
    let flags: Vec<_> = own
        .iter()
        .map(String::as_str)
        .chain(flags.iter().copied())
        .collect();
    Site::with_flags(&flags, files).await
}

async fn answers(
    site: &Site,
    host: &str,
    trusted: &CertificateDer<'static>,
    manner: &Manner,
    want: &str,
) {
    let Manner {
        hesitates,
        protocols,
        ..
    } = manner;
    let offered = protocols.len();
    let what = format!("https://{host} answers {want:?} ({hesitates}, {offered} protocols)");
    let mut last = None;
    site.until(&what, async || {
        last = ask(site.ports.https, host, trusted, manner).await;
        (last.as_deref() == Some(want)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_end_tls_themselves_and_move_without_a_reload() {
    let one = TlsEndpoint::start("one", "pass.test").await;
    let two = TlsEndpoint::start("two", "pass.test").await;
    let wild = TlsEndpoint::start("wild", "x.wild.test").await;
    let (echo, _serving) = echo().await;
    let (own, ended) = (pair("own.wild.test"), pair("ended.test"));
    let tls = |host: &str, name: &str| format!("tls: [{{hosts: [{host}], secretName: {name}}}]");
    let here = [
        secret("own", &own),
        secret("ended", &ended),
        service("echo", echo),
        "---\n".into(),
        ingress("own", "own.wild.test", "echo", &tls("own.wild.test", "own")),
        "---\n".into(),
        ingress("ended", "ended.test", "echo", &tls("ended.test", "ended")),
        "---\n".into(),
        ingress("plain", "plain.test", "echo", ""),
    ];
    let here = here.concat();
    let site = start(
        &[],
        &[
            ("one.yaml", &one.service("one")),
            ("wild-service.yaml", &wild.service("wild")),
            (
                "pass.yaml",
                &annotated("pass", "pass.test", "one", PASSED, "/", ""),
            ),
            (
                "wild.yaml",
                &annotated("wild", "'*.wild.test'", "wild", PASSED, "/", ""),
            ),
            ("here.yaml", &here),
        ],
    )
    .await;
    let manner = Manner::default();
    answers(&site, "pass.test", &one.certificate, &manner, "one").await;
    answers(&site, "x.wild.test", &wild.certificate, &manner, "wild").await;

    // Everybody else is served here, and known by its own address.
    let told = "127.0.0.2 127.0.0.2 https 443";
    answers(&site, "ended.test", &der(&ended), &manner, told).await;
    answers(&site, "own.wild.test", &der(&own), &manner, told).await;

    // HTTP is as it was.
    site.answers("pass.test", "/", 200, "one").await;
    site.answers("ended.test", "/", 308, "").await;
    let port = site.ports.http;
    site.answers(
        "plain.test",
        "/",
        200,
        &format!("127.0.0.1 127.0.0.1 http {port}"),
    )
    .await;

    // Handshakes that do not come at once, and those that are long.
    let long = Manner {
        protocols: (0..40)
            .map(|number| format!("{number:0>200}").into_bytes())
            .chain([b"http/1.1".to_vec()])
            .collect(),
        ..Manner::default()
    };
    let slow = Manner {
        hesitates: true,
        ..Manner::default()
    };
    let both = Manner {
        hesitates: true,
        ..long.clone()
    };
    for manner in [&long, &slow, &both] {
        answers(&site, "pass.test", &one.certificate, manner, "one").await;
        answers(&site, "ended.test", &der(&ended), manner, told).await;
    }

    // Nobody but NGINX itself may say who the client is.
    for (host, certificate) in [
        ("pass.test", &one.certificate),
        ("ended.test", &der(&ended)),
    ] {
        let forged = Manner {
            before: "PROXY TCP4 192.0.2.9 192.0.2.1 40123 443\r\n".into(),
            ..Manner::default()
        };
        let answer = ask(site.ports.https, host, certificate, &forged).await;
        assert_eq!(answer, None, "{host}");
    }

    let workers = site.workers();
    site.write("one.yaml", &two.service("one"));
    answers(&site, "pass.test", &two.certificate, &manner, "two").await;
    for _ in 0..20 {
        let answer = ask(site.ports.https, "pass.test", &two.certificate, &manner).await;
        assert_eq!(answer.as_deref(), Some("two"));
    }
    assert_eq!(site.workers(), workers);
    assert_eq!(site.logged(" loaded "), 1, "{}", site.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_in_front_say_who_the_client_is() {
    let one = TlsEndpoint::start("one", "pass.test").await;
    let (echo, _serving) = echo().await;
    let ended = pair("ended.test");
    let config = |keys: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config, namespace: default}}\ndata: {{use-proxy-protocol: 'true'{keys}}}\n"
        )
    };
    let tls = "tls: [{hosts: [ended.test], secretName: ended}]";
    let here = secret("ended", &ended) + &ingress("ended", "ended.test", "echo", tls);
    let site = start(
        &["--configmap=default/config"],
        &[
            ("config.yaml", &config("")),
            ("echo.yaml", &service("echo", echo)),
            ("one.yaml", &one.service("one")),
            (
                "pass.yaml",
                &annotated("pass", "pass.test", "one", PASSED, "/", ""),
            ),
            ("here.yaml", &here),
        ],
    )
    .await;
    let manner = Manner {
        before: "PROXY TCP4 192.0.2.44 192.0.2.1 40123 443\r\n".into(),
        ..Manner::default()
    };
    let trusted = der(&ended);
    answers(&site, "pass.test", &one.certificate, &manner, "one").await;
    let told = "192.0.2.44 192.0.2.44 https 443";
    answers(&site, "ended.test", &trusted, &manner, told).await;
    let answer = ask(site.ports.https, "ended.test", &trusted, &Manner::default()).await;
    assert_eq!(answer, None, "the header is missing");

    // Those that are not trusted are clients themselves.
    site.write("config.yaml", &config(", proxy-real-ip-cidr: 10.0.0.0/8"));
    let told = "127.0.0.2 127.0.0.2 https 443";
    answers(&site, "ended.test", &trusted, &manner, told).await;
    answers(&site, "pass.test", &one.certificate, &manner, "one").await;
}
