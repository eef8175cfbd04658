//! File systems that are full or cannot be written. They need root.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::geteuid;

/// A file system of its own for a directory, with little room. It is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct SmallDisk(PathBuf);

/// A directory that cannot be written by way of its name. It can again when this is dropped.
#[derive(Debug)]
pub(crate) struct ReadOnly(PathBuf);

impl SmallDisk {
    /// Makes the directory; `size` is that of mount(8)'s tmpfs.
    pub(crate) fn mount(at: &Path, size: &str) -> Self {
        need_root();
        fs::create_dir(at).expect("it is ours");
        let options = format!("size={size},mode=755");
        mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], at);
        Self(at.to_owned())
    }
}

impl ReadOnly {
    /// `None` for who is not root.
    pub(crate) fn mount(at: &Path) -> Option<Self> {
        geteuid().is_root().then(|| {
            let path = at.to_string_lossy();
            mount(&["--bind", &path], at);
            let mounted = Self(at.to_owned());
            // It fails while a file is being written that was opened in between.
            let tries = std::iter::repeat_with(|| try_mount(&["-o", "remount,ro,bind"], at));
            assert!(tries.take(1_000).any(|done| done), "nobody writes for ever");
            mounted
        })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// Fails where the test is run by somebody who may not mount anything.
pub(crate) fn need_root() {
    assert!(
        geteuid().is_root(),
        "this test needs root: it mounts a file system"
    );
}

fn mount(options: &[&str], at: &Path) {
    assert!(try_mount(options, at), "mount(8) works for root");
}

fn try_mount(options: &[&str], at: &Path) -> bool {
    let mount = Command::new("mount").args(options).arg(at).output();
    mount.expect("mount(8) is there").status.success()
}

fn unmount(at: &Path) {
    // NGINX may still be ending: detach it whoever looks at it.
    let _status = Command::new("umount").arg("-l").arg(at).status();
}
