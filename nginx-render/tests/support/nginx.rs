//! A running NGINX, and endpoints behind it that answer with the request they got.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::fs::MetadataExt,
    process::{self, Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ingress_model::{Layout, config::RenderConfig};
use nginx_render::{Environment, Renderer, User};
use tempfile::TempDir;

use super::support::{environment, installed, key_pair, write};

/// The backend of requests that have no other one: the same NGINX, which answers 404, unless it is named.
pub(crate) const DEFAULT_BACKEND: &str = "upstream-default-backend";

/// NGINX with one layout. Stops when dropped.
pub(crate) struct Nginx {
    master: Child,
    pub(crate) directory: TempDir,
    pub(crate) environment: Environment,
    pub(crate) endpoint: Endpoint,
}

impl Nginx {
    /// Starts NGINX with a layout, and tells it that every backend named here has one endpoint.
    pub(crate) fn start(layout: &Layout, backends: &[&str]) -> Self {
        let capabilities = installed().expect("nginx with Lua is installed");
        let directory = tempfile::tempdir().unwrap();
        let mut environment = environment(directory.path());
        let [http, https, status, default_server] = free_ports();
        environment.ports = nginx_render::Ports {
            http,
            https,
            status,
            default_server,
            passthrough: None,
        };
        environment.ipv6 = false;
        environment.default_certificate_pem = Some(key_pair().into());
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            environment.user = Some(User {
                name: "root".into(),
                group: None,
            });
        }
        let config = RenderConfig {
            bind_address: vec!["127.0.0.1".parse().unwrap()],
            reuse_port: false,
            enable_syslog: false,
            ..RenderConfig::clone(&layout.config)
        };
        let layout = Layout {
            config: Arc::new(config),
            ..layout.clone()
        };
        let rendered = Renderer::new(capabilities, environment.clone())
            .render(&layout)
            .unwrap();
        assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
        let main = write(&rendered, directory.path());
        let master = Command::new("nginx")
            .arg("-c")
            .arg(main)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Self {
            master,
            directory,
            environment,
            endpoint: Endpoint::start(),
        };
        nginx.tell(backends);
        nginx
    }

    fn tell(&self, backends: &[&str]) {
        let (port, default_port) = (self.endpoint.port, self.environment.ports.default_server);
        let of = |name: &str, port: u16| {
            format!(
                r#"{{"name":"{name}","endpoints":[{{"address":"127.0.0.1","port":"{port}"}}]}}"#
            )
        };
        let mut list: Vec<_> = backends.iter().map(|name| of(name, port)).collect();
        if !backends.contains(&DEFAULT_BACKEND) {
            list.push(of(DEFAULT_BACKEND, default_port));
        }
        let body = format!("[{}]", list.join(","));
        let request = format!(
            "POST /configuration/backends HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let deadline = Instant::now() + Duration::from_mins(2);
        let status = self.environment.ports.status;
        while TcpStream::connect(("127.0.0.1", status)).is_err() {
            assert!(
                Instant::now() < deadline,
                "NGINX does not listen: {}",
                self.log()
            );
            thread::yield_now();
        }
        let answer = exchange(status, &request);
        assert_eq!(answer.status, 201, "{}\n{}", answer.body, self.log());
    }

    /// What is in the error log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("error.log")).unwrap_or_default()
    }

    /// Asks for a path of a host, with further header lines.
    pub(crate) fn get(&self, host: &str, path: &str, headers: &[&str]) -> Answer {
        self.send("GET", host, path, headers)
    }

    pub(crate) fn send(&self, method: &str, host: &str, path: &str, headers: &[&str]) -> Answer {
        let headers = headers.join("\r\n") + if headers.is_empty() { "" } else { "\r\n" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Connection: close\r\n\r\n"
        );
        exchange(self.environment.ports.http, &request)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = self.master.id().to_string();
        if Command::new("kill").args(["-TERM", &pid]).status().is_ok() {
            self.master.wait().ok();
        }
    }
}

/// An answer, its header names in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first line of the request that the endpoint got.
    pub(crate) fn seen_line(&self) -> &str {
        self.body.lines().next().unwrap_or_default()
    }

    /// A header of the request that the endpoint got.
    pub(crate) fn seen(&self, name: &str) -> Option<&str> {
        self.body.lines().skip(1).find_map(|line| {
            let (header, value) = line.split_once(": ").or_else(|| line.split_once(':'))?;
            header.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Sends a request as it stands, and reads until the connection is closed.
pub(crate) fn exchange(port: u16, request: &str) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_mins(2)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    read_answer(&String::from_utf8_lossy(&bytes))
}

pub(crate) fn read_answer(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|status| status.parse().ok());
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    Answer {
        status: status.unwrap_or(0),
        headers: headers.collect(),
        body: body.to_owned(),
    }
}

/// An HTTP server that answers with the head of the request. `status=N` in the path is its status, `set-cookie=C` its
/// cookie; with the header `X-Deny` it answers 401.
pub(crate) struct Endpoint {
    pub(crate) port: u16,
    /// The heads of all requests.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || answer(stream, &seen));
            }
        });
        Self { port, requests }
    }

    /// Waits for a request whose head holds a text.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            let found = self
                .requests
                .lock()
                .unwrap()
                .iter()
                .find(|head| head.contains(text))
                .cloned();
            if let Some(head) = found {
                return head;
            }
            assert!(Instant::now() < deadline, "no request with {text}");
            thread::yield_now();
        }
    }
}

fn answer(stream: TcpStream, seen: &Mutex<Vec<String>>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line.replace("\r\n", "\n"));
        }
        seen.lock().unwrap().push(head.clone());
        let parameter = |name: &str| {
            let (_, rest) = head.lines().next()?.split_once(&format!("{name}="))?;
            rest.split(['&', ' ']).next().map(str::to_owned)
        };
        let status = parameter("status").unwrap_or_else(|| "200".into());
        let status = if head.contains("X-Deny: 1") {
            "401".into()
        } else {
            status
        };
        let cookie = parameter("set-cookie")
            .map(|cookie| format!("Set-Cookie: {cookie}\r\n"))
            .unwrap_or_default();
        let length = head.len();
        let answer = format!(
            "HTTP/1.1 {status} x\r\nX-User: frodo\r\nStrict-Transport-Security: own\r\n{cookie}Content-Length: {length}\r\n\r\n{head}"
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Ports that nobody listened on a moment ago, for TCP or UDP. They are none of those that the system gives to connections,
/// or to who asks for any port, so that nobody takes one before NGINX does.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    const FIRST: u32 = 10_300;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);

    // Tests run in processes of their own at the same time.
    let start = process::id().wrapping_mul(41);
    let mut held = Vec::new();
    while held.len() < N {
        let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % COUNT).unwrap();
        let free = TcpListener::bind(("0.0.0.0", port));
        held.extend(free.ok().zip(UdpSocket::bind(("0.0.0.0", port)).ok()));
    }
    std::array::from_fn(|index| held[index].0.local_addr().unwrap().port())
}
