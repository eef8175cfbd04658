//! What layouts look like as configuration. Each also passes `nginx -t`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod access;
mod connections;
mod hosts;
mod proxying;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;

use ingress_model::Layout;
use nginx_render::{
    Environment, Renderer,
    syntax::{Directives, check},
};

use support::{debian, refusal};

/// Renders for a fixed place, and compares with the recorded text.
fn golden(name: &str, layout: &Layout, change: impl Fn(&mut Environment)) {
    let mut environment = support::environment(Path::new("/etc/nginx"));
    environment.lua_dir = "/etc/nginx/lua".into();
    change(&mut environment);
    let rendered = Renderer::new(debian(), environment).render(layout).unwrap();
    assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
    assert_eq!(check(&rendered, &Directives::documented()), []);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, without_checksum(&rendered.main)));
    if let Some(text) = refusal(layout, change) {
        panic!("nginx refuses {name}: {text}");
    }
}

/// Without the first line, which the keys of some tests change each time.
fn without_checksum(main: &str) -> &str {
    let (first, rest) = main.split_once('\n').unwrap();
    assert!(first.starts_with("# Configuration checksum: "), "{first}");
    rest
}

/// The servers of a rendering alone: what is around them is in `default`.
fn golden_servers(name: &str, layout: &Layout) {
    let rendered = support::render(layout);
    assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
    assert_eq!(check(&rendered, &Directives::documented()), []);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, support::servers(&rendered.main)));
    if let Some(text) = refusal(layout, |_| {}) {
        panic!("nginx refuses {name}: {text}");
    }
}
