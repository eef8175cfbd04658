//! What NGINX should do, what it was told, and what it is known to do.
//!
//! Four values tell how far a configuration has come: *wanted* is what the last merge made of the objects, *written* is
//! what the files on the disk show, *loaded* is what workers have confirmed to run with, and *told* is what the Lua side
//! was given. Each is replaced only by what has really happened, so that whatever fails is tried again from there.
//!
//! Endpoints and certificates are told at once, whether or not files are about to be loaded. As long as NGINX runs with
//! older files than are wanted, it is told what either of the two needs; what only the older ones used goes once the
//! newer ones are in force.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ingress_model::{Live, Outcome};
use lua_sync_client::{Applied, Standing, Synchronizer};
use tracing::info;

use crate::{
    nginx::{
        files::WriteError,
        process::{Process, State},
    },
    quarantine::{Levels, Quarantine},
    stream_files::StreamFiles,
};

/// Why NGINX could not be told.
#[derive(Debug, thiserror::Error)]
pub enum TellError {
    /// Its Lua side could not.
    #[error("cannot tell nginx of endpoints and certificates")]
    Lua(#[from] lua_sync_client::Error),
    /// Its stream side could not.
    #[error("cannot tell nginx of the endpoints of TCP and UDP services")]
    Stream(#[from] WriteError),
}

/// Configuration files that NGINX runs with, or would.
#[derive(Clone, Debug)]
pub struct Files {
    /// What they were made from.
    pub outcome: Arc<Outcome>,
    /// Which Ingresses were left out of them.
    pub without: Levels,
    /// What they are known by.
    pub checksum: String,
}

/// One NGINX, with all that is known of it.
#[derive(Debug)]
pub struct DataPlane {
    process: Arc<Process>,
    quarantine: Arc<Quarantine>,
    known: Mutex<Known>,
    teller: tokio::sync::Mutex<Teller>,
}

#[derive(Debug, Default)]
struct Known {
    wanted: Option<Arc<Outcome>>,
    written: Option<Files>,
    loaded: Option<Files>,
}

/// Tells NGINX of what it need not load.
#[derive(Debug)]
struct Teller {
    synchronizer: Synchronizer,
    stream_files: StreamFiles,
    /// Which start of the process was told.
    start: Option<u64>,
}

impl DataPlane {
    /// An NGINX that was told nothing yet.
    #[must_use]
    pub fn new(
        process: Arc<Process>,
        quarantine: Arc<Quarantine>,
        synchronizer: Synchronizer,
        stream_files: StreamFiles,
    ) -> Self {
        Self {
            process,
            quarantine,
            known: Mutex::default(),
            teller: tokio::sync::Mutex::new(Teller {
                synchronizer,
                stream_files,
                start: None,
            }),
        }
    }

    /// The process.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What the last merge made of the objects.
    #[must_use]
    pub fn wanted(&self) -> Option<Arc<Outcome>> {
        self.known().wanted.clone()
    }

    /// What workers have confirmed to run with.
    #[must_use]
    pub fn loaded(&self) -> Option<Files> {
        self.known().loaded.clone()
    }

    /// Says what NGINX should do from now on.
    pub fn want(&self, outcome: Arc<Outcome>) {
        self.known().wanted = Some(outcome);
    }

    /// Says what the files on the disk show.
    pub fn set_written(&self, files: Files) {
        self.known().written = Some(files);
    }

    /// Says what NGINX runs with; `None` when nobody knows.
    pub fn set_loaded(&self, files: Option<Files>) {
        self.known().loaded = files;
    }

    /// Whether NGINX should load other files than it runs with.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let known = self.known();
        match (&known.wanted, &known.loaded) {
            (Some(wanted), Some(loaded)) => {
                wanted.model.layout != loaded.outcome.model.layout
                    || self.quarantine.levels() != loaded.without
            }
            (wanted, _) => wanted.is_some(),
        }
    }

    /// Tells NGINX of endpoints, certificates and the like, as they should be by now. Does nothing while it does not
    /// run: it is told when it has started.
    ///
    /// # Errors
    ///
    /// When it could not be told all of it. The next call tells what is missing.
    pub async fn tell(&self) -> Result<Option<Applied>, TellError> {
        let mut teller = self.teller.lock().await;
        let State::Running { start, .. } = *self.process.state().borrow() else {
            return Ok(None);
        };
        if teller.start != Some(start) {
            self.acquaint(&mut teller, start).await?;
        }
        let Some(live) = self.live() else {
            return Ok(None);
        };
        teller.stream_files.write(&live)?;
        Ok(Some(teller.synchronizer.apply(&live).await?))
    }

    /// Finds out what an NGINX that has been started anew runs with. It has forgotten all that its predecessor knew.
    async fn acquaint(&self, teller: &mut Teller, start: u64) -> Result<(), TellError> {
        let status = teller.synchronizer.client().revision().await?;
        teller.synchronizer.forget();
        teller.start = Some(start);
        let mut known = self.known();
        let written = known.written.clone();
        known.loaded = written.filter(|files| files.checksum == status.checksum);
        if start > 1 {
            info!(start, expected = known.loaded.is_some(), "nginx is back");
        }
        Ok(())
    }

    /// What NGINX should know now.
    fn live(&self) -> Option<Live> {
        let mut known = self.known();
        let wanted = Arc::clone(known.wanted.as_ref()?);
        if let Some(loaded) = &mut known.loaded
            && wanted.model.layout == loaded.outcome.model.layout
        {
            // Only what need not be loaded is different.
            loaded.outcome = wanted;
            return Some(loaded.outcome.model.live.clone());
        }
        // Which of the two files is in force is not certain while the newer ones are being loaded.
        let older = [&known.loaded, &known.written].into_iter().flatten();
        Some(older.fold(wanted.model.live.clone(), |live, files| {
            both(live, &files.outcome.model.live)
        }))
    }

    /// Asks NGINX whether it knows what it was told, and has it told anew if not. Answers whether it did not.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub async fn is_astray(&self) -> Result<bool, TellError> {
        let mut teller = self.teller.lock().await;
        if self.process.pid().is_none() || teller.start.is_none() {
            return Ok(false);
        }
        let standing = teller.synchronizer.verify().await?;
        if let Standing::Diverged { told, have } = &standing {
            info!(?told, ?have, "nginx does not have what it was told");
        }
        Ok(standing.needs_repair())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What either of two needs; where both have something, as the newer one has it.
fn both(newer: Live, older: &Live) -> Live {
    fn fill<K: Ord + Clone, V: Clone>(newer: &mut BTreeMap<K, V>, older: &BTreeMap<K, V>) {
        for (key, value) in older {
            if !newer.contains_key(key) {
                newer.insert(key.clone(), value.clone());
            }
        }
    }
    let mut live = newer;
    fill(&mut live.backends, &older.backends);
    fill(&mut live.certificates, &older.certificates);
    fill(&mut live.servers, &older.servers);
    fill(&mut live.tcp, &older.tcp);
    fill(&mut live.udp, &older.udp);
    live
}
