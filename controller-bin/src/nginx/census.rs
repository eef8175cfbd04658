//! Which NGINX processes there are, as `/proc` tells.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

/// The direct children of a process.
pub(crate) fn children(pid: u32) -> BTreeSet<u32> {
    of_threads(pid).unwrap_or_else(|_| {
        // Kernels without CONFIG_PROC_CHILDREN.
        processes()
            .filter(|process| parent(*process) == Some(pid))
            .collect()
    })
}

/// The children that each thread of a process has.
fn of_threads(pid: u32) -> io::Result<BTreeSet<u32>> {
    let mut children = BTreeSet::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("children"))?;
        children.extend(
            text.split_ascii_whitespace()
                .filter_map(|child| child.parse::<u32>().ok()),
        );
    }
    Ok(children)
}

/// The workers of a master that take requests; those that only finish theirs are left out.
pub(crate) fn workers(master: u32) -> BTreeSet<u32> {
    workers_where(master, false)
}

/// The workers of a master that take no more requests, and only finish theirs.
pub(crate) fn ending_workers(master: u32) -> BTreeSet<u32> {
    workers_where(master, true)
}

fn workers_where(master: u32, are_ending: bool) -> BTreeSet<u32> {
    let mut workers = children(master);
    workers.retain(|pid| {
        let title = title(*pid);
        title.starts_with("nginx: worker process") && title.contains("shutting down") == are_ending
    });
    workers
}

/// The master processes that run with this configuration file. Those of other containers, which may have a file of the
/// same name, are left out.
pub(crate) fn masters(configuration: &Path) -> BTreeSet<u32> {
    let configuration = configuration.to_string_lossy();
    let own = mounts("self");
    processes()
        .filter(|pid| mounts(&pid.to_string()) == own)
        .filter(|pid| {
            let title = title(*pid);
            let mut words = title.split([' ', '\0']);
            title.starts_with("nginx: master process") && words.any(|word| word == configuration)
        })
        .collect()
}

/// The workers that a master which was killed has left, and that take requests although nobody looks after them. Its
/// process ID was that of its group, too.
pub(crate) fn orphans(master: u32) -> BTreeSet<u32> {
    let own = mounts("self");
    processes()
        .filter(|pid| group(*pid) == Some(master) && *pid != master)
        .filter(|pid| mounts(&pid.to_string()) == own && title(*pid).starts_with("nginx: "))
        .collect()
}

/// Whether a process has not ended; one that has and was not looked after by its parent counts as ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// What a process sees of file systems; `None` when that is not for us to know.
fn mounts(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/mnt")).ok()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What a process calls itself.
fn title(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).into_owned()
}

fn state(pid: u32) -> Option<char> {
    stat(pid)?.split_ascii_whitespace().next()?.chars().next()
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn group(pid: u32) -> Option<u32> {
    stat(pid)?.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// The fields of `/proc/PID/stat` after the name, which may hold anything.
fn stat(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')').map(|(_, fields)| fields.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn children_are_found_while_they_live() {
        let own = std::process::id();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(children(own).contains(&child.id()));
        assert_eq!(parent(child.id()), Some(own));
        assert!(is_alive(child.id()));
        assert!(workers(own).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(own).contains(&child.id()));
        assert!(!is_alive(child.id()));
    }

    #[test]
    fn a_process_that_nobody_waits_for_is_not_alive() {
        let mut child = Command::new("true").spawn().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_mins(2);
        while is_alive(child.id()) {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists());
        child.wait().unwrap();
    }
}
