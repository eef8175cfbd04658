//! Redirects, TLS and rewriting.

use std::process::Command;

use ingress_model::{
    Server,
    layout::{LocationSettings, Modifier},
};

use crate::{
    BACKEND, host,
    nginx::{self, Nginx},
    support::{layout, location, prefix, server, template},
};

#[test]
fn plain_http_is_redirected() {
    let redirect = LocationSettings {
        ssl_redirect: true,
        ..LocationSettings::default()
    };
    let keep = LocationSettings {
        force_ssl_redirect: true,
        preserve_trailing_slash: true,
        use_port_in_redirects: true,
        ..LocationSettings::default()
    };
    let tls = Server {
        tls: true,
        ..host("tls.test", &redirect)
    };
    let root = LocationSettings {
        app_root: Some(template("/portal")),
        ..LocationSettings::default()
    };
    let layout = layout([
        tls,
        host("plain.test", &redirect),
        host("keep.test", &keep),
        host("root.test", &root),
    ]);
    let nginx = Nginx::start(&layout, BACKEND);
    let https = nginx.environment.ports.https;
    for (host, path, want) in [
        ("tls.test", "/", "https://tls.test".to_owned()),
        ("tls.test:8080", "/dir/", "https://tls.test/dir".to_owned()),
        (
            "tls.test",
            "/docs/?q=a/b",
            "https://tls.test/docs/?q=a/b".to_owned(),
        ),
        (
            "keep.test:80",
            "/dir/",
            format!("https://keep.test:{https}/dir/"),
        ),
    ] {
        let answer = nginx.get(host, path, &[]);
        assert_eq!(answer.status, 308, "{host}{path}");
        assert_eq!(answer.header("location"), Some(&*want));
    }
    assert_eq!(nginx.get("plain.test", "/", &[]).status, 200);
    let root = nginx.get("root.test", "/", &[]);
    assert_eq!(
        (root.status, root.header("location")),
        (302, Some("http://root.test/portal"))
    );
    assert_eq!(nginx.get("root.test", "/x", &[]).status, 200);
}

#[test]
fn handshakes_and_hsts() {
    let layout = layout([]);
    let nginx = Nginx::start(&layout, BACKEND);
    let url = format!(
        "https://127.0.0.1:{}/healthz",
        nginx.environment.ports.https
    );
    let output = Command::new("curl")
        .args(["-ksi", "--http1.1", &url])
        .output()
        .unwrap();
    let answer = nginx::read_answer(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(answer.status, 200, "{}", nginx.log());
    assert_eq!(
        answer.header("strict-transport-security"),
        Some("max-age=31536000; includeSubDomains")
    );
}

#[test]
fn paths_are_rewritten() {
    let strip = LocationSettings {
        use_regex: true,
        rewrite_target: Some(template("/$3")),
        forwarded_prefix: Some(template("/$1")),
        ..LocationSettings::default()
    };
    let quoted = LocationSettings {
        rewrite_target: Some(template("/a$b;\"{x}")),
        ..LocationSettings::default()
    };
    let regex = server(
        "regex.test",
        [
            location(Modifier::Regex, "/(thing)(/|$)(.*)", &strip),
            location(
                Modifier::Regex,
                "/quoted",
                &LocationSettings {
                    rewrite_target: Some(template("/5$-\"{x};")),
                    ..quoted
                },
            ),
            location(Modifier::Regex, "/", &LocationSettings::default()),
        ],
    );
    let plain = server(
        "plain.test",
        prefix("/cart$x;\"", &LocationSettings::default()),
    );
    let wildcard = host("*.wild.test", &LocationSettings::default());
    let layout = layout([regex, plain, wildcard]);
    let nginx = Nginx::start(&layout, BACKEND);
    let answer = nginx.get("regex.test", "/thing/new/one?a=1&b=%2F", &[]);
    assert_eq!(
        answer.seen_line(),
        "GET /new/one?a=1&b=%2F HTTP/1.1",
        "{}",
        nginx.log()
    );
    assert_eq!(answer.seen("X-Forwarded-Prefix"), Some("/thing"));
    assert_eq!(
        nginx.get("regex.test", "/thing", &[]).seen_line(),
        "GET / HTTP/1.1"
    );
    assert_eq!(
        nginx.get("regex.test", "/quoted", &[]).seen_line(),
        "GET /5$-%22%7Bx%7D; HTTP/1.1"
    );
    assert_eq!(nginx.get("plain.test", "/cart$x;\"/1", &[]).status, 200);
    assert_eq!(nginx.get("plain.test", "/cart", &[]).status, 404);
    assert_eq!(nginx.get("one.wild.test", "/", &[]).status, 200);
    assert_eq!(nginx.get("one.two.wild.test", "/", &[]).status, 404);
}
