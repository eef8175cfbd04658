//! An NGINX with this crate's Lua modules, in a directory and on ports of its own.

use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::{self, Response};

const TEMPLATE: &str = include_str!("../../lua/nginx.conf");

/// What differs between tests.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) workers: usize,
    /// Size of the dictionary `configuration_data`, as NGINX writes it.
    pub(crate) configuration_size: &'static str,
    /// Size of the dictionary `certificate_data`.
    pub(crate) certificate_size: &'static str,
    /// Largest body the status port takes.
    pub(crate) body_size: &'static str,
    /// Text of the resolv.conf to use.
    pub(crate) resolv_conf: String,
    /// Whether metrics are sent, to the socket `metrics.sock` in the directory.
    pub(crate) metrics: bool,
    /// Whether OCSP responses are stapled.
    pub(crate) ocsp: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            workers: 1,
            configuration_size: "4m",
            certificate_size: "1m",
            body_size: "4m",
            resolv_conf: String::new(),
            metrics: false,
            ocsp: false,
        }
    }
}

/// A running NGINX; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Nginx {
    directory: TempDir,
    binary: PathBuf,
    master: Child,
    setup: Setup,
    pub(crate) http: u16,
    pub(crate) https: u16,
    pub(crate) status: u16,
}

impl Nginx {
    /// Starts NGINX with one worker and default sizes.
    pub(crate) fn start() -> Self {
        Self::start_with(Setup::default())
    }

    /// Starts NGINX and waits until its status port answers.
    pub(crate) fn start_with(setup: Setup) -> Self {
        let binary = find_binary();
        let directory = tempfile::tempdir().unwrap();
        // Workers may run as another user than this test.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [http, https, status] = free_ports();
        let config = directory.path().join("nginx.conf");
        fs::write(directory.path().join("resolv.conf"), &setup.resolv_conf).unwrap();
        fs::write(
            &config,
            render(directory.path(), &binary, &setup, [http, https, status]),
        )
        .unwrap();
        let settings = lua_settings(directory.path(), &setup, status, "first");
        fs::write(directory.path().join("lua.json"), settings.to_string()).unwrap();
        let master = Command::new(&binary)
            .arg("-p")
            .arg(directory.path())
            .arg("-c")
            .arg(&config)
            .stderr(Stdio::piped())
            .spawn()
            .expect("starting nginx");
        let mut nginx = Self {
            directory,
            binary,
            master,
            setup,
            http,
            https,
            status,
        };
        super::eventually("nginx to answer", || nginx.answers());
        nginx
    }

    /// Whether the status port answers. Panics when NGINX has ended.
    fn answers(&mut self) -> Option<()> {
        if let Some(status) = self.master.try_wait().unwrap() {
            panic!("nginx ended with {status}: {}", self.log());
        }
        http::try_request(self.status, "GET", "/healthz", &[], "")
            .ok()
            .map(drop)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What NGINX has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("error.log")).unwrap_or_default()
    }

    /// Gives a proxied request to the backend `name`.
    pub(crate) fn get(&self, name: &str) -> Response {
        self.get_with(name, &[])
    }

    /// As [`Nginx::get`], with more request headers.
    pub(crate) fn get_with(&self, name: &str, headers: &[(&str, &str)]) -> Response {
        let headers = [&[("X-Backend", name)], headers].concat();
        http::request(self.http, "GET", "/", &headers, "")
    }

    /// A request to the status port.
    pub(crate) fn configure(&self, method: &str, path: &str, body: &str) -> Response {
        http::request(self.status, method, path, &[], body)
    }

    /// Posts the whole list of backends, which must be taken.
    pub(crate) fn post_backends(&self, backends: &[Value]) {
        let body = Value::from(backends).to_string();
        let response = self.configure("POST", "/configuration/backends", &body);
        assert_eq!(response.status, 201, "{response:?}");
    }

    /// Changes some backends, whatever the revision is; it must be taken.
    pub(crate) fn upsert_backends(&self, backends: &[Value]) {
        let patch = json!({"revision": 1, "upsert": backends});
        let response = self.configure("PATCH", "/configuration/backends", &patch.to_string());
        assert_eq!(response.status, 200, "{response:?}");
    }

    /// What `/configuration/revision` says.
    pub(crate) fn revision(&self) -> Value {
        self.configure("GET", "/configuration/revision", "").json()
    }

    /// Loads the configuration anew with another checksum and waits until new workers have it.
    pub(crate) fn reload(&self, checksum: &str) {
        let settings = lua_settings(self.directory(), &self.setup, self.status, checksum);
        fs::write(self.directory().join("lua.json"), settings.to_string()).unwrap();
        let before = self.processes();
        self.signal("reload");
        // For a moment old and new workers take turns.
        super::eventually("new workers only", || {
            let now = self.processes();
            (!now.is_empty() && now.is_disjoint(&before)).then_some(())
        });
        assert_eq!(self.revision()["checksum"], checksum);
    }

    /// The workers, those included that only finish their requests.
    fn processes(&self) -> BTreeSet<String> {
        let master = self.master.id();
        let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children"));
        let children = children.unwrap_or_default();
        children.split_whitespace().map(str::to_owned).collect()
    }

    fn signal(&self, signal: &str) {
        let status = Command::new(&self.binary)
            .arg("-p")
            .arg(self.directory())
            .arg("-c")
            .arg(self.directory().join("nginx.conf"))
            .args(["-s", signal])
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "nginx -s {signal}");
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if matches!(self.master.try_wait(), Ok(None)) {
            self.signal("stop");
            let _ended = self.master.wait();
        }
        if thread::panicking() {
            eprintln!("--- error.log of nginx\n{}", self.log());
        }
    }
}

fn find_binary() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|dir| dir.join("nginx"))
        .find(|candidate| candidate.is_file())
        .expect(
            "these tests need nginx with the Lua module (Debian: nginx and libnginx-mod-http-lua)",
        )
}

/// Ports that were free a moment ago. They are none of those that the system gives to connections, or to who asks for any
/// port, so that nobody takes one before NGINX does.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    const FIRST: u32 = 10_300;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);

    // Tests run in processes of their own at the same time.
    let start = process::id().wrapping_mul(41);
    let mut held = Vec::new();
    while held.len() < N {
        let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % COUNT).unwrap();
        held.extend(TcpListener::bind(("127.0.0.1", port)));
    }
    std::array::from_fn(|i| held[i].local_addr().unwrap().port())
}

/// `load_module` for the modules that are files; where they are compiled in, there is nothing to load.
fn load_modules(binary: &Path) -> String {
    let output = Command::new(binary).arg("-V").output().unwrap();
    let options = String::from_utf8_lossy(&output.stderr).into_owned();
    let directory = options
        .split_whitespace()
        .find_map(|option| option.strip_prefix("--modules-path="))
        .unwrap_or("/usr/lib/nginx/modules");
    ["ndk_http_module.so", "ngx_http_lua_module.so"]
        .iter()
        .map(|file| Path::new(directory).join(file))
        .filter(|file| file.is_file())
        .map(|file| format!("load_module {};", file.display()))
        .collect::<Vec<_>>()
        .join("\n")
}

fn render(directory: &Path, binary: &Path, setup: &Setup, ports: [u16; 3]) -> String {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The directory of a checkout may be closed to the user that NGINX gives workers by default.
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let values = [
        ("@LOAD_MODULES@", load_modules(binary)),
        ("@USER@", if root { "user root;" } else { "" }.to_owned()),
        ("@WORKERS@", setup.workers.to_string()),
        ("@PREFIX@", directory.display().to_string()),
        ("@LUA_DIR@", package.join("lua").display().to_string()),
        (
            "@TEST_DIR@",
            package.join("tests/lua").display().to_string(),
        ),
        ("@CONFIGURATION_SIZE@", setup.configuration_size.to_owned()),
        ("@CERTIFICATE_SIZE@", setup.certificate_size.to_owned()),
        ("@BODY_SIZE@", setup.body_size.to_owned()),
        ("@HTTP@", ports[0].to_string()),
        ("@HTTPS@", ports[1].to_string()),
        ("@STATUS@", ports[2].to_string()),
    ];
    let mut config = TEMPLATE.to_owned();
    for (placeholder, value) in values {
        config = config.replace(placeholder, &value);
    }
    config
}

fn lua_settings(directory: &Path, setup: &Setup, status: u16, checksum: &str) -> Value {
    json!({
        "checksum": checksum,
        "enable_metrics": setup.metrics,
        "enable_ocsp": setup.ocsp,
        "listen_ports": {"status_port": status.to_string()},
        "metrics_socket": directory.join("metrics.sock"),
        "resolv_conf": directory.join("resolv.conf"),
    })
}
