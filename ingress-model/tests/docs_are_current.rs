//! The pages about annotations and ConfigMap keys say what the registries say.
//!
//! `UPDATE_DOCS=1 cargo test -p ingress-model --test docs_are_current` writes them anew.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads files and the environment; the rules do not"
)]

use std::{env, fs, path::Path};

use ingress_model::{annotation::annotations_markdown, config::config_keys_markdown};

fn check(name: &str, want: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    if env::var("UPDATE_DOCS").is_ok_and(|value| value == "1") {
        let written = fs::write(&path, want);
        assert!(written.is_ok(), "{name} cannot be written: {written:?}");
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == want,
        "{name} is not what the registry says; write it anew with UPDATE_DOCS=1"
    );
}

#[test]
fn annotations() {
    check("ANNOTATIONS.md", &annotations_markdown());
}

#[test]
fn config_keys() {
    check("CONFIGMAP.md", &config_keys_markdown());
}
