//! Every annotation shows in what is rendered or told to a running NGINX, and a value that cannot be used has the
//! consequence that the registry names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

#[path = "support/annotations.rs"]
mod rows;
mod support;

use std::{fmt::Write as _, path::Path};

use ingress_model::{
    ObjectName,
    annotation::{Misuse, Scope, annotations},
};
use nginx_render::Renderer;

use rows::{
    Effect::{File, Gone, Live, Main, Shown},
    MAIN, ROWS, Row, Served,
};
use support::{environment, server_block};

impl Served {
    fn has_host(&self) -> bool {
        self.rendered.main.contains("## start server shop.test\n")
    }

    fn server(&self) -> &str {
        server_block(&self.rendered.main, "shop.test")
    }

    fn live(&self) -> String {
        let live = &self.outcome.model.live;
        let mut text = format!("{:?}", live.backends);
        for host in live.passthrough.keys() {
            let _infallible = write!(text, " TLS of {host} is passed through");
        }
        text
    }

    fn files(&self, path: &str) -> String {
        let files = self.rendered.files.iter();
        let files = files.filter(|(name, _)| name.as_str().contains(path));
        files.fold(String::new(), |mut text, (_, file)| {
            let _infallible = writeln!(text, "{}", String::from_utf8_lossy(&file.bytes));
            text
        })
    }

    /// What is said about an annotation.
    fn said(&self, name: &str) -> Vec<String> {
        let diagnostics = self.outcome.diagnostics.iter().map(ToString::to_string);
        let notes = self.rendered.notes.iter().map(|note| format!("{note:?}"));
        let all = diagnostics.chain(notes);
        all.filter(|text| text.contains(name)).collect()
    }
}

/// The names of each row of the page about annotations.
fn documented(page: &str) -> Vec<Vec<&str>> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.map(|row| {
        let (names, _) = row.split_once(" | ").unwrap();
        names.split('`').step_by(2).collect()
    });
    let mut names: Vec<Vec<&str>> = names.collect();
    names.sort_unstable();
    names
}

/// The rows of the page about annotations are those that are tried here, by each of their names.
#[test]
fn every_annotation_has_a_row() {
    const PAGE: &str = include_str!("../../ANNOTATIONS.md");
    let mut tried: Vec<Vec<&str>> = ROWS
        .iter()
        .map(|(name, ..)| {
            let info = annotations().find(|info| info.name == *name).unwrap();
            [&[info.name], info.aliases].concat()
        })
        .collect();
    tried.sort_unstable();
    assert_eq!(documented(PAGE), tried);
    assert_eq!(tried.concat().len(), 138);
    let more = format!("{PAGE}| `no-such-annotation` | text |\n");
    assert_ne!(documented(&more), tried);
}

/// What a row says that does not come with the annotation, under one of its names.
fn missing((name, value, effect, _, companions): &Row) -> Vec<String> {
    let mut faults = Vec::new();
    let before = Served::new(companions);
    let info = annotations().find(|info| info.name == *name).unwrap();
    for name in std::iter::once(name).chain(info.aliases) {
        let set = [*companions, &[(*name, *value)]].concat();
        let after = Served::new(&set);
        let said = after.said(&format!("/{name}"));
        let mut shown = |before: &str, after: &str, text: &str| {
            if before.contains(text) || !after.contains(text) || !said.is_empty() {
                faults.push(format!(
                    "{name}: {text:?} does not come with it {said:?}\n{after}"
                ));
            }
        };
        match *effect {
            Shown(text) => shown(before.server(), after.server(), text),
            Gone(text) => shown(after.server(), before.server(), text),
            Main(text) => shown(before.main(), after.main(), text),
            File(path, text) => shown(&before.files(path), &after.files(path), text),
            Live(text) => {
                shown(&before.live(), &after.live(), text);
                assert_eq!(before.main(), after.main(), "{name}: needs no reload");
            }
        }
    }
    faults
}

#[test]
fn every_annotation_shows() {
    let faults: Vec<String> = ROWS.iter().flat_map(missing).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_does_not_show_is_missed() {
    for row in [
        ("satisfy", "any", Shown("satisfy all;"), None, &[][..]),
        // It is there anyway, or the value cannot be used.
        ("satisfy", "any", Shown("proxy_pass "), None, &[]),
        ("satisfy", "some", Shown("satisfy any;"), None, &[]),
        (
            "proxy-body-size",
            "8m",
            Gone("client_max_body_size 8m;"),
            None,
            &[],
        ),
        ("affinity", "cookie", Live("no such text"), None, &[]),
    ] {
        assert_eq!(missing(&row).len(), 1, "{} {}", row.0, row.1);
    }
}

#[test]
fn unusable_values_have_the_consequence_of_the_registry() {
    for (name, _, _, bad, companions) in ROWS {
        let Some(bad) = bad else {
            assert!(name.ends_with("-snippet"), "{name}");
            continue;
        };
        let info = annotations().find(|info| info.name == *name).unwrap();
        let before = Served::new(companions);
        let set = [*companions, &[(*name, *bad)]].concat();
        let after = Served::new(&set);
        assert_ne!(after.said(name), [""; 0], "{name}: nothing is said");
        match (info.misuse, info.scope) {
            (Misuse::Refuse, _) => {
                let others = companions.contains(&MAIN);
                assert_eq!(after.has_host(), others, "{name}: it is served");
            }
            (Misuse::Deny, Scope::Server) => {
                assert!(
                    after.server().contains("return 403;"),
                    "{name}: {}",
                    after.server()
                );
                assert!(
                    !after.server().contains("_pass "),
                    "{name}: {}",
                    after.server()
                );
            }
            (Misuse::Deny, _) => {
                assert!(
                    after.server().contains("return 503;"),
                    "{name}: {}",
                    after.server()
                );
                assert!(
                    !after.server().contains("_pass "),
                    "{name}: {}",
                    after.server()
                );
            }
            // Nobody may ask then, rather than everybody.
            (Misuse::FallBack, _) if *name == "cors-allow-origin" => {
                assert!(after.server().contains(r#"$http_origin ~* "^(?:(?!))$""#));
            }
            (Misuse::FallBack, _) => {
                assert_eq!(before.main(), after.main(), "{name}");
                assert_eq!(before.live(), after.live(), "{name}");
            }
        }
    }
}

/// What annotations ask for of a module that this NGINX does not have is said, and the Ingress is served without it.
#[test]
fn what_nginx_cannot_do_is_said() {
    for name in ["enable-modsecurity", "enable-opentelemetry"] {
        let served = Served::new(&[(name, "true")]);
        let environment = environment(Path::new("/etc/nginx"));
        let mut renderer = Renderer::new(support::debian(), environment);
        let rendered = renderer.render(&served.outcome.model.layout).unwrap();
        let about: Vec<_> = rendered
            .notes
            .iter()
            .filter(|note| note.source.what == name)
            .collect();
        assert!(
            about
                .iter()
                .any(|note| note.source.ingress == Some(ObjectName::new("shop", "web"))),
            "{:?}",
            rendered.notes
        );
        let server = server_block(&rendered.main, "shop.test");
        assert!(
            server.contains("proxy_pass http://upstream_balancer;"),
            "{server}"
        );
    }
}

/// What no Ingress has on needs no switching off, for which the module would have to be there.
#[test]
fn modsecurity_is_off_without_its_module() {
    for (value, loaded) in [("false", false), ("true", true)] {
        let served = Served::new(&[("enable-modsecurity", value)]);
        assert_eq!(
            served.main().contains("ngx_http_modsecurity_module.so"),
            loaded
        );
        let server = server_block(&served.rendered.main, "shop.test");
        assert_eq!(server.contains("modsecurity"), loaded, "{server}");
    }
}
