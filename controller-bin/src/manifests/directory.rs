//! The files of the directory, what each of them says, and what they say together.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use ingress_model::{
    ObjectKind, ObjectRef,
    manifests::{
        AssumedClass, Changes, Content, Gathering, Ignored, ManifestError, Object, Together,
        is_hidden, is_manifest, together,
    },
};
use tracing::{debug, error, info, warn};

use super::{
    fetch::{Fetched, fetch, fetch_many, unreadable},
    kept::with_earlier,
    object,
};
use crate::store::Store;

/// How long after it was last written to a file that has changed is not looked at: its writer may not be done, and word
/// of it may be on its way.
pub(super) const FRESH: Duration = Duration::from_secs(1);

/// The directory as it was when last looked at.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
    assumed_class: Arc<Object>,
    /// By path below the root.
    files: BTreeMap<PathBuf, File>,
    /// What the store is told.
    gathering: Gathering<Arc<Path>>,
    /// Whether it was said that the IngressClass is assumed.
    class_is_assumed: bool,
    /// Objects that several files define, and that this was said of.
    repeated: BTreeSet<ObjectRef>,
    /// Directories that cannot be read, below the root, and why.
    unreadable: BTreeMap<PathBuf, String>,
}

#[derive(Debug, Default)]
struct File {
    /// What the file system says of it; differs when the content does.
    stamp: Option<Stamp>,
    /// The last good content; where a part of the present one cannot be read, what is left of it and all that was there.
    objects: Vec<Arc<Object>>,
    /// What else it holds.
    ignored: Vec<Ignored>,
    /// What is wrong with the present content, or with parts of it.
    errors: Vec<ManifestError>,
    /// The stamp of content that lacks objects, and is waited for in case its writer is not done.
    lacking: Option<Stamp>,
}

impl File {
    /// Takes notice of what is wrong with the content of the file, and says what is new of it. So many objects are there
    /// only since they were before.
    fn refuse(&mut self, errors: Vec<ManifestError>, kept: usize, path: &Path) {
        for refused in errors.iter().filter(|error| !self.errors.contains(error)) {
            let what = match refused.document {
                Some(_) => "a document of a manifest",
                None => "a manifest",
            };
            if kept == 0 {
                error!(error = %refused, "cannot read {what}; it is left out");
            } else {
                error!(error = %refused, objects = kept, "cannot read {what}; what it said before holds");
            }
        }
        if errors.is_empty() && !self.errors.is_empty() {
            let objects = self.objects.len();
            info!(file = %path.display(), objects, "a manifest can be read again");
        }
        self.errors = errors;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &fs::Metadata) -> Self {
        Self {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            inode: metadata.ino(),
        }
    }

    /// Whether the file that had the stamp `before` was written to a moment ago. One that took its place was finished
    /// first.
    fn is_fresh(&self, before: &Self) -> bool {
        let age = self.modified.and_then(|at| at.elapsed().ok());
        self != before && self.inode == before.inode && age.is_some_and(|age| age < FRESH)
    }
}

/// Which files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// Those that word came of.
    Anyway,
    /// Those that have changed, if their writer is likely to be done.
    Changed,
}

impl Directory {
    pub(super) fn new(root: &Path, assumed_class: AssumedClass) -> Self {
        let assumed_class = Arc::new(assumed_class.object());
        Self {
            root: root.to_owned(),
            gathering: Gathering::new(Arc::clone(&assumed_class)),
            assumed_class,
            files: BTreeMap::new(),
            class_is_assumed: false,
            repeated: BTreeSet::new(),
            unreadable: BTreeMap::new(),
        }
    }

    /// What all files say together.
    pub(super) fn together(&self) -> Together {
        let files = self.files.iter();
        let files = files.map(|(path, file)| (path.as_path(), file.objects.as_slice()));
        together(files, &self.assumed_class)
    }

    /// What is wrong with files and documents.
    pub(super) fn errors(&self) -> Vec<ManifestError> {
        let files = self.files.values();
        files.flat_map(|file| file.errors.iter().cloned()).collect()
    }

    /// All files, those that cannot be read too.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.files.keys().map(|path| self.root.join(path)).collect()
    }

    /// Objects of kinds that are not read, with their files.
    pub(super) fn ignored(&self) -> Vec<(PathBuf, Ignored)> {
        let files = self.files.iter();
        let ignored = files.flat_map(|(path, file)| {
            let ignored = file.ignored.iter().cloned();
            ignored.map(move |ignored| (self.root.join(path), ignored))
        });
        ignored.collect()
    }

    /// How many files there are, and how many objects of which kinds they hold.
    pub(super) fn summary(&self) -> (usize, String) {
        let mut kinds: BTreeMap<ObjectKind, usize> = BTreeMap::new();
        for object in self.files.values().flat_map(|file| &file.objects) {
            *kinds.entry(object.kind()).or_default() += 1;
        }
        let kinds = kinds.iter().map(|(kind, count)| format!("{kind} {count}"));
        (self.files.len(), kinds.collect::<Vec<_>>().join(", "))
    }

    /// Looks through all files but those that are to be read in a while anyway, and answers whether some of the others
    /// have to be looked at again. What is in a directory that cannot be read stays.
    pub(super) fn look_through(&mut self, is_awaited: impl Fn(&Path) -> bool) -> io::Result<bool> {
        let mut listing = Listing::default();
        listing.add(&self.root, Path::new(""))?;
        let Listing { found, unreadable } = listing;
        for (directory, error) in &unreadable {
            if self.unreadable.get(directory) != Some(error) {
                let directory = self.root.join(directory);
                warn!(directory = %directory.display(), error, "cannot read a directory of manifests; what its files said holds");
            }
        }
        let is_unreadable = |path: &Path| {
            let mut directories = unreadable.keys();
            directories.any(|directory| path.starts_with(directory))
        };
        let gone = self.files.keys();
        let gone = gone.filter(|path| {
            !found.contains(*path) && !is_unreadable(path) && !is_awaited(&self.root.join(path))
        });
        for path in gone.cloned().collect::<Vec<_>>() {
            self.forget(&path);
        }
        self.unreadable = unreadable;
        let found = found.into_iter();
        let found: Vec<_> = found
            .filter(|path| !is_awaited(&self.root.join(path)))
            .collect();
        let new = found.iter().filter(|path| !self.files.contains_key(*path));
        let new: Vec<_> = new.cloned().collect();
        let mut fetched = fetch_many(&self.root, &new);
        let mut left = false;
        for path in found {
            let fetched = fetched.remove(&path);
            left |= !self.read(path, Read::Changed, fetched);
        }
        Ok(left)
    }

    /// Reads these files anew, and answers which of them have to be read once more.
    pub(super) fn read_again(&mut self, paths: Vec<PathBuf>) -> Vec<PathBuf> {
        let mut once_more = Vec::new();
        for path in paths {
            let Ok(below) = path.strip_prefix(&self.root) else {
                continue;
            };
            let hidden = below.iter().any(|part| is_hidden(Path::new(part)));
            if !hidden && !self.read(below.to_owned(), Read::Anyway, None) {
                once_more.push(path);
            }
        }
        once_more
    }

    /// Reads a file, unless its stamp says that it is the same. A file that is gone is forgotten. Answers whether all is
    /// known of the file that is to be known: where objects went from a file that was written in place, only if its next
    /// reading finds the same, since somebody may just have begun to write it.
    fn read(&mut self, path: PathBuf, which: Read, fetched: Option<Fetched>) -> bool {
        let full = self.root.join(&path);
        let stamp = match fs::metadata(&full) {
            Ok(metadata) if metadata.is_file() => Stamp::of(&metadata),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.refuse(path, None, unreadable(&full, &error));
                return true;
            }
            Ok(_) | Err(_) => {
                self.forget(&path);
                return true;
            }
        };
        let before = self.files.get(&path).and_then(|file| file.stamp);
        if which == Read::Changed {
            if before.is_some_and(|before| stamp.is_fresh(&before)) {
                return false;
            }
            if before == Some(stamp) {
                return true;
            }
        }
        let content = fetched
            .filter(|(then, _)| *then == stamp)
            .map_or_else(|| fetch(&full), |(_, content)| content);
        match content {
            Ok(content) if self.waits(&path, stamp, &content) => return false,
            Ok(content) => self.accept(path, stamp, content),
            Err(error) => self.refuse(path, Some(stamp), error),
        }
        true
    }

    /// Whether the content is what a writer may leave for a moment.
    fn waits(&mut self, path: &Path, stamp: Stamp, content: &Content) -> bool {
        let Some(file) = self.files.get_mut(path) else {
            return false;
        };
        let in_place = file.stamp.is_some_and(|before| before.inode == stamp.inode);
        // Nothing goes while a part of it cannot be read.
        let is_whole = content.broken.is_empty();
        let waits = in_place && is_whole && file.lacking != Some(stamp) && {
            let now: BTreeSet<_> = content.objects.iter().map(Object::reference).collect();
            let mut before = file.objects.iter();
            before.any(|object| !now.contains(&object.reference()))
        };
        file.lacking = waits.then_some(stamp);
        waits
    }

    fn forget(&mut self, path: &Path) {
        if self.files.remove(path).is_some() {
            self.gathering.set(path.into(), &[]);
        }
    }

    fn accept(&mut self, path: PathBuf, stamp: Stamp, content: Content) {
        let full = self.root.join(&path);
        let name: Arc<Path> = path.as_path().into();
        let file = self.files.entry(path).or_default();
        if kinds(&file.ignored).ne(kinds(&content.ignored)) {
            for ignored in &content.ignored {
                if !file.ignored.contains(ignored) {
                    report(&full, ignored);
                }
            }
        }
        file.ignored = content.ignored;
        // An object that is the same keeps its place, and with it what the store has of it.
        let known = file.objects.iter();
        let mut known: BTreeMap<_, _> = known
            .map(|object| (object.reference(), Arc::clone(object)))
            .collect();
        let now = content.objects.into_iter();
        let now: Vec<_> = now
            .map(|object| match known.remove(&object.reference()) {
                Some(same) if *same == object => same,
                Some(_) | None => Arc::new(object),
            })
            .collect();
        let (objects, kept) = if content.broken.is_empty() {
            (now, 0)
        } else {
            with_earlier(&file.objects, now)
        };
        file.objects = objects;
        file.refuse(content.broken, kept, &full);
        file.stamp = Some(stamp);
        self.gathering.set(name, &file.objects);
    }

    fn refuse(&mut self, path: PathBuf, stamp: Option<Stamp>, refused: ManifestError) {
        let full = self.root.join(&path);
        let file = self.files.entry(path).or_default();
        file.refuse(vec![refused], file.objects.len(), &full);
        file.stamp = stamp;
    }

    /// Tells the store, as one change, what is different from what it was told before.
    pub(super) fn tell(&mut self, store: &Store) {
        let Changes { set, gone } = self.gathering.changes();
        let changes = store.batch(|batch| {
            for reference in &gone {
                object::delete(reference, batch);
            }
            for (_, placed) in set {
                object::apply(placed.dated(), batch);
            }
        });
        for change in changes {
            debug!(%change, "manifests changed");
        }
        let repeated = self.gathering.repeated();
        for (object, left_out, used) in &repeated {
            if !self.repeated.contains(object) {
                warn!(
                    %object,
                    left_out = %left_out.display(),
                    used = %used.display(),
                    "an object is defined more than once",
                );
            }
        }
        let repeated = repeated.into_iter();
        self.repeated = repeated.map(|(object, ..)| object).collect();
        let class_is_assumed = self.gathering.class_is_assumed();
        if class_is_assumed && !self.class_is_assumed {
            let class = self.assumed_class.reference().name;
            info!(%class, "no manifest defines an IngressClass; this one is assumed");
        }
        self.class_is_assumed = class_is_assumed;
    }
}

/// The files of manifests below a directory.
#[derive(Debug, Default)]
struct Listing {
    found: BTreeSet<PathBuf>,
    /// Directories that cannot be read, and why.
    unreadable: BTreeMap<PathBuf, String>,
}

impl Listing {
    fn add(&mut self, root: &Path, below: &Path) -> io::Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if is_hidden(&path) {
                continue;
            }
            // Links are followed, but only to files: a link to a directory may lead round in circles.
            if !entry.file_type()?.is_dir() {
                if is_manifest(&path) {
                    self.found.insert(path);
                }
                continue;
            }
            match self.add(root, &path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    self.unreadable.insert(path, error.to_string());
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// What objects are not read, wherever in the file they stand.
fn kinds(ignored: &[Ignored]) -> impl Iterator<Item = (&str, &str)> {
    let kinds = ignored.iter();
    kinds.map(|ignored| (ignored.api_version.as_str(), ignored.kind.as_str()))
}

/// Says that an object is not read: loudly only if its author may think that it is.
fn report(file: &Path, ignored: &Ignored) {
    let Ignored {
        line,
        api_version,
        kind,
        advice,
    } = ignored;
    let file = format!("{}:{line}", file.display());
    if let Some(advice) = advice {
        warn!(file, api_version, kind, "an object is not read: {advice}");
    } else {
        debug!(file, api_version, kind, "objects of this kind are not read");
    }
}
