//! NGINX itself, asked about what nobody has accepted yet (`--admission-nginx-test`).
//!
//! A configuration may have NGINX read, write, connect and load what it names, even while it is only tested. So it is
//! tested where there is nothing to be had: without a network, with a root directory that has programs and the
//! configuration and nothing else, with nothing to write to but memory that is gone afterwards, as nobody, without
//! rights, and with bounds of time and memory. `sandbox.sh` makes such a place with util-linux's programs, in namespaces of
//! its own; who is not root needs a system that lets everybody make user namespaces.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
};

use ingress_model::{Layout, ObjectName};
use nginx_render::{Capabilities, Environment, PassthroughPorts, Ports, Renderer, User};
use rustix::process::geteuid;
use tracing::{info, warn};

use crate::{
    chain::chain,
    guard::guard,
    nginx::{
        files::{self, Access, WriteError},
        test::{Refusal, refusal},
    },
};

/// What is run inside.
const SCRIPT: &str = include_str!("sandbox.sh");

/// Directories that may become the root of what NGINX sees; one of them is everywhere.
const ROOTS: &[&str] = &["/mnt", "/media", "/srv", "/opt"];

/// Where the configuration is below that root.
const DIRECTORY: &str = "/nginx";

/// Where programs, modules and libraries are, all of which NGINX may read.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib"];

/// What a configuration may refer to besides, if it is there.
const RULES: &[&str] = &[
    "/etc/modsecurity",
    "/etc/nginx/modsecurity",
    "/etc/nginx/owasp-modsecurity-crs",
];

/// Seconds that a test may take.
const SECONDS: &str = "10";

/// The script's status where nothing was tested.
const NOT_TESTED: i32 = 125;

/// Ports of the tested configuration, which nobody can reach.
const PORTS: Ports = Ports {
    http: 20_080,
    https: 20_443,
    status: 20_246,
    default_server: 20_181,
    passthrough: None,
};

/// Why NGINX cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No directory can be hidden.
    #[error("cannot find a directory to test configurations in: none of {} is there", ROOTS.join(", "))]
    NoRoot,
    /// The configuration cannot be written.
    #[error("cannot write a configuration to be tested")]
    Write(#[from] WriteError),
    /// The directory for it cannot be made anew.
    #[error("cannot make the directory {} anew", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No program can be run.
    #[error("cannot run timeout(1) and unshare(1)")]
    Run(#[source] io::Error),
    /// The place cannot be made, or NGINX not run in it.
    #[error("cannot test a configuration apart from everything ({status}): {said}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// What was said.
        said: String,
    },
}

/// A place where NGINX tests configurations and can do no harm.
#[derive(Debug)]
pub struct Sandbox {
    binary: PathBuf,
    lua: PathBuf,
    /// Where configurations are written to.
    files: PathBuf,
    /// What is hidden behind the root that NGINX sees.
    root: &'static str,
    /// What NGINX may read of the system besides programs and libraries.
    readable: Vec<PathBuf>,
    capabilities: Capabilities,
    environment: Environment,
    /// One test at a time: the bounds are those of all.
    turn: Mutex<()>,
}

impl Sandbox {
    /// Makes a place for tests of that program, and tries it out. `directory` is NGINX's.
    ///
    /// # Errors
    ///
    /// When NGINX cannot be kept apart here.
    pub fn prepare(
        binary: &Path,
        directory: &Path,
        capabilities: Capabilities,
        environment: Environment,
    ) -> Result<Self, SandboxError> {
        let mut roots = ROOTS.iter().filter(|root| {
            Path::new(root).is_dir() && !directory.starts_with(root) && !binary.starts_with(root)
        });
        let root = roots.next().ok_or(SandboxError::NoRoot)?;
        let below = |path: &str| format!("{DIRECTORY}/{path}");
        let databases = environment.geoip_databases.values().flatten();
        let databases = databases.map(PathBuf::from);
        let rules = RULES.iter().map(PathBuf::from);
        let program = binary.parent().map(Path::to_owned).into_iter();
        let program = program.filter(|path| !SYSTEM.iter().any(|system| path.starts_with(system)));
        let passthrough = environment.ports.passthrough.map(|_| PassthroughPorts {
            https: 20_442,
            relay: 20_247,
        });
        let lua = PathBuf::from(&environment.lua_dir);
        let sandbox = Self {
            binary: binary.to_owned(),
            lua,
            files: directory.join("run/admission"),
            root,
            readable: databases.chain(rules).chain(program).collect(),
            capabilities,
            environment: Environment {
                nginx_dir: DIRECTORY.to_owned(),
                lua_dir: below("lua"),
                pid_path: below("run/nginx.pid"),
                access_log: below("logs/access.log"),
                error_log: below("logs/error.log"),
                usual_error_log: None,
                mime_types: None,
                ports: Ports {
                    passthrough,
                    ..PORTS
                },
                // The only one there is, where we are not root; nobody may not choose.
                user: Some(User {
                    name: "root".to_owned(),
                    group: Some("root".to_owned()),
                }),
                ..environment
            },
            turn: Mutex::default(),
        };
        if let Err(refusal) = sandbox.test(&Layout::default())? {
            let reason = &refusal.reason;
            warn!(
                reason,
                "nginx refuses an empty configuration in the sandbox"
            );
        }
        info!("the webhook asks nginx, in a sandbox");
        Ok(sandbox)
    }

    /// What NGINX says against an Ingress: it refuses the layout with it and takes the one without it. Whatever cannot be
    /// tested is not held against anybody.
    pub(super) fn judge(
        &self,
        with: &Layout,
        without: &Layout,
        name: &ObjectName,
    ) -> Option<String> {
        let tested = self.test(with).and_then(|refused| {
            let refusal = refused.err().filter(is_final);
            let Some(refusal) = refusal else {
                return Ok(None);
            };
            let is_innocent = self.test(without)?.is_err();
            Ok((!is_innocent).then_some(refusal.reason))
        });
        tested.unwrap_or_else(|error| {
            let error = chain(&error);
            warn!(ingress = %name, error, "cannot ask nginx about an Ingress; it is not held against it");
            None
        })
    }

    /// Has NGINX test a layout. One that cannot be rendered is nobody's fault.
    fn test(&self, layout: &Layout) -> Result<Result<(), Refusal>, SandboxError> {
        let mut renderer = Renderer::new(self.capabilities.clone(), self.environment.clone());
        let Ok(Ok(rendered)) = guard("rendering", || renderer.render(layout)) else {
            return Ok(Ok(()));
        };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.clear()?;
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private
            .create(&self.files)
            .map_err(|source| self.failed(source))?;
        for (path, file) in &rendered.files {
            files::write(
                &self.files.join(path.as_str()),
                &file.bytes,
                Access::Private,
            )?;
        }
        let main = self.files.join("nginx.conf");
        files::write(&main, rendered.main.as_bytes(), Access::Private)?;
        let output = self.command().output().map_err(SandboxError::Run)?;
        self.clear()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        match output.status.code() {
            Some(0) => Ok(Ok(())),
            Some(code) if code != NOT_TESTED && said.contains("[emerg]") => Ok(Err(refusal(said))),
            // Signals of the bounds: SIGKILL, SIGXCPU and SIGXFSZ.
            Some(code @ (137 | 152 | 153)) => Ok(Err(Refusal {
                reason: format!("it takes nginx too much time or room (status {code})"),
                place: None,
                output: said.to_owned(),
            })),
            _ => Err(SandboxError::Failed {
                status: output.status,
                said: said.to_owned(),
            }),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", SECONDS, "unshare"]);
        if !geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
            .args([
                "--mount",
                "--net",
                "--ipc",
                "--pid",
                "--fork",
                "--kill-child",
            ])
            .args(["sh", "-c", SCRIPT, "sandbox"])
            .arg(&self.files)
            .arg(self.root)
            .args([&self.lua, &self.binary])
            .args(&self.readable)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Removes what was tested last: there are keys and passwords among it.
    fn clear(&self) -> Result<(), SandboxError> {
        match fs::remove_dir_all(&self.files) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(self.failed(source)),
            _ => Ok(()),
        }
    }

    fn failed(&self, source: io::Error) -> SandboxError {
        SandboxError::Directory {
            path: self.files.clone(),
            source,
        }
    }
}

/// Whether a refusal is about the configuration. Names of hosts cannot be looked up without a network.
fn is_final(refusal: &Refusal) -> bool {
    !refusal.reason.starts_with("host not found")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ingress_model::{Options, Snapshot, merge};
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::nginx::program;

    /// A sandbox in a directory of its own.
    async fn sandbox() -> (TempDir, Sandbox) {
        let binary = program::find(None);
        assert!(
            binary.is_file(),
            "these tests need nginx: see `make packages`"
        );
        let directory = tempfile::tempdir().unwrap();
        let lua = directory.path().join("lua");
        lua_sync_client::lua_modules::write_modules(&lua).unwrap();
        let environment = Environment {
            nginx_dir: directory.path().to_string_lossy().into_owned(),
            lua_dir: lua.to_string_lossy().into_owned(),
            ..Environment::default()
        };
        let capabilities = program::probe(&binary).await.unwrap();
        let sandbox = Sandbox::prepare(&binary, directory.path(), capabilities, environment);
        (directory, sandbox.unwrap())
    }

    /// A layout with an Ingress that has these annotations.
    fn layout(annotations: &Value) -> Layout {
        let backend = json!({"service": {"name": "app", "port": {"number": 80}}});
        let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
        let ingress = json!({
            "metadata": {"namespace": "shop", "name": "cart", "uid": "1", "annotations": annotations},
            "spec": {"rules": [{"host": "a.test", "http": {"paths": paths}}]},
        });
        let settings = json!({"data": {
            "allow-snippet-annotations": "true",
            "annotations-risk-level": "Critical",
        }});
        let map = ObjectName::new("ingress", "settings");
        let mut snapshot = Snapshot::default();
        let name = ObjectName::new("shop", "cart");
        snapshot
            .ingresses
            .insert(name, Arc::new(serde_json::from_value(ingress).unwrap()));
        snapshot.config_maps.insert(
            map.clone(),
            Arc::new(serde_json::from_value(settings).unwrap()),
        );
        let options = Options {
            watch_ingress_without_class: true,
            config_map: Some(map),
            ..Options::default()
        };
        merge(&snapshot, &options, Timestamp::UNIX_EPOCH)
            .model
            .layout
    }

    fn snippet(text: &str) -> Layout {
        layout(&json!({"nginx.ingress.kubernetes.io/server-snippet": text}))
    }

    #[tokio::test]
    async fn what_nginx_refuses_is_told_and_what_it_takes_is_not() {
        let (directory, sandbox) = sandbox().await;
        let name = ObjectName::new("shop", "cart");
        let plain = layout(&json!({}));
        let judge = |layout: &Layout| sandbox.judge(layout, &plain, &name);
        assert_eq!(judge(&plain), None);
        assert_eq!(judge(&snippet("listen 81; listen 192.0.2.1:82;")), None);
        for (text, said) in [
            ("no_such on;", "unknown directive \"no_such\""),
            ("set $a $no_such;", "unknown \"no_such\" variable"),
            ("return 200 $a;", "unknown \"a\" variable"),
            ("listen 0.0.0.0:99999;", "invalid port"),
        ] {
            let fault = judge(&snippet(text));
            let fault = fault.unwrap_or_else(|| panic!("nginx takes {text}"));
            assert!(fault.contains(said), "{fault}");
        }
        // Nobody is blamed for what is wrong without him.
        let broken = snippet("no_such on;");
        assert_eq!(sandbox.judge(&broken, &broken, &name), None);
        let left = directory.path().join("run/admission");
        assert!(!left.exists(), "nothing is left behind");
    }

    #[tokio::test]
    async fn nothing_outside_is_reached() {
        let (directory, sandbox) = sandbox().await;
        let name = ObjectName::new("shop", "cart");
        let plain = layout(&json!({}));
        let victim = directory.path().join("victim");
        let everybodys = Path::new("/dev/shm/admission-victim");
        let of_the_system = Path::new("/usr/admission-victim");
        for path in [&*victim, everybodys, of_the_system] {
            let text = format!("error_log {};", path.display());
            let fault = sandbox.judge(&snippet(&text), &plain, &name);
            let fault = fault.unwrap_or_else(|| panic!("it writes {}", path.display()));
            assert!(fault.contains("open() "), "{fault}");
            assert!(!path.exists());
        }
        // Nor does it read what is there, whoever may.
        let token = directory.path().join("token");
        files::write(&token, b"no_such on;", Access::Public).unwrap();
        for path in [
            &*token,
            Path::new("/etc/shadow"),
            Path::new("/proc/1/environ"),
        ] {
            let text = format!("include {};", path.display());
            let fault = sandbox.judge(&snippet(&text), &plain, &name).unwrap();
            assert!(fault.contains("No such file"), "{fault}");
        }
        // A name that has to be looked up is not held against anybody: there is nobody to ask.
        let text = "location /x { proxy_pass http://host.invalid.test; }";
        assert_eq!(sandbox.judge(&snippet(text), &plain, &name), None);
    }
}
