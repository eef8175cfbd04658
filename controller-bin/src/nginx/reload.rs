//! Having NGINX run with a new configuration, and knowing that it does.
//!
//! The command `nginx -s reload` tells only that a signal was sent. Here a reload is over when a worker that was not
//! there before answers with the checksum of the new configuration; it has failed when NGINX says so.

use std::{collections::BTreeSet, time::Duration};

use lua_sync_client::LuaSyncClient;
use tokio::time::{Instant, sleep};

use super::{
    census,
    log::Mark,
    process::{Process, ProcessError, State, last_lines},
};

/// How often to look whether NGINX runs with the new configuration.
const LOOK: Duration = Duration::from_millis(5);

/// Why NGINX does not run with a configuration that it was given.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It could not be told.
    #[error("cannot have nginx load its configuration")]
    Order(#[from] ProcessError),
    /// It tried and gave up; it goes on with the configuration that it had.
    #[error("nginx gave up loading its configuration: {said}")]
    Refused {
        /// What it said.
        said: String,
    },
    /// Its workers cannot run with it.
    #[error("workers of nginx end as soon as they run with its configuration: {said}")]
    Workers {
        /// What they said.
        said: String,
    },
    /// It ended over it.
    #[error("nginx ended while it was loading its configuration: {said}")]
    Ended {
        /// What it said last.
        said: String,
    },
    /// Nobody knows.
    #[error("no worker of nginx has confirmed the new configuration within {within:?}: {said}")]
    Unconfirmed {
        /// How long was waited.
        within: Duration,
        /// What it said meanwhile.
        said: String,
    },
}

impl ReloadError {
    /// Whether NGINX has taken the configuration, and serves nobody with it as far as can be told.
    #[must_use]
    pub fn leaves_no_workers(&self) -> bool {
        matches!(self, Self::Workers { .. } | Self::Unconfirmed { .. })
    }
}

/// Has the running NGINX load its configuration file, and waits until a new worker answers with `checksum`.
///
/// # Errors
///
/// When no worker does within that time, or NGINX says that none will.
pub async fn reload(
    process: &Process,
    client: &LuaSyncClient,
    checksum: &str,
    within: Duration,
) -> Result<(), ReloadError> {
    let before = process.pid().map(census::workers).unwrap_or_default();
    let awaited = Awaited {
        process,
        client,
        checksum,
        before,
        mark: process.log().mark(),
    };
    process.reload().await?;
    awaited.confirm(within).await
}

/// Starts NGINX, and waits until a worker answers with `checksum`.
///
/// # Errors
///
/// When no worker does within that time. NGINX is started again and again all the same.
pub async fn start(
    process: &Process,
    client: &LuaSyncClient,
    checksum: &str,
    within: Duration,
) -> Result<(), ReloadError> {
    let awaited = Awaited {
        process,
        client,
        checksum,
        before: BTreeSet::new(),
        mark: process.log().mark(),
    };
    process.start();
    awaited.confirm(within).await
}

/// What has to be seen for a configuration to be in force.
struct Awaited<'a> {
    process: &'a Process,
    client: &'a LuaSyncClient,
    checksum: &'a str,
    /// Workers of the configuration before.
    before: BTreeSet<u32>,
    mark: Mark,
}

impl Awaited<'_> {
    async fn confirm(&self, within: Duration) -> Result<(), ReloadError> {
        let deadline = Instant::now() + within;
        let mut state = self.process.state();
        let mut master = None;
        loop {
            let now = *state.borrow_and_update();
            if let State::Running { pid, .. } = now {
                if master.is_some_and(|master| master != pid) {
                    return Err(ReloadError::Ended { said: self.said() });
                }
                master = Some(pid);
                let given_up = self.process.log().emergencies(self.mark, pid);
                if !given_up.is_empty() {
                    return Err(ReloadError::Refused {
                        said: last_lines(&given_up),
                    });
                }
                let dead = self.process.log().dead_workers(self.mark, pid);
                if !dead.is_empty() {
                    return Err(ReloadError::Workers {
                        said: last_lines(&dead),
                    });
                }
                if self.is_in_force(pid).await {
                    return Ok(());
                }
            } else if master.is_some() {
                return Err(ReloadError::Ended { said: self.said() });
            }
            if Instant::now() > deadline {
                return Err(ReloadError::Unconfirmed {
                    within,
                    said: self.said(),
                });
            }
            sleep(LOOK).await;
        }
    }

    async fn is_in_force(&self, master: u32) -> bool {
        let new_workers = || {
            census::workers(master)
                .difference(&self.before)
                .next()
                .is_some()
        };
        // The census first: it asks nothing of NGINX.
        new_workers()
            && self
                .client
                .revision()
                .await
                .is_ok_and(|status| status.checksum == self.checksum)
    }

    fn said(&self) -> String {
        match last_lines(&self.process.log().since(self.mark)) {
            said if said.is_empty() => "it said nothing".to_owned(),
            said => said,
        }
    }
}
