//! Objects from a directory of YAML and JSON files, as if an API server brought them.
//!
//! Files end in `.yaml`, `.yml` or `.json`, in the directory itself or below it; names that start with a dot are left
//! out. How a file is read and what all files say together is in [`ingress_model::manifests`]. A part of a
//! file that cannot be read, be it a YAML document or an item of a list, is reported with line and column, and the rest is
//! taken. As long as there is such a part, no object goes that the file held before, since it may be the one that cannot
//! be read; so do all where nothing of a file can be read.
//!
//! Writers should rename finished files into the directory: what a file said before and what it says now change places
//! at once, for all of its objects and for all files that come together. A file that is written in place is read when
//! its writer closes it, and until then what it said before holds; one that a writer leaves open is read as it is ten
//! seconds after the last write. Objects that go, with their file or out of one that is written in place, go a fifth of
//! a second later than others come: git, editors and shells take a file away or empty it first. Whatever was not noticed is found within ten seconds by looking through the directory.
//!
//! The directory itself may go away and come back. While it is gone, what its files said last holds.

mod directory;
mod fetch;
mod kept;
mod object;
mod pending;

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use ingress_model::manifests::{Ignored, Together};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::ModifyKind};
use tracing::{info, warn};

use self::{
    directory::{Directory, FRESH},
    pending::{GONE, Pending},
};
use crate::{chain::chain, store::Store};

pub use ingress_model::manifests::{AssumedClass, ManifestError};

/// The name under which the store waits for the directory.
pub const LIST: &str = "manifests";

/// How soon a directory that is gone, or cannot be watched, is looked at again.
const RETRY: Duration = Duration::from_millis(500);

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

/// Sees whether a directory of manifests can be read at all.
///
/// # Errors
///
/// When it cannot.
pub fn check(directory: &Path) -> Result<(), ManifestsError> {
    let read = fs::read_dir(directory).map(drop);
    read.map_err(|source| ManifestsError::Read {
        directory: directory.to_owned(),
        source,
    })
}

/// What a directory holds at one moment.
#[derive(Debug)]
pub struct Found {
    /// What the files say together.
    pub together: Together,
    /// What is wrong with files, documents and items of lists that are left out.
    pub errors: Vec<ManifestError>,
    /// All files, those that are left out too.
    pub files: Vec<PathBuf>,
    /// Objects of kinds that are not read, with their files.
    pub ignored: Vec<(PathBuf, Ignored)>,
}

/// Reads a directory once. Its rules are those by which [`Manifests`] follows one.
///
/// # Errors
///
/// When the directory cannot be read. What is wrong with single files is in the answer.
pub fn read(directory: &Path, assumed_class: AssumedClass) -> Result<Found, ManifestsError> {
    let mut directory_now = Directory::new(directory, assumed_class);
    directory_now
        .look_through(|_| false)
        .map_err(|source| ManifestsError::Read {
            directory: directory.to_owned(),
            source,
        })?;
    Ok(Found {
        together: directory_now.together(),
        errors: directory_now.errors(),
        files: directory_now.paths(),
        ignored: directory_now.ignored(),
    })
}

/// Keeps a store equal to a directory of manifests while it lives.
#[derive(Debug)]
pub struct Manifests {
    messages: Sender<Message>,
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
        let read = |source| ManifestsError::Read {
            directory: directory.to_owned(),
            source,
        };
        // Events name absolute paths, whatever the path that is watched.
        let root = std::path::absolute(directory).map_err(read)?;
        // "No such directory" is best said by reading it; watching comes first so that no change falls between.
        fs::read_dir(&root).map_err(read)?;
        let (messages, received) = channel();
        let mut watch = Watch::new(&root, messages.clone())?;
        watch.renew()?;
        let mut files = Directory::new(&root, assumed_class);
        files.look_through(|_| false).map_err(read)?;
        files.tell(&store);
        let (count, objects) = files.summary();
        if count == 0 {
            warn!(
                directory = %root.display(),
                "there are no manifests: no file ends in .yaml, .yml or .json"
            );
        } else {
            info!(directory = %root.display(), files = count, objects, "read the manifests");
        }
        store.listed(LIST);
        let follower = Follower {
            files,
            watch,
            pending: Pending::new(Instant::now()),
            store,
            trouble: None,
        };
        thread::spawn(move || follower.run(&received));
        Ok(Self { messages })
    }
}

impl Drop for Manifests {
    fn drop(&mut self) {
        // It fails only when the thread is gone already.
        let _ended = self.messages.send(Message::Stop);
    }
}

/// Notices changes of the directory that has the name at present.
#[derive(Debug)]
struct Watch {
    root: PathBuf,
    watcher: RecommendedWatcher,
    /// Device and inode of the directory that is watched.
    watched: Option<(u64, u64)>,
}

impl Watch {
    fn new(root: &Path, messages: Sender<Message>) -> Result<Self, ManifestsError> {
        let watcher = notify::recommended_watcher(move |event| {
            // It fails only when nobody watches any more.
            let _ended = messages.send(Message::Event(event));
        });
        Ok(Self {
            root: root.to_owned(),
            watcher: watcher.map_err(|source| unwatchable(root, source))?,
            watched: None,
        })
    }

    /// Begins to watch the directory, unless it is watched already.
    fn renew(&mut self) -> Result<(), ManifestsError> {
        let metadata = fs::metadata(&self.root).map_err(|source| ManifestsError::Read {
            directory: self.root.clone(),
            source,
        })?;
        let now = Some((metadata.dev(), metadata.ino()));
        if self.watched != now {
            // It fails when the system has ended the watch along with the directory.
            let _ended = self.watcher.unwatch(&self.root);
            self.watcher
                .watch(&self.root, RecursiveMode::Recursive)
                .map_err(|source| unwatchable(&self.root, source))?;
            self.watched = now;
        }
        Ok(())
    }

    /// Takes notice of the directory itself going away. Another one may get its inode.
    fn is_lost(&mut self, event: &notify::Event) -> bool {
        let goes = matches!(
            event.kind,
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
        );
        let is_lost = goes && event.paths.contains(&self.root);
        if is_lost {
            self.watched = None;
        }
        is_lost
    }
}

fn unwatchable(directory: &Path, source: notify::Error) -> ManifestsError {
    ManifestsError::Watch {
        directory: directory.to_owned(),
        source,
    }
}

/// Carries changes of the directory into the store.
#[derive(Debug)]
struct Follower {
    files: Directory,
    watch: Watch,
    pending: Pending,
    store: Arc<Store>,
    /// Why the directory cannot be followed at present.
    trouble: Option<String>,
}

impl Follower {
    /// Goes on until it is told to stop.
    fn run(mut self, messages: &Receiver<Message>) {
        loop {
            let wait = self
                .pending
                .next()
                .saturating_duration_since(Instant::now());
            match messages.recv_timeout(wait) {
                Ok(Message::Event(event)) => self.note(event),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => self.update(),
            }
        }
    }

    fn note(&mut self, event: notify::Result<notify::Event>) {
        let now = Instant::now();
        match event {
            Ok(event) if self.watch.is_lost(&event) => self.pending.look_through_at(now),
            Ok(event) => self.pending.note(&event, now),
            Err(error) => {
                warn!(
                    directory = %self.watch.root.display(),
                    %error,
                    "cannot follow every change of the manifests; looking through all of them",
                );
                self.pending.look_through_at(now);
            }
        }
    }

    /// Reads what is due, and tells the store of all of it at once.
    fn update(&mut self) {
        let now = Instant::now();
        let due = self.pending.take_files(now);
        for path in self.files.read_again(due) {
            self.pending.read_at(&path, now + GONE);
        }
        if self.pending.take_look_through(now) {
            self.look_through();
        }
        self.files.tell(&self.store);
    }

    fn look_through(&mut self) {
        let Self {
            files,
            watch,
            pending,
            ..
        } = self;
        let looked = watch.renew().and_then(|()| {
            files
                .look_through(|file| pending.is_awaited(file))
                .map_err(|source| ManifestsError::Read {
                    directory: watch.root.clone(),
                    source,
                })
        });
        let (left, trouble) = match looked {
            Ok(left) => (left, None),
            Err(error) => (false, Some(chain(&error))),
        };
        if left {
            pending.look_through_at(Instant::now() + FRESH);
        }
        match &trouble {
            Some(error) if self.trouble != trouble => {
                warn!(error, "cannot follow the manifests; what they said holds");
            }
            None if self.trouble.is_some() => {
                let directory = self.watch.root.display();
                info!(%directory, "following the manifests again");
            }
            Some(_) | None => {}
        }
        if trouble.is_some() {
            self.pending.look_through_at(Instant::now() + RETRY);
        }
        self.trouble = trouble;
    }
}

#[cfg(test)]
mod tests;
