//! A wall clock of a controller's own, which can be put forward and back.

use std::{fs, os::unix::fs::FileExt, path::PathBuf, process::Command};

use tempfile::TempDir;

/// The wall clock of whoever is started in its environment, and of what these start.
#[derive(Debug)]
pub(crate) struct Clock {
    directory: TempDir,
}

impl Clock {
    /// One that goes right. It takes a C compiler, as building the controller does.
    pub(crate) fn new() -> Self {
        let directory = super::open_directory();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/site/shifted_clock.c");
        let clock = Self { directory };
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(clock.library())
            .arg(source)
            .status()
            .expect("there is a C compiler");
        assert!(compiled.success());
        fs::write(clock.file(), 0_i64.to_ne_bytes()).expect("it is writable");
        clock
    }

    /// What has a program, and those that it starts, go by this clock.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let variable = |name: &str, path: PathBuf| (name.to_owned(), path.display().to_string());
        vec![
            variable("LD_PRELOAD", self.library()),
            variable("CLOCK_SHIFT", self.file()),
        ]
    }

    /// Puts it forward, against the right time, by so many seconds; back if they are negative.
    pub(crate) fn shift(&self, seconds: i64) {
        // In place: those who go by it have the file in their memory.
        let file = fs::OpenOptions::new().write(true).open(self.file());
        let file = file.expect("it is there");
        file.write_all_at(&seconds.to_ne_bytes(), 0)
            .expect("it is writable");
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("shifted_clock.so")
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("shift")
    }
}
