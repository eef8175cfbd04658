//! Every key of the ConfigMap shows in the configuration, and NGINX takes what it makes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "this is for tests only"
)]

mod database;
mod objects;
mod rows;
mod snapshots;
#[path = "../support/mod.rs"]
mod support;
mod written;

use std::{collections::BTreeMap, path::Path, process::Command};

use ingress_model::{
    ObjectName, Options, Outcome,
    config::{find_key, keys},
    testing::Fixture,
};
use nginx_render::{Capabilities, Environment, ModSecurityRules, Ports, Rendered, Renderer};

use objects::{GRPC, OBJECTS};
use rows::{
    Effect::{Controller, File, Gone, GoneIn, Live, Nowhere, Shown, ShownIn},
    ROWS,
};
use support::{environment, installed, server_block, write};

/// What a ConfigMap with these keys leads to; keys that are refused fail the test, unless `lenient`.
fn merge(data: &BTreeMap<&str, &str>, lenient: bool) -> Outcome {
    merge_with(&OBJECTS, data, lenient)
}

/// The same beside these objects.
fn merge_with(objects: &str, data: &BTreeMap<&str, &str>, lenient: bool) -> Outcome {
    let data = serde_json::to_string(data).unwrap();
    let config = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: config, namespace: ingress}}, data: {data}}}"
    );
    let name = |name| Some(ObjectName::new("ingress", name));
    let options = Options {
        config_map: name("config"),
        tcp_services: name("tcp"),
        udp_services: name("udp"),
        ..Options::default()
    };
    let served = Fixture::from_yaml(&format!("{objects}{config}"))
        .unwrap()
        .with_options(options)
        .merge();
    let outcome = served.outcome().clone();
    let refused: Vec<_> = outcome
        .diagnostics
        .iter()
        .filter(|said| said.object.name == ObjectName::new("ingress", "config"))
        .filter(|said| !said.message.contains("no effect"))
        .map(ToString::to_string)
        .collect();
    assert!(lenient || refused.is_empty(), "{refused:#?}");
    outcome
}

/// An NGINX with every module that a key needs.
fn every_module() -> Capabilities {
    let text = "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=/m --with-threads \
        --with-http_v2_module --with-http_v3_module --with-http_realip_module --with-http_auth_request_module \
        --with-http_stub_status_module --with-stream=dynamic --with-stream_realip_module";
    let modules = [
        "ndk_http_module.so",
        "ngx_http_lua_module.so",
        "ngx_http_headers_more_filter_module.so",
        "ngx_http_brotli_filter_module.so",
        "ngx_http_brotli_static_module.so",
        "ngx_http_geoip2_module.so",
        "ngx_http_modsecurity_module.so",
        "otel_ngx_module.so",
        "ngx_stream_module.so",
        "ngx_stream_js_module.so",
    ];
    Capabilities::parse(text, modules)
}

fn render(outcome: &Outcome) -> Rendered {
    let mut environment = environment(Path::new("/etc/nginx"));
    environment.resolvers = ["192.0.2.53", "2001:db8::53"]
        .map(|it| it.parse().unwrap())
        .into();
    environment.ports.https = 8443;
    environment.modsecurity = ModSecurityRules {
        recommended: Some("/rules/modsecurity.conf".into()),
        core: vec!["/rules/crs/*.conf".into()],
    };
    let path = "/geoip/GeoLite2-ASN.mmdb".to_owned();
    environment.geoip_databases = BTreeMap::from([("GeoLite2-ASN".to_owned(), Some(path))]);
    Renderer::new(every_module(), environment)
        .render(&outcome.model.layout)
        .unwrap()
}

fn file(rendered: &Rendered, path: &str) -> String {
    let file = rendered
        .files
        .iter()
        .find(|(name, _)| name.as_str() == path);
    file.map(|(_, file)| String::from_utf8(file.bytes.clone()).unwrap())
        .unwrap_or_default()
}

#[test]
fn every_key_shows() {
    let without_row: Vec<_> = keys()
        .map(|key| key.name)
        .filter(|name| !ROWS.iter().any(|(key, ..)| key == name))
        .collect();
    assert!(
        without_row.is_empty(),
        "keys without a row: {without_row:?}"
    );
    let mut bases: BTreeMap<_, (Outcome, Rendered)> = BTreeMap::new();
    let mut faults = Vec::new();
    for (key, value, companions, effect) in ROWS {
        let base: BTreeMap<_, _> = companions.iter().copied().collect();
        let mut data = base.clone();
        data.insert(key, value);
        let (outcome_before, before) = bases.entry(base).or_insert_with_key(|base| {
            let outcome = merge(base, true);
            let rendered = render(&outcome);
            (outcome, rendered)
        });
        let outcome = merge(&data, false);
        let after = render(&outcome);
        assert!(after.notes.is_empty(), "{key}: {:?}", after.notes);
        let mut shown = |before: &str, after: &str, text: &str| {
            if before.contains(text) || !after.contains(text) {
                faults.push(format!("{key}: {text:?} does not come with it"));
            }
        };
        let of = server_block;
        match effect {
            Shown(text) => shown(&before.main, &after.main, text),
            Gone(text) => shown(&after.main, &before.main, text),
            ShownIn(host, text) => shown(of(&before.main, host), of(&after.main, host), text),
            GoneIn(host, text) => shown(of(&after.main, host), of(&before.main, host), text),
            File(path, text) => shown(&file(before, path), &file(&after, path), text),
            Live => {
                assert_ne!(outcome.model.live, outcome_before.model.live, "{key}");
                assert_eq!(after.main, before.main, "{key}: needs no reload");
            }
            Controller => assert!(find_key(key).unwrap().is_read(), "{key}"),
            Nowhere => {
                assert_eq!(outcome.model, outcome_before.model, "{key}");
                assert!(!find_key(key).unwrap().is_read(), "{key}");
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn everything_is_logged_where_that_is_asked_for() {
    let outcome = merge(&BTreeMap::from([("error-log-level", "crit")]), false);
    let levels = |debug_log| {
        let environment = Environment {
            debug_log,
            ..environment(Path::new("/etc/nginx"))
        };
        let rendered = Renderer::new(every_module(), environment).render(&outcome.model.layout);
        let main = rendered.unwrap().main;
        let logs = main
            .lines()
            .filter(|line| line.trim().starts_with("error_log "));
        let levels =
            logs.filter_map(|line| Some(line.trim_end_matches(';').rsplit_once(' ')?.1.to_owned()));
        levels.collect::<Vec<_>>()
    };
    assert_eq!(levels(false), ["crit"; 3]);
    assert_eq!(levels(true), ["debug"; 3]);
}

/// Has this machine's NGINX test what a ConfigMap leads to.
fn nginx_takes(data: &BTreeMap<&str, &str>) {
    let capabilities = installed().expect("nginx with Lua is installed");
    let outcome = merge_with(&format!("{}{}", *GRPC, *OBJECTS), data, true);
    let directory = tempfile::tempdir().unwrap();
    let environment = complete_environment(directory.path());
    let rendered = Renderer::new(capabilities, environment)
        .render(&outcome.model.layout)
        .unwrap();
    let tested = nginx_test(&write(&rendered, directory.path()));
    assert_eq!(tested, Ok(()), "{data:#?}");
}

/// Has this machine's NGINX test a configuration. What it says against it is the error.
fn nginx_test(main: &Path) -> Result<(), String> {
    let output = Command::new("nginx")
        .arg("-t")
        .arg("-c")
        .arg(main)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(said)
}

/// An environment below a directory, with all files that keys ask for.
fn complete_environment(directory: &Path) -> Environment {
    let put = |name: &str, bytes: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let core = "SecRule ARGS \"@contains attack\" \"id:1,deny\"\n";
    let edition = put("asn.mmdb", &database::empty());
    Environment {
        ipv6: false,
        ports: free_ports(),
        resolvers: vec!["192.0.2.53".parse().unwrap()],
        modsecurity: ModSecurityRules {
            recommended: Some(put("recommended.conf", b"SecRuleEngine DetectionOnly\n")),
            core: vec![put("core.conf", core.as_bytes())],
        },
        geoip_databases: BTreeMap::from([("GeoLite2-ASN".to_owned(), Some(edition))]),
        ..environment(directory)
    }
}

fn free_ports() -> Ports {
    let sockets: Vec<_> = (0..4)
        .map(|_| std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap())
        .collect();
    let port = |index: usize| sockets[index].local_addr().unwrap().port();
    Ports {
        http: port(0),
        https: port(1),
        status: port(2),
        default_server: port(3),
        passthrough: None,
    }
}

/// Each key with the value that a function gives for it.
fn each_key(
    value: impl Fn(&'static str) -> Option<&'static str>,
) -> BTreeMap<&'static str, &'static str> {
    keys()
        .filter_map(|key| Some((key.name, value(key.name)?)))
        .collect()
}

/// The value of a key's row.
fn of_row(name: &str) -> Option<&'static str> {
    let row = ROWS.iter().find(|(key, ..)| *key == name);
    row.map(|(_, value, ..)| *value)
}

#[test]
fn nginx_takes_every_key() {
    // Modules would take Brotli's and ModSecurity's settings to be unknown words if they were not there: what NGINX can
    // do is asked, not assumed.
    nginx_takes(&each_key(of_row));
    let mut proxied = each_key(of_row);
    proxied.retain(|key, _| {
        !matches!(
            *key,
            "ssl-ciphers" | "ssl-protocols" | "enable-syslog" | "modsecurity-snippet"
        )
    });
    proxied.extend([("max-worker-connections", "100"), ("bind-address", "")]);
    nginx_takes(&proxied);
}

/// Whether the key takes numbers, or texts that begin with one.
fn is_number(name: &str) -> bool {
    const KINDS: &[&str] = &[
        "boolean",
        "bytes",
        "fraction",
        "kilobytes",
        "milliseconds",
        "minutes",
        "number",
        "port",
        "seconds",
        "size",
        "status",
        "time",
    ];
    let value = find_key(name).unwrap().value;
    let mut words = value.split(' ');
    words.any(|word| KINDS.contains(&word))
}

#[test]
fn nginx_takes_extreme_values() {
    nginx_takes(&BTreeMap::new());
    nginx_takes(&each_key(|_| Some("")));
    nginx_takes(&each_key(|name| is_number(name).then_some("0")));
    nginx_takes(&each_key(|name| is_number(name).then_some("1")));
    nginx_takes(&each_key(|name| {
        Some(match find_key(name)?.value {
            "size" => "64K",
            "time" => "1h 30m",
            "boolean" => "T",
            value if value.starts_with("whole number") => "0x10",
            _ => return None,
        })
    }));
}

#[test]
fn long_names_make_no_table_too_small() {
    let long = "X-".to_owned() + &"a".repeat(200);
    let agents = format!("~*{},{}", "b".repeat(500), "c".repeat(300));
    nginx_takes(&BTreeMap::from([
        ("hide-headers", &*long),
        ("block-user-agents", &agents),
        ("skip-access-log-urls", &agents),
        ("map-hash-bucket-size", "1"),
        ("proxy-headers-hash-bucket-size", "1"),
        ("variables-hash-bucket-size", "1"),
        ("server-name-hash-bucket-size", "1"),
        ("server-name-hash-max-size", "1"),
        ("proxy-headers-hash-max-size", "1"),
        ("variables-hash-max-size", "1"),
    ]));
}
