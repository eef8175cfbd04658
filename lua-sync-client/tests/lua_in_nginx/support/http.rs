//! A plain HTTP/1.1 client: one request a connection, nothing hidden.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// An answer whose body is as long as its `Content-Length` says.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    /// The value of the header `name`, empty when there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value)
    }

    /// The values of every header `name`.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter();
        headers
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|err| panic!("{err} in {self:?}"))
    }
}

/// Sends a request to `127.0.0.1:port`. `Host` is added unless `headers` has it.
pub(crate) fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response {
    try_request(port, method, path, headers, body)
        .unwrap_or_else(|err| panic!("{method} {path} on port {port}: {err}"))
}

/// As [`request`], for a server that may not be there.
pub(crate) fn try_request(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Response> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_mins(2)))?;
    let mut lines = vec![
        format!("{method} {path} HTTP/1.1"),
        "Connection: close".to_owned(),
    ];
    if !headers.iter().any(|(name, _)| *name == "Host") {
        lines.push("Host: 127.0.0.1".to_owned());
    }
    lines.extend(
        headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}")),
    );
    if !body.is_empty() {
        lines.push(format!("Content-Length: {}", body.len()));
    }
    stream.write_all(format!("{}\r\n\r\n", lines.join("\r\n")).as_bytes())?;
    // A server that refuses a large body may close before all of it was sent; its answer is there nevertheless.
    let sent = stream.write_all(body.as_bytes());
    let mut answer = Vec::new();
    let received = stream.read_to_end(&mut answer);
    if answer.is_empty() {
        sent?;
        received?;
    }
    parse(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an HTTP answer"))
}

fn parse(answer: &str) -> Option<Response> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let response = Response {
        status,
        headers,
        body: body.to_owned(),
    };
    (response.header("Content-Length") == body.len().to_string()).then_some(response)
}
