//! The files of the directory, what each of them says, and what they say together.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use ingress_model::{
    ObjectRef,
    manifests::{
        AssumedClass, Content, ManifestError, Object, Placed, Together, is_hidden, is_manifest,
        parse, together,
    },
};
use tracing::{debug, error, info, warn};

use super::object;
use crate::store::Store;

/// The directory as it was when last looked at.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
    assumed_class: Arc<Object>,
    /// By path below the root.
    files: BTreeMap<PathBuf, File>,
    /// What the store has been told.
    told: BTreeMap<ObjectRef, Placed>,
    /// Objects that several files define, and that this was said of.
    repeated: BTreeSet<ObjectRef>,
}

#[derive(Debug, Default)]
struct File {
    /// What the file system says of it; differs when the content does.
    stamp: Option<Stamp>,
    /// The last good content.
    objects: Vec<Arc<Object>>,
    /// What is wrong with the present content.
    error: Option<ManifestError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Directory {
    pub(super) fn new(root: &Path, assumed_class: AssumedClass) -> Self {
        Self {
            root: root.to_owned(),
            assumed_class: Arc::new(assumed_class.object()),
            files: BTreeMap::new(),
            told: BTreeMap::new(),
            repeated: BTreeSet::new(),
        }
    }

    /// Looks through all files, and tells the store what changed.
    pub(super) fn scan(&mut self, store: &Store) -> io::Result<()> {
        self.look_through()?;
        self.tell(store);
        Ok(())
    }

    /// What all files say together.
    pub(super) fn together(&self) -> Together {
        let files = self.files.iter();
        let files = files.map(|(path, file)| (path.as_path(), file.objects.as_slice()));
        together(files, &self.assumed_class)
    }

    /// What is wrong with files.
    pub(super) fn errors(&self) -> Vec<ManifestError> {
        let files = self.files.values();
        files.filter_map(|file| file.error.clone()).collect()
    }

    /// Looks through all files.
    pub(super) fn look_through(&mut self) -> io::Result<()> {
        let mut found = BTreeSet::new();
        list(&self.root, Path::new(""), &mut found)?;
        self.files.retain(|path, _| found.contains(path));
        for path in found {
            self.read(path, false);
        }
        Ok(())
    }

    /// Reads these files anew, and tells the store what changed.
    pub(super) fn update(&mut self, paths: &[PathBuf], store: &Store) {
        for path in paths {
            let Ok(below) = path.strip_prefix(&self.root) else {
                continue;
            };
            let hidden = below.iter().any(|part| is_hidden(Path::new(part)));
            if !hidden {
                self.read(below.to_owned(), true);
            }
        }
        self.tell(store);
    }

    /// Reads a file, unless its stamp says that it is the same. A file that is gone is forgotten.
    fn read(&mut self, path: PathBuf, anyway: bool) {
        let full = self.root.join(&path);
        let stamp = match fs::metadata(&full) {
            Ok(metadata) if metadata.is_file() => Stamp {
                modified: metadata.modified().ok(),
                length: metadata.len(),
                inode: metadata.ino(),
            },
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return self.refuse(path, None, unreadable(&full, &error));
            }
            Ok(_) | Err(_) => {
                self.files.remove(&path);
                return;
            }
        };
        if !anyway
            && self
                .files
                .get(&path)
                .is_some_and(|file| file.stamp == Some(stamp))
        {
            return;
        }
        let content = fs::read_to_string(&full)
            .map_err(|error| unreadable(&full, &error))
            .and_then(|text| parse(&full, &text));
        match content {
            Ok(content) => self.accept(path, stamp, content),
            Err(error) => self.refuse(path, Some(stamp), error),
        }
    }

    fn accept(&mut self, path: PathBuf, stamp: Stamp, content: Content) {
        for (api_version, kind) in content.ignored {
            debug!(file = %path.display(), api_version, kind, "objects of this kind are not read");
        }
        let file = self.files.entry(path).or_default();
        // An object that is the same keeps its place, and with it what the store has of it.
        let mut known: BTreeMap<_, _> = file
            .objects
            .drain(..)
            .map(|object| (object.reference(), object))
            .collect();
        file.objects = content
            .objects
            .into_iter()
            .map(|object| match known.remove(&object.reference()) {
                Some(same) if *same == object => same,
                Some(_) | None => Arc::new(object),
            })
            .collect();
        file.stamp = Some(stamp);
        file.error = None;
    }

    fn refuse(&mut self, path: PathBuf, stamp: Option<Stamp>, refused: ManifestError) {
        let file = self.files.entry(path).or_default();
        if file.error.as_ref() != Some(&refused) {
            let kept = file.objects.len();
            error!(error = %refused, kept, "cannot read a manifest; what it said before holds");
        }
        file.stamp = stamp;
        file.error = Some(refused);
    }

    /// Tells the store what is different from what it was told before.
    fn tell(&mut self, store: &Store) {
        let Together {
            objects: now,
            repeated,
            class_is_assumed,
        } = self.together();
        let gone = self.told.keys().filter(|object| !now.contains_key(object));
        let changes = gone.filter_map(|object| object::delete(object, store));
        for change in changes {
            debug!(%change, "manifests changed");
        }
        for (reference, told) in &now {
            let before = self.told.get(reference);
            let same = before.is_some_and(|before| {
                Arc::ptr_eq(&before.object, &told.object) && before.created == told.created
            });
            if same {
                continue;
            }
            if let Some(change) = object::apply(told.dated(), store) {
                debug!(%change, "manifests changed");
            }
        }
        for repeated in &repeated {
            if !self.repeated.contains(&repeated.object) {
                warn!(
                    object = %repeated.object,
                    left_out = %repeated.left_out.display(),
                    used = %repeated.used.display(),
                    "an object is defined more than once",
                );
            }
        }
        let class = self.assumed_class.reference();
        if class_is_assumed && !self.told.contains_key(&class) {
            info!(class = %class.name, "no manifest defines an IngressClass; this one is assumed");
        }
        let repeated = repeated.into_iter();
        self.repeated = repeated.map(|repeated| repeated.object).collect();
        self.told = now;
    }
}

/// Finds the files of manifests below a directory.
fn list(root: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if is_hidden(&path) {
            continue;
        }
        // Links are followed, but only to files: a link to a directory may lead round in circles.
        if entry.file_type()?.is_dir() {
            match list(root, &path, found) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                listed => listed?,
            }
        } else if is_manifest(&path) {
            found.insert(path);
        }
    }
    Ok(())
}

fn unreadable(file: &Path, error: &io::Error) -> ManifestError {
    ManifestError {
        file: file.to_owned(),
        line: None,
        column: None,
        reason: format!("cannot read the file: {error}"),
    }
}
