//! How long it takes from the start of the controller until it serves N hosts, and from an EndpointSlice's change on
//! disk until a request meets the new endpoint; and what such a change costs the controller.
//!
//! ```text
//! cargo run --release -p examples --example bench_serving -- target/release/nginx-ingress-controller 1000
//! ```

#![expect(clippy::print_stdout, reason = "what it finds is printed")]

use std::{
    error::Error,
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const CHANGES: usize = 100;

struct Controller(Child);

impl Drop for Controller {
    fn drop(&mut self) {
        // The controller ends NGINX before itself, so it is asked, not killed.
        let pid = self.0.id().to_string();
        if Command::new("kill").arg(pid).status().is_ok() {
            let _status = self.0.wait();
        }
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let binary = arguments
        .next()
        .ok_or("usage: bench_serving CONTROLLER [HOSTS]")?;
    let hosts: usize = arguments.next().unwrap_or_else(|| "1000".into()).parse()?;
    let work = tempfile::tempdir()?;
    let manifests = work.path().join("manifests");
    fs::create_dir(&manifests)?;
    let (a, b) = (backend("a")?, backend("b")?);
    for host in 0..hosts {
        fs::write(manifests.join(format!("host-{host}.yaml")), ingress(host))?;
        write_slice(&manifests, host, a)?;
    }
    let ports = [
        free_port()?,
        free_port()?,
        free_port()?,
        free_port()?,
        free_port()?,
    ];
    let [http, ..] = ports;
    let started = Instant::now();
    let process = Command::new(binary)
        .arg(format!("--manifests={}", manifests.display()))
        .arg(format!(
            "--nginx-dir={}",
            work.path().join("nginx").display()
        ))
        .args(
            [
                "--http-port",
                "--https-port",
                "--status-port",
                "--healthz-port",
                "--default-server-port",
            ]
            .iter()
            .zip(&ports)
            .map(|(flag, port)| format!("{flag}={port}")),
        )
        .args([
            "--shutdown-grace-period=0",
            "--post-shutdown-grace-period=0",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = process.id();
    let _controller = Controller(process);
    for host in [0, hosts / 2, hosts - 1] {
        await_answer(http, host, "a", Duration::from_mins(2))?;
    }
    println!(
        "{hosts} Ingresses, start to serving: {:.2} s",
        started.elapsed().as_secs_f64()
    );

    let mut delays = Vec::with_capacity(CHANGES);
    let before = processor_time(pid)?;
    for change in 0..CHANGES {
        let host = change * 7 % hosts;
        let (from, to, want) = if change % 2 == 0 {
            (a, b, "b")
        } else {
            (b, a, "a")
        };
        write_slice(&manifests, host, from)?;
        await_answer(
            http,
            host,
            if want == "a" { "b" } else { "a" },
            Duration::from_secs(10),
        )?;
        let written = Instant::now();
        write_slice(&manifests, host, to)?;
        await_answer(http, host, want, Duration::from_secs(10))?;
        delays.push(written.elapsed());
    }
    let spent = processor_time(pid)?.saturating_sub(before);
    delays.sort();
    let percentile = |percent: usize| {
        delays
            .get((delays.len() - 1) * percent / 100)
            .copied()
            .unwrap_or_default()
    };
    println!(
        "endpoint change at {hosts} backends, file to request: p50 {:?}, p99 {:?}",
        percentile(50),
        percentile(99)
    );
    // Two for each round.
    let changes = 2 * u32::try_from(CHANGES)?;
    println!(
        "processor time of the controller for a change: {:?}",
        spent / changes
    );
    Ok(())
}

/// What all threads of a process have had.
fn processor_time(pid: u32) -> Outcome<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile.
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let first = text.split_whitespace().next().unwrap_or("0");
        nanoseconds += first.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

fn ingress(host: usize) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: h{host}, namespace: bench}}\nspec:\n  ingressClassName: nginx\n  rules:\n    - host: h{host}.test\n      http:\n        paths:\n          - {{path: /, pathType: Prefix, backend: {{service: {{name: s{host}, port: {{number: 80}}}}}}}}\n          - {{path: /deep, pathType: Prefix, backend: {{service: {{name: s{host}, port: {{number: 80}}}}}}}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: s{host}, namespace: bench}}\nspec:\n  ports: [{{name: http, port: 80, protocol: TCP}}]\n"
    )
}

/// Writes by rename, as ConfigMap mounts and editors do.
fn write_slice(directory: &Path, host: usize, port: u16) -> Outcome<()> {
    let text = format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: s{host}-1, namespace: bench, labels: {{kubernetes.io/service-name: s{host}}}}}\naddressType: IPv4\nports: [{{name: http, port: {port}, protocol: TCP}}]\nendpoints: [{{addresses: [127.0.0.1], conditions: {{ready: true}}}}]\n"
    );
    let staged = directory.join(".staged");
    fs::write(&staged, text)?;
    Ok(fs::rename(
        staged,
        directory.join(format!("slice-{host}.yaml")),
    )?)
}

fn backend(name: &'static str) -> Outcome<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    // In one piece, here and in requests: the system holds back the second part of a message for 40 ms.
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{name}");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut request = [0; 4096];
                while matches!(stream.read(&mut request), Ok(length) if length > 0) {
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(port)
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn await_answer(port: u16, host: usize, want: &str, patience: Duration) -> Outcome<()> {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if ask(port, host)
            .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200") && answer.ends_with(want))
        {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(format!("h{host}.test did not answer {want:?} within {patience:?}").into())
}

fn ask(port: u16, host: usize) -> Outcome<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let request = format!("GET / HTTP/1.1\r\nHost: h{host}.test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
