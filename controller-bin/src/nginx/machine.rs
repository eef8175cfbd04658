//! What the machine gives to NGINX: processors, files, addresses.

use std::{collections::BTreeMap, fs, net::IpAddr, path::Path, sync::Arc, thread};

use nginx_render::{Environment, Metrics, ModSecurityRules, PassthroughPorts, Ports, User};
use rustix::{
    fs::{Access, access},
    process::{Resource, geteuid, getrlimit},
};

use crate::{args::Args, metrics};

/// Files that NGINX has open besides those of connections (ingress-nginx keeps as many back).
const RESERVED_FILES: u64 = 1_024;

/// The length of the queue of connections where the system does not say one that is long enough.
const BACKLOG: u32 = 511;

/// Where the system's NGINX has its logs.
const ACCESS_LOG: &str = "/var/log/nginx/access.log";
const ERROR_LOG: &str = "/var/log/nginx/error.log";

/// Users that workers may run as, in the order of preference, when the controller runs as root.
const USERS: &[&str] = &["www-data", "nginx", "nobody"];

/// What the renderer has to know of this machine and of the flags; `certificate` is for hosts without one.
#[must_use]
pub fn environment(args: &Args, directory: &Path, certificate: &Arc<str>) -> Environment {
    let below = |path: &str| directory.join(path).to_string_lossy().into_owned();
    Environment {
        nginx_dir: directory.to_string_lossy().into_owned(),
        lua_dir: below("lua"),
        pid_path: below("run/nginx.pid"),
        access_log: usual_log(ACCESS_LOG).unwrap_or_else(|| below("logs/access.log")),
        error_log: below("logs/error.log"),
        usual_error_log: usual_log(ERROR_LOG).filter(|path| !is_stream(Path::new(path))),
        mime_types: mime_types(),
        debug_log: args.logging.verbosity >= 5,
        ports: Ports {
            http: args.ports.http_port,
            https: args.ports.https_port,
            status: args.ports.status_port,
            default_server: args.ports.default_server_port,
            passthrough: args
                .ports
                .enable_ssl_passthrough
                .then_some(PassthroughPorts {
                    https: args.ports.ssl_passthrough_proxy_port,
                    relay: args.ports.stream_port,
                }),
        },
        ipv6: has_ipv6(),
        health_path: args.ports.health_check_path.clone(),
        metrics: args.metrics.enable_metrics.then(|| Metrics {
            socket: metrics::socket(directory).to_string_lossy().into_owned(),
            batch_size: args.metrics.monitor_max_batch_size,
        }),
        resolvers: resolvers(&read("/etc/resolv.conf")),
        worker_processes: processors(),
        open_files: open_files(getrlimit(Resource::Nofile).maximum),
        backlog: backlog(&read("/proc/sys/net/core/somaxconn")),
        user: user(geteuid().is_root(), &read("/etc/passwd")),
        shared_dicts: Environment::default_dicts(),
        modsecurity: modsecurity(Path::new("/")),
        geoip_databases: geoip_databases(args, Path::new(GEOIP)),
        default_certificate_pem: Some(Arc::clone(certificate)),
    }
}

/// A log of the system's NGINX, which log shippers and log rotation know; none where we cannot write it.
fn usual_log(path: &str) -> Option<String> {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    let log = Path::new(path);
    let usable = if log.exists() {
        may_write(log)
    } else {
        log.parent().is_some_and(may_write)
    };
    usable.then(|| path.to_owned())
}

/// Whether a path leads to a terminal or a pipe rather than to a file, as images have it for logs.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// The media types that come with NGINX.
fn mime_types() -> Option<String> {
    const PLACES: [&str; 3] = [
        "/etc/nginx/mime.types",
        "/usr/local/openresty/nginx/conf/mime.types",
        "/usr/local/nginx/conf/mime.types",
    ];
    let mut places = PLACES.into_iter();
    let found = places.find(|path| Path::new(path).is_file());
    found.map(str::to_owned)
}

/// ModSecurity's rules in the places where images and distributions keep them. `root` is the root directory.
fn modsecurity(root: &Path) -> ModSecurityRules {
    let first = |candidates: &[&str]| {
        let there = candidates
            .iter()
            .find(|path| root.join(path.trim_start_matches('/')).is_file());
        there.map(|path| (*path).to_owned())
    };
    let recommended = first(&[
        "/etc/nginx/modsecurity/modsecurity.conf",
        "/etc/nginx/modsecurity.conf",
        "/etc/modsecurity/modsecurity.conf",
    ]);
    let image = first(&["/etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf"]);
    // Debian's own list of files is for Apache: it has a directive that NGINX's library does not know.
    let debian = first(&["/etc/modsecurity/crs/crs-setup.conf"]).map(|setup| {
        let before = first(&["/etc/modsecurity/crs/REQUEST-900-EXCLUSION-RULES-BEFORE-CRS.conf"]);
        let after = first(&["/etc/modsecurity/crs/RESPONSE-999-EXCLUSION-RULES-AFTER-CRS.conf"]);
        let rules = "/usr/share/modsecurity-crs/rules/*.conf".to_owned();
        let files = std::iter::once(setup).chain(before);
        files.chain([rules]).chain(after).collect()
    });
    ModSecurityRules {
        recommended,
        core: image.map(|path| vec![path]).or(debian).unwrap_or_default(),
    }
}

/// Where MaxMind's databases are.
pub(crate) const GEOIP: &str = "/etc/ingress-controller/geoip";

/// The file of each edition that is wanted.
fn geoip_databases(args: &Args, directory: &Path) -> BTreeMap<String, Option<String>> {
    let editions = args.nginx.maxmind_editions();
    let files = editions.map(|edition| {
        let path = directory.join(format!("{edition}.mmdb"));
        let path = path.is_file().then(|| path.to_string_lossy().into_owned());
        (edition.to_owned(), path)
    });
    files.collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Processors that we may use, by affinity and by the limit of the control group; a part of one counts as one.
fn processors() -> u32 {
    let limit = quota(&read("/sys/fs/cgroup/cpu.max")).or_else(|| {
        // The first version of control groups.
        let file = |name: &str| read(&format!("/sys/fs/cgroup/cpu/cpu.cfs_{name}_us"));
        quota(&format!("{} {}", file("quota").trim(), file("period")))
    });
    let allowed = allowed(&read("/proc/self/status")).unwrap_or_else(|| {
        let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        u32::try_from(processors).unwrap_or(u32::MAX)
    });
    limit.map_or(allowed, |limit| allowed.min(limit))
}

/// How many processors a quota and its period stand for (kernel docs, cgroup-v2: `cpu.max`); `None`: any number.
fn quota(text: &str) -> Option<u32> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    let processors = (period > 0).then(|| quota.div_ceil(period))?;
    Some(u32::try_from(processors).unwrap_or(u32::MAX).max(1))
}

/// How many processors a process may run on (proc_pid_status(5): `Cpus_allowed_list`).
fn allowed(status: &str) -> Option<u32> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.sum()
}

fn open_files(limit: Option<u64>) -> u32 {
    let files = limit.unwrap_or(1 << 20).saturating_sub(RESERVED_FILES);
    u32::try_from(files).unwrap_or(u32::MAX).max(1_024)
}

fn backlog(text: &str) -> u32 {
    text.trim()
        .parse()
        .map_or(BACKLOG, |length: u32| length.max(BACKLOG))
}

/// Whether any interface has an IPv6 address that the system uses.
fn has_ipv6() -> bool {
    let disabled = read("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    disabled.trim() != "1" && !read("/proc/net/if_inet6").trim().is_empty()
}

/// The name servers of `resolv.conf`.
fn resolvers(text: &str) -> Vec<IpAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    });
    // NGINX does not take the zone of a link-local address.
    let addresses = servers.filter_map(|server| server.split('%').next()?.parse().ok());
    addresses.collect()
}

/// The group that workers run as, where it is another one than ours.
#[must_use]
pub fn workers_group() -> Option<u32> {
    let passwd = read("/etc/passwd");
    let user = user(geteuid().is_root(), &passwd)?;
    group(&user.name, &passwd)
}

/// The group of a user.
fn group(user: &str, passwd: &str) -> Option<u32> {
    let mut lines = passwd.lines().map(|line| line.split(':'));
    let mut fields = lines.find(|fields| fields.clone().next() == Some(user))?;
    fields.nth(3)?.parse().ok()
}

/// The user that workers run as. Only root can choose.
fn user(root: bool, passwd: &str) -> Option<User> {
    let known = |user: &&&str| {
        passwd
            .lines()
            .any(|line| line.split(':').next() == Some(**user))
    };
    let name = root.then(|| USERS.iter().find(known))??;
    // Where there is nothing better than nobody, its group has another name (Debian).
    let group = (*name == "nobody").then(|| "nogroup".to_owned());
    let name = (*name).to_owned();
    Some(User { name, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_processors_count_as_one() {
        for (text, want) in [
            ("max 100000\n", None),
            ("150000 100000\n", Some(2)),
            ("200000 100000\n", Some(2)),
            ("10000 100000\n", Some(1)),
            ("-1 100000\n", None),
            ("1 0", None),
            (" ", None),
        ] {
            assert_eq!(quota(text), want, "{text:?}");
        }
        let status =
            |list: &str| format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\n");
        for (list, want) in [
            ("0", Some(1)),
            ("0-3", Some(4)),
            ("0-1,4,6-7", Some(5)),
            ("3-1", None),
        ] {
            assert_eq!(allowed(&status(list)), want, "{list}");
        }
        assert_eq!(allowed(""), None);
        assert!(processors() > 0);
    }

    #[test]
    fn limits_leave_room_and_have_a_floor() {
        for (limit, files) in [
            (Some(65_536), 64_512),
            (Some(1_500), 1_024),
            (None, 1_047_552),
        ] {
            assert_eq!(open_files(limit), files, "{limit:?}");
        }
        for (text, length) in [("4096\n", 4_096), ("128\n", 511), ("", 511)] {
            assert_eq!(backlog(text), length, "{text:?}");
        }
    }

    #[test]
    fn rules_are_found_where_images_and_distributions_have_them() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        assert_eq!(modsecurity(root.path()), ModSecurityRules::default());
        put("etc/nginx/modsecurity.conf");
        put("etc/modsecurity/crs/crs-setup.conf");
        let debian = modsecurity(root.path());
        assert_eq!(
            debian.recommended.as_deref(),
            Some("/etc/nginx/modsecurity.conf")
        );
        assert_eq!(
            debian.core,
            [
                "/etc/modsecurity/crs/crs-setup.conf",
                "/usr/share/modsecurity-crs/rules/*.conf"
            ]
        );
        put("etc/nginx/modsecurity/modsecurity.conf");
        put("etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf");
        let image = modsecurity(root.path());
        assert_eq!(
            image.recommended.as_deref(),
            Some("/etc/nginx/modsecurity/modsecurity.conf")
        );
        assert_eq!(
            image.core,
            ["/etc/nginx/owasp-modsecurity-crs/nginx-modsecurity.conf"]
        );
    }

    #[test]
    fn name_servers_are_read() {
        let text = "# nameserver 10.0.0.9\nsearch a.test\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\nnameserver x\n";
        let want: Vec<IpAddr> = vec!["10.0.0.1".parse().unwrap(), "fe80::1".parse().unwrap()];
        assert_eq!(resolvers(text), want);
    }

    #[test]
    fn root_gives_workers_to_somebody_else() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:\nnginx:x:33:34:\n";
        assert_eq!(group("nginx", passwd), Some(34));
        assert_eq!(group("nobody", passwd), None);
        assert_eq!(
            user(true, passwd).map(|user| user.name).as_deref(),
            Some("nginx")
        );
        assert_eq!(user(false, passwd), None);
        assert_eq!(user(true, "root:x:0\n"), None);
    }
}
