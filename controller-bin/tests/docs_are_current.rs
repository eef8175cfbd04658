//! The page about flags says what the command line says.
//!
//! `UPDATE_DOCS=1 cargo test -p controller-bin --test docs_are_current` writes it anew.

use std::{env, fs, path::Path};

use controller_bin::args::flags_markdown;

#[test]
fn flags() {
    let want = flags_markdown();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../FLAGS.md");
    if env::var("UPDATE_DOCS").is_ok_and(|value| value == "1") {
        let written = fs::write(&path, &want);
        assert!(written.is_ok(), "FLAGS.md cannot be written: {written:?}");
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == want,
        "FLAGS.md is not what the command line says; write it anew with UPDATE_DOCS=1"
    );
}
