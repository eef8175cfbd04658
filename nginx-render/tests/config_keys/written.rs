//! How values of the ConfigMap are written, and which variables texts of the ConfigMap may read.

use std::collections::BTreeMap;

use super::{merge, nginx_takes, render, server_block};

/// The main file for these keys.
fn main_file(data: &[(&str, &str)]) -> String {
    render(&merge(&data.iter().copied().collect(), false)).main
}

#[test]
fn times_are_written_as_they_were_given() {
    for (key, directive) in [
        ("worker-shutdown-timeout", "worker_shutdown_timeout"),
        ("ssl-session-timeout", "ssl_session_timeout"),
        ("upstream-keepalive-time", "keepalive_time"),
        ("proxy-stream-timeout", "proxy_timeout"),
        (
            "proxy-stream-next-upstream-timeout",
            "proxy_next_upstream_timeout",
        ),
    ] {
        for value in ["90s", "2m", "600s", "1d", "120", "1h30m"] {
            let main = main_file(&[(key, value)]);
            let line = format!("{directive} {value};");
            assert!(main.contains(&line), "{key}: {line}");
        }
        let main = main_file(&[(key, "1h 30m")]);
        assert!(main.contains(&format!("{directive} \"1h 30m\";")), "{key}");
    }
    let main = main_file(&[("proxy-stream-timeout", "500ms")]);
    assert!(main.contains("proxy_timeout 500ms;"));
}

#[test]
fn addresses_are_written_without_a_prefix() {
    for (key, companions, line) in [
        ("debug-connections", None, "debug_connection 192.0.2.7;"),
        ("block-cidrs", None, "deny 192.0.2.7;"),
        (
            "proxy-real-ip-cidr",
            Some(("enable-real-ip", "true")),
            "set_real_ip_from 192.0.2.7;",
        ),
        ("nginx-status-ipv4-whitelist", None, "allow 192.0.2.7;"),
        ("whitelist-source-range", None, "allow 192.0.2.7;"),
    ] {
        let data: Vec<_> = companions.into_iter().chain([(key, "192.0.2.7")]).collect();
        let main = main_file(&data);
        assert!(main.contains(line), "{key}: {line}");
        assert!(!main.contains("192.0.2.7/32"), "{key}");
    }
}

#[test]
fn brotli_compresses_feeds_that_gzip_does_not() {
    let main = main_file(&[("enable-brotli", "true"), ("use-gzip", "true")]);
    assert!(main.contains("brotli_types application/xml+rss application/atom+xml "));
    assert!(main.contains("gzip_types application/atom+xml application/javascript "));
}

#[test]
fn redirects_of_nginx_itself_name_the_port_where_asked_to() {
    let with = main_file(&[("use-port-in-redirects", "true")]);
    assert!(server_block(&with, "web.test").contains("port_in_redirect on;"));
    let without = main_file(&[]);
    assert!(!server_block(&without, "web.test").contains("port_in_redirect"));
}

#[test]
fn errors_are_logged_in_the_usual_place_too_unless_one_is_named() {
    let logs = |data: &[(&str, &str)]| {
        let outcome = merge(&data.iter().copied().collect(), false);
        let environment = nginx_render::Environment {
            usual_error_log: Some("/var/log/usual.log".into()),
            ..super::environment(std::path::Path::new("/etc/nginx"))
        };
        let renderer = nginx_render::Renderer::new(super::every_module(), environment);
        let main = { renderer }.render(&outcome.model.layout).unwrap().main;
        let logs = main.lines().map(str::trim);
        let logs = logs.filter_map(|line| line.strip_prefix("error_log "));
        logs.map(str::to_owned).collect::<Vec<_>>()
    };
    let own = "/etc/nginx/error.log notice;";
    let usual = "/var/log/usual.log notice;";
    assert_eq!(logs(&[]), [own, usual, own, usual, own]);
    let named = "/tmp/named.log notice;";
    assert_eq!(
        logs(&[("error-log-path", "/tmp/named.log")]),
        [own, named, named]
    );
    let syslog = "syslog:server=192.0.2.9:514 notice;";
    assert_eq!(
        logs(&[("enable-syslog", "true"), ("syslog-host", "192.0.2.9")]),
        [own, syslog, usual, own]
    );
}

#[test]
fn texts_read_what_every_request_has() {
    let log = "$proxy_host $proxy_upstream_name $best_http_host $pass_port $req_id $location_path";
    let main = main_file(&[("log-format-upstream", log)]);
    let name = "set $proxy_host $proxy_upstream_name;";
    assert!(server_block(&main, "web.test").contains(name));
    assert!(!main_file(&[]).contains(name));
    nginx_takes(&BTreeMap::from([
        ("log-format-upstream", log),
        ("log-format-stream", "$proxy_upstream_name $status"),
        (
            "http-snippet",
            "server { listen unix:/tmp/loggable.sock; access_log /dev/null upstreaminfo if=$loggable; return 204; }",
        ),
    ]));
}

#[test]
fn the_log_of_services_names_their_endpoints() {
    let main = main_file(&[("log-format-stream", "$proxy_upstream_name $status")]);
    let (_, stream) = main.split_once("\nstream {").unwrap();
    let (_, map) = stream.split_once("$proxy_upstream_name {").unwrap();
    let (map, _) = map.split_once('}').unwrap();
    assert!(map.contains("TCP:"), "{map}");
    assert!(map.contains("UDP:"), "{map}");
    assert!(!main_file(&[]).contains("$proxy_upstream_name {"));
}

#[test]
fn files_have_the_media_types_that_come_with_nginx() {
    let main = |data: &[(&str, &str)]| {
        let outcome = merge(&data.iter().copied().collect(), false);
        let environment = nginx_render::Environment {
            mime_types: Some("/etc/nginx/mime.types".into()),
            ..super::environment(std::path::Path::new("/etc/nginx"))
        };
        let mut renderer = nginx_render::Renderer::new(super::every_module(), environment);
        renderer.render(&outcome.model.layout).unwrap().main
    };
    let plain = main(&[]);
    assert!(plain.contains("types_hash_max_size 2048;\n    include /etc/nginx/mime.types;\n"));
    let own = main(&[("http-snippet", "types_hash_max_size 4096;")]);
    assert!(!own.contains("types_hash_max_size 2048;"));
    assert!(own.contains("include /etc/nginx/mime.types;"));
}

#[test]
fn lines_for_a_log_server_are_not_gathered() {
    let server = "syslog:server=192.0.2.9:514,tag=edge";
    let data = [("access-log-path", server), ("error-log-path", server)];
    let main = main_file(&data);
    assert!(main.contains(&format!("access_log {server} upstreaminfo;")));
    nginx_takes(&data.into());
}
