//! gRPC without TLS beside HTTP/1.1 at one port, with a real NGINX and a client of its own protocol.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod site;

use std::process::Command;

use site::{
    Site,
    backend::{annotated, ingress, service},
    echo::echo,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

const GRPC: &str = "{nginx.ingress.kubernetes.io/backend-protocol: GRPC}";

/// A gRPC endpoint: whatever it is asked, it answers an empty message and the status 5, "not found".
async fn calls() -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_calls(stream));
        }
    });
    (port, serving)
}

/// Frames of RFC 9113, with headers that need no table (RFC 7541).
async fn answer_calls(mut stream: TcpStream) -> std::io::Result<()> {
    const HEADERS: u8 = 1;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    let frame = |kind: u8, flags: u8, id: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
    };
    let literal = |name: &str, value: &str| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    };
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    stream.write_all(&frame(4, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let [a, b, c, kind, _, id @ ..] = head;
        let mut payload = vec![0; usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap()];
        stream.read_exact(&mut payload).await?;
        if kind != HEADERS {
            continue;
        }
        let id = u32::from_be_bytes(id);
        // The 8th entry of the static table is the status 200.
        let headers = [vec![0x88], literal("content-type", "application/grpc")].concat();
        let trailers = literal("grpc-status", "5");
        let answer = [
            frame(HEADERS, END_HEADERS, id, &headers),
            frame(0, 0, id, &[0; 5]),
            frame(HEADERS, END_HEADERS | END_STREAM, id, &trailers),
        ];
        stream.write_all(&answer.concat()).await?;
    }
}

/// What curl shows of an exchange by HTTP/2 without TLS, trailers included, or of its failure.
fn http2(site: &Site, path: &str, more: &[&str]) -> String {
    let url = format!("http://mixed.test:{}{path}", site.ports.http);
    let output = Command::new("curl")
        .args(["-si", "--http2-prior-knowledge", "--max-time", "20"])
        .args(["--interface", "127.0.0.2", "--connect-to", "::127.0.0.1:"])
        .args(more)
        .arg(&url)
        .output()
        .expect("curl is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn call(site: &Site) -> String {
    let message = [
        "-H",
        "content-type: application/grpc",
        "-H",
        "te: trailers",
        "--data-binary",
        "x",
    ];
    http2(site, "/shop.Cart/Add", &message)
}

async fn calls_work(site: &Site) {
    site.until("a call is answered", async || {
        let answer = call(site);
        (answer.starts_with("HTTP/2 200") && answer.contains("grpc-status: 5")).then_some(())
    })
    .await;
}

fn config(data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config, namespace: default}}\ndata: {{{data}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_requests_share_a_port_as_long_as_there_are_calls() {
    let ((calls, _calls), (echo, _echo)) = (calls().await, echo().await);
    let grpc = annotated("calls", "mixed.test", "calls", GRPC, "/shop.Cart", "");
    let site = Site::with_flags(
        &["--configmap=default/config"],
        &[
            ("calls.yaml", &service("calls", calls)),
            ("echo.yaml", &service("echo", echo)),
            ("web.yaml", &ingress("web", "mixed.test", "echo", "")),
            ("config.yaml", &config("")),
        ],
    )
    .await;
    let port = site.ports.http;
    let told = |client: &str| format!("{client} {client} http {port}");
    site.answers("mixed.test", "/", 200, &told("127.0.0.1"))
        .await;
    assert!(
        !http2(&site, "/", &[]).starts_with("HTTP/2"),
        "nobody has asked for it"
    );

    site.write("grpc.yaml", &grpc);
    calls_work(&site).await;
    site.answers("mixed.test", "/", 200, &told("127.0.0.1"))
        .await;
    // Workers of before may still take a connection, and know no HTTP/2.
    site.until("a request by HTTP/2 is answered", async || {
        let answer = http2(&site, "/", &[]);
        (answer.starts_with("HTTP/2 200") && answer.contains(&told("127.0.0.2"))).then_some(())
    })
    .await;
    // Whoever says who the client is without being asked is not believed.
    site.until("a forged address is not believed", async || {
        let forged = http2(&site, "/", &["-H", "X-Forwarded-For: 192.0.2.9"]);
        forged.contains(&told("127.0.0.2")).then_some(())
    })
    .await;

    // A client may take its time, and may begin as if it spoke HTTP/2.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in [
        "P",
        "RI",
        " / HTTP/1.1\r\nHo",
        "st: mixed.test\r\nConnection: close\r\n\r\n",
    ] {
        stream.write_all(piece.as_bytes()).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");

    // Behind a proxy that sends headers.
    site.write("config.yaml", &config("use-forwarded-headers: 'true'"));
    let header = ["-H", "X-Forwarded-For: 192.0.2.9"];
    site.until("the proxy is believed", async || {
        http2(&site, "/", &header)
            .contains("192.0.2.9 192.0.2.9 http")
            .then_some(())
    })
    .await;
    calls_work(&site).await;
    site.write("config.yaml", &config(""));
    site.until("the proxy is not believed", async || {
        http2(&site, "/", &header)
            .contains(&told("127.0.0.2"))
            .then_some(())
    })
    .await;

    site.remove("grpc.yaml");
    site.until("HTTP/2 is not spoken any more", async || {
        (!http2(&site, "/", &[]).starts_with("HTTP/2")).then_some(())
    })
    .await;
    site.answers("mixed.test", "/", 200, &told("127.0.0.1"))
        .await;
    let master = site.nginx();
    site.write("grpc.yaml", &grpc);
    calls_work(&site).await;
    assert_eq!(site.nginx(), master, "{}", site.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_work_behind_a_proxy_and_after_nginx_was_killed() {
    let ((calls, _calls), (echo, _echo)) = (calls().await, echo().await);
    let site = Site::with_flags(
        &["--configmap=default/config"],
        &[
            ("calls.yaml", &service("calls", calls)),
            ("echo.yaml", &service("echo", echo)),
            ("web.yaml", &ingress("web", "mixed.test", "echo", "")),
            (
                "grpc.yaml",
                &annotated("calls", "mixed.test", "calls", GRPC, "/shop.Cart", ""),
            ),
            ("config.yaml", &config("use-proxy-protocol: 'true'")),
        ],
    )
    .await;
    let ask = async |header: &str| -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", site.ports.http))
            .await
            .ok()?;
        let request =
            format!("{header}GET / HTTP/1.1\r\nHost: mixed.test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // A connection that is cut off has no answer.
        let _read = stream.read_to_end(&mut answer).await;
        Some(String::from_utf8_lossy(&answer).into_owned())
    };
    for (header, told) in [
        (
            "PROXY TCP4 192.0.2.44 192.0.2.1 40123 80\r\n",
            "192.0.2.44 192.0.2.44 http 80",
        ),
        (
            "PROXY TCP4 192.0.2.44 192.0.2.1 40123 443\r\n",
            "192.0.2.44 192.0.2.44 https 443",
        ),
        (
            "PROXY TCP6 2001:db8::44 2001:db8::1 40123 8080\r\n",
            "2001:db8::44 2001:db8::44 http 8080",
        ),
    ] {
        site.until(&format!("what {header:?} says is known"), async || {
            ask(header).await?.contains(told).then_some(())
        })
        .await;
    }
    assert!(
        !ask("").await.unwrap().contains(" 200 "),
        "the header is missing"
    );
    let proxied = ["--haproxy-protocol"];
    site.until("a proxy may be asked by HTTP/2", async || {
        let answer = http2(&site, "/", &proxied);
        answer.contains("127.0.0.2 127.0.0.2 http").then_some(())
    })
    .await;

    // Those that are not trusted are clients themselves.
    site.write(
        "config.yaml",
        &config("use-proxy-protocol: 'true', proxy-real-ip-cidr: 10.0.0.0/8"),
    );
    let header = "PROXY TCP4 192.0.2.44 192.0.2.1 40123 80\r\n";
    site.until("the proxy is not believed", async || {
        ask(header)
            .await?
            .contains("127.0.0.1 127.0.0.1 http 80")
            .then_some(())
    })
    .await;

    site.write("config.yaml", &config(""));
    calls_work(&site).await;
    let master = site.nginx();
    for pid in site.workers().into_iter().chain([master]) {
        site::send(pid, rustix::process::Signal::KILL);
    }
    site.until("another NGINX runs", async || {
        let pid = site.nginx();
        (pid != master && site::is_nginx(pid)).then_some(())
    })
    .await;
    calls_work(&site).await;
    site.answers("mixed.test", "/", 200, "").await;
}
