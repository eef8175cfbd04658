//! Logs that are opened anew, and workers that finish their requests, with a real NGINX.

mod site;

use std::fs;

use rustix::process::Signal;
use site::{
    Site,
    backend::{Backend, ingress, service},
    http,
};
use tokio::{io::AsyncWriteExt, net::TcpListener};

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_opened_anew_on_sigusr1() {
    let directory = site::open_directory();
    let log = directory.path().join("access.log");
    let settings = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings, namespace: default}}\n\
         data: {{access-log-path: '{}'}}\n",
        log.display()
    );
    let backend = Backend::start("one").await;
    let site = Site::with_flags(
        &["--configmap=default/settings"],
        &[
            ("settings.yaml", &settings),
            ("service.yaml", &backend.service("one")),
            ("a.yaml", &ingress("a", "a.test", "one", "")),
        ],
    )
    .await;
    let logged = |path: &str| {
        let text = fs::read_to_string(&log).unwrap_or_default();
        text.contains(path).then_some(())
    };
    site.answers("a.test", "/before", 200, "one").await;
    site.until("the request is logged", async || logged("/before"))
        .await;
    let moved = directory.path().join("access.log.1");
    fs::rename(&log, &moved).unwrap();
    site.signal(Signal::USR1);
    site.until("nginx has opened a new file", async || {
        log.exists().then_some(())
    })
    .await;
    // A worker may write to the old file for a moment.
    site.until("requests are logged there", async || {
        site.get("a.test", "/after").await?;
        logged("/after")
    })
    .await;
    assert!(fs::read_to_string(&moved).unwrap().contains("/before"));
    site.ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_outlives_its_nginx_as_long_as_flags_say() {
    let mut site = Site::with_flags::<&str>(&["--post-shutdown-grace-period=3600"], &[]).await;
    let master = site.nginx();
    site.signal(Signal::TERM);
    site.until("the controller waits", async || {
        (site.logged("as --post-shutdown-grace-period says") == 1).then_some(())
    })
    .await;
    assert!(!site::is_nginx(master), "nginx has ended before");
    site.signal(Signal::TERM);
    assert!(site.ended().await.success(), "{}", site.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_old_configurations_do_not_pile_up() {
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = slow.local_addr().unwrap().port();
    let backend = Backend::start("one").await;
    let site = Site::with_flags(
        &["--max-old-generations=1"],
        &[
            ("slow.yaml", &service("slow", port)),
            ("service.yaml", &backend.service("one")),
            ("a.yaml", &ingress("a", "a.test", "slow", "")),
        ],
    )
    .await;
    let http_port = site.ports.http;
    let request = tokio::spawn(async move { http::get_patiently(http_port, "a.test", "/").await });
    let (mut upstream, _) = slow.accept().await.unwrap();
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
    site.write("c.yaml", &ingress("c", "c.test", "one", ""));
    site.until("the next reload waits", async || {
        let waits = site.logged("workers of nginx's earlier configurations have not ended yet");
        (waits > 1).then_some(())
    })
    .await;
    assert_eq!(
        site.get("c.test", "/").await.map(|answer| answer.status),
        Some(404)
    );
    // Endpoints do not wait.
    let other = Backend::start("two").await;
    site.write("service.yaml", &other.service("one"));
    site.answers("b.test", "/", 200, "two").await;
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
        .await
        .unwrap();
    let answer = request.await.unwrap().unwrap();
    assert!(answer.body.ends_with("late"), "{answer:?}");
    site.answers("c.test", "/", 200, "two").await;
}
