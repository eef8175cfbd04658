//! A real NGINX, supervised. Where none is installed these tests have nothing to look at and pass.

use std::{
    collections::BTreeSet,
    fs,
    net::TcpListener,
    path::PathBuf,
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use lua_sync_client::{Endpoint, LuaSyncClient, Settings};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{
    census,
    process::{Process, State},
    program,
    reload::{self, ReloadError},
    test::{TestError, test},
};

const SOON: Duration = Duration::from_mins(2);

/// A directory with a configuration, and the process that runs with it.
struct Site {
    directory: TempDir,
    port: u16,
    process: Process,
}

/// A port that was free a moment ago. It is none of those that the system gives to connections, or to who asks for any
/// port, so that nobody takes it before NGINX does.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Tests may run in processes of their own at the same time.
    let start = u16::try_from(std::process::id() % 2_000).unwrap();
    loop {
        let number = start * 7 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 30_300 + number % 2_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Site {
    fn new(checksum: &str) -> Self {
        let binary = program::find(None);
        assert!(
            binary.is_file(),
            "these tests need nginx: see `make packages`"
        );
        let directory = tempfile::tempdir().unwrap();
        let process = Process::new(&binary, &directory.path().join("nginx.conf"));
        let site = Self {
            directory,
            port: free_port(),
            process,
        };
        site.write(&site.text(checksum));
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, text: &str) {
        fs::write(self.path("nginx.conf"), text).unwrap();
    }

    fn text(&self, checksum: &str) -> String {
        let (here, port) = (self.directory.path().display(), self.port);
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|module| format!("{module}_temp_path {here}/{module};"))
            .join("\n");
        let answer = format!(
            r#"{{"backends":0,"servers":0,"instance":"i","pid":1,"checksum":"{checksum}"}}"#
        );
        format!(
            "daemon off; worker_processes 2; pid {here}/nginx.pid; error_log stderr notice;
            worker_shutdown_timeout 60s;
            events {{}}
            http {{
                access_log off;
                {temporary}
                server {{
                    listen 127.0.0.1:{port};
                    location = /configuration/revision {{ return 200 '{answer}'; }}
                    location = /slow {{ limit_rate 10; alias {here}/body; }}
                    location / {{ return 200 here; }}
                }}
            }}"
        )
    }

    fn client(&self) -> LuaSyncClient {
        LuaSyncClient::new(
            Endpoint::Tcp(([127, 0, 0, 1], self.port).into()),
            Settings::default(),
        )
    }

    async fn start(&self, checksum: &str) {
        reload::start(&self.process, &self.client(), checksum, SOON)
            .await
            .unwrap();
    }

    async fn running(&self, at_least: u64) -> (u32, u64) {
        let mut state = self.process.state();
        let running =
            |state: &State| matches!(state, State::Running { start, .. } if *start >= at_least);
        let state = *timeout(SOON, state.wait_for(running))
            .await
            .unwrap()
            .unwrap();
        match state {
            State::Running { pid, start } => (pid, start),
            State::Stopped | State::Restarting => unreachable!("waited for a running one"),
        }
    }
}

/// The workers of a master, once all have begun.
async fn workers(master: u32) -> BTreeSet<u32> {
    let begun = async {
        loop {
            let workers = census::workers(master);
            if workers.len() == 2 {
                return workers;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, begun).await.unwrap()
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_is_over_when_new_workers_answer() {
    let site = Site::new("one");
    site.start("one").await;
    let (pid, _) = site.running(1).await;
    let old = workers(pid).await;
    site.write(&site.text("two"));
    reload::reload(&site.process, &site.client(), "two", SOON)
        .await
        .unwrap();
    assert_eq!(site.running(1).await, (pid, 1));
    assert!(census::workers(pid).difference(&old).next().is_some());
    site.process.quit(SOON).await;
    assert!(!census::is_alive(pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_that_nginx_gives_up_is_known_at_once() {
    let site = Site::new("one");
    site.start("one").await;
    site.write("daemon off; nonsense;");
    let error = reload::reload(&site.process, &site.client(), "two", SOON)
        .await
        .unwrap_err();
    let ReloadError::Refused { said } = &error else {
        panic!("{error}")
    };
    assert!(said.contains("unknown directive \"nonsense\""), "{said}");
    assert_eq!(site.client().revision().await.unwrap().checksum, "one");
    site.process.quit(SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_with_another_configuration_confirm_nothing() {
    let site = Site::new("one");
    site.start("one").await;
    let within = Duration::from_millis(300);
    let error = reload::reload(&site.process, &site.client(), "two", within)
        .await
        .unwrap_err();
    assert!(matches!(error, ReloadError::Unconfirmed { .. }), "{error}");
    site.process.quit(SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_is_killed_comes_back() {
    let site = Site::new("one");
    site.start("one").await;
    for start in [2, 3] {
        let (pid, _) = site.running(start - 1).await;
        let workers = workers(pid).await;
        send(pid, Signal::KILL);
        let (now, _) = site.running(start).await;
        assert_ne!(now, pid);
        // Its orphans let go of the port, or it could not serve.
        let served = async {
            while site.client().revision().await.is_err() || census::workers(now).is_empty() {
                tokio::task::yield_now().await;
            }
            while workers.iter().any(|pid| census::is_alive(*pid)) {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, served).await.unwrap();
    }
    site.process.quit(SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_finished_before_the_end_unless_time_is_up() {
    let site = Site::new("one");
    fs::write(site.path("body"), "x".repeat(1_000)).unwrap();
    site.start("one").await;
    let mut slow = TcpStream::connect(("127.0.0.1", site.port)).await.unwrap();
    slow.write_all(b"GET /slow HTTP/1.0\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    slow.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");

    let (pid, _) = site.running(1).await;
    let refused = async {
        while TcpStream::connect(("127.0.0.1", site.port)).await.is_ok() {
            tokio::task::yield_now().await;
        }
        census::is_alive(pid)
    };
    let alive = tokio::select! {
        () = site.process.quit(SOON) => panic!("the request is not finished"),
        alive = timeout(SOON, refused) => alive.unwrap(),
    };
    assert!(alive, "no new connections, but the request goes on");
    site.process.quit(Duration::from_millis(50)).await;
    assert!(
        !census::is_alive(pid),
        "the request takes longer than it may"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nginx_that_an_earlier_controller_left_is_ended() {
    let site = Site::new("one");
    let mut left = tokio::process::Command::new(site.process.binary())
        .arg("-c")
        .arg(site.path("nginx.conf"))
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let answers = async {
        while site.client().revision().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, answers).await.unwrap();
    let ((), ended) = tokio::join!(site.process.end_leftovers(), left.wait());
    assert!(ended.unwrap().success());
    site.start("one").await;
    assert_eq!(site.running(1).await.1, 1);
    site.process.quit(SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_whose_master_and_controller_were_killed_are_ended() {
    let site = Site::new("one");
    let mut left = tokio::process::Command::new(site.process.binary())
        .arg("-c")
        .arg(site.path("nginx.conf"))
        .stderr(std::process::Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let answers = async {
        while site.client().revision().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, answers).await.unwrap();
    let master = left.id().unwrap();
    let workers = workers(master).await;
    fs::create_dir_all(site.path("run")).unwrap();
    fs::write(site.path("run/nginx.pid"), format!("{master}\n")).unwrap();
    left.kill().await.unwrap();
    assert!(workers.iter().any(|pid| census::is_alive(*pid)));
    site.process.end_leftovers().await;
    assert!(!workers.iter().any(|pid| census::is_alive(*pid)));
    site.start("one").await;
    site.process.quit(SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_names_what_is_wrong_and_where() {
    let site = Site::new("one");
    assert!(
        test(site.process.binary(), &site.path("nginx.conf"))
            .await
            .is_ok()
    );
    site.write("daemon off;\nevents {}\nhttp { server { listen 127.0.0.1:1; location ~ ( {} } }\n");
    let error = test(site.process.binary(), &site.path("nginx.conf"))
        .await
        .unwrap_err();
    let TestError::Refused(refusal) = &error else {
        panic!("{error}")
    };
    assert_eq!(
        refusal.place,
        Some((site.path("nginx.conf"), 3)),
        "{refusal:?}"
    );
    assert!(refusal.reason.contains("missing"), "{refusal:?}");
}
