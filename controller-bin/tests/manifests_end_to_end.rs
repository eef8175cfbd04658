//! The controller as users run it on a directory of manifests, with a real NGINX and real requests.

mod site;

use std::fs;

use rcgen::CertifiedKey;
use rustix::process::Signal;
use rustls::pki_types::CertificateDer;
use site::{
    Site,
    backend::{Backend, annotated, ingress, service},
    controller, http, is_nginx, open_directory, send,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_is_served_changed_and_taken_away() {
    let one = Backend::start("one").await;
    let site = Site::with_manifests(&[
        ("service.yaml", &one.service("one")),
        ("ingress.yaml", &ingress("shop", "shop.test", "one", "")),
    ])
    .await;
    site.answers("shop.test", "/cart", 200, "one /cart").await;
    site.answers("other.test", "/", 404, "").await;

    site.write("ingress.yaml", &ingress("shop", "market.test", "one", ""));
    site.answers("market.test", "/", 200, "one /").await;
    site.answers("shop.test", "/", 404, "").await;

    site.remove("ingress.yaml");
    site.answers("market.test", "/", 404, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_move_without_a_reload() {
    let (one, two) = (Backend::start("one").await, Backend::start("two").await);
    let site = Site::with_manifests(&[
        ("service.yaml", &one.service("app")),
        ("ingress.yaml", &ingress("app", "app.test", "app", "")),
    ])
    .await;
    site.answers("app.test", "/", 200, "one").await;
    let (master, workers) = (site.nginx(), site.workers());
    for round in 0..4 {
        let (backend, name) = if round % 2 == 0 {
            (&two, "two")
        } else {
            (&one, "one")
        };
        site.write("service.yaml", &backend.service("app"));
        site.answers("app.test", "/", 200, name).await;
        // Told once, it is told to all workers.
        for _ in 0..20 {
            assert!(
                site.get("app.test", "/")
                    .await
                    .unwrap()
                    .body
                    .starts_with(name)
            );
        }
    }
    assert_eq!((site.nginx(), site.workers()), (master, workers));
    assert_eq!(site.logged(" loaded "), 1, "{}", site.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_shows_its_own_certificate() {
    let one = Backend::start("one").await;
    let secret = |name: &str, pair: &CertifiedKey<rcgen::KeyPair>| {
        let indented = |pem: String| pem.replace('\n', "\n    ");
        format!(
            "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {{name: {name}}}\nstringData:\n  \
             tls.crt: |\n    {}\n  tls.key: |\n    {}\n",
            indented(pair.cert.pem()),
            indented(pair.signing_key.serialize_pem()),
        )
    };
    let pair = |host: &str| rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    let der = |pair: &CertifiedKey<rcgen::KeyPair>| CertificateDer::from(pair.cert.der().to_vec());
    let (a, b) = (pair("a.test"), pair("b.test"));
    let tls =
        |host: &str, secret: &str| format!("tls: [{{hosts: [{host}], secretName: {secret}}}]");
    let site = Site::with_manifests(&[
        ("service.yaml", &one.service("one")),
        (
            "a.yaml",
            &format!(
                "{}---\n{}",
                secret("a", &a),
                ingress("a", "a.test", "one", &tls("a.test", "a"))
            ),
        ),
        (
            "b.yaml",
            &format!(
                "{}---\n{}",
                secret("b", &b),
                ingress("b", "b.test", "one", &tls("b.test", "b"))
            ),
        ),
    ])
    .await;
    for (host, trusted) in [("a.test", der(&a)), ("b.test", der(&b))] {
        let what = format!("https://{host} shows its certificate");
        let response = site
            .until(&what, async || {
                http::get_tls(site.ports.https, host, "/x", &trusted).await
            })
            .await;
        assert_eq!((response.status, response.body.as_str()), (200, "one /x"));
    }
    assert!(
        http::get_tls(site.ports.https, "a.test", "/", &der(&b))
            .await
            .is_none()
    );
    let workers = site.workers();
    let renewed = pair("a.test");
    site.write(
        "a.yaml",
        &format!(
            "{}---\n{}",
            secret("a", &renewed),
            ingress("a", "a.test", "one", &tls("a.test", "a"))
        ),
    );
    site.until("the renewed certificate is shown", async || {
        http::get_tls(site.ports.https, "a.test", "/", &der(&renewed)).await
    })
    .await;
    assert_eq!(site.workers(), workers, "a certificate needs no reload");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_changes_nothing_and_stops_nobody() {
    let (site, _one) = Site::with_one("one").await;
    site.write(
        "a.yaml",
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: [\n",
    );
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
    site.answers("a.test", "/", 200, "one").await;
    let place = format!("a.yaml:3:{}", "metadata: {name: [".len());
    assert_eq!(site.logged(&place), 1, "{}", site.log());
    site.write("a.yaml", &ingress("a", "mended.test", "one", ""));
    site.answers("mended.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_that_nginx_refuses_is_kept_apart() {
    let one = Backend::start("one").await;
    let site = Site::with_manifests(&[
        ("service.yaml", &one.service("one")),
        ("good.yaml", &ingress("good", "good.test", "one", "")),
    ])
    .await;
    site.answers("good.test", "/", 200, "one").await;
    let regex = r#"{nginx.ingress.kubernetes.io/use-regex: "true"}"#;
    site.write(
        "bad.yaml",
        &annotated("bad", "bad.test", "one", regex, "/((a|b)?news/?$", ""),
    );
    site.write("later.yaml", &ingress("later", "later.test", "one", ""));
    site.answers("later.test", "/", 200, "one").await;
    site.answers("good.test", "/", 200, "one").await;
    assert!(
        !site
            .get("bad.test", "/")
            .await
            .unwrap()
            .body
            .contains("one")
    );
    assert!(site.logged("default/bad") > 0, "{}", site.log());
    site.write(
        "bad.yaml",
        &annotated("bad", "bad.test", "one", regex, "/(a|b)news", ""),
    );
    site.answers("bad.test", "/anews", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_is_found_that_nginx_refuses_without_naming_it() {
    let one = Backend::start("one").await;
    let site = Site::with_manifests(&[
        ("service.yaml", &one.service("one")),
        ("good.yaml", &ingress("good", "good.test", "one", "")),
    ])
    .await;
    site.answers("good.test", "/", 200, "one").await;
    let variable = r#"{nginx.ingress.kubernetes.io/upstream-vhost: "$no_such_variable"}"#;
    site.write(
        "bad.yaml",
        &annotated("bad", "bad.test", "one", variable, "/", ""),
    );
    site.write("later.yaml", &ingress("later", "later.test", "one", ""));
    site.answers("later.test", "/", 200, "one").await;
    site.answers("bad.test", "/", 503, "").await;
    site.write("later.yaml", &ingress("later", "newer.test", "one", ""));
    site.answers("newer.test", "/", 200, "one").await;
    site.answers("bad.test", "/", 503, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_is_killed_comes_back_with_everything() {
    let (site, _one) = Site::with_one("one").await;
    let master = site.nginx();
    send(master, Signal::KILL);
    site.until("another nginx runs", async || {
        (site.nginx() != master && site.nginx() > 0).then_some(())
    })
    .await;
    site.answers("a.test", "/", 200, "one").await;
    site.ready().await;
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_being_answered_is_finished_before_the_end() {
    // A back end that answers when it is told to.
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = slow.local_addr().unwrap().port();
    let mut site = Site::with_manifests(&[
        ("service.yaml", &service("slow", port)),
        ("a.yaml", &ingress("a", "a.test", "slow", "")),
    ])
    .await;
    let http_port = site.ports.http;
    let request = tokio::spawn(async move {
        let mut stream = TcpStream::connect(("127.0.0.1", http_port)).await.unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    let (mut upstream, _) = tokio::time::timeout(site::SOON, slow.accept())
        .await
        .unwrap()
        .unwrap();
    site.signal(Signal::TERM);
    site.until("nginx takes no more connections", async || {
        TcpStream::connect(("127.0.0.1", http_port))
            .await
            .is_err()
            .then_some(())
    })
    .await;
    assert!(!request.is_finished());
    upstream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")
        .await
        .unwrap();
    assert!(request.await.unwrap().ends_with("late"));
    assert!(site.ended().await.success());
    assert!(!is_nginx(site.nginx()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_hurries_the_end() {
    let slow = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = slow.local_addr().unwrap().port();
    let mut site = Site::with_manifests(&[
        ("service.yaml", &service("slow", port)),
        ("a.yaml", &ingress("a", "a.test", "slow", "")),
    ])
    .await;
    let http_port = site.ports.http;
    let request = tokio::spawn(async move { http::get_patiently(http_port, "a.test", "/").await });
    let _upstream = tokio::time::timeout(site::SOON, slow.accept())
        .await
        .unwrap()
        .unwrap();
    site.signal(Signal::TERM);
    site.until("the health check fails", async || {
        site.health()
            .await
            .filter(|response| response.status == 500)
    })
    .await;
    site.until("nginx takes no more connections", async || {
        TcpStream::connect(("127.0.0.1", http_port))
            .await
            .is_err()
            .then_some(())
    })
    .await;
    site.signal(Signal::INT);
    assert!(site.ended().await.success());
    assert!(request.await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_is_closed_ends_the_controller_along_with_nginx() {
    let mut site = Site::with_manifests(&[]).await;
    let nginx = site.nginx();
    site.signal(Signal::HUP);
    assert!(site.ended().await.success(), "{}", site.log());
    assert!(!is_nginx(nginx));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_goes_on_when_nobody_reads_its_log() {
    let directory = open_directory();
    let manifests = directory.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let flag = format!("--manifests={}", manifests.display());
    let site = Site::start_with_log(directory, &[&flag], writer.into());
    site.ready().await;
    site.write("ingress.yaml", &ingress("shop", "shop.test", "none", ""));
    site.answers("shop.test", "/", 503, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_fails_during_the_grace_period_while_requests_are_served() {
    let one = Backend::start("one").await;
    let files = [
        ("service.yaml", one.service("one")),
        ("a.yaml", ingress("a", "a.test", "one", "")),
    ];
    let mut site = Site::with_flags(&["--shutdown-grace-period=3600"], &files).await;
    site.signal(Signal::TERM);
    let response = site
        .until("the health check fails", async || {
            site.health()
                .await
                .filter(|response| response.status == 500)
        })
        .await;
    assert!(response.body.contains("shutting down"), "{response:?}");
    site.answers("a.test", "/", 200, "one").await;
    site.write("b.yaml", &ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
    site.signal(Signal::TERM);
    assert!(site.ended().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_ingresses_makes_few_reloads() {
    let one = Backend::start("one").await;
    let site = Site::with_manifests(&[("service.yaml", &one.service("one"))]).await;
    let before = site.logged(" loaded ");
    // However long this test takes to write them, they come at once.
    site.signal(Signal::STOP);
    for number in 0..60 {
        site.write(
            &format!("{number}.yaml"),
            &ingress(&format!("i{number}"), &format!("h{number}.test"), "one", ""),
        );
    }
    site.signal(Signal::CONT);
    site.answers("h59.test", "/", 200, "one").await;
    site.answers("h0.test", "/", 200, "one").await;
    let reloads = site
        .until("the last reload is told", async || {
            Some(site.logged(" loaded ") - before).filter(|reloads| *reloads > 0)
        })
        .await;
    assert!((1..=12).contains(&reloads), "{reloads} reloads");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_no_worker_can_run_with_are_taken_back() {
    let one = Backend::start("one").await;
    let config = |snippet: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: main, namespace: sys}}\n\
             data: {{main-snippet: \"{snippet}\"}}\n"
        )
    };
    let files = [
        ("config.yaml", config("")),
        ("service.yaml", one.service("one")),
        ("ingress.yaml", ingress("one", "one.test", "one", "")),
    ];
    let site = Site::begin(&["--configmap=sys/main"], &files);
    site.answers("one.test", "/", 200, "one").await;
    // NGINX does not look at this when it tests files; workers do, and end.
    site.write("config.yaml", &config("working_directory /none/such;"));
    site.until("the fault is told", async || {
        (site.logged("last good configuration again") > 0).then_some(())
    })
    .await;
    assert_eq!(site.logged("going back to the last good one"), 1);
    site.answers("one.test", "/", 200, "one").await;
    site.write("config.yaml", &config("working_directory /tmp;"));
    site.until("the mended files are loaded", async || {
        (site.logged(" loaded ") > 1).then_some(())
    })
    .await;
    site.answers("one.test", "/", 200, "one").await;
}

#[test]
fn somebody_elses_nginx_conf_is_not_overwritten() {
    let directory = open_directory();
    let conf = directory.path().join("nginx.conf");
    fs::write(&conf, "user www-data;\n").unwrap();
    let output = controller()
        .arg(format!("--nginx-dir={}", directory.path().display()))
        .arg(format!("--manifests={}", directory.path().display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("was not written by this controller") && said.contains("--nginx-dir"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&conf).unwrap(), "user www-data;\n");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let directory = open_directory();
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = controller()
        .arg(format!(
            "--nginx-dir={}",
            directory.path().join("nginx").display()
        ))
        .arg(format!("--manifests={}", directory.path().display()))
        .arg(format!("--http-port={port}"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains(&format!("port {port} of flag --http-port is in use")),
        "{said}"
    );
}

#[test]
fn the_version_is_told() {
    let output = controller().arg("--version").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    assert!(
        said.starts_with(concat!(
            "nginx-ingress-controller ",
            env!("CARGO_PKG_VERSION")
        )),
        "{said}"
    );
}
