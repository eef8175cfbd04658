//! Objects from a directory of YAML and JSON files, as if an API server brought them.
//!
//! Files end in `.yaml`, `.yml` or `.json`, in the directory itself or below it; names that start with a dot are left
//! out. How a file is read and what all files say together is in [`ingress_model::manifests`]. A file that cannot be read
//! as a whole is reported with line and column, and what it held before stays in force.
//!
//! Writers should rename finished files into the directory: that is seen at once and never half-done. A file that is
//! written in place is read when its writer closes it.

mod directory;
mod object;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use ingress_model::manifests::{Together, is_manifest};
use notify::{
    EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind},
};
use tracing::warn;

use self::directory::Directory;
use crate::store::Store;

pub use ingress_model::manifests::{AssumedClass, ManifestError};

/// The name under which the store waits for the directory.
pub const LIST: &str = "manifests";

/// How long a finished change waits for others that came with it.
const TOGETHER: Duration = Duration::from_millis(2);

/// How long a change that may be half-done waits for its end.
const UNFINISHED: Duration = Duration::from_millis(100);

/// How often the directory is looked through in case a change was not noticed.
const LOOK_THROUGH: Duration = Duration::from_secs(10);

/// Why a directory of manifests cannot be served from.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// The directory cannot be read.
    #[error("cannot read the directory of manifests {}", directory.display())]
    Read {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory cannot be watched.
    #[error("cannot watch the directory of manifests {}", directory.display())]
    Watch {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: notify::Error,
    },
}

/// What a directory holds at one moment.
#[derive(Debug)]
pub struct Found {
    /// What the files say together.
    pub together: Together,
    /// What is wrong with files that are left out.
    pub errors: Vec<ManifestError>,
}

/// Reads a directory once. Its rules are those by which [`Manifests`] follows one.
///
/// # Errors
///
/// When the directory cannot be read. What is wrong with single files is in the answer.
pub fn read(directory: &Path, assumed_class: AssumedClass) -> Result<Found, ManifestsError> {
    let mut directory_now = Directory::new(directory, assumed_class);
    directory_now
        .look_through()
        .map_err(|source| ManifestsError::Read {
            directory: directory.to_owned(),
            source,
        })?;
    Ok(Found {
        together: directory_now.together(),
        errors: directory_now.errors(),
    })
}

/// Keeps a store equal to a directory of manifests while it lives.
#[derive(Debug)]
pub struct Manifests {
    messages: Sender<Message>,
    _watcher: RecommendedWatcher,
}

enum Message {
    Event(notify::Result<notify::Event>),
    Stop,
}

impl Manifests {
    /// Reads the directory into `store` and goes on watching it, on a thread of its own.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read or watched. What is wrong with single files is logged.
    pub fn start(
        directory: &Path,
        assumed_class: AssumedClass,
        store: Arc<Store>,
    ) -> Result<Self, ManifestsError> {
        // Events name absolute paths, whatever the path that is watched.
        let directory = &std::path::absolute(directory).map_err(|source| ManifestsError::Read {
            directory: directory.to_owned(),
            source,
        })?;
        let (messages, received) = channel();
        // Watched first, so that no change falls between; read first, since "no such directory" is best said by that.
        let watcher = watch(directory, messages.clone());
        let mut directory_now = Directory::new(directory, assumed_class);
        directory_now
            .scan(&store)
            .map_err(|source| ManifestsError::Read {
                directory: directory.to_owned(),
                source,
            })?;
        let watcher = watcher.map_err(|source| ManifestsError::Watch {
            directory: directory.to_owned(),
            source,
        })?;
        store.listed(LIST);
        thread::spawn(move || follow(directory_now, &received, &store));
        Ok(Self {
            messages,
            _watcher: watcher,
        })
    }
}

impl Drop for Manifests {
    fn drop(&mut self) {
        // It fails only when the thread is gone already.
        let _ended = self.messages.send(Message::Stop);
    }
}

fn watch(directory: &Path, messages: Sender<Message>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event| {
        // It fails only when nobody watches any more.
        let _ended = messages.send(Message::Event(event));
    })?;
    watcher.watch(directory, RecursiveMode::Recursive)?;
    Ok(watcher)
}

/// Carries changes of the directory into the store until it is told to stop.
fn follow(mut directory: Directory, messages: &Receiver<Message>, store: &Store) {
    let mut pending = Pending::new(Instant::now());
    loop {
        let wait = pending.due().saturating_duration_since(Instant::now());
        match messages.recv_timeout(wait) {
            Ok(Message::Event(Ok(event))) => pending.note(&event, Instant::now()),
            Ok(Message::Event(Err(error))) => {
                warn!(%error, "cannot follow every change of the manifests; looking through all of them");
                pending.look_through_at(Instant::now());
            }
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => pending.handle(&mut directory, store),
        }
    }
}

/// Changes that were noticed and are not read yet.
struct Pending {
    /// When to read which file.
    files: BTreeMap<PathBuf, Instant>,
    /// When to look through the whole directory.
    look_through: Instant,
}

impl Pending {
    fn new(now: Instant) -> Self {
        Self {
            files: BTreeMap::new(),
            look_through: now + LOOK_THROUGH,
        }
    }

    /// When there is something to do next.
    fn due(&self) -> Instant {
        let files = self.files.values().min();
        files.map_or(self.look_through, |due| self.look_through.min(*due))
    }

    fn look_through_at(&mut self, when: Instant) {
        self.look_through = self.look_through.min(when);
    }

    fn note(&mut self, event: &notify::Event, now: Instant) {
        let due = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_))
            | EventKind::Remove(_) => now + TOGETHER,
            EventKind::Access(_) => return,
            EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Other => {
                now + UNFINISHED
            }
        };
        if event.need_rescan() {
            self.look_through_at(due);
        }
        for path in &event.paths {
            if is_manifest(path) {
                self.files.insert(path.clone(), due);
            } else {
                // A directory, or the link that the kubelet swaps to replace all files at once.
                self.look_through_at(due);
            }
        }
    }

    fn handle(&mut self, directory: &mut Directory, store: &Store) {
        let now = Instant::now();
        if self.look_through <= now {
            *self = Self::new(now);
            if let Err(error) = directory.scan(store) {
                warn!(%error, "cannot look through the manifests; what they said holds");
            }
            return;
        }
        let due: Vec<_> = self
            .files
            .extract_if(.., |_, due| *due <= now)
            .map(|(path, _)| path)
            .collect();
        if !due.is_empty() {
            directory.update(&due, store);
        }
    }
}

#[cfg(test)]
mod tests;
