//! What the controller knows about the place where NGINX runs.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use ingress_model::value::Size;

/// Where NGINX runs: directories, ports, and what the machine gives. Paths are absolute.
///
/// The controller has to make `<nginx_dir>/run`, below which NGINX keeps its temporary files, and the directories of the logs
/// before NGINX starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The directory that [`Rendered::files`](crate::Rendered::files) are relative to.
    pub nginx_dir: String,
    /// The directory in which Lua modules are looked for (`<lua_dir>/ingress/…`).
    pub lua_dir: String,
    /// The file with the master's process number.
    pub pid_path: String,
    /// Access log unless the ConfigMap names one.
    pub access_log: String,
    /// Error log unless the ConfigMap names one; what NGINX says before it has read its configuration is here always.
    pub error_log: String,
    /// Where errors of requests and connections are logged as well unless the ConfigMap names a log.
    pub usual_error_log: Option<String>,
    /// The file with media types by the endings of names, for what snippets serve from files; `None`: NGINX's few own.
    pub mime_types: Option<String>,
    /// Whether NGINX logs all that it can, whatever the ConfigMap says (`--v=5`).
    pub debug_log: bool,
    /// The ports that NGINX listens on.
    pub ports: Ports,
    /// Whether IPv6 works here.
    pub ipv6: bool,
    /// The path that health checks ask for (`--health-check-path`).
    pub health_path: String,
    /// Where workers send figures about requests; `None`: they collect none.
    pub metrics: Option<Metrics>,
    /// Name servers.
    pub resolvers: Vec<IpAddr>,
    /// How many workers there are unless the ConfigMap says it.
    pub worker_processes: u32,
    /// How many files a worker may open unless the ConfigMap says it.
    pub open_files: u32,
    /// How many connections may wait to be accepted.
    pub backlog: u32,
    /// Who the workers run as; `None`: as NGINX was built, or as the master if that is not root.
    pub user: Option<User>,
    /// Sizes of the dictionaries that workers share.
    pub shared_dicts: BTreeMap<String, Size>,
    /// ModSecurity's rules, as the machine has them.
    pub modsecurity: ModSecurityRules,
    /// The file of each MaxMind edition that is wanted; `None`: there is none.
    pub geoip_databases: BTreeMap<String, Option<String>>,
    /// Certificate and key, PEM, that are shown as long as the Lua side has none. `None`: handshakes fail until then.
    pub default_certificate_pem: Option<Arc<str>>,
}

/// Who NGINX's workers run as (NGINX docs: `user`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user.
    pub name: String,
    /// The group; `None`: the group of the user's name.
    pub group: Option<String>,
}

/// Files with rules of ModSecurity. `None`: the machine has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModSecurityRules {
    /// The recommended settings and rules.
    pub recommended: Option<String>,
    /// The files of the OWASP core rule set, in their order; they may be patterns (`*.conf`). None: it is not there.
    pub core: Vec<String>,
}

/// Ports that NGINX listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// `--http-port`.
    pub http: u16,
    /// `--https-port`.
    pub https: u16,
    /// `--status-port`, on 127.0.0.1 only.
    pub status: u16,
    /// `--default-server-port`.
    pub default_server: u16,
    /// Where TLS of some hosts is passed through; `None`: all of it ends at NGINX.
    pub passthrough: Option<PassthroughPorts>,
}

/// Local ports behind [`Ports::https`] where TLS of some hosts is passed through (`--enable-ssl-passthrough`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassthroughPorts {
    /// `--ssl-passthrough-proxy-port`: where TLS of the other hosts ends.
    pub https: u16,
    /// `--stream-port`: whence TLS goes to the endpoints.
    pub relay: u16,
}

/// Where figures about requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Path of the controller's unix socket.
    pub socket: String,
    /// Most requests of one message (`--monitor-max-batch-size`).
    pub batch_size: u32,
}

/// Bytes that a shared dictionary has at most unless the ConfigMap says otherwise.
const LARGEST_DICT: u64 = 1 << 36;

impl Default for Environment {
    /// The container's layout and the flags' defaults.
    fn default() -> Self {
        Self {
            nginx_dir: "/etc/nginx".into(),
            lua_dir: "/etc/nginx/lua".into(),
            pid_path: "/tmp/nginx/nginx.pid".into(),
            access_log: "/var/log/nginx/access.log".into(),
            error_log: "/var/log/nginx/error.log".into(),
            usual_error_log: None,
            mime_types: None,
            debug_log: false,
            ports: Ports::default(),
            ipv6: true,
            health_path: "/healthz".into(),
            metrics: None,
            resolvers: Vec::new(),
            worker_processes: 1,
            open_files: 1_024,
            backlog: 511,
            user: None,
            shared_dicts: Self::default_dicts(),
            modsecurity: ModSecurityRules::default(),
            geoip_databases: BTreeMap::new(),
            default_certificate_pem: None,
        }
    }
}

impl Environment {
    /// The flags' defaults, with every file in or below `nginx_dir`: logs in `logs`, Lua modules in `lua`, what NGINX
    /// itself writes in `run`. The three directories have to be there before NGINX starts.
    ///
    /// ```
    /// use nginx_render::Environment;
    ///
    /// assert_eq!(Environment::below("/srv/ingress").pid_path, "/srv/ingress/run/nginx.pid");
    /// ```
    #[must_use]
    pub fn below(nginx_dir: &str) -> Self {
        let below = |path: &str| format!("{}/{path}", nginx_dir.trim_end_matches('/'));
        Self {
            nginx_dir: nginx_dir.to_owned(),
            lua_dir: below("lua"),
            pid_path: below("run/nginx.pid"),
            access_log: below("logs/access.log"),
            error_log: below("logs/error.log"),
            ..Self::default()
        }
    }

    /// Makes the shared dictionary hold so many bytes, if it is there and smaller: by doubling it, so that its size
    /// changes seldom. NGINX empties a dictionary whose size changes.
    pub fn reserve_dict(&mut self, name: &str, bytes: u64) {
        let Some(size) = self.shared_dicts.get_mut(name) else {
            return;
        };
        let mut mebibytes = size.bytes().div_ceil(1 << 20).max(1);
        if size.bytes() < bytes {
            while mebibytes << 20 < bytes.min(LARGEST_DICT) {
                mebibytes *= 2;
            }
            *size = Size::mib(u32::try_from(mebibytes).unwrap_or(u32::MAX));
        }
    }

    /// The dictionaries that the Lua side needs, with their default sizes.
    #[must_use]
    pub fn default_dicts() -> BTreeMap<String, Size> {
        [
            ("balancer_ewma", Size::mib(10)),
            ("balancer_ewma_last_touched_at", Size::mib(10)),
            ("balancer_ewma_locks", Size::mib(1)),
            ("certificate_data", Size::mib(20)),
            ("certificate_servers", Size::mib(5)),
            ("configuration_data", Size::mib(20)),
            ("configuration_locks", Size::kib(64)),
            ("ocsp_response_cache", Size::mib(5)),
        ]
        .map(|(name, size)| (name.to_owned(), size))
        .into()
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            http: 80,
            https: 443,
            status: 10_246,
            default_server: 8_181,
            passthrough: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_double_until_they_are_large_enough() {
        let mut environment = Environment::default();
        let size =
            |environment: &Environment| environment.shared_dicts["certificate_data"].bytes() >> 20;
        for (bytes, mebibytes) in [
            (0, 20),
            (20 << 20, 20),
            ((20 << 20) + 1, 40),
            (300 << 20, 320),
            (1, 320),
        ] {
            environment.reserve_dict("certificate_data", bytes);
            assert_eq!(size(&environment), mebibytes, "{bytes} bytes");
        }
        environment.reserve_dict("certificate_data", u64::MAX);
        assert_eq!(size(&environment), 80 << 10);
        environment.reserve_dict("none", 1 << 30);
        assert!(!environment.shared_dicts.contains_key("none"));
    }
}
