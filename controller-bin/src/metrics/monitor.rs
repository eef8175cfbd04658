//! The socket over which NGINX's workers report requests: one JSON array a connection.

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

/// A report longer than this is dropped. A worker sends at most some 10,000 records of a few hundred bytes.
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
                            Ok(Ok(records)) => {
                                for record in &records {
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

async fn read_report(stream: UnixStream) -> io::Result<Vec<RequestRecord>> {
    let mut report = Vec::new();
    stream.take(MAX_REPORT).read_to_end(&mut report).await?;
    serde_json::from_slice(&report).map_err(io::Error::from)
}
