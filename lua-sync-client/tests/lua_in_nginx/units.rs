//! The unit tests written in Lua, `tests/lua/*_test.lua`.

use std::{fs, path::Path};

use crate::support::nginx::Nginx;

#[test]
fn every_lua_test_file_passes() {
    let nginx = Nginx::start();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lua");
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| file.strip_suffix(".lua").map(str::to_owned))
        .filter(|name| name.ends_with("_test"))
        .collect();
    names.sort();
    assert!(!names.is_empty());
    for name in names {
        let response = nginx.configure("GET", &format!("/tests?name={name}"), "");
        assert_eq!(response.status, 200, "{name}: {}", response.body);
        assert!(
            response.body.starts_with("ok "),
            "{name}: {}",
            response.body
        );
    }
}

#[test]
fn a_missing_test_file_is_noticed() {
    let nginx = Nginx::start();
    let response = nginx.configure("GET", "/tests?name=no_such_test", "");
    assert_eq!(response.status, 500, "{response:?}");
}
