//! Nothing that fails on the way loses an update: a real controller, a real NGINX and real requests.

mod site;

use std::fs;

use rustix::process::Signal;
use site::{
    Site,
    backend::{Backend, ingress},
    free_ports,
    mount::{ReadOnly, SmallDisk, need_root},
    open_directory, send,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_knows_everything_again() {
    let (site, _one) = Site::with_one("one").await;
    let before = site.workers();
    for pid in &before {
        send(*pid, Signal::KILL);
    }
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
    site.answers("a.test", "/", 200, "one").await;
    site.until("those that were killed are gone", async || {
        site.workers().is_disjoint(&before).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_hangs_is_told_when_it_goes_on() {
    let (site, _one) = Site::with_one("app").await;
    let two = Backend::start("two").await;
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
async fn a_directory_that_cannot_be_written_delays_an_update_only() {
    need_root();
    let (site, _one) = Site::with_one("one").await;
    let two = Backend::start("two").await;
    let read_only = ReadOnly::mount(&site.nginx_file(""));
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.until("a file cannot be written", async || {
        (site.logged("cannot write") > 0).then_some(())
    })
    .await;
    // What needs no file goes on.
    site.write("service.yaml", &two.service("one"));
    site.answers("a.test", "/", 200, "two").await;
    drop(read_only);
    site.answers("b.test", "/", 200, "two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_killed_is_followed_by_one_that_knows_everything() {
    let (mut site, _one) = Site::with_one("one").await;
    let orphan = site.nginx();
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.replace().await;
    // Until then it answers, perhaps with the new host already.
    site.until("the ports are those of the new one", async || {
        (!site::is_nginx(orphan)).then_some(())
    })
    .await;
    site.answers("b.test", "/", 200, "one").await;
    site.answers("a.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_controller_in_the_same_directory_gives_up_and_harms_nobody() {
    let (site, _one) = Site::with_one("one").await;
    let nginx = site.nginx();
    let [http, https, status, default, healthz] = free_ports();
    let ports = [
        format!("--http-port={http}"),
        format!("--https-port={https}"),
        format!("--status-port={status}"),
        format!("--default-server-port={default}"),
        format!("--healthz-port={healthz}"),
    ];
    let ports: Vec<_> = ports.iter().map(String::as_str).collect();
    let output = site.twin(&ports).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("another controller uses the directory"),
        "{said}"
    );
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
    assert_eq!(site.nginx(), nginx);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_during_a_reload_ends_in_good_order() {
    let (mut site, _one) = Site::with_one("one").await;
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
