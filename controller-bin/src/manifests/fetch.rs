//! Files, read and understood.

use std::{
    collections::BTreeMap,
    fs, io,
    num::NonZero,
    path::{Path, PathBuf},
    thread,
};

use ingress_model::manifests::{Content, ManifestError, salvage};

use super::directory::Stamp;

/// Fewer files than these are not worth a thread.
const MANY: usize = 64;

/// What was found in a file, and the stamp that it had then.
pub(super) type Fetched = (Stamp, Result<Content, ManifestError>);

/// Reads a file.
pub(super) fn fetch(file: &Path) -> Result<Content, ManifestError> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    Ok(salvage(file, &text))
}

/// Reads files below a root on all processors where there are many, as there are at the start: to understand a file takes
/// far longer than to read it.
pub(super) fn fetch_many(root: &Path, files: &[PathBuf]) -> BTreeMap<PathBuf, Fetched> {
    if files.len() < MANY {
        return BTreeMap::new();
    }
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = files.len().div_ceil(threads);
    let fetch_share = |files: &[PathBuf]| {
        let fetched = files.iter().filter_map(|file| {
            let full = root.join(file);
            let stamp = Stamp::of(&fs::metadata(&full).ok()?);
            Some((file.clone(), (stamp, fetch(&full))))
        });
        fetched.collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let shares = files.chunks(share);
        let threads: Vec<_> = shares
            .map(|files| scope.spawn(move || fetch_share(files)))
            .collect();
        // What a thread did not get done is read one by one later.
        let fetched = threads.into_iter().filter_map(|thread| thread.join().ok());
        fetched.flatten().collect()
    })
}

/// Why a file cannot be read.
pub(super) fn unreadable(file: &Path, error: &io::Error) -> ManifestError {
    ManifestError {
        file: file.to_owned(),
        line: None,
        column: None,
        document: None,
        reason: format!("cannot read the file: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_are_read_as_each_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = (0..MANY + 3)
            .map(|it| format!("{it}.yaml").into())
            .collect();
        for (number, file) in files.iter().enumerate() {
            let name = if number == 5 { "[" } else { "a" };
            let text = format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n");
            fs::write(directory.path().join(file), text).unwrap();
        }
        let fetched = fetch_many(directory.path(), &files);
        assert_eq!(fetched.len(), files.len());
        for (file, (_, content)) in fetched {
            assert_eq!(content, fetch(&directory.path().join(file)));
        }
        let gone = [files, vec!["none.yaml".into()]].concat();
        assert_eq!(fetch_many(directory.path(), &gone).len(), gone.len() - 1);
        assert!(fetch_many(directory.path(), &gone[..MANY - 1]).is_empty());
    }
}
