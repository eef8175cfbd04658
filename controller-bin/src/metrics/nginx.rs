//! What NGINX's processes use, and what its `stub_status` tells. Both are looked up when somebody asks.
//!
//! Processor time is that of a process's programs and of the system on their behalf. What a worker has used since the
//! last look is lost when it ends.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use prometheus::{Counter, Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tracing::debug;

use super::{Identity, controller::keep};
use crate::nginx::census;

/// How long NGINX may take to tell its status.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest answer that is read, in bytes.
const LONGEST_ANSWER: u64 = 4096;

/// Gauges and counters about NGINX as a program.
#[derive(Debug)]
pub struct NginxMetrics {
    connections: IntGaugeVec,
    connections_total: IntCounterVec,
    requests_total: IntCounter,
    processes: IntGauge,
    cpu: Counter,
    read: IntCounter,
    written: IntCounter,
    resident: IntGauge,
    virtual_memory: IntGauge,
    oldest_start: Gauge,
    ending_workers: IntGauge,
    before: Mutex<Accounts>,
}

/// What `stub_status` says (NGINX docs: ngx_http_stub_status_module).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StubStatus {
    active: u64,
    accepted: u64,
    handled: u64,
    requests: u64,
    reading: u64,
    writing: u64,
    waiting: u64,
}

/// What a process has used since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Processor time, in clock ticks.
    ticks: u64,
    read: u64,
    written: u64,
}

/// What each process had used at the last look; by its number and start, since numbers come back.
#[derive(Debug, Default)]
struct Accounts(BTreeMap<(u32, u64), Usage>);

impl NginxMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When one of the names is taken in the registry.
    pub fn register(registry: &Registry, identity: &Identity) -> Result<Self, prometheus::Error> {
        let opts = |name: &str, help| identity.opts(&format!("nginx_process_{name}"), help);
        let gauge = |name, help| keep(registry, IntGauge::with_opts(opts(name, help))?);
        let counter = |name, help| keep(registry, IntCounter::with_opts(opts(name, help))?);
        let connections = opts("connections", "Client connections now, by their state");
        let totals = opts(
            "connections_total",
            "Client connections since NGINX started, by their state",
        );
        let cpu = opts("cpu_seconds_total", "Processor time that NGINX has used");
        let oldest = opts(
            "oldest_start_time_seconds",
            "When the oldest process of NGINX started, in seconds of Unix time",
        );
        let ending = identity.opts(
            "nginx_ending_workers",
            "Workers of earlier configurations that still finish their requests",
        );
        Ok(Self {
            connections: keep(registry, IntGaugeVec::new(connections, &["state"])?)?,
            connections_total: keep(registry, IntCounterVec::new(totals, &["state"])?)?,
            requests_total: counter("requests_total", "Client requests since NGINX started")?,
            processes: gauge("num_procs", "Processes of NGINX")?,
            cpu: keep(registry, Counter::with_opts(cpu)?)?,
            read: counter("read_bytes_total", "Bytes that NGINX has read from storage")?,
            written: counter(
                "write_bytes_total",
                "Bytes that NGINX has written to storage",
            )?,
            resident: gauge(
                "resident_memory_bytes",
                "Memory that NGINX's processes have, shared memory counted for each",
            )?,
            virtual_memory: gauge(
                "virtual_memory_bytes",
                "Address space that NGINX's processes have",
            )?,
            oldest_start: keep(registry, Gauge::with_opts(oldest)?)?,
            ending_workers: keep(registry, IntGauge::with_opts(ending)?)?,
            before: Mutex::default(),
        })
    }

    /// Looks at the processes below that master, and asks the status server.
    pub async fn refresh(&self, master: Option<u32>, status: SocketAddr) {
        self.count_processes(master);
        self.connections.reset();
        if master.is_none() {
            return;
        }
        match timeout(PATIENCE, ask(status)).await {
            Ok(Ok(text)) => {
                if let Some(status) = StubStatus::parse(&text) {
                    self.show(status);
                } else {
                    debug!(text, "nginx tells a status that cannot be read");
                }
            }
            Ok(Err(error)) => debug!(%error, "nginx does not tell its status"),
            Err(_) => debug!("nginx does not tell its status in time"),
        }
    }

    #[cfg(test)]
    pub(super) fn show_status(&self, text: &str) {
        self.show(StubStatus::parse(text).unwrap());
    }

    fn show(&self, status: StubStatus) {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for (state, count) in [
            ("active", status.active),
            ("reading", status.reading),
            ("writing", status.writing),
            ("waiting", status.waiting),
        ] {
            let gauge = self.connections.with_label_values(&[state]);
            gauge.set(number(count));
        }
        for (state, count) in [("accepted", status.accepted), ("handled", status.handled)] {
            set(&self.connections_total.with_label_values(&[state]), count);
        }
        set(&self.requests_total, status.requests);
    }

    fn count_processes(&self, master: Option<u32>) {
        let children = master.map(census::children).unwrap_or_default();
        let (mut now, mut resident, mut space) = (BTreeMap::new(), 0, 0);
        for pid in master.into_iter().chain(children) {
            // One that has just ended is not counted.
            let Some(stat) = stat(pid) else { continue };
            resident += stat.rss * procfs::page_size();
            space += stat.vsize;
            now.insert((pid, stat.starttime), usage(pid, &stat));
        }
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.processes
            .set(number(u64::try_from(now.len()).unwrap_or(u64::MAX)));
        self.resident.set(number(resident));
        self.virtual_memory.set(number(space));
        let oldest = now.keys().map(|(_, start)| *start).min();
        self.oldest_start.set(oldest.map_or(0.0, unix_time));
        let ending = master.map(census::ending_workers).unwrap_or_default();
        self.ending_workers
            .set(i64::try_from(ending.len()).unwrap_or(i64::MAX));
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let used = before.settle(now);
        self.cpu.inc_by(seconds(used.ticks));
        self.read.inc_by(used.read);
        self.written.inc_by(used.written);
    }
}

impl StubStatus {
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(|c: char| !c.is_ascii_digit());
        let mut numbers = numbers.filter_map(|number| number.parse().ok());
        let mut next = || numbers.next();
        Some(Self {
            active: next()?,
            accepted: next()?,
            handled: next()?,
            requests: next()?,
            reading: next()?,
            writing: next()?,
            waiting: next()?,
        })
    }
}

impl Accounts {
    /// Takes over what processes have used by now; answers what they have used since.
    fn settle(&mut self, now: BTreeMap<(u32, u64), Usage>) -> Usage {
        let mut used = Usage::default();
        for (process, usage) in &now {
            let before = self.0.get(process).copied().unwrap_or_default();
            used.ticks += usage.ticks.saturating_sub(before.ticks);
            used.read += usage.read.saturating_sub(before.read);
            used.written += usage.written.saturating_sub(before.written);
        }
        self.0 = now;
        used
    }
}

/// The body of `/nginx_status`.
async fn ask(status: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(status).await?;
    stream
        .write_all(b"GET /nginx_status HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        .await?;
    let mut answer = String::new();
    stream
        .take(LONGEST_ANSWER)
        .read_to_string(&mut answer)
        .await?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => Ok(body.to_owned()),
        _ => Err(io::Error::other("it answers something else")),
    }
}

fn set(counter: &IntCounter, value: u64) {
    counter.reset();
    counter.inc_by(value);
}

fn stat(pid: u32) -> Option<procfs::process::Stat> {
    let process = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?;
    process.stat().ok()
}

fn usage(pid: u32, stat: &procfs::process::Stat) -> Usage {
    let process = i32::try_from(pid).map(procfs::process::Process::new);
    // Not everybody may see it.
    let io = process
        .ok()
        .and_then(Result::ok)
        .and_then(|process| process.io().ok());
    Usage {
        ticks: stat.utime + stat.stime,
        read: io.map_or(0, |io| io.read_bytes),
        written: io.map_or(0, |io| io.write_bytes),
    }
}

/// A time since the system's start, in clock ticks, as Unix time.
fn unix_time(ticks: u64) -> f64 {
    let boot = procfs::boot_time_secs().unwrap_or_default();
    Duration::from_secs(boot).as_secs_f64() + seconds(ticks)
}

fn seconds(ticks: u64) -> f64 {
    let second = procfs::ticks_per_second().max(1);
    let milliseconds = ticks.saturating_mul(1000) / second;
    Duration::from_millis(milliseconds).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_read() {
        let text = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630947 31070465 \n\
                    Reading: 6 Writing: 179 Waiting: 106 \n";
        let want = StubStatus {
            active: 291,
            accepted: 16_630_948,
            handled: 16_630_947,
            requests: 31_070_465,
            reading: 6,
            writing: 179,
            waiting: 106,
        };
        assert_eq!(StubStatus::parse(text), Some(want));
        assert_eq!(StubStatus::parse("<html>404</html>"), None);
    }

    #[test]
    fn what_is_used_is_counted_once_and_never_backwards() {
        let usage = |ticks| Usage {
            ticks,
            ..Usage::default()
        };
        let mut accounts = Accounts::default();
        let mut settle = |now: &[((u32, u64), u64)]| {
            let now = now.iter().map(|(process, ticks)| (*process, usage(*ticks)));
            accounts.settle(now.collect()).ticks
        };
        assert_eq!(settle(&[((1, 5), 10), ((2, 6), 20)]), 30);
        assert_eq!(settle(&[((1, 5), 15), ((2, 6), 20)]), 5);
        // A worker ended, and another one got its number.
        assert_eq!(settle(&[((1, 5), 15), ((2, 9), 3)]), 3);
        assert_eq!(settle(&[]), 0);
    }

    #[test]
    fn the_own_process_is_found() {
        let stat = stat(std::process::id()).unwrap();
        let start = unix_time(stat.starttime);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        assert!(start > now - 3600.0 && start < now + 2.0, "{start} {now}");
    }
}
