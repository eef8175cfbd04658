//! Changes of files that were noticed and are not read yet.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ingress_model::manifests::{is_hidden, is_manifest};
use notify::{
    Event, EventKind,
    event::{AccessKind, AccessMode, ModifyKind, RenameMode},
};

/// How long a finished change waits for others that came with it.
const TOGETHER: Duration = Duration::from_millis(2);

/// How long what goes away is waited for: who puts a file into the place of another may first take the other one away,
/// as git does, or empty it.
pub(super) const GONE: Duration = Duration::from_millis(200);

/// How long a new directory waits for the files that are put into it.
const SETTLED: Duration = Duration::from_millis(100);

/// How long after the last write a file is read that its writer does not close.
const STALLED: Duration = Duration::from_secs(10);

/// How often the directory is looked through in case a change was not noticed.
const LOOK_THROUGH: Duration = Duration::from_secs(10);

/// Changes that were noticed and are not read yet.
#[derive(Debug)]
pub(super) struct Pending {
    files: BTreeMap<PathBuf, Due>,
    look_through: Instant,
}

/// When a file is to be read.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    /// Whether somebody is still writing it.
    open: bool,
}

impl Pending {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            files: BTreeMap::new(),
            look_through: now + LOOK_THROUGH,
        }
    }

    /// When there is something to do next.
    pub(super) fn next(&self) -> Instant {
        let files = self.files.values().map(|due| due.at).min();
        files.map_or(self.look_through, |at| self.look_through.min(at))
    }

    /// Has the whole directory looked through, not later than then.
    pub(super) fn look_through_at(&mut self, when: Instant) {
        self.look_through = self.look_through.min(when);
    }

    /// Takes notice of a change. To look through a directory is to open it, which is no change of it.
    pub(super) fn note(&mut self, event: &Event, now: Instant) {
        if event.need_rescan() {
            self.look_through_at(now);
        }
        if let (EventKind::Modify(ModifyKind::Name(RenameMode::Both)), [from, to]) =
            (event.kind, event.paths.as_slice())
            && is_manifest(from)
            && is_manifest(to)
        {
            // Otherwise its objects would be there twice for a while.
            self.read_at(from, now + TOGETHER);
        }
        for path in &event.paths {
            if is_manifest(path) {
                self.note_file(path, event.kind, now);
            } else if !event.kind.is_access() && concerns_others(path) {
                let is_new = matches!(event.kind, EventKind::Create(_));
                self.look_through_at(now + if is_new { SETTLED } else { TOGETHER });
            }
        }
    }

    fn note_file(&mut self, path: &Path, kind: EventKind, now: Instant) {
        let open = match kind {
            // Word of both names comes after word of each.
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return,
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => {
                self.read_at(path, now + GONE);
                return;
            }
            EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(_)) => false,
            EventKind::Access(_) => return,
            // It says nothing about whether somebody writes the file.
            EventKind::Modify(ModifyKind::Metadata(_)) if self.is_open(path) => return,
            EventKind::Modify(ModifyKind::Metadata(_)) => false,
            EventKind::Create(_) => !has_other_names(path),
            EventKind::Any | EventKind::Modify(_) | EventKind::Other => true,
        };
        let at = now + if open { STALLED } else { TOGETHER };
        self.files.insert(path.to_owned(), Due { at, open });
    }

    /// Has a file read that nobody is writing.
    pub(super) fn read_at(&mut self, path: &Path, at: Instant) {
        self.files.insert(path.to_owned(), Due { at, open: false });
    }

    /// Whether the file is to be read in a while.
    pub(super) fn is_awaited(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Whether somebody is writing the file.
    fn is_open(&self, path: &Path) -> bool {
        self.files.get(path).is_some_and(|due| due.open)
    }

    /// Takes the files that are to be read, those included that are about to be.
    pub(super) fn take_files(&mut self, now: Instant) -> Vec<PathBuf> {
        if self.files.values().all(|due| due.at > now) {
            return Vec::new();
        }
        let due = |due: &Due| due.at <= now + TOGETHER;
        let due = self.files.extract_if(.., |_, at| due(at));
        due.map(|(path, _)| path).collect()
    }

    /// Whether the whole directory is to be looked through; the next time is later then.
    pub(super) fn take_look_through(&mut self, now: Instant) -> bool {
        let is_due = self.look_through <= now;
        if is_due {
            self.look_through = now + LOOK_THROUGH;
        }
        is_due
    }
}

/// Whether what happened to a path that is no manifest may have changed what manifests there are: a directory, or the
/// link that the kubelet swaps to replace all files at once.
fn concerns_others(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(metadata) => !metadata.is_file(),
        // It is gone; if it was a directory, its files are.
        Err(_) => !is_hidden(path),
    }
}

/// Whether a path that has just come into being names a file that was there before: by a link, which nobody closes.
fn has_other_names(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink() || metadata.nlink() > 1)
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, DataChange, MetadataKind, RemoveKind};

    use super::*;

    const CREATED: EventKind = EventKind::Create(CreateKind::File);
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const TOUCHED: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
    const RENAMED: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::To));

    /// What is read within which time, given what happened to a file at which millisecond.
    fn read_at(events: &[(u64, EventKind)]) -> Duration {
        let start = Instant::now();
        let mut pending = Pending::new(start);
        pending.look_through = start + Duration::from_secs(3600);
        for (at, kind) in events {
            let at = start + Duration::from_millis(*at);
            assert!(pending.take_files(at).is_empty(), "{events:?}");
            pending.note(&Event::new(*kind).add_path("/x/a.yaml".into()), at);
        }
        let next = pending.next();
        assert_eq!(pending.take_files(next), [PathBuf::from("/x/a.yaml")]);
        assert!(pending.files.is_empty());
        next - start
    }

    #[test]
    fn a_file_is_read_when_its_writer_closes_it() {
        let ms = Duration::from_millis;
        let slow: Vec<_> = (0..50).map(|line| (line * 150, WRITTEN)).collect();
        let with = |last: (u64, EventKind)| [&[(0, CREATED)], &slow[..], &[last]].concat();
        assert_eq!(read_at(&with((8000, CLOSED))), ms(8002));
        assert_eq!(read_at(&with((8000, TOUCHED))), ms(7350) + STALLED);
        assert_eq!(read_at(&[(0, RENAMED)]), TOGETHER);
        assert_eq!(read_at(&[(0, TOUCHED)]), TOGETHER);
        assert_eq!(read_at(&[(0, WRITTEN)]), STALLED);
    }

    #[test]
    fn what_goes_away_is_waited_for() {
        const REMOVED: EventKind = EventKind::Remove(RemoveKind::File);
        const RENAMED_AWAY: EventKind = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        let ms = Duration::from_millis;
        assert_eq!(read_at(&[(0, REMOVED)]), GONE);
        assert_eq!(read_at(&[(0, RENAMED_AWAY)]), GONE);
        for gone in [REMOVED, RENAMED_AWAY] {
            let back = [(0, gone), (150, CREATED), (300, WRITTEN), (400, CLOSED)];
            assert_eq!(read_at(&back), ms(402));
        }
    }

    #[test]
    fn a_file_that_gets_another_name_goes_when_the_other_one_comes() {
        let start = Instant::now();
        let mut pending = Pending::new(start);
        let both = Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::Both)));
        for event in [
            Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::From)))
                .add_path("/x/a.yaml".into()),
            Event::new(RENAMED).add_path("/x/b.yaml".into()),
            both.clone()
                .add_path("/x/a.yaml".into())
                .add_path("/x/b.yaml".into()),
        ] {
            pending.note(&event, start);
        }
        assert_eq!(pending.next(), start + TOGETHER);
        assert_eq!(pending.take_files(pending.next()).len(), 2);

        // What an editor does to keep a copy of what it is about to write.
        for event in [
            Event::new(EventKind::Modify(ModifyKind::Name(RenameMode::From)))
                .add_path("/x/a.yaml".into()),
            both.add_path("/x/a.yaml".into())
                .add_path("/x/a.yaml~".into()),
        ] {
            pending.note(&event, start);
        }
        assert!(pending.is_awaited(Path::new("/x/a.yaml")));
        assert!(pending.take_files(start + TOGETHER).is_empty());
    }

    #[test]
    fn a_directory_that_is_read_is_not_looked_through_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let start = Instant::now();
        let mut pending = Pending::new(start);
        for kind in [
            AccessKind::Open(AccessMode::Any),
            AccessKind::Close(AccessMode::Read),
        ] {
            let event = Event::new(EventKind::Access(kind)).add_path(directory.path().to_owned());
            pending.note(&event, start);
        }
        assert_eq!(pending.next(), start + LOOK_THROUGH);
        let made =
            Event::new(EventKind::Create(CreateKind::Folder)).add_path(directory.path().to_owned());
        pending.note(&made, start);
        assert_eq!(pending.next(), start + SETTLED);
    }

    #[test]
    fn files_that_came_together_are_read_together() {
        let start = Instant::now();
        let mut pending = Pending::new(start);
        for (at, name) in [(0, "/x/a.yaml"), (1, "/x/b.yaml"), (9, "/x/c.yaml")] {
            let event = Event::new(RENAMED).add_path(name.into());
            pending.note(&event, start + Duration::from_millis(at));
        }
        let first = pending.take_files(pending.next());
        assert_eq!(first, ["/x/a.yaml", "/x/b.yaml"].map(PathBuf::from));
    }
}
