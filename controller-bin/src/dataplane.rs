//! What NGINX should do, what it was told, and what it is known to do.
//!
//! Five values tell how far a configuration has come: *wanted* is what the last merge made of the objects, *loading* is
//! what files are being made of, *written* is what the files on the disk show, *loaded* is what workers have confirmed to
//! run with, and *told* is what the Lua side was given. Each is replaced only by what has really happened, so that
//! whatever fails is tried again from there.
//!
//! Endpoints and certificates are told at once, whether or not files are about to be loaded. As long as NGINX runs with
//! older files than are wanted, it is told what either of the two needs; what only the older ones used goes once the
//! newer ones are in force.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ingress_model::{Live, Outcome};
use lua_sync_client::{Applied, Room, Standing, Synchronizer};
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
    loading: Option<Arc<Outcome>>,
    written: Option<Files>,
    loaded: Option<Files>,
    /// How often endpoints have changed that an NGINX without scripts for TCP and UDP has to load.
    endpoint_files: u64,
    /// The same as of the last load.
    loaded_endpoint_files: u64,
    /// What the files of the last load have room for in the Lua side's dictionaries.
    room: Room,
    /// What turned out not to fit.
    lacking: Room,
}

impl Known {
    /// Whether the files on the disk are those that NGINX runs with.
    fn is_settled(&self) -> bool {
        let runs = |written: &Files| {
            let loaded = self.loaded.as_ref();
            loaded.is_some_and(|loaded| loaded.checksum == written.checksum)
        };
        self.loading.is_none() && self.written.as_ref().is_none_or(runs)
    }

    /// Whether there is more than the files that NGINX has loaded have room for.
    fn is_cramped(&self) -> bool {
        self.room.max(self.lacking) != self.room
    }
}

/// Tells NGINX of what it need not load.
#[derive(Debug)]
struct Teller {
    synchronizer: Synchronizer,
    stream_files: StreamFiles,
    /// Which start of the process was told.
    start: Option<u64>,
}

/// What NGINX should know: that of the last merge as it is, except while files change.
pub(crate) enum Due {
    Wanted(Arc<Outcome>),
    Both(Live),
}

impl Deref for Due {
    type Target = Live;

    fn deref(&self) -> &Live {
        match self {
            Self::Wanted(outcome) => &outcome.model.live,
            Self::Both(live) => live,
        }
    }
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

    /// What workers have confirmed to run with.
    #[must_use]
    pub fn loaded(&self) -> Option<Files> {
        self.known().loaded.clone()
    }

    /// Says what NGINX should do from now on.
    pub fn want(&self, outcome: Arc<Outcome>) {
        self.known().wanted = Some(outcome);
    }

    /// What files are to be made of, if NGINX does not run with them. Until [`Self::end_load`] they count as coming, so
    /// that a change that is taken back meanwhile is noticed.
    #[must_use]
    pub fn begin_load(&self) -> Option<Arc<Outcome>> {
        if !self.is_behind() {
            return None;
        }
        let mut known = self.known();
        let wanted = known.wanted.clone();
        known.loading.clone_from(&wanted);
        wanted
    }

    /// Says that files are not being made any more, whether or not NGINX runs with them.
    pub fn end_load(&self) {
        self.known().loading = None;
    }

    /// Whether the files on the disk are those that are known by this checksum.
    #[must_use]
    pub fn is_written(&self, checksum: &str) -> bool {
        let known = self.known();
        let written = known.written.as_ref();
        written.is_some_and(|files| files.checksum == checksum)
    }

    /// Says what the files on the disk show.
    pub fn set_written(&self, files: Files) {
        self.known().written = Some(files);
    }

    /// Says what NGINX runs with; `None` when nobody knows.
    pub fn set_loaded(&self, files: Option<Files>) {
        self.known().loaded = files;
    }

    /// Stands for the endpoints of TCP and UDP services that NGINX can load.
    #[must_use]
    pub fn endpoint_files(&self) -> u64 {
        self.known().endpoint_files
    }

    /// Whether NGINX has loaded them, if it has to.
    #[must_use]
    pub fn has_endpoint_files(&self) -> bool {
        let known = self.known();
        known.endpoint_files == known.loaded_endpoint_files
    }

    /// Says which ones NGINX has loaded.
    pub fn set_endpoint_files(&self, loaded: u64) {
        self.known().loaded_endpoint_files = loaded;
    }

    /// The room that new files have to have in the Lua side's dictionaries. It never becomes less while we run: a
    /// dictionary whose size changes is emptied.
    #[must_use]
    pub fn room(&self) -> Room {
        let needed = self.live().map(|live| Room::of(&live)).unwrap_or_default();
        let known = self.known();
        known.room.max(known.lacking).max(needed)
    }

    /// Says how much room the files that NGINX has loaded have.
    pub fn set_room(&self, loaded: Room) {
        self.known().room = loaded;
    }

    /// Whether there is more than the files that NGINX has loaded have room for.
    #[must_use]
    pub fn is_cramped(&self) -> bool {
        self.known().is_cramped()
    }

    /// Whether NGINX should load other files than it runs with, or is about to.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let known = self.known();
        match (&known.wanted, &known.loading, &known.loaded) {
            (Some(wanted), Some(loading), _) => wanted.model.layout != loading.model.layout,
            (Some(wanted), None, Some(loaded)) => {
                !known.is_settled()
                    || known.is_cramped()
                    || known.endpoint_files != known.loaded_endpoint_files
                    || wanted.model.layout != loaded.outcome.model.layout
                    || self.quarantine.levels() != loaded.without
            }
            (wanted, _, _) => wanted.is_some(),
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
        let start = match *self.process.state().borrow() {
            // When it is starting for the first time, who starts it tells it when it answers.
            State::Running { start, .. } if teller.start.is_some() || self.loaded().is_some() => {
                start
            }
            State::Stopped | State::Running { .. } | State::Restarting => {
                // It loads the endpoints of TCP and UDP services when it starts.
                if let Some(live) = self.live() {
                    teller.stream_files.write(&live)?;
                }
                return Ok(None);
            }
        };
        if teller.start != Some(start) {
            self.acquaint(&mut teller, start).await?;
        }
        let Some(live) = self.live() else {
            return Ok(None);
        };
        if teller.stream_files.write(&live)? {
            self.known().endpoint_files += 1;
        }
        let applied = teller.synchronizer.apply(&live).await;
        if let Err(error @ lua_sync_client::Error::DictionaryFull { .. }) = &applied {
            let lacking = Room::of(&live).and_missing(error);
            let mut known = self.known();
            known.lacking = known.lacking.max(lacking);
        }
        Ok(Some(applied?))
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
            if known.loaded.is_some() {
                info!(
                    start,
                    "nginx was started anew, with the files that were written last; it is told all it has to know"
                );
            } else {
                info!(
                    start,
                    "nginx was started anew, with older files than those that were written last; it is to load them"
                );
            }
        }
        Ok(())
    }

    /// What NGINX should know now.
    pub(crate) fn live(&self) -> Option<Due> {
        let mut known = self.known();
        let wanted = Arc::clone(known.wanted.as_ref()?);
        let settled = known.is_settled();
        if let Some(loaded) = &mut known.loaded
            && settled
            && wanted.model.layout == loaded.outcome.model.layout
        {
            // Only what need not be loaded is different.
            loaded.outcome = Arc::clone(&wanted);
            return Some(Due::Wanted(wanted));
        }
        // Which of the two files is in force is not certain while the newer ones are being loaded.
        let files = [&known.loaded, &known.written].into_iter().flatten();
        let others = files.map(|files| &files.outcome).chain(&known.loading);
        Some(Due::Both(
            others.fold(wanted.model.live.clone(), |live, other| {
                both(&live, &other.model.live)
            }),
        ))
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
fn both(newer: &Live, older: &Live) -> Live {
    let (set, _) = older.diff(newer).split();
    let mut live = older.clone();
    live.apply(&set);
    live
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ingress_model::{
        Backend, Model,
        layout::StreamServer,
        live::{Endpoint as Peer, UpstreamName},
    };
    use lua_sync_client::{Endpoint, LuaSyncClient, Settings};

    use super::*;
    use crate::quarantine::Level;

    fn plane() -> DataPlane {
        let client = LuaSyncClient::new(Endpoint::Unix("/none".into()), Settings::default());
        DataPlane::new(
            Arc::new(Process::new(Path::new("/bin/false"), Path::new("/none"))),
            Arc::new(Quarantine::default()),
            Synchronizer::new(client),
            StreamFiles::none(),
        )
    }

    /// A configuration with these ports in its files, and these backends with their ports.
    fn outcome(ports: &[u16], backends: &[(&str, u16)]) -> Arc<Outcome> {
        let mut model = Model::default();
        for port in ports {
            let server = StreamServer {
                upstream: UpstreamName::new("tcp"),
                proxy_protocol_in: false,
                proxy_protocol_out: false,
            };
            model.layout.tcp.insert(*port, server);
        }
        for (name, port) in backends {
            let mut backend = Backend::new(UpstreamName::new(name));
            backend.endpoints = vec![Peer {
                address: "10.0.0.1".into(),
                port: *port,
            }];
            model
                .live
                .backends
                .insert(backend.name.clone(), Arc::new(backend));
        }
        Arc::new(Outcome {
            model,
            ..Outcome::default()
        })
    }

    fn files(outcome: &Arc<Outcome>) -> Files {
        Files {
            outcome: Arc::clone(outcome),
            without: Levels::new(),
            checksum: "1".into(),
        }
    }

    fn told(plane: &DataPlane) -> Vec<(String, u16)> {
        let live = plane.live().unwrap();
        let backends = live.backends.iter();
        backends
            .map(|(name, backend)| (name.to_string(), backend.endpoints[0].port))
            .collect()
    }

    fn pairs(pairs: &[(&str, u16)]) -> Vec<(String, u16)> {
        pairs
            .iter()
            .map(|(name, port)| ((*name).to_owned(), *port))
            .collect()
    }

    #[test]
    fn files_are_behind_until_they_are_loaded() {
        let plane = plane();
        assert!(!plane.is_behind(), "nothing is wanted");
        let first = outcome(&[1], &[]);
        plane.want(Arc::clone(&first));
        assert!(plane.is_behind());
        plane.set_written(files(&first));
        assert!(plane.is_behind(), "a file on the disk is not in force");
        plane.set_loaded(Some(files(&first)));
        assert!(!plane.is_behind());
        plane.want(outcome(&[1], &[("a", 1)]));
        assert!(!plane.is_behind(), "backends are in no file");
        plane.want(outcome(&[2], &[]));
        assert!(plane.is_behind());
    }

    #[test]
    fn a_change_that_is_taken_back_while_it_is_loaded_is_a_change() {
        let plane = plane();
        let (first, second) = (outcome(&[1], &[("a", 1)]), outcome(&[2], &[("b", 1)]));
        let second_files = Files {
            checksum: "2".into(),
            ..files(&second)
        };
        plane.want(Arc::clone(&first));
        plane.set_written(files(&first));
        plane.set_loaded(Some(files(&first)));
        assert!(plane.begin_load().is_none(), "there is nothing to load");

        plane.want(Arc::clone(&second));
        assert!(plane.begin_load().is_some());
        assert!(!plane.is_behind(), "it is coming");
        plane.want(Arc::clone(&first));
        assert!(plane.is_behind());
        assert_eq!(told(&plane), pairs(&[("a", 1), ("b", 1)]));
        plane.set_written(second_files.clone());
        plane.set_loaded(Some(second_files));
        plane.end_load();
        assert!(plane.is_behind());
    }

    #[test]
    fn files_that_could_not_be_loaded_are_replaced() {
        let plane = plane();
        let first = outcome(&[1], &[("a", 1)]);
        let second = Files {
            checksum: "2".into(),
            ..files(&outcome(&[2], &[("b", 1)]))
        };
        plane.want(Arc::clone(&first));
        plane.set_loaded(Some(files(&first)));
        plane.set_written(second);
        assert!(plane.is_behind(), "nginx would start with them");
        assert_eq!(told(&plane), pairs(&[("a", 1), ("b", 1)]));
    }

    #[test]
    fn files_without_an_ingress_are_behind_when_it_comes_back() {
        let plane = plane();
        let wanted = outcome(&[1], &[]);
        plane.want(Arc::clone(&wanted));
        let without = Levels::from([(ingress_model::ObjectName::new("a", "b"), Level::Denied)]);
        plane.set_loaded(Some(Files {
            without,
            ..files(&wanted)
        }));
        assert!(plane.is_behind());
    }

    #[test]
    fn old_and_new_servers_find_what_they_need_while_files_change() {
        let plane = plane();
        let old = outcome(&[1], &[("both", 1), ("old", 1)]);
        plane.want(Arc::clone(&old));
        plane.set_loaded(Some(files(&old)));
        assert_eq!(told(&plane), pairs(&[("both", 1), ("old", 1)]));

        let new = outcome(&[2], &[("both", 2), ("new", 2)]);
        plane.want(Arc::clone(&new));
        assert_eq!(told(&plane), pairs(&[("both", 2), ("new", 2), ("old", 1)]));
        plane.set_written(files(&new));
        assert_eq!(told(&plane), pairs(&[("both", 2), ("new", 2), ("old", 1)]));
        plane.set_loaded(Some(files(&new)));
        assert_eq!(told(&plane), pairs(&[("both", 2), ("new", 2)]));
    }

    #[test]
    fn what_is_in_no_file_goes_at_once() {
        let plane = plane();
        let first = outcome(&[1], &[("a", 1), ("b", 1)]);
        plane.set_loaded(Some(files(&first)));
        plane.want(outcome(&[1], &[("a", 2)]));
        assert_eq!(told(&plane), pairs(&[("a", 2)]));
        // Files that change later start from there.
        plane.want(outcome(&[2], &[]));
        assert_eq!(told(&plane), pairs(&[("a", 2)]));
    }

    #[tokio::test]
    async fn an_nginx_that_does_not_run_is_not_told() {
        let plane = plane();
        plane.want(outcome(&[1], &[("a", 1)]));
        assert!(plane.tell().await.unwrap().is_none());
        assert!(!plane.is_astray().await.unwrap());
    }
}
