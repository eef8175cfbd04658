//! Snippets that the check refuses are such as NGINX refuses, and the other way round.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod support;

use std::{fs, path::Path};

use ingress_model::{
    Layout, ObjectName,
    config::RenderConfig,
    layout::{LocationSettings, Modifier, Owned},
    value::Snippet,
};
use nginx_render::syntax::{self, Directives, Fault, Files};

use support::{layout, location, refusal, render, server, with_config};

/// This machine's files.
struct Machine;

impl Files for Machine {
    fn is_there(&self, path: &str) -> Option<bool> {
        Some(Path::new(path).exists())
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(path).ok()
    }
}

fn knowledge() -> Directives {
    let modules = fs::read_dir("/usr/lib/nginx/modules").unwrap();
    let modules = modules.map(|entry| entry.unwrap().path());
    let programs = modules.chain([Path::new("/usr/sbin/nginx").to_owned()]);
    let programs: Vec<_> = programs.map(|path| fs::read(path).unwrap()).collect();
    Directives::of_programs(programs.iter().map(Vec::as_slice))
}

const HTTP: &str = "limit_req_zone $binary_remote_addr zone=known:1m rate=1r/s;
limit_conn_zone $binary_remote_addr zone=conns:1m;";

fn with(of_location: &str, of_server: &str) -> Layout {
    let settings = LocationSettings {
        snippet: Snippet::new(of_location),
        ..LocationSettings::default()
    };
    let mut host = server("a.test", [location(Modifier::Prefix, "/", &settings)]);
    host.snippet = Snippet::new(of_server).map(|value| Owned {
        value,
        ingress: ObjectName::new("shop", "app"),
    });
    let config = RenderConfig {
        http_snippet: Snippet::new(HTTP),
        ..RenderConfig::default()
    };
    with_config(layout([host]), config)
}

/// What NGINX says, and what the check finds.
fn judge(of_location: &str, of_server: &str, known: &Directives) -> (Option<String>, Vec<Fault>) {
    let layout = with(of_location, of_server);
    let said = refusal(&layout, |_| {});
    let faults = syntax::check_with_files(&render(&layout), known, &Machine);
    (said, faults)
}

#[test]
fn what_nginx_takes_is_taken() {
    let known = knowledge();
    let directory = tempfile::tempdir().unwrap();
    let included = directory.path().join("more.conf");
    fs::write(&included, "set $included yes;\n").unwrap();
    let include = format!("include {};\nadd_header X $included;", included.display());
    for (of_location, of_server) in [
        (
            "proxy_read_timeout 5m; proxy_buffers 8 16k; proxy_buffer_size 32k;",
            "",
        ),
        (
            "add_header X a; add_header X b always; proxy_set_header Y \"\";",
            "",
        ),
        (
            "limit_req zone=known burst=5 nodelay; limit_conn conns 5;",
            "",
        ),
        (
            "if ($http_x = \"\") { return 403; }\nif ($http_y) { set $z 1; add_header Q 1; }",
            "",
        ),
        ("satisfy any; allow 10.0.0.0/8; deny all;", ""),
        ("limit_except GET HEAD { deny all; allow 1.2.3.4; }", ""),
        (
            "gzip off; etag on; gzip_types text/css; error_page 404 = /x;",
            "",
        ),
        (
            "proxy_next_upstream error timeout http_502; proxy_cache off;",
            "",
        ),
        ("expires 1h;\nclient_max_body_size 2g;", ""),
        (
            "location /x { return 204; } location ~ \\.php$ { return 404; }",
            "",
        ),
        (
            "return 200 \"a;b {c}\";",
            "location = /x { return 204; } location /x { return 205; }",
        ),
        (
            "",
            "location ~ a { return 204; } location ~ a { return 205; } error_page 500 502 /e;",
        ),
        (
            "",
            "location @x { return 204; } location /y { root /a; try_files $uri @x; }",
        ),
        (
            "",
            "if ($host = b) { return 301 https://$host$request_uri; } rewrite ^/a$ /b last;",
        ),
        ("set $x 1; content_by_lua_block { ngx.say(\"}\") }", ""),
        (
            "more_set_headers \"X: y\" \"Z: a\";",
            "keepalive_timeout 5s 10s; access_log off;",
        ),
        (&include, ""),
        // Read only where there is a use for them.
        ("proxy_ssl_trusted_certificate /no/such.pem;", ""),
        ("", "ssl_certificate /no/such.pem;"),
    ] {
        let (said, faults) = judge(of_location, of_server, &known);
        assert_eq!(said, None, "{of_location} {of_server}");
        assert_eq!(faults, [], "{of_location} {of_server}");
    }
}

/// Snippets of a path and of a server, and what the check says.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "set $x;",
        "",
        "line 1: invalid number of arguments in \"set\" directive: it takes 2, and has 1",
    ),
    (
        "gzip on;\nroot /a /b;",
        "",
        "line 2: invalid number of arguments in \"root\" directive: it takes 1, and has 2",
    ),
    (
        "internal x;",
        "",
        "in \"internal\" directive: it takes none, and has 1",
    ),
    ("proxy_cookie_path a b c d;", "", "in \"proxy_cookie_path\""),
    (
        "error_page 404;",
        "",
        "in \"error_page\" directive: it takes two or more, and has 1",
    ),
    (
        "gzip maybe;",
        "",
        "invalid value \"maybe\" in \"gzip\" directive, it must be \"on\" or \"off\"",
    ),
    (
        "proxy_read_timeout abc;",
        "",
        "in \"proxy_read_timeout\" directive, it must be a time",
    ),
    ("proxy_read_timeout 5m1h;", "", "it must be a time"),
    ("client_body_buffer_size 8q;", "", "it must be a size"),
    ("client_max_body_size 1gb;", "", "it must be a size"),
    ("proxy_buffers 0 4k;", "", "it must be a number of buffers"),
    ("proxy_buffers 4 x;", "", "it must be a size"),
    (
        "keepalive_requests many;",
        "",
        "invalid number \"many\" in \"keepalive_requests\"",
    ),
    (
        "satisfy some;",
        "",
        "invalid value \"some\" in \"satisfy\" directive, it must be all or any",
    ),
    (
        "proxy_next_upstream error sometimes;",
        "",
        "invalid value \"sometimes\" in \"proxy_next_upstream\"",
    ),
    (
        "root /a;\nroot /b;",
        "",
        "line 2: \"root\" directive is duplicate",
    ),
    (
        "root /a; alias /b;",
        "",
        "line 1: \"alias\" directive is duplicate",
    ),
    (
        "sendfile_max_chunk 1k; sendfile_max_chunk 2k;",
        "",
        "is duplicate",
    ),
    (
        "auth_basic a; auth_basic b;",
        "",
        "\"auth_basic\" directive is duplicate",
    ),
    ("if ($host) { root /a; root /b; }", "", "is duplicate"),
    (
        "proxy_connect_timeout 5s { }",
        "",
        "is not terminated by \";\"",
    ),
    (
        "limit_except GET;",
        "",
        "directive \"limit_except\" has no opening \"{\"",
    ),
    (
        "listen 80;",
        "",
        "line 1: directive \"listen\" may not stand here",
    ),
    (
        "if ($host) { proxy_read_timeout 5s; }",
        "",
        "directive \"proxy_read_timeout\" may not stand here",
    ),
    (
        "limit_except GET { return 204; }",
        "",
        "directive \"return\" may not stand here",
    ),
    (
        "worker_processes 3;",
        "",
        "directive \"worker_processes\" may not stand here",
    ),
    (
        "ssl_preread on;",
        "",
        "directive \"ssl_preread\" may not stand here",
    ),
    (
        "",
        "proxy_pass http://a;",
        "line 1: directive \"proxy_pass\" may not stand here",
    ),
    (
        "",
        "allow all;\nupstream a { server b; }",
        "line 2: directive \"upstream\" may not stand here",
    ),
    ("no_such on;", "", "line 1: unknown directive \"no_such\""),
    ("user_agent x;", "", "unknown directive \"user_agent\""),
    (
        "limit_req zone=other;",
        "",
        "line 1: zero size shared memory zone \"other\"",
    ),
    (
        "limit_req zone=conns;",
        "",
        "zero size shared memory zone \"conns\"",
    ),
    (
        "limit_conn other 5;",
        "",
        "zero size shared memory zone \"other\"",
    ),
    (
        "proxy_cache other;",
        "",
        "line 1: \"proxy_cache\" zone \"other\" is unknown",
    ),
    (
        "",
        "location /x { return 204; }\nlocation /x { return 205; }",
        "line 2: duplicate location \"/x\"",
    ),
    (
        "",
        "location = / { return 204; }\nlocation =/ { return 205; }",
        "line 2: duplicate location \"/\"",
    ),
    (
        "",
        "location / { return 204; }",
        "line 1: duplicate location \"/\"",
    ),
    (
        "",
        "location /a { location /b { return 204; } }",
        "location \"/b\" is outside location \"/a\"",
    ),
    (
        "",
        "location = /a { location /a/b { return 204; } }",
        "cannot be inside the exact location",
    ),
    (
        "location @x { return 204; }",
        "",
        "named location \"@x\" can be on the server level only",
    ),
    (
        "error_log /no/such/x.log;",
        "",
        "line 1: cannot open \"/no/such/x.log\" of directive \"error_log\": no such file",
    ),
    (
        "access_log /no/such/x.log;",
        "",
        "of directive \"access_log\"",
    ),
    (
        "include /no/such.conf;",
        "",
        "line 1: cannot open \"/no/such.conf\" of directive \"include\"",
    ),
    (
        "",
        "ssl_certificate /no/such.pem; ssl_certificate_key /no/such.key;",
        "of directive \"ssl_certificate\"",
    ),
    ("add_header X $included;", "", "unknown variable"),
];

#[test]
fn what_nginx_refuses_is_refused_with_the_line_and_the_fault() {
    let known = knowledge();
    for (of_location, of_server, fault) in REFUSED {
        let (said, faults) = judge(of_location, of_server, &known);
        let about = format!("{of_location} {of_server}");
        assert!(said.is_some(), "nginx takes {about}");
        let found: Vec<_> = faults.iter().map(|it| it.reason.as_str()).collect();
        assert!(
            found.iter().any(|reason| reason.contains(fault)),
            "{about}\n{found:?}\n{said:?}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_may_define_any_variable() {
    let layout = with("include /etc/more/*.conf;\nadd_header X $anything;", "");
    let faults = syntax::check_with_files(&render(&layout), &knowledge(), &Machine);
    assert_eq!(faults, []);
    let layout = with("include /etc/more.conf;\nadd_header X $anything;", "");
    assert_eq!(syntax::check(&render(&layout), &knowledge()), []);
}
