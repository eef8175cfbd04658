//! HTTP servers to be proxied to, each answering with its own name.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        atomic::{AtomicU16, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// A server that lives as long as the test process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
}

impl Upstream {
    /// Starts a server on a free IPv4 port that answers `name` to every request.
    pub(crate) fn start(name: &'static str) -> Self {
        Self::start_on("127.0.0.1:0", Answer::of(name))
    }

    /// As [`Upstream::start`]; answers have the header lines `headers`, each with its line end.
    pub(crate) fn start_with(name: &'static str, headers: &'static str) -> Self {
        let answer = Answer {
            headers,
            ..Answer::of(name)
        };
        Self::start_on("127.0.0.1:0", answer)
    }

    /// As [`Upstream::start`]; answers take so long.
    pub(crate) fn start_slow(name: &'static str, delay: Duration) -> Self {
        let answer = Answer {
            delay,
            ..Answer::of(name)
        };
        Self::start_on("127.0.0.1:0", answer)
    }

    /// As [`Upstream::start`], on `[::1]`.
    pub(crate) fn start_v6(name: &'static str) -> Self {
        Self::start_on("[::1]:0", Answer::of(name))
    }

    fn start_on(listen: &str, answer: Answer) -> Self {
        let listener = TcpListener::bind(listen).expect("binding an upstream");
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                thread::spawn(move || serve(stream, answer));
            }
        });
        Self { address }
    }

    /// An address where nothing listens, and never will: no server of these tests is at it, or at that port.
    pub(crate) fn closed() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        Self {
            address: (Ipv4Addr::new(127, 77, high, low), 9).into(),
        }
    }

    /// A server that takes requests and never answers, and what tells of each connection to it.
    pub(crate) fn silent() -> (Self, Receiver<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, connections) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if sender.send(stream.unwrap()).is_err() {
                    return;
                }
            }
        });
        (Self { address }, connections)
    }

    /// The endpoint as it is posted.
    pub(crate) fn endpoint(self) -> Value {
        json!({"address": self.address.ip().to_string(), "port": self.address.port().to_string()})
    }
}

/// A backend with these endpoints, as it is posted.
pub(crate) fn backend(name: &str, upstreams: &[Upstream]) -> Value {
    let endpoints: Vec<Value> = upstreams.iter().map(|up| up.endpoint()).collect();
    json!({"name": name, "port": 80, "endpoints": endpoints})
}

/// What a server says.
#[derive(Clone, Copy, Debug)]
struct Answer {
    body: &'static str,
    headers: &'static str,
    delay: Duration,
}

impl Answer {
    fn of(body: &'static str) -> Self {
        Self {
            body,
            headers: "",
            delay: Duration::ZERO,
        }
    }
}

fn serve(mut stream: TcpStream, answer: Answer) {
    let Answer { body, headers, .. } = answer;
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(line)) = lines.next() {
        // The requests of these tests have no body: an empty line ends each. One write, or the kernel waits for an
        // acknowledgement in between.
        if line.is_empty() {
            thread::sleep(answer.delay);
            if stream.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    }
}
