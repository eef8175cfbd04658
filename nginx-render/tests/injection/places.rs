//! Which directives a configuration has, and where.

use std::collections::BTreeSet;

use crate::{
    grammar::{self, Statement},
    rows::Served,
};

/// A directive, those around it, and how many arguments it has.
pub(crate) type Place = (String, usize);

/// Directives that take any number of arguments.
const LISTS: &[&str] = &[
    "access_log",
    "add_header",
    "brotli_types",
    "gzip_types",
    "listen",
    // A path by itself, or one behind `=` or `~*`.
    "location",
    "proxy_buffers",
    "proxy_cache_valid",
    "proxy_cookie_domain",
    "proxy_cookie_path",
    "proxy_next_upstream",
    "proxy_redirect",
    "proxy_ssl_protocols",
    "server_name",
    "ssl_protocols",
    "worker_cpu_affinity",
];

/// The places of all directives.
pub(crate) fn places(text: &str) -> BTreeSet<Place> {
    let mut found = BTreeSet::new();
    add(&grammar::parse(text), "", &mut found);
    found
}

/// The places of all directives of what is served.
pub(crate) fn places_of(served: &Served) -> BTreeSet<Place> {
    places(&served.rendered.main)
}

/// The places of all directives, however many arguments they have.
pub(crate) fn names_of(text: &str) -> BTreeSet<String> {
    let places = places(text).into_iter();
    places.map(|(place, _)| place).collect()
}

fn add(statements: &[Statement], around: &str, found: &mut BTreeSet<Place>) {
    for statement in statements {
        let name = statement.name();
        let place = format!("{around}/{name}");
        if let Some(block) = &statement.block {
            add(block, &place, found);
        }
        let count = statement.words.len() - 1;
        let count = if LISTS.contains(&name) { 0 } else { count };
        found.insert((place, count));
    }
}

/// That a configuration has no directive but known ones.
#[track_caller]
pub(crate) fn assert_known(found: &BTreeSet<Place>, known: &BTreeSet<Place>, what: &str) {
    let unknown: Vec<_> = found.difference(known).collect();
    assert!(unknown.is_empty(), "{what}: {unknown:?}");
}

/// That the files of a configuration are named by plain names, and lie below its directory.
#[track_caller]
pub(crate) fn assert_plain_names(served: &Served, what: &str) {
    for path in served.rendered.files.keys() {
        for part in path.as_str().split('/') {
            let named = !part.is_empty()
                && !part.starts_with('.')
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
            assert!(named, "{what}: {path:?}");
        }
    }
}
