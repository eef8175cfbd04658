//! TCP and UDP services, with a real NGINX and endpoints of which some are dead.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod site;

use std::{
    fmt::Write,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use site::{
    Site,
    backend::{Backend, ingress},
    free_ports, http, open_directory,
};
use tokio::{net::UdpSocket, time::timeout};

/// A Service of that name with endpoints at these addresses, all at one port.
fn service(name: &str, protocol: &str, port: u16, addresses: &[&str]) -> String {
    let mut endpoints = String::new();
    for address in addresses {
        write!(endpoints, "{{addresses: [{address}]}},").unwrap();
    }
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec: {{ports: [{{name: main, port: 80, targetPort: {port}, protocol: {protocol}}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, namespace: default, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: main, port: {port}, protocol: {protocol}}}]
endpoints: [{endpoints}]
"
    )
}

fn config_map(name: &str, data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{{data}}}\n"
    )
}

/// Whether each of many connections is answered with that text.
async fn always_answers(port: u16, text: &str) -> bool {
    for _ in 0..20 {
        let response = http::get(port, "any.test", "/").await;
        if !response.is_some_and(|response| response.body.contains(text)) {
            return false;
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_that_cannot_be_reached_are_passed_over_and_others_come_without_a_reload() {
    let (one, two) = (Backend::start("one").await, Backend::start("two").await);
    let [port] = free_ports();
    // Nobody listens at the second address of either.
    let half_dead = |backend: &Backend| {
        service(
            "app",
            "TCP",
            backend.address().port(),
            &["127.0.0.1", "127.0.0.9"],
        )
    };
    let site = Site::with_flags(
        &["--tcp-services-configmap=default/tcp"],
        &[
            (
                "tcp.yaml",
                &config_map("tcp", &format!("'{port}': 'default/app:80'")),
            ),
            ("service.yaml", &half_dead(&one)),
        ],
    )
    .await;
    let answers = async |text: &str| {
        site.until(
            &format!("each connection is answered by {text}"),
            async || always_answers(port, text).await.then_some(()),
        )
        .await;
    };
    answers("one /").await;

    // Other endpoints take over at once.
    let workers = site.workers();
    site.write(
        "service.yaml",
        &service("app", "TCP", two.address().port(), &["127.0.0.1"]),
    );
    answers("two /").await;
    assert_eq!(site.workers(), workers);
    assert_eq!(site.logged(" loaded "), 1, "{}", site.log());

    // From the next load on, those are passed over as well that cannot be reached.
    site.write("service.yaml", &half_dead(&two));
    site.write("ingress.yaml", &ingress("shop", "shop.test", "app", ""));
    answers("two /").await;
    site.until("what the Ingress asks for is loaded", async || {
        (site.logged(" loaded ") == 2).then_some(())
    })
    .await;
    // Workers of before may still take a connection.
    answers("two /").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_are_answered() {
    let echo = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let target = echo.local_addr().unwrap().port();
    let _serving = tokio::spawn(async move {
        let mut bytes = [0; 64];
        while let Ok((length, client)) = echo.recv_from(&mut bytes).await {
            echo.send_to(&bytes[..length], client).await.unwrap();
        }
    });
    let [port] = free_ports();
    let site = Site::with_flags(
        &["--udp-services-configmap=default/udp"],
        &[
            (
                "udp.yaml",
                &config_map("udp", &format!("'{port}': 'default/echo:main'")),
            ),
            (
                "service.yaml",
                &service("echo", "UDP", target, &["127.0.0.1"]),
            ),
        ],
    )
    .await;
    site.until("a datagram comes back", async || {
        let socket = UdpSocket::bind("127.0.0.1:0").await.ok()?;
        socket.connect(("127.0.0.1", port)).await.ok()?;
        socket.send(b"knock").await.ok()?;
        let mut bytes = [0; 64];
        let length = timeout(Duration::from_secs(1), socket.recv(&mut bytes))
            .await
            .ok()?
            .ok()?;
        (&bytes[..length] == b"knock").then_some(())
    })
    .await;
}

/// A program that is NGINX, but without the files of its njs modules.
fn nginx_without_scripts(directory: &Path) -> PathBuf {
    let said = Command::new("nginx").arg("-V").output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let (_, rest) = said
        .split_once("--modules-path=")
        .expect("nginx says where its modules are");
    let path = rest.split_whitespace().next().unwrap();
    let modules = directory.join("modules");
    fs::create_dir(&modules).unwrap();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if !name.to_str().unwrap().contains("_js_") {
            symlink(entry.path(), modules.join(name)).unwrap();
        }
    }
    let said = said.replace(path, modules.to_str().unwrap());
    fs::write(directory.join("said"), said).unwrap();
    let program = directory.join("nginx");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = -V ]; then cat {}/said >&2; exit; fi\nexec nginx \"$@\"\n",
        directory.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_without_scripts_loads_endpoints() {
    let (one, two) = (Backend::start("one").await, Backend::start("two").await);
    let [port] = free_ports();
    let programs = open_directory();
    let program = format!(
        "--nginx-binary={}",
        nginx_without_scripts(programs.path()).display()
    );
    let tcp = config_map("tcp", &format!("'{port}': 'default/app:80'"));
    let at = |backend: &Backend| {
        service(
            "app",
            "TCP",
            backend.address().port(),
            &["127.0.0.1", "127.0.0.9"],
        )
    };
    let site = Site::with_flags(
        &[&program, "--tcp-services-configmap=default/tcp"],
        &[("tcp.yaml", &tcp), ("service.yaml", &at(&one))],
    )
    .await;
    for (backend, name) in [(&one, "one /"), (&two, "two /")] {
        site.write("service.yaml", &at(backend));
        site.until(
            &format!("each connection is answered by {name}"),
            async || always_answers(port, name).await.then_some(()),
        )
        .await;
    }
    // New workers answer a moment before that is told.
    site.until("the second load is told", async || {
        (site.logged(" loaded ") > 1).then_some(())
    })
    .await;
    assert_eq!(site.logged(" loaded "), 2, "{}", site.log());
}
