//! What a file seems to hold of which nothing can be read.

use std::{collections::BTreeMap, fs, path::Path};

use ingress_model::manifests::salvage;

/// The kinds that are looked for, in the order in which they are told.
const KINDS: [&str; 7] = [
    "ConfigMap",
    "EndpointSlice",
    "Ingress",
    "IngressClass",
    "Namespace",
    "Secret",
    "Service",
];

/// How many objects of which kinds the file seems to hold; `None` where none can be seen, or some can be read.
pub(super) fn lost(file: &Path) -> Option<String> {
    let bytes = fs::read(file).ok()?;
    let is_read = |text: &str| {
        let content = salvage(file, text);
        !content.objects.is_empty() || !content.ignored.is_empty()
    };
    if str::from_utf8(&bytes).is_ok_and(is_read) {
        return None;
    }
    seen(&String::from_utf8_lossy(&bytes))
}

/// What can be seen in a text that is neither YAML nor JSON: `kind`, a colon and the name of a kind.
fn seen(text: &str) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, key) in text.match_indices("kind") {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        if before.is_some_and(char::is_alphanumeric) {
            continue;
        }
        let behind = text.get(at + key.len()..).unwrap_or_default();
        let Some(value) = behind
            .trim_start_matches(['"', '\'', ' '])
            .strip_prefix(':')
        else {
            continue;
        };
        let value = value.trim_start_matches(['"', '\'', ' ']);
        let end = value.find(|c: char| !c.is_alphanumeric());
        let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
        if let Some(kind) = KINDS.into_iter().find(|kind| *kind == value) {
            *counts.entry(kind).or_default() += 1;
        }
    }
    let counts = counts.iter().map(|(kind, count)| format!("{kind} {count}"));
    let counts: Vec<_> = counts.collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_seen_where_they_are_keys() {
        for (text, want) in [
            (
                "kind: Ingress\n- kind: 'Service'\n  kind: \"Ingress\"",
                Some("Ingress 2, Service 1"),
            ),
            (
                r#"{"kind":"Secret","x":{"kind" : "Secret"}}"#,
                Some("Secret 2"),
            ),
            ("mankind: Ingress\nkind: Pod\nkinds: [Service]\nkind", None),
            ("kind: IngressClass", Some("IngressClass 1")),
        ] {
            assert_eq!(seen(text).as_deref(), want, "{text}");
        }
    }
}
