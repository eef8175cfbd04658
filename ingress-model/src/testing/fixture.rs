//! Manifests for a test.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use thiserror::Error;

use crate::{
    manifests::{
        AssumedClass, ManifestError, Object, Together, is_hidden, is_manifest, parse, together,
    },
    merge::merge,
    options::Options,
    snapshot::Snapshot,
};

use super::Served;

/// Why manifests cannot be used.
#[derive(Debug, Error)]
pub enum FixtureError {
    /// A file or directory cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What a file holds cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Manifests, and the options and the time with which they are to be merged.
#[derive(Clone, Debug)]
pub struct Fixture {
    files: Vec<(PathBuf, Vec<Arc<Object>>)>,
    pub(super) options: Options,
    now: Timestamp,
}

impl Fixture {
    /// Reads a text of any number of YAML documents, as [`parse()`] does. Kinds that the rules do not read are left out.
    ///
    /// # Errors
    /// When the text cannot be used; the error calls it `manifests.yaml`.
    pub fn from_yaml(text: &str) -> Result<Self, FixtureError> {
        Self::default().and_yaml(text)
    }

    /// Reads the manifests of a directory and of those below it, in the order of their paths.
    ///
    /// # Errors
    /// When the directory or one of its manifests cannot be read. A controller would serve the other files; a test is
    /// better told.
    pub fn from_directory(directory: impl AsRef<Path>) -> Result<Self, FixtureError> {
        let mut fixture = Self::default();
        let mut found = BTreeSet::new();
        list(directory.as_ref(), &mut found)?;
        for path in found {
            let text = read(&path)?;
            fixture.add(path, &text)?;
        }
        Ok(fixture)
    }

    /// Adds a further text. What it defines holds against what was defined before, and counts as created later.
    ///
    /// # Errors
    /// As [`Fixture::from_yaml`].
    pub fn and_yaml(mut self, text: &str) -> Result<Self, FixtureError> {
        self.add("manifests.yaml".into(), text)?;
        Ok(self)
    }

    /// With other options than the flags' defaults.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// At another time than the beginning of 1970: certificates may have expired.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// The objects, by the rules of [`together()`]: where no manifest defines an IngressClass, the one is assumed that
    /// `--ingress-class` names.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.together().snapshot()
    }

    /// What a controller with these options serves.
    #[must_use]
    pub fn merge(&self) -> Served {
        let snapshot = self.snapshot();
        let outcome = merge(&snapshot, &self.options, self.now);
        Served {
            snapshot,
            options: self.options.clone(),
            outcome,
        }
    }

    fn together(&self) -> Together {
        let class = Arc::new(AssumedClass::ours(&self.options).object());
        let files = self.files.iter();
        together(
            files.map(|(path, objects)| (path.as_path(), objects.as_slice())),
            &class,
        )
    }

    fn add(&mut self, path: PathBuf, text: &str) -> Result<(), FixtureError> {
        let objects = parse(&path, text)?.objects;
        self.files
            .push((path, objects.into_iter().map(Arc::new).collect()));
        Ok(())
    }
}

/// No manifests, the flags' defaults, the beginning of 1970.
impl Default for Fixture {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            options: Options::default(),
            now: Timestamp::UNIX_EPOCH,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's manifests are files; no rule reads any"
)]
fn read(path: &Path) -> Result<String, FixtureError> {
    fs::read_to_string(path).map_err(|source| unreadable(path, source))
}

/// Finds the manifests in a directory and below it.
fn list(directory: &Path, found: &mut BTreeSet<PathBuf>) -> Result<(), FixtureError> {
    let entries = fs::read_dir(directory).map_err(|source| unreadable(directory, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| unreadable(directory, source))?;
        let path = entry.path();
        let kind = entry
            .file_type()
            .map_err(|source| unreadable(&path, source))?;
        if kind.is_dir() && !is_hidden(&path) {
            list(&path, found)?;
        } else if !kind.is_dir() && is_manifest(&path) {
            found.insert(path);
        }
    }
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> FixtureError {
    FixtureError::Read {
        path: path.to_owned(),
        source,
    }
}
