//! What layouts look like as configuration. Each also passes `nginx -t`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod support;

use std::path::Path;

use ingress_model::{Layout, layout::LocationSettings};
use nginx_render::{Environment, Renderer};

use support::{debian, layout, prefix, refusal, server};

/// Renders for a fixed place, and compares with the recorded text.
fn golden(name: &str, layout: &Layout, change: impl Fn(&mut Environment)) {
    let mut environment = support::environment(Path::new("/etc/nginx"));
    environment.lua_dir = "/etc/nginx/lua".into();
    change(&mut environment);
    let rendered = Renderer::new(debian(), environment).render(layout).unwrap();
    assert!(rendered.notes.is_empty(), "{:?}", rendered.notes);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, rendered.main));
    if let Some(text) = refusal(layout, change) {
        panic!("nginx refuses {name}: {text}");
    }
}

#[test]
fn default() {
    golden("default", &layout([]), |_| {});
}

#[test]
fn two_paths() {
    let settings = LocationSettings::default();
    let locations = prefix("/cart", &settings)
        .into_iter()
        .chain(prefix("/api", &settings));
    golden(
        "two_paths",
        &layout([server("shop.test", locations)]),
        |_| {},
    );
}
