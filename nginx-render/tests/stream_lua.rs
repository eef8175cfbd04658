//! TCP and UDP services of an NGINX whose stream module has Lua but no njs, as OpenResty's does, and of one that has
//! neither. Lua's part of the work is tried in the http block, which has the same functions, since Debian's NGINX has no
//! Lua in the stream block.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

#[path = "support/nginx.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod nginx;
mod support;

use std::{
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ingress_model::{
    Layout,
    layout::StreamServer,
    live::{Endpoint, UpstreamName},
};
use nginx::{exchange, free_ports};
use nginx_render::{
    Capabilities, Rendered, Renderer,
    endpoint_files::{self, StreamPort},
};
use support::{layout, write};

fn services() -> Layout {
    let server = |proxy_protocol_in, proxy_protocol_out| StreamServer {
        upstream: UpstreamName::new("tcp-shop-db-5432"),
        proxy_protocol_in,
        proxy_protocol_out,
    };
    Layout {
        tcp: [(5432, server(false, false)), (5433, server(true, true))].into(),
        udp: [(5353, server(false, false))].into(),
        ..layout([])
    }
}

fn render(capabilities: &str, modules: &[&str], directory: &Path) -> Rendered {
    let text = format!(
        "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=/usr/lib/nginx/modules {capabilities}"
    );
    let modules = modules
        .iter()
        .copied()
        .chain(["ndk_http_module.so", "ngx_http_lua_module.so"]);
    let environment = support::environment(directory);
    let capabilities = Capabilities::parse(&text, modules);
    Renderer::new(capabilities, environment)
        .render(&services())
        .unwrap()
}

/// The stream block.
fn stream(rendered: &Rendered) -> &str {
    let start = rendered.main.find("\nstream {").unwrap();
    &rendered.main[start..]
}

fn assert_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn lua_takes_the_place_of_njs() {
    let with_stream = "--with-stream --with-stream_realip_module";
    let modules = ["ngx_stream_lua_module.so"];
    let rendered = render(with_stream, &modules, Path::new("/etc/nginx"));
    assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
    assert_snapshot("stream_lua", stream(&rendered));
    assert!(
        rendered
            .main
            .contains("load_module \"/usr/lib/nginx/modules/ngx_stream_lua_module.so\";")
    );
}

/// An NGINX of its own; it ends when this is dropped.
struct Plain(Child);

impl Drop for Plain {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        if Command::new("kill").args(["-TERM", &pid]).status().is_ok() {
            self.0.wait().ok();
        }
    }
}

impl Plain {
    fn start(directory: &Path, configuration: &str, port: u16) -> Self {
        let main = directory.join("plain.conf");
        std::fs::write(&main, configuration).unwrap();
        let child = Command::new("nginx")
            .arg("-c")
            .arg(main)
            .stderr(Stdio::null())
            .spawn();
        let nginx = Self(child.unwrap());
        let deadline = Instant::now() + Duration::from_mins(2);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = std::fs::read_to_string(directory.join("error.log"));
            assert!(Instant::now() < deadline, "NGINX does not listen: {log:?}");
            thread::yield_now();
        }
        nginx
    }
}

#[test]
fn lua_chooses_among_the_lines_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let rendered = render(
        "--with-stream",
        &["ngx_stream_lua_module.so"],
        directory.path(),
    );
    write(&rendered, directory.path());
    let [front, one, two, dead] = free_ports();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let configuration = format!(
        "load_module /usr/lib/nginx/modules/ndk_http_module.so; load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
        daemon off; user root; worker_processes 1; pid {pid}; error_log {log};
        events {{ worker_connections 64; }}
        http {{
            access_log off; client_body_temp_path {temporary}; proxy_temp_path {temporary}; fastcgi_temp_path {temporary};
            uwsgi_temp_path {temporary}; scgi_temp_path {temporary};
            upstream endpoint {{ server 0.0.0.1:1; balancer_by_lua_file {script}; }}
            server {{ listen 127.0.0.1:{front}; set $protocol TCP; location / {{ proxy_pass http://endpoint; }} }}
            server {{ listen 127.0.0.1:{one}; return 200 one; }}
            server {{ listen 127.0.0.1:{two}; return 200 two; }}
        }}",
        pid = path("pid"),
        log = path("error.log"),
        temporary = path("temporary"),
        script = path("lua-stream/balancer.lua"),
    );
    let _nginx = Plain::start(directory.path(), &configuration, front);
    let tell = |ports: &[u16]| {
        let endpoint = |port: &u16| Endpoint {
            address: "127.0.0.1".into(),
            port: *port,
        };
        let endpoints: Vec<_> = ports.iter().map(endpoint).collect();
        let text = endpoint_files::endpoints(StreamPort::Tcp(front), &endpoints);
        std::fs::create_dir_all(path("stream")).unwrap();
        std::fs::write(path(&format!("stream/tcp-{front}")), text).unwrap();
    };
    let ask = || {
        exchange(
            front,
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        )
    };
    assert_eq!(ask().status, 500, "there is no file");
    tell(&[]);
    assert_eq!(ask().status, 500, "there is no endpoint");
    tell(&[one]);
    assert_eq!(ask().body, "one");
    tell(&[two, dead]);
    for _ in 0..10 {
        assert_eq!(
            ask().body,
            "two",
            "{:?}",
            std::fs::read_to_string(path("error.log"))
        );
    }
    tell(&[one, two]);
    let answers: Vec<_> = (0..20).map(|_| ask().body).collect();
    assert!(answers.contains(&"one".to_owned()) && answers.contains(&"two".to_owned()));
}

#[test]
fn without_scripts_nginx_chooses_among_the_endpoints_of_its_last_load() {
    let directory = tempfile::tempdir().unwrap();
    let with_stream = "--with-stream=dynamic --with-stream_realip_module";
    let rendered = render(with_stream, &["ngx_stream_module.so"], directory.path());
    assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
    assert!(
        stream(&rendered).contains("proxy_pass $endpoint_group;"),
        "{}",
        stream(&rendered)
    );
    assert!(!rendered.main.contains("stream_js"));
    let takes = || {
        let main = write(&rendered, directory.path());
        let output = Command::new("nginx").arg("-t").arg("-c").arg(main).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
    };
    takes();
    let endpoint = |address: &str| Endpoint {
        address: address.into(),
        port: 5432,
    };
    let two = [endpoint("127.0.0.1"), endpoint("::1")];
    let groups = endpoint_files::groups([(StreamPort::Tcp(5432), &two[..])]);
    std::fs::create_dir_all(directory.path().join("stream")).unwrap();
    std::fs::write(
        directory.path().join("stream").join(endpoint_files::GROUPS),
        groups,
    )
    .unwrap();
    takes();
}
