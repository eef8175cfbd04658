//! Where in manifests objects stand, and what of them.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use ingress_model::{
    ObjectRef,
    manifests::{FieldPlaces, salvage},
};
use serde::Serialize;

/// A place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Place {
    pub(super) file: PathBuf,
    /// From 1; `None` when the whole file is meant.
    pub(super) line: Option<u64>,
    /// From 1.
    pub(super) column: Option<u64>,
}

/// The places of objects.
#[derive(Debug, Default)]
pub(super) struct Places {
    objects: BTreeMap<ObjectRef, Text>,
    files: BTreeMap<PathBuf, FileText>,
}

/// The text of a file, and the places of fields in it, which are looked for when the first one is asked for.
#[derive(Debug)]
struct FileText {
    text: String,
    fields: OnceCell<FieldPlaces>,
}

/// The text of an object.
#[derive(Debug)]
struct Text {
    file: PathBuf,
    /// Where it begins, from 1.
    line: u64,
    /// Where in the file its lines are; nowhere if it shares them with other objects, as items of a list do.
    lines: Range<usize>,
}

impl Places {
    /// Reads files, as the directory of manifests has them. Of an object that several files define, the last place counts,
    /// since what stands there holds.
    pub(super) fn read(files: &[PathBuf]) -> Self {
        let mut places = Self::default();
        for file in files {
            // What cannot be read is a finding of its own.
            if let Ok(text) = fs::read_to_string(file) {
                places.add(file, &text);
            }
        }
        places
    }

    fn add(&mut self, file: &Path, text: &str) {
        let content = salvage(file, text);
        let lines = text.split_inclusive('\n').scan(0, |end, line| {
            let start = *end;
            *end += line.len();
            Some(start)
        });
        let starts: Vec<_> = lines.collect();
        let start = |line: u64| {
            let start = usize::try_from(line - 1).ok().and_then(|it| starts.get(it));
            start.copied().unwrap_or(text.len())
        };
        let ignored = content.ignored.iter().map(|ignored| ignored.line);
        let mut begins: Vec<u64> = content.lines.iter().copied().chain(ignored).collect();
        begins.sort_unstable();
        for (object, line) in content.objects.iter().zip(&content.lines) {
            let first = begins.partition_point(|begin| begin < line);
            let behind = begins.partition_point(|begin| begin <= line);
            let is_shared = behind > first + 1;
            let end = begins.get(behind).map_or(text.len(), |next| start(*next));
            let text = Text {
                file: file.to_owned(),
                line: *line,
                lines: if is_shared { 0..0 } else { start(*line)..end },
            };
            self.objects.insert(object.reference(), text);
        }
        let file_text = FileText {
            text: text.to_owned(),
            fields: OnceCell::new(),
        };
        self.files.insert(file.to_owned(), file_text);
    }

    /// The texts of all files that can be read.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        let files = self.files.iter();
        files.map(|(file, content)| (file.as_path(), content.text.as_str()))
    }

    /// Where an object begins, or where it has an annotation, key or field.
    pub(super) fn find(&self, object: &ObjectRef, key: Option<&str>) -> Option<Place> {
        let text = self.objects.get(object)?;
        if let Some((line, column)) = key.and_then(|key| self.item(&text.file, object, key)) {
            return Some(Place {
                file: text.file.clone(),
                line: Some(line),
                column: Some(column),
            });
        }
        let file = self.files.get(&text.file);
        let own = file.and_then(|file| file.text.get(text.lines.clone()));
        let lines = (text.line..).zip(own.unwrap_or_default().lines());
        let found = key.map(last_part).and_then(|key| {
            let mut lines = lines.filter_map(|(line, text)| Some((line, column(text, key)?)));
            lines.next()
        });
        let (line, column) = found.map_or((text.line, None), |(line, column)| (line, Some(column)));
        Some(Place {
            file: text.file.clone(),
            line: Some(line),
            column,
        })
    }

    /// Where a field stands whose path goes through a list.
    fn item(&self, file: &Path, object: &ObjectRef, field: &str) -> Option<(u64, u64)> {
        let file_text = self.files.get(file).filter(|_| is_of_list(field))?;
        let fields = &file_text.fields;
        let fields = fields.get_or_init(|| FieldPlaces::read(file, &file_text.text));
        fields.find(object, field)
    }
}

/// Whether a key is the path of a field that goes through a list (`spec.rules[0].host`).
fn is_of_list(key: &str) -> bool {
    key.starts_with("spec.") && key.contains('[')
}

/// What a line has of the path of a field (`spec.tls`), unless it goes through a list. Annotations and keys of ConfigMaps
/// are no paths.
fn last_part(key: &str) -> &str {
    let field = key.strip_prefix("spec.").filter(|_| !is_of_list(key));
    field.map_or(key, |field| field.rsplit('.').next().unwrap_or(field))
}

/// Where a line has a key with a colon behind it, from 1. The name of an annotation may have its prefix before it.
fn column(line: &str, key: &str) -> Option<u64> {
    let starts = line.match_indices(key).map(|(at, _)| at);
    let mut starts = starts.filter(|at| {
        let before = line
            .get(..*at)
            .and_then(|before| before.chars().next_back());
        let begins = before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '-' | '.' | '_'));
        let behind = line.get(at + key.len()..).unwrap_or_default();
        begins && behind.trim_start_matches(['"', '\'', ' ']).starts_with(':')
    });
    let before = line.get(..starts.next()?)?;
    u64::try_from(before.chars().count() + 1).ok()
}

#[cfg(test)]
mod tests {
    use ingress_model::{ObjectKind, ObjectName};

    use super::*;

    #[test]
    fn keys_are_found_where_they_are_written() {
        for (line, key, want) in [
            (
                "    a.b/proxy-body-size: 8m",
                "a.b/proxy-body-size",
                Some(5),
            ),
            ("    a.b/proxy-body-size: 8m", "proxy-body-size", Some(9)),
            ("  {\"proxy-body-size\" : 1}", "proxy-body-size", Some(5)),
            ("    x-proxy-body-size: 8m", "proxy-body-size", None),
            ("    proxy-body-sizes: 8m", "proxy-body-size", None),
            ("    name: proxy-body-size", "proxy-body-size", None),
        ] {
            assert_eq!(column(line, key), want, "{line}");
        }
        assert_eq!(last_part("a.b/spec.tls"), "a.b/spec.tls");
        assert_eq!(column("  tls:", last_part("spec.tls")), Some(3));
        let of_list = last_part("spec.rules[0].http.paths[1].path");
        assert_eq!(column("  - path: /", of_list), None);
    }

    #[test]
    fn each_object_has_its_place() {
        let text = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: x}
data:
  key: one
---
# the second one
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: x}
data:
  key: two
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: x}, data: {key: three}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: x}, data: {key: four}}
";
        let mut places = Places::default();
        places.add(Path::new("a.yaml"), text);
        let find = |name: &str, key| {
            let object = ObjectRef::new(ObjectKind::ConfigMap, ObjectName::new("x", name));
            let place = places.find(&object, key)?;
            Some((place.line?, place.column))
        };
        assert_eq!(find("a", None), Some((1, None)));
        assert_eq!(find("a", Some("key")), Some((5, Some(3))));
        assert_eq!(find("b", Some("key")), Some((12, Some(3))));
        assert_eq!(find("b", Some("other")), Some((8, None)));
        assert_eq!(find("d", Some("key")), Some((14, None)));
        assert_eq!(find("e", None), None);
    }

    #[test]
    fn items_of_lists_are_found() {
        let text = "\
# the front
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: x}
spec:
  rules:
  - host: a.test
  - host: b.test
    http:
      paths:
      - {path: /, backend: {service: {name: web, port: {number: 80}}}}
      - path: /cart
        backend: {service: {name: cart, port: {number: 80}}}
";
        let mut places = Places::default();
        places.add(Path::new("a.yaml"), text);
        let front = ObjectRef::new(ObjectKind::Ingress, ObjectName::new("x", "front"));
        let find = |key: &str| {
            let place = places.find(&front, Some(key))?;
            Some((place.line?, place.column?))
        };
        assert_eq!(find("spec.rules[0].host"), Some((7, 5)));
        assert_eq!(find("spec.rules[1].http.paths[0].backend"), Some((11, 19)));
        assert_eq!(find("spec.rules[1].http.paths[1].path"), Some((12, 9)));
        assert_eq!(find("spec.rules[1].http.paths[1].backend"), Some((13, 9)));
    }
}
