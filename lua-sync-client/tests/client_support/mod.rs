//! An HTTP server that does what a test says, good or bad.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use lua_sync_client::{Endpoint, LuaSyncClient, Retry, Settings};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Takes the update: 201 to `POST`, 200 and the request's revision to `PATCH`.
    Accept,
    /// Answers with this status and body.
    Answer(u16, String),
    /// Sends these bytes and closes the connection.
    Bytes(String),
    /// Keeps the connection open and says nothing.
    Silence,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// The server; it ends with the value.
pub(crate) struct Server {
    pub(crate) endpoint: Endpoint,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Reply {
    pub(crate) fn answer(status: u16, body: &str) -> Self {
        Self::Answer(status, body.to_owned())
    }
}

impl Seen {
    /// `METHOD target`.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Server {
    /// Answers the first request with the first reply and so on; more requests are a mistake, answered 418.
    pub(crate) async fn scripted(script: impl IntoIterator<Item = Reply>) -> Self {
        let mut script: Vec<Reply> = script.into_iter().collect();
        script.reverse();
        Self::start(move |_| script.pop().unwrap_or_else(|| Reply::answer(418, ""))).await
    }

    /// Answers every request as `reply` says.
    pub(crate) async fn start(mut reply: impl FnMut(&Seen) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut silent = Vec::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = BufReader::new(stream);
                let Some(request) = read(&mut stream).await else {
                    continue;
                };
                let reply = reply(&request);
                let answer = bytes(reply, &request);
                record.lock().unwrap().push(request);
                match answer {
                    Some(answer) => {
                        // A client that has enough may have gone.
                        stream.write_all(answer.as_bytes()).await.ok();
                    }
                    None => silent.push(stream),
                }
            }
        });
        Self {
            endpoint,
            seen,
            task,
        }
    }

    /// A client that does not retry.
    pub(crate) fn client(&self) -> LuaSyncClient {
        LuaSyncClient::new(
            self.endpoint.clone(),
            Settings {
                timeout: Duration::from_secs(20),
                retry: Retry::never(),
                ..Settings::default()
            },
        )
    }

    /// A client that retries at once.
    pub(crate) fn stubborn_client(&self) -> LuaSyncClient {
        LuaSyncClient::new(
            self.endpoint.clone(),
            Settings {
                timeout: Duration::from_secs(20),
                retry: Retry {
                    first: Duration::from_millis(1),
                    cap: Duration::from_millis(1),
                    jitter_percent: 0,
                    budget: Duration::from_secs(20),
                },
                ..Settings::default()
            },
        )
    }

    /// The requests since this was last called.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// Methods and targets of the requests since this was last called.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        self.take().iter().map(Seen::line).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bytes(reply: Reply, request: &Seen) -> Option<String> {
    let (status, body) = match reply {
        Reply::Silence => return None,
        Reply::Bytes(bytes) => return Some(bytes),
        Reply::Answer(status, body) => (status, body),
        Reply::Accept if request.method == "POST" => (201, String::new()),
        Reply::Accept => (
            200,
            format!(r#"{{"revision":{}}}"#, request.json()["revision"]),
        ),
    };
    let length = body.len();
    Some(format!(
        "HTTP/1.1 {status} -\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen {
        method,
        target,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
