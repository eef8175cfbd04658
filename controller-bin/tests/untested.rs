//! What a test of the files does not find out, only the attempt to run with them, harms nobody else either: a real
//! controller, a real NGINX and real requests.

mod site;

use std::net::TcpListener;

use site::{
    Site,
    backend::{Backend, ingress},
    free_ports,
};

const FLAGS: [&str; 2] = [
    "--configmap=default/settings",
    "--tcp-services-configmap=default/tcp",
];

fn config_map(name: &str, data: &str) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default}}
data: {data}
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_is_taken_stops_nobody_at_the_start() {
    let one = Backend::start("one").await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let server =
        format!(r#"{{http-snippet: "server {{ listen 127.0.0.1:{port}; return 204; }}"}}"#);
    let files = [
        ("one.yaml", one.service("one")),
        ("app.yaml", ingress("app", "app.test", "one", "")),
        ("config.yaml", config_map("settings", &server)),
    ];
    let site = Site::with_flags(&FLAGS, &files).await;
    site.answers("app.test", "/", 200, "one").await;
    assert!(
        site.logged("its default holds: bind()") > 0,
        "{}",
        site.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_that_becomes_another_one_stops_nobody() {
    let one = Backend::start("one").await;
    let zone = |key: &str| {
        let zone = format!("limit_req_zone {key} zone=zz:1m rate=1r/s;");
        config_map("settings", &format!("{{http-snippet: '{zone}'}}"))
    };
    let files = [
        ("one.yaml", one.service("one")),
        ("app.yaml", ingress("app", "app.test", "one", "")),
        ("config.yaml", zone("$binary_remote_addr")),
    ];
    let site = Site::with_flags(&FLAGS, &files).await;
    site.answers("app.test", "/", 200, "one").await;
    site.write("config.yaml", &zone("$http_x_y"));
    site.write("later.yaml", &ingress("later", "later.test", "one", ""));
    site.answers("later.test", "/", 200, "one").await;
    assert!(
        site.logged("its default holds") > 0 && site.logged("key=\"http-snippet\"") > 0,
        "{}",
        site.log()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_of_a_service_that_is_taken_stops_nobody_and_is_used_once_free() {
    let one = Backend::start("one").await;
    let [port] = free_ports();
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let services = format!(r#"{{"{port}": "default/one:80"}}"#);
    let files = [
        ("one.yaml", one.service("one")),
        ("app.yaml", ingress("app", "app.test", "one", "")),
        ("tcp.yaml", config_map("tcp", &services)),
    ];
    let site = Site::with_flags(&FLAGS, &files).await;
    site.answers("app.test", "/", 200, "one").await;
    assert!(
        site.logged("another program listens at this port") > 0,
        "{}",
        site.log()
    );
    drop(taken);
    // Any change has it looked at again.
    site.write("later.yaml", &ingress("later", "later.test", "one", ""));
    site.answers("later.test", "/", 200, "one").await;
    site.until("the port is served", async || {
        std::net::TcpStream::connect(("127.0.0.1", port)).ok()
    })
    .await;
}
