//! Nothing that fails on the way loses an update: a real controller, a real NGINX and real requests.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

mod site;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
use site::{
    Site,
    backend::{Backend, ingress},
    open_directory, send,
};

/// A file system of its own for a directory. It is gone when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, size: &str) -> Self {
        fs::create_dir(at).unwrap();
        let options = format!("size={size},mode=755");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .status()
            .unwrap();
        assert!(mounted.success(), "this test needs root: it mounts a tmpfs");
        Self(at.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // NGINX may still be ending: detach it whoever looks at it.
        let _status = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_knows_everything_again() {
    let one = Backend::start("one").await;
    let site = Site::with_manifests(&[
        ("service.yaml", &one.service("one")),
        ("a.yaml", &ingress("a", "a.test", "one", "")),
    ])
    .await;
    site.answers("a.test", "/", 200, "one").await;
    let before = site.workers();
    for pid in &before {
        send(*pid, Signal::KILL);
    }
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
    site.answers("a.test", "/", 200, "one").await;
    assert!(site.workers().is_disjoint(&before));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_hangs_is_told_when_it_goes_on() {
    let one = Backend::start("one").await;
    let two = Backend::start("two").await;
    let site = Site::with_manifests(&[
        ("service.yaml", &one.service("app")),
        ("a.yaml", &ingress("a", "a.test", "app", "")),
    ])
    .await;
    site.answers("a.test", "/", 200, "one").await;
    let workers = site.workers();
    for pid in &workers {
        send(*pid, Signal::STOP);
    }
    site.write("service.yaml", &two.service("app"));
    site.until("the update has failed", async || {
        (site.logged("cannot tell nginx") > 0).then_some(())
    })
    .await;
    for pid in &workers {
        send(*pid, Signal::CONT);
    }
    site.answers("a.test", "/", 200, "two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_delays_an_update_only() {
    let one = Backend::start("one").await;
    let directory = open_directory();
    let manifests = directory.path().join("manifests");
    let nginx = directory.path().join("nginx");
    fs::create_dir(&manifests).unwrap();
    fs::write(manifests.join("service.yaml"), one.service("one")).unwrap();
    fs::write(manifests.join("a.yaml"), ingress("a", "a.test", "one", "")).unwrap();
    let _disk = SmallDisk::mount(&nginx, "4m");
    let site = Site::start(
        directory,
        &[&format!("--manifests={}", manifests.display())],
    );
    site.ready().await;
    site.answers("a.test", "/", 200, "one").await;

    let filler = nginx.join("filler");
    // It ends with an error once nothing is left, as it should.
    let _full = fs::write(&filler, vec![0; 8 << 20]).unwrap_err();
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.until("a file cannot be written", async || {
        (site.logged("cannot write") > 0).then_some(())
    })
    .await;
    site.answers("a.test", "/", 200, "one").await;
    fs::remove_file(&filler).unwrap();
    site.answers("b.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_during_a_reload_ends_in_good_order() {
    let one = Backend::start("one").await;
    let mut site = Site::with_manifests(&[
        ("service.yaml", &one.service("one")),
        ("a.yaml", &ingress("a", "a.test", "one", "")),
    ])
    .await;
    site.answers("a.test", "/", 200, "one").await;
    let master = site.nginx();
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.until("the new configuration is on the disk", async || {
        let text = fs::read_to_string(site.nginx_file("nginx.conf")).ok()?;
        text.contains("b.test").then_some(())
    })
    .await;
    site.signal(Signal::TERM);
    assert!(site.ended().await.success(), "{}", site.log());
    assert!(!site::is_nginx(master), "nginx has ended as well");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_right_after_the_configmap_is_not_lost() {
    let one = Backend::start("one").await;
    let directory = open_directory();
    let manifests = directory.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    fs::write(manifests.join("service.yaml"), one.service("one")).unwrap();
    let flags = [
        format!("--manifests={}", manifests.display()),
        "--configmap=default/settings".to_owned(),
    ];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let site = Site::start(directory, &flags);
    site.ready().await;
    for round in 0..5 {
        let settings = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: default}}\n\
             data: {{hide-headers: X-Round-{round}}}\n"
        );
        site.write("settings.yaml", &settings);
        let host = format!("round-{round}.test");
        site.write("a.yaml", &ingress("a", &host, "one", ""));
        site.answers(&host, "/", 200, "one").await;
        site.until("the setting is in force", async || {
            let text = fs::read_to_string(site.nginx_file("nginx.conf")).ok()?;
            text.contains(&format!("X-Round-{round}")).then_some(())
        })
        .await;
    }
}
