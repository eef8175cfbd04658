//! What stands between a controller and the status port of its NGINX, and does harm.

use std::{
    fs,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{Site, free_ports, http, send};

/// What becomes of requests that change something. Others pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// They pass.
    None,
    /// Nobody listens, for any request.
    Refuse,
    /// All requests are answered by 500.
    Fail,
    /// Half of them arrives, then both connections break.
    Halve,
    /// They arrive, but their answer does not.
    LoseAnswer,
}

/// Stands in the way until it is dropped; NGINX's port is another one then, so that it is of no use any more.
#[derive(Debug)]
pub(crate) struct StatusPort {
    address: SocketAddr,
    nginx: u16,
    /// How many requests have come to harm.
    harmed: Arc<Mutex<usize>>,
    serving: JoinSet<()>,
}

impl StatusPort {
    /// Has NGINX listen elsewhere, and takes its place. Files must not be loaded from now on: they have NGINX listen
    /// here again.
    pub(crate) async fn intercept(site: &Site) -> Self {
        let nginx = move_away(site).await;
        let mut port = Self {
            address: ([127, 0, 0, 1], site.ports.status).into(),
            nginx,
            harmed: Arc::default(),
            serving: JoinSet::new(),
        };
        port.set(Harm::None).await;
        port
    }

    /// Does that from now on. Connections that there are break.
    pub(crate) async fn set(&mut self, harm: Harm) {
        self.serving.shutdown().await;
        *self.harmed.lock().expect("nobody panics with it") = 0;
        if harm == Harm::Refuse {
            return;
        }
        // The port is free as soon as NGINX's old workers have let go of it.
        let listener = super::until("the status port is free", async || {
            TcpListener::bind(self.address).await.ok()
        })
        .await;
        let (nginx, harmed) = (self.nginx, Arc::clone(&self.harmed));
        self.serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let harmed = Arc::clone(&harmed);
                connections.spawn(async move {
                    // A connection that breaks is what this is about.
                    let _broken = exchange(client, nginx, harm, &harmed).await;
                });
            }
        });
    }

    /// How many requests have come to harm since that was asked for.
    pub(crate) fn harmed(&self) -> usize {
        *self.harmed.lock().expect("nobody panics with it")
    }
}

/// Has NGINX's status server listen elsewhere, behind the controller's back. Answers where.
pub(crate) async fn move_away(site: &Site) -> u16 {
    let [nginx] = free_ports();
    let file = site.nginx_file("nginx.conf");
    let text = fs::read_to_string(&file).expect("nginx runs with it");
    let moved = text.replace(
        &format!("listen 127.0.0.1:{}", site.ports.status),
        &format!("listen 127.0.0.1:{nginx}"),
    );
    assert_ne!(moved, text, "the status server listens at its port");
    fs::write(&file, moved).expect("it is writable");
    send(site.nginx(), Signal::HUP);
    site.until("nginx listens elsewhere", async || {
        http::get(nginx, "127.0.0.1", "/configuration/revision").await
    })
    .await;
    nginx
}

/// One request and its answer, or what is left of them.
async fn exchange(
    mut client: TcpStream,
    nginx: u16,
    harm: Harm,
    harmed: &Mutex<usize>,
) -> std::io::Result<()> {
    const END: &str = "\r\n\r\n";
    const LAST: &str = "\r\nConnection: close\r\n\r\n";

    let request = read(&mut client).await?;
    let does_harm = harm == Harm::Fail || !request.starts_with(b"GET ");
    if does_harm && harm != Harm::None {
        *harmed.lock().expect("nobody panics with it") += 1;
    }
    let text = String::from_utf8_lossy(&request).replacen(END, LAST, 1);
    if harm == Harm::Fail {
        let answer = format!("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0{LAST}");
        return client.write_all(answer.as_bytes()).await;
    }
    let mut server = TcpStream::connect(("127.0.0.1", nginx)).await?;
    if does_harm && harm == Harm::Halve {
        let head = text.find(END).unwrap_or_default() + END.len();
        let half = head + (text.len() - head) / 2;
        return server.write_all(&text.as_bytes()[..half]).await;
    }
    server.write_all(text.as_bytes()).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    if does_harm && harm == Harm::LoseAnswer {
        return Ok(());
    }
    client.write_all(&answer).await
}

/// A request with its body.
async fn read(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut request = Vec::new();
    loop {
        if client.read_buf(&mut request).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Ok(request);
        }
    }
}
