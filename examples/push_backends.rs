//! `lua-sync-client` alone: an NGINX with a configuration of one's own is told its endpoints while it runs.
//!
//! Needs Debian's NGINX with its Lua module (`make packages`).
//!
//! ```text
//! cargo run -p examples --example push_backends
//! ```

#![expect(clippy::print_stdout, reason = "what it finds is printed")]

use std::{
    error::Error,
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command},
    sync::Arc,
    thread,
    time::Duration,
};

use ingress_model::live::{Backend, Endpoint as Peer, Live, UpstreamName};
use lua_sync_client::{Endpoint, LuaSyncClient, Settings, Synchronizer, lua_modules};

struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let _asked = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ended = self.0.wait();
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path();
    let peers = [
        ("first", answering("first")?),
        ("second", answering("second")?),
    ];
    let [http, status] = free_ports()?;
    lua_modules::write_modules(&dir.join("lua"))?;
    fs::write(dir.join("lua.json"), r#"{"checksum": "example"}"#)?;
    fs::write(dir.join("nginx.conf"), configuration(dir, http, status))?;
    let _nginx = Nginx(
        Command::new("nginx")
            .arg("-c")
            .arg(dir.join("nginx.conf"))
            .spawn()?,
    );

    let client = LuaSyncClient::new(
        Endpoint::Tcp((Ipv4Addr::LOCALHOST, status).into()),
        Settings::default(),
    );
    let mut nginx = Synchronizer::new(client);
    for (name, port) in peers {
        let mut web = Backend::new(UpstreamName::new("web"));
        web.endpoints = vec![Peer {
            address: "127.0.0.1".into(),
            port,
        }];
        let mut live = Live::default();
        live.backends.insert(web.name.clone(), Arc::new(web));

        // Tells everything at first, then what changed; the very next request meets the new endpoint.
        let applied = nginx.apply(&live).await?;
        let answer = get(http)?;
        println!(
            "told {} backends in {:?}; the answer is {answer:?}",
            applied.backends_sent, applied.elapsed
        );
        if answer != name {
            return Err(format!("expected {name}").into());
        }
    }
    Ok(())
}

fn configuration(dir: &Path, http: u16, status: u16) -> String {
    let text = r#"
include /etc/nginx/modules-enabled/*.conf;
daemon off;
pid DIR/nginx.pid;
error_log DIR/error.log;
events {}
http {
    access_log off;
    client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
    uninitialized_variable_warn off;
    lua_package_path "DIR/lua/?.lua;;";
    lua_shared_dict configuration_data 5m; lua_shared_dict configuration_locks 64k;
    lua_shared_dict certificate_data 1m; lua_shared_dict certificate_servers 1m; lua_shared_dict ocsp_response_cache 64k;
    lua_shared_dict balancer_ewma 64k; lua_shared_dict balancer_ewma_last_touched_at 64k; lua_shared_dict balancer_ewma_locks 64k;
    init_by_lua_block { require("ingress.config").load("DIR/lua.json") }
    init_worker_by_lua_block { require("ingress.worker").init() }
    rewrite_by_lua_block { require("ingress.router").rewrite() }
    upstream upstream_balancer {
        server 0.0.0.1;
        balancer_by_lua_block { require("ingress.balancer").balance() }
    }
    server {
        listen 127.0.0.1:HTTP;
        location / { set $proxy_upstream_name "web"; proxy_pass http://upstream_balancer; }
    }
    server {
        listen 127.0.0.1:STATUS;
        set $proxy_alternative_upstream_name ""; set $balancer_ewma_score ""; set $location_path "";
        set $namespace ""; set $ingress_name ""; set $service_name ""; set $service_port "";
        client_max_body_size 6m; client_body_buffer_size 6m;
        location /configuration { content_by_lua_block { require("ingress.configuration").call() } }
    }
}
"#;
    text.replace("DIR", &dir.display().to_string())
        .replace("HTTP", &http.to_string())
        .replace("STATUS", &status.to_string())
}

fn answering(name: &'static str) -> std::io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _request = stream.read(&mut [0; 4096]);
            let _sent = write!(stream, "HTTP/1.0 200 OK\r\n\r\n{name}");
        }
    });
    Ok(port)
}

fn get(port: u16) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(stream, "GET / HTTP/1.0\r\nHost: web.test\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer
        .rsplit("\r\n\r\n")
        .next()
        .unwrap_or_default()
        .to_owned())
}

fn free_ports() -> std::io::Result<[u16; 2]> {
    let bind = || TcpListener::bind("127.0.0.1:0");
    let (one, two) = (bind()?, bind()?);
    Ok([one.local_addr()?.port(), two.local_addr()?.port()])
}
