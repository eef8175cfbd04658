//! What rendering yields.

use std::{collections::BTreeMap, fmt};

use ring::digest;

use crate::source_map::{Note, SourceMap};

/// NGINX's configuration files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The main file.
    pub main: String,
    /// Further files, relative to [`Environment::nginx_dir`](crate::Environment::nginx_dir).
    pub files: BTreeMap<RelativePath, FileContent>,
    /// Who is behind which line of the main file.
    pub source_map: SourceMap,
    /// What could not be rendered as it was asked for.
    pub notes: Vec<Note>,
    /// Stands for everything above: equal files have equal checksums, from one release to the next.
    pub checksum: u64,
}

/// A file's path below NGINX's directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(String);

impl RelativePath {
    /// A path of plain names; `None` for anything that could lead elsewhere.
    ///
    /// ```
    /// use nginx_render::RelativePath;
    ///
    /// assert!(RelativePath::new("ssl/default.pem").is_some());
    /// assert!(RelativePath::new("../passwd").is_none());
    /// assert!(RelativePath::new("/etc/passwd").is_none());
    /// ```
    #[must_use]
    pub fn new(path: &str) -> Option<Self> {
        let is_plain = |name: &str| {
            let bytes_are_plain = name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
            bytes_are_plain && !matches!(name, "" | "." | "..")
        };
        path.split('/').all(is_plain).then(|| Self(path.into()))
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a file holds.
#[derive(Clone, PartialEq, Eq)]
pub struct FileContent {
    /// The content; text but for keys.
    pub bytes: Vec<u8>,
    /// Whether nobody but NGINX may read it: keys and passwords.
    pub private: bool,
    /// Whether NGINX's workers read it, while they serve requests; otherwise only its master does, when it starts.
    pub workers: bool,
}

impl FileContent {
    pub(crate) fn public(content: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: content.into(),
            private: false,
            workers: false,
        }
    }

    pub(crate) fn private(content: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: content.into(),
            private: true,
            workers: false,
        }
    }
}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("FileContent");
        if !self.private {
            debug.field("text", &String::from_utf8_lossy(&self.bytes));
        }
        debug
            .field("private", &self.private)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// FNV-1a with 64 bits: the same everywhere and for ever, which the standard library's hashers do not promise. Who
/// chooses the texts can have two with one checksum: where that matters, it is a [`Fingerprint`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum(u64);

impl Checksum {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Takes a text in; its length counts, so that texts cannot run into each other.
    pub(crate) fn add(&mut self, text: &(impl AsRef<[u8]> + ?Sized)) {
        let bytes = text.as_ref();
        let length = (bytes.len() as u64).to_le_bytes();
        for byte in bytes.iter().chain(&length) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

/// The first 64 bits of SHA-256: names what authors of Ingresses choose, so that nobody finds a text that is named as
/// somebody else's.
pub(crate) struct Fingerprint(digest::Context);

impl Fingerprint {
    pub(crate) fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// Takes a text in; its length counts, so that texts cannot run into each other.
    pub(crate) fn add(&mut self, text: &(impl AsRef<[u8]> + ?Sized)) {
        let bytes = text.as_ref();
        self.0.update(bytes);
        self.0.update(&(bytes.len() as u64).to_le_bytes());
    }

    pub(crate) fn get(self) -> u64 {
        let digest = self.0.finish();
        let bytes = digest.as_ref().iter().take(8);
        bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_never_changes() {
        let mut checksum = Checksum::new();
        checksum.add("worker_processes 1;");
        assert_eq!(checksum.get(), 10_460_553_236_665_151_084);
        let (mut one, mut other) = (Checksum::new(), Checksum::new());
        one.add("ab");
        one.add("c");
        other.add("a");
        other.add("bc");
        assert_ne!(one.get(), other.get());
    }

    /// Texts with one FNV-1a checksum are easily made, such as the name of a path that is to be taken for another one.
    #[test]
    fn texts_with_one_checksum_have_fingerprints_of_their_own() {
        let named = |text: &str| {
            let (mut checksum, mut fingerprint) = (Checksum::new(), Fingerprint::new());
            checksum.add(text);
            fingerprint.add(text);
            (checksum.get(), fingerprint.get())
        };
        let (one, other) = (named("8yn0iYCKYHlIj4-BwPqk"), named("GReLUrM4wMqfg9yzV3KQ"));
        assert_eq!(one.0, other.0);
        assert_ne!(one.1, other.1);
    }

    #[test]
    fn the_fingerprint_never_changes() {
        let mut fingerprint = Fingerprint::new();
        fingerprint.add("a.test");
        assert_eq!(fingerprint.get(), 2_956_369_756_193_772_866);
    }

    #[test]
    fn paths_stay_below_the_directory() {
        for path in ["a", "a/b.pem", "ssl/ca-ns_name.pem", "stream/tcp-80"] {
            assert!(RelativePath::new(path).is_some(), "{path}");
        }
        for path in [
            "", "/", "/a", "a/", "a//b", "..", "a/../b", ".", "a b", "a\n", "a\\b", "ä",
        ] {
            assert!(RelativePath::new(path).is_none(), "{path:?}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let file = FileContent::private("hunter2");
        assert!(!format!("{file:?}").contains("hunter2"));
    }
}
