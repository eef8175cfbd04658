//! A real NGINX with this crate's Lua modules, listening on sockets in a directory of its own.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use lua_sync_client::{Endpoint, LuaSyncClient, Settings, lua_modules::write_modules};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UnixStream},
    task::JoinHandle,
    time::{Instant, sleep},
};

/// NGINX; its processes end with the value.
pub(crate) struct Nginx {
    dir: TempDir,
    child: Child,
}

/// A server that answers every request with its name.
pub(crate) struct Peer {
    pub(crate) port: u16,
    task: JoinHandle<()>,
}

impl Nginx {
    /// Starts one whose dictionary of backends has this size.
    pub(crate) async fn start(configuration_data: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().to_str().unwrap();
        write_modules(&dir.path().join("lua")).unwrap();
        let conf = include_str!("nginx.conf")
            .replace("@PREFIX@", prefix)
            .replace("@MODULES@", &modules_path())
            .replace("@CONFIGURATION_DATA@", configuration_data);
        fs::write(dir.path().join("nginx.conf"), conf).unwrap();
        fs::write(dir.path().join("lua.json"), "{}").unwrap();
        let child = spawn(&dir);
        let mut nginx = Self { dir, child };
        nginx.wait_until_ready().await;
        nginx
    }

    /// Kills all its processes and starts it anew, without what it was told.
    pub(crate) async fn restart(&mut self) {
        self.kill();
        for socket in ["http.sock", "status.sock"] {
            fs::remove_file(self.dir.path().join(socket)).unwrap();
        }
        self.child = spawn(&self.dir);
        self.wait_until_ready().await;
    }

    /// Kills all its processes.
    pub(crate) fn kill(&mut self) {
        let group = format!("-{}", self.child.id());
        Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn client(&self) -> LuaSyncClient {
        let endpoint = Endpoint::Unix(self.dir.path().join("status.sock"));
        LuaSyncClient::new(endpoint, Settings::default())
    }

    /// Requests `/` from a backend; gives status and body.
    pub(crate) async fn get(&self, backend: &str) -> (u16, String) {
        let socket = self.dir.path().join("http.sock");
        let mut stream = UnixStream::connect(socket).await.unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nHost: shop.test\r\nX-Backend: {backend}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        (status, body.to_owned())
    }

    async fn wait_until_ready(&mut self) {
        let client = self.client();
        let deadline = Instant::now() + Duration::from_mins(2);
        while let Err(error) = client.revision().await {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && Instant::now() < deadline,
                "nginx does not answer: {error} ({ended:?})\n{}",
                fs::read_to_string(self.dir.path().join("error.log")).unwrap_or_default()
            );
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Peer {
    pub(crate) async fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    // One read has a whole request: it is small and comes from this machine.
                    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                        let answer = format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}",
                            name.len()
                        );
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self { port, task }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn spawn(dir: &TempDir) -> Child {
    let prefix: PathBuf = dir.path().to_owned();
    Command::new("nginx")
        .arg("-p")
        .arg(&prefix)
        .arg("-e")
        .arg(prefix.join("error.log"))
        .arg("-c")
        .arg(prefix.join("nginx.conf"))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start nginx, which has to be in PATH")
}

/// Where NGINX was built to look for its modules.
fn modules_path() -> String {
    let output = Command::new("nginx")
        .arg("-V")
        .output()
        .expect("run nginx, which has to be in PATH");
    let text = String::from_utf8(output.stderr).unwrap();
    text.split_whitespace()
        .find_map(|word| word.strip_prefix("--modules-path="))
        .expect("nginx -V shows --modules-path")
        .to_owned()
}
