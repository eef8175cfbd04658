//! The socket over which NGINX's workers report requests: one report a connection.
//!
//! Each line of a report is a request, with tabs between the parts, but the last one, `dropped N`: so many requests it
//! lacks because there were too many, or earlier reports of them could not be sent. Without that line the worker gave up
//! before the end. It counts the requests of such a report as dropped, so that nothing of it counts here.

use std::{
    fs::Permissions, io, os::unix::fs::PermissionsExt, path::Path, sync::Arc, time::Duration,
};

use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    time::timeout,
};
use tracing::{debug, warn};

use super::requests::{RequestMetrics, RequestRecord};

/// A report longer than this is dropped. Workers send none of more than half of it and a record.
const MAX_REPORT: u64 = 32 << 20;
/// Reports read at once; more have to wait.
const MAX_CONNECTIONS: usize = 32;
/// A worker writes its report in one go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens on a Unix socket for reports of NGINX's workers.
#[derive(Debug)]
pub struct Monitor {
    listener: UnixListener,
    metrics: Arc<RequestMetrics>,
}

impl Monitor {
    /// Makes the socket, in place of one that an earlier controller left.
    ///
    /// # Errors
    /// When the socket cannot be made at that path.
    pub fn bind(path: &Path, metrics: Arc<RequestMetrics>) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        // Workers run under another user; what they report is counted, never believed to be more than numbers.
        std::fs::set_permissions(path, Permissions::from_mode(0o666))?;
        Ok(Self { listener, metrics })
    }

    /// Counts what is reported, until dropped.
    pub async fn run(self) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
                return;
            };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let metrics = Arc::clone(&self.metrics);
                    tokio::spawn(async move {
                        let _slot = slot;
                        match timeout(PATIENCE, read_report(stream)).await {
                            Ok(Ok(report)) => {
                                metrics.miss(report.dropped);
                                for record in &report.records {
                                    metrics.observe(record);
                                }
                            }
                            Ok(Err(error)) => {
                                debug!(%error, "a report of request metrics was dropped");
                            }
                            Err(_) => debug!("a report of request metrics took too long"),
                        }
                    });
                }
                Err(error) => {
                    warn!(%error, "cannot accept a report of request metrics");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// What a worker has to say.
#[derive(Debug, PartialEq)]
struct Report {
    /// How many requests are not in it.
    dropped: u64,
    records: Vec<RequestRecord>,
}

async fn read_report(stream: UnixStream) -> io::Result<Report> {
    let mut report = Vec::new();
    stream.take(MAX_REPORT).read_to_end(&mut report).await?;
    parse(&String::from_utf8_lossy(&report)).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the report ends before its last line",
        )
    })
}

/// The requests of a report, or `None` if it lacks its last line. Lines that are no request are passed over.
fn parse(report: &str) -> Option<Report> {
    let (records, dropped) = report.strip_suffix('\n')?.rsplit_once('\n')?;
    Some(Report {
        dropped: dropped.strip_prefix("dropped ")?.parse().ok()?,
        records: records.lines().filter_map(parse_record).collect(),
    })
}

/// The parts of a line in the order of `$request_record`.
fn parse_record(line: &str) -> Option<RequestRecord> {
    let mut parts = line.splitn(14, '\t');
    let record = RequestRecord {
        host: known(parts.next()?),
        namespace: parts.next()?.to_owned(),
        ingress: parts.next()?.to_owned(),
        service: parts.next()?.to_owned(),
        canary: parts.next()?.to_owned(),
        method: known(parts.next()?),
        status: known(parts.next()?),
        request_length: number(parts.next()?),
        request_time: number(parts.next()?),
        response_length: number(parts.next()?),
        upstream_latency: number(parts.next()?),
        upstream_header_time: number(parts.next()?),
        upstream_response_time: number(parts.next()?),
        path: parts.next()?.to_owned(),
    };
    Some(record)
}

/// A text that NGINX has for every request that could be read.
fn known(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

/// A number; -1 where nothing was measured, or a retry left several.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(-1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let report = "shop.test\tns\tshop\tweb\t\tGET\t200\t80\t0.050\t500\t0.001\t0.010\t0.049\t/a\n\
            shop.test\tns\tshop\tweb\tcanary\tGET\t502\t80\t0.050\t500\t0.001, 0.002\t-\t0.049 : 0.001\t/a\tb\n\
            \t\t\t\t\t\t400\t0\t0.000\t150\t\t\t\t\n\
            no\trecord\n\
            dropped 2\n";
        let Report { dropped, records } = parse(report).unwrap();
        let expected = RequestRecord {
            host: "shop.test".into(),
            namespace: "ns".into(),
            ingress: "shop".into(),
            service: "web".into(),
            canary: String::new(),
            path: "/a".into(),
            method: "GET".into(),
            status: "200".into(),
            request_length: 80.0,
            request_time: 0.05,
            response_length: 500.0,
            upstream_latency: 0.001,
            upstream_header_time: 0.01,
            upstream_response_time: 0.049,
        };
        let retried = RequestRecord {
            canary: "canary".into(),
            path: "/a\tb".into(),
            status: "502".into(),
            upstream_latency: -1.0,
            upstream_header_time: -1.0,
            upstream_response_time: -1.0,
            ..expected.clone()
        };
        let unreadable = RequestRecord {
            host: "-".into(),
            namespace: String::new(),
            ingress: String::new(),
            service: String::new(),
            path: String::new(),
            canary: String::new(),
            method: "-".into(),
            status: "400".into(),
            request_length: 0.0,
            request_time: 0.0,
            response_length: 150.0,
            ..retried
        };
        assert_eq!(records, [expected, retried, unreadable]);
        assert_eq!(dropped, 2);
    }

    #[test]
    fn a_report_that_was_not_sent_to_its_end_counts_for_nothing() {
        let whole = "shop.test\tns\tshop\tweb\t\tGET\t200\t80\t0.050\t500\t0.001\t0.010\t0.049\t/a\n\
            shop.test\tns\tshop\tweb\t\tGET\t200\t80\t0.050\t500\t0.001\t0.010\t0.049\t/a\n\
            dropped 12\n";
        assert!(parse(whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end]), None, "{:?}", &whole[..end]);
        }
    }

    #[test]
    fn a_report_may_tell_of_nothing_but_what_it_lacks() {
        let report = parse("\ndropped 3\n").unwrap();
        assert_eq!((report.dropped, report.records.len()), (3, 0));
    }
}
