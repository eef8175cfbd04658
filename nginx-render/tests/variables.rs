//! Variables that are unknown to the check are unknown to NGINX, and the other way round.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod support;

use std::{fs, path::Path};

use ingress_model::{
    Layout, ObjectName,
    config::RenderConfig,
    layout::{LocationSettings, Modifier, Owned},
    value::Snippet,
};
use nginx_render::syntax::{self, Directives};

use support::{layout, location, refusal, render, server, template, with_config};

/// What the NGINX of this machine knows, and what is documented.
fn knowledge() -> [Directives; 2] {
    let modules = fs::read_dir("/usr/lib/nginx/modules").unwrap();
    let modules = modules.map(|entry| entry.unwrap().path());
    let programs = modules.chain([Path::new("/usr/sbin/nginx").to_owned()]);
    let programs: Vec<_> = programs.map(|path| fs::read(path).unwrap()).collect();
    let read = Directives::of_programs(programs.iter().map(Vec::as_slice));
    [read, Directives::documented()]
}

/// A host whose path has this snippet, and one whose server has the other.
fn with(of_location: &str, of_server: &str, of_http: &str) -> Layout {
    let settings = LocationSettings {
        snippet: Snippet::new(of_location),
        ..LocationSettings::default()
    };
    let mut other = server("b.test", [location(Modifier::Prefix, "/", &settings)]);
    other.snippet = Snippet::new(of_server).map(|value| Owned {
        value,
        ingress: ObjectName::new("shop", "other"),
    });
    let plain = LocationSettings::default();
    let first = server("a.test", [location(Modifier::Prefix, "/", &plain)]);
    let config = RenderConfig {
        http_snippet: Snippet::new(of_http),
        ..RenderConfig::default()
    };
    with_config(layout([first, other]), config)
}

#[track_caller]
fn assert_known(layout: &Layout, is_known: bool, about: &str) {
    let said = refusal(layout, |_| {});
    assert_eq!(said.is_none(), is_known, "{about}: {said:?}");
    for directives in knowledge() {
        let faults = syntax::check(&render(layout), &directives);
        assert_eq!(faults.is_empty(), is_known, "{about}: {faults:?}");
    }
}

#[test]
fn what_nginx_knows_is_known() {
    for (of_location, of_server, of_http) in [
        (
            "return 200 \"$remote_addr ${HOST} $http_x_y $arg_q $cookie_c $sent_http_z $upstream_http_a\";",
            "",
            "",
        ),
        ("return 200 $mine;", "", "map $host $mine { default 1; }"),
        ("return 200 $tenant$1;", "set $tenant x;", ""),
        ("set $x 1; if ($x = \"$host\") { return 403; }", "", ""),
        ("rewrite \"^/(?<rest>.*)$\" /x/$rest break;", "", ""),
        (
            "return 200 $sub;",
            "if ($host ~ \"^(?<sub>.+)\\.b\\.test$\") { return 204; }",
            "",
        ),
        (
            "return 200 $zone$half;",
            "",
            "geo $zone { default 1; } split_clients $host $half { 50% a; * b; }",
        ),
        (
            "set_by_lua_block $lua { return 1 } return 200 $lua;",
            "",
            "",
        ),
        ("more_set_headers \"X: $request_id\"; return 204;", "", ""),
        (
            "location ~ \"^/a$\" { return 204; }",
            "server_name_in_redirect on;",
            "",
        ),
        (
            "return 200 $namespace$service_name$best_http_host$req_id;",
            "",
            "",
        ),
    ] {
        let layout = with(of_location, of_server, of_http);
        assert_known(&layout, true, of_location);
    }
}

#[test]
fn what_nginx_does_not_know_is_told_with_its_source() {
    for (of_location, of_server, of_http, variable, what) in [
        (
            "return 200 $remote_adr;",
            "",
            "",
            "remote_adr",
            "configuration-snippet",
        ),
        (
            "if ($no_such) { return 403; }",
            "",
            "",
            "no_such",
            "configuration-snippet",
        ),
        (
            "set $x \"a${no_such}b\";",
            "",
            "",
            "no_such",
            "configuration-snippet",
        ),
        (
            "add_header X $no_such;",
            "",
            "",
            "no_such",
            "configuration-snippet",
        ),
        ("", "return 200 $no_such;", "", "no_such", "server-snippet"),
        (
            "",
            "",
            "map $no_such $mine { default 1; } log_format x $mine;",
            "no_such",
            "http-snippet",
        ),
        (
            "",
            "",
            "map $host $mine { default $no_such; } log_format x $mine;",
            "no_such",
            "http-snippet",
        ),
    ] {
        let layout = with(of_location, of_server, of_http);
        assert_known(&layout, false, variable);
        let rendered = render(&layout);
        for directives in knowledge() {
            let faults = syntax::check(&rendered, &directives);
            let told: Vec<_> = faults
                .iter()
                .map(|fault| (fault.variable.as_deref(), fault.source.what))
                .collect();
            assert_eq!(told, [(Some(variable), what)]);
        }
        let users = syntax::users(&rendered, variable);
        let users: Vec<_> = users.iter().map(|source| source.what).collect();
        assert_eq!(users, [what]);
    }
    let layout = with("return 200 $remote_adr;", "", "");
    let fault = syntax::check(&render(&layout), &Directives::documented()).remove(0);
    assert_eq!(
        fault.reason,
        "unknown variable \"$remote_adr\"; did you mean $remote_addr?"
    );
}

#[test]
fn a_snippet_with_a_brace_too_many_hides_nothing() {
    let layout = with("return 200 $no_such;", "location /x { return 204;", "");
    let faults = syntax::check(&render(&layout), &Directives::documented());
    let told: Vec<_> = faults
        .iter()
        .map(|fault| (fault.source.what, fault.variable.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            ("server-snippet", None),
            ("configuration-snippet", Some("no_such"))
        ]
    );
}

#[test]
fn annotations_with_variables_are_looked_at_and_the_app_root_is_its_ingresses() {
    let settings = LocationSettings {
        upstream_vhost: Some(template("$no_such")),
        ..LocationSettings::default()
    };
    let vhost = layout([server(
        "a.test",
        [location(Modifier::Prefix, "/", &settings)],
    )]);
    let settings = LocationSettings {
        app_root: Some(template("/$no_such")),
        ..LocationSettings::default()
    };
    let root = layout([server(
        "a.test",
        [location(Modifier::Prefix, "/", &settings)],
    )]);
    for layout in [vhost, root] {
        assert_known(&layout, false, "an annotation");
        let fault = syntax::check(&render(&layout), &Directives::documented()).remove(0);
        assert_eq!(fault.source.ingress, Some(ObjectName::new("shop", "web")));
        assert_eq!(fault.variable.as_deref(), Some("no_such"));
    }
}

#[test]
fn files_that_snippets_include_may_define_anything() {
    for (of_server, of_http) in [
        ("include /etc/nginx/more/*.conf;", ""),
        ("", "include /etc/nginx/more/*.conf;"),
    ] {
        let layout = with("return 200 $no_such;", of_server, of_http);
        for directives in knowledge() {
            assert_eq!(syntax::check(&render(&layout), &directives), []);
        }
    }
    let unknown = Directives::default();
    let layout = with("return 200 $no_such;", "", "");
    assert_eq!(syntax::check(&render(&layout), &unknown), []);
}
