//! A running controller with its own NGINX, directories, ports and back ends.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here fails the test"
)]

pub(crate) mod backend;
pub(crate) mod clock;
pub(crate) mod echo;
pub(crate) mod http;
pub(crate) mod mount;
pub(crate) mod status_port;

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    net::TcpListener,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    process::{self, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::Child;

use self::http::Response;

/// How long anything may take that is waited for, on a machine that has much else to do.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// The ports of a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) http: u16,
    pub(crate) https: u16,
    pub(crate) status: u16,
    default: u16,
    pub(crate) healthz: u16,
}

/// A running controller. Everything ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Site {
    directory: TempDir,
    pub(crate) ports: Ports,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
}

/// Ports that were free a moment ago, all different. They are none of those that the system gives to connections, or to
/// who asks for any port, so that nobody takes one before NGINX does.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    const FIRST: u32 = 10_300;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);

    // Tests run in processes of their own at the same time.
    let start = process::id().wrapping_mul(41);
    let mut held = Vec::new();
    while held.len() < N {
        let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % COUNT).expect("it is below 65,536");
        held.extend(TcpListener::bind(("0.0.0.0", port)));
    }
    std::array::from_fn(|i| held[i].local_addr().expect("it is bound").port())
}

/// A directory that NGINX's workers may look into, whoever they are.
pub(crate) fn open_directory() -> TempDir {
    let directory = tempfile::tempdir().expect("the temporary directory is writable");
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("it is ours");
    directory
}

/// Waits until `look` finds something.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl Site {
    /// Starts a controller that follows a directory of manifests, and waits until it is ready.
    pub(crate) async fn with_manifests(files: &[(&str, &str)]) -> Self {
        Self::with_flags(&[], files).await
    }

    /// The same with further flags.
    pub(crate) async fn with_flags<T: AsRef<str>>(flags: &[&str], files: &[(&str, T)]) -> Self {
        let site = Self::begin(flags, files);
        site.ready().await;
        site
    }

    /// The same without waiting.
    pub(crate) fn begin<T: AsRef<str>>(flags: &[&str], files: &[(&str, T)]) -> Self {
        let directory = open_directory();
        let manifests = directory.path().join("manifests");
        fs::create_dir(&manifests).expect("it is writable");
        for (name, text) in files {
            fs::write(manifests.join(name), text.as_ref()).expect("it is writable");
        }
        let manifests = format!("--manifests={}", manifests.display());
        let flags: Vec<_> = [manifests.as_str()]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        Self::start(directory, &flags)
    }

    /// Starts a controller with these flags besides those for ports and directories.
    pub(crate) fn start(directory: TempDir, flags: &[&str]) -> Self {
        let log = open_log(directory.path());
        Self::start_with_log(directory, flags, log)
    }

    /// The same with further variables in its environment.
    pub(crate) fn start_in(
        directory: TempDir,
        flags: &[&str],
        environment: Vec<(String, String)>,
    ) -> Self {
        let log = open_log(directory.path());
        Self::run(directory, flags, environment, log)
    }

    /// Starts a controller with these flags, which logs to there.
    pub(crate) fn start_with_log(directory: TempDir, flags: &[&str], log: OwnedFd) -> Self {
        Self::run(directory, flags, Vec::new(), log)
    }

    fn run(
        directory: TempDir,
        flags: &[&str],
        environment: Vec<(String, String)>,
        log: OwnedFd,
    ) -> Self {
        let [http, https, status, default, healthz] = free_ports();
        let ports = Ports {
            http,
            https,
            status,
            default,
            healthz,
        };
        let nginx = directory.path().join("nginx");
        let own = [
            format!("--nginx-dir={}", nginx.display()),
            format!("--http-port={http}"),
            format!("--https-port={https}"),
            format!("--status-port={status}"),
            format!("--default-server-port={default}"),
            format!("--healthz-port={healthz}"),
            "--sync-rate-limit=50".to_owned(),
            "--post-shutdown-grace-period=0".to_owned(),
            "-v=2".to_owned(),
        ];
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        let flags: Vec<_> = own.into_iter().chain(flags).collect();
        Self {
            child: run(&flags, &environment, log),
            directory,
            ports,
            flags,
            environment,
        }
    }

    /// Kills the controller, and starts another one in its place.
    pub(crate) async fn replace(&mut self) {
        self.child.kill().await.expect("it is our child");
        let log = open_log(self.directory.path());
        self.child = run(&self.flags, &self.environment, log);
    }

    /// A further controller with the same flags, but for those that are given.
    pub(crate) fn twin(&self, flags: &[&str]) -> Command {
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        let others: Vec<_> = flags.iter().map(|flag| name(flag)).collect();
        let kept = self
            .flags
            .iter()
            .filter(|flag| !others.contains(&name(flag)));
        let mut command = controller();
        command.args(kept).args(flags);
        command
    }

    /// Waits until the health check succeeds.
    pub(crate) async fn ready(&self) {
        self.until("the controller is ready", async || {
            (self.health().await?.status == 200).then_some(())
        })
        .await;
    }

    /// What the health check answers, if it does.
    pub(crate) async fn health(&self) -> Option<Response> {
        http::get(self.ports.healthz, "health", "/healthz").await
    }

    /// [`until`], with the end of the log where it is in vain.
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        struct Tail<'a>(&'a Site);
        impl Drop for Tail<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    let log = self.0.log();
                    let lines: Vec<_> = log.lines().collect();
                    let tail = &lines[lines.len().saturating_sub(40)..];
                    // The test's own output is where it is looked for.
                    #[expect(clippy::print_stderr, reason = "shown with the failure")]
                    {
                        eprintln!("the log ends with:\n{}", tail.join("\n"));
                    }
                }
            }
        }
        let _tail = Tail(self);
        until(what, look).await
    }

    /// A request for a path of a host, over HTTP.
    pub(crate) async fn get(&self, host: &str, path: &str) -> Option<Response> {
        http::get(self.ports.http, host, path).await
    }

    /// Waits until a host answers with that status and text.
    pub(crate) async fn answers(&self, host: &str, path: &str, status: u16, text: &str) {
        let what = format!("http://{host}{path} answers {status} {text:?}");
        self.until(&what, async || {
            let response = self.get(host, path).await?;
            (response.status == status && response.body.contains(text)).then_some(())
        })
        .await;
    }

    /// The directory in which everything is.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a manifest as a careful writer does: aside, then renamed.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let aside = self.directory.path().join("aside");
        fs::write(&aside, text).expect("it is writable");
        fs::rename(aside, self.manifest(name)).expect("it is writable");
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.manifest(name)).expect("it is there");
    }

    fn manifest(&self, name: &str) -> PathBuf {
        self.directory.path().join("manifests").join(name)
    }

    /// A file of NGINX's directory.
    pub(crate) fn nginx_file(&self, name: &str) -> PathBuf {
        self.directory.path().join("nginx").join(name)
    }

    /// NGINX's master process.
    pub(crate) fn nginx(&self) -> u32 {
        let text = fs::read_to_string(self.nginx_file("run/nginx.pid")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// NGINX's workers.
    pub(crate) fn workers(&self) -> BTreeSet<u32> {
        let master = self.nginx();
        let text = fs::read_to_string(format!("/proc/{master}/task/{master}/children"))
            .unwrap_or_default();
        text.split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    }

    /// Sends a signal to the controller.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.child.id().expect("the controller runs"), signal);
    }

    /// Waits for the controller's end.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(SOON, self.child.wait())
            .await
            .expect("it ends soon")
            .expect("it is our child")
    }

    /// All that the controller and NGINX have logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// How many lines of the log hold that text.
    pub(crate) fn logged(&self, text: &str) -> usize {
        self.log()
            .lines()
            .filter(|line| line.contains(text))
            .count()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // NGINX has a process group of its own.
        for pid in self.workers().into_iter().chain([self.nginx()]) {
            if pid > 0 && is_nginx(pid) {
                send(pid, Signal::KILL);
            }
        }
        let _ended_already = self.child.start_kill();
    }
}

fn run(flags: &[String], environment: &[(String, String)], log: OwnedFd) -> Child {
    let mut command = controller();
    command
        .args(flags)
        .envs(environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("it can be shared"))
        .stderr(log);
    tokio::process::Command::from(command)
        .spawn()
        .expect("the controller can be run")
}

/// The log of the controllers of a directory, one after the other.
fn open_log(directory: &Path) -> OwnedFd {
    let mut log = fs::OpenOptions::new();
    let log = log.create(true).append(true).open(directory.join("log"));
    log.expect("it is writable").into()
}

/// The controller as a command, without what the environment of the test says about pods, and minding SIGHUP whether or
/// not the test does (nohup(1)).
pub(crate) fn controller() -> Command {
    let mut command = Command::new("env");
    command
        .arg("--default-signal=HUP")
        .arg(env!("CARGO_BIN_EXE_nginx-ingress-controller"));
    for variable in ["POD_NAME", "POD_NAMESPACE", "RUST_LOG", "KUBECONFIG"] {
        command.env_remove(variable);
    }
    command
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("it is no process group");
    // It may have ended on its own.
    let _sent = kill_process(pid, signal);
}

pub(crate) fn is_nginx(pid: u32) -> bool {
    let title =
        fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
    title.starts_with(b"nginx:")
}
