//! The README shows what is printed.

use std::fs;

use super::{Said, root, run, site::open_directory};

/// The part of the README that begins with this command, up to the end of its block or the next command.
fn shown(readme: &str, command: &str) -> Option<String> {
    let line = format!("$ {command}\n");
    let (_, behind) = readme.split_once(&line)?;
    let end = ["\n```", "\n$ "]
        .iter()
        .filter_map(|end| behind.find(end))
        .min()?;
    Some(behind.get(..end)?.trim_end().to_owned())
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = fs::read_to_string(root().join("README.md")).expect("it is there");
    let next = open_directory();
    let manifests = root().join("examples/quickstart/manifests");
    for entry in fs::read_dir(manifests).expect("it is there").flatten() {
        let text = fs::read_to_string(entry.path()).expect("it is text");
        // As the README's `sed` does.
        let text = text.replace("9002", "9012").replace("8m", "16m");
        fs::write(next.path().join(entry.file_name()), text).expect("it is writable");
    }
    let target = open_directory();
    let places = [("/tmp/next", next.path()), ("/tmp/rendered", target.path())];
    let places = places.map(|(shown, path)| (shown, path.display().to_string()));
    for words in [
        "lint --manifests=examples/quickstart/manifests",
        "render --manifests=examples/quickstart/manifests --output-dir=/tmp/rendered",
        "diff --brief examples/quickstart/manifests /tmp/next",
        "migrate --manifests=examples/quickstart/manifests",
    ] {
        let command = format!("nginx-ingress-controller {words}");
        let Some(shown) = shown(&readme, &command) else {
            panic!("the README lacks {command}")
        };
        let replaced = places.iter();
        let replaced = replaced.fold(words.to_owned(), |words, (shown, path)| {
            words.replace(shown, path)
        });
        let Said { text, errors, .. } = run(&replaced.split(' ').collect::<Vec<_>>());
        let text = places
            .iter()
            .fold(text, |text, (shown, path)| text.replace(path, shown));
        assert_eq!(shown, text.trim_end(), "{command}\n{errors}");
    }
}
