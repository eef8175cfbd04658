//! The text of a file → objects.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    complete::complete,
    format::{Format, Header, Json, Yaml},
    ignored::Ignored,
    object::Object,
};

/// Why a file of manifests, or one of its documents, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {}{reason}", file.display(), place(*.line, *.column), within(*.document))]
pub struct ManifestError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; `None` when the whole file is meant.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    /// Which document cannot be used; `None` when the whole file cannot, or has only one.
    pub document: Option<Part>,
    /// What is wrong there.
    pub reason: String,
}

/// One of several documents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1; documents that hold nothing do not count.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {} of {}", self.number, self.of)
    }
}

fn within(document: Option<Part>) -> String {
    let document = document.map(|part| format!("{part}: "));
    document.unwrap_or_default()
}

fn place(line: Option<u64>, column: Option<u64>) -> String {
    let number = |number: Option<u64>| number.map(|n| format!(":{n}")).unwrap_or_default();
    number(line) + &number(column)
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// Objects of the kinds that the rules read.
    pub objects: Vec<Object>,
    /// The line where each of them begins, from 1; items of a list begin where the list does.
    pub lines: Vec<u64>,
    /// Objects of other kinds.
    pub ignored: Vec<Ignored>,
    /// What is wrong with documents, and with items of lists, that are left out.
    pub broken: Vec<ManifestError>,
}

/// Reads a file: one JSON object if its name ends in `.json`, else any number of YAML documents. An object may be a list
/// (`List`, `IngressList`, …) of others. What an API server would add to the objects is added.
///
/// ```
/// use std::path::Path;
///
/// use ingress_model::manifests::parse;
///
/// let text = "apiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\n---\nkind: Service\n";
/// let error = parse(Path::new("cart.yaml"), text).unwrap_err();
/// assert_eq!(error.to_string(), "cart.yaml:5: document 2 of 2: the object has no apiVersion or no kind");
/// ```
///
/// # Errors
/// What is wrong in it, and where. There is no half of a file: what else it holds is not taken either. [`salvage()`] takes
/// it.
pub fn parse(file: &Path, text: &str) -> Result<Content, ManifestError> {
    let mut content = salvage(file, text);
    if content.broken.is_empty() {
        return Ok(content);
    }
    Err(content.broken.swap_remove(0))
}

/// Reads a file as [`parse()`] does, but for documents and items of lists that cannot be read: these are left out and told
/// of. A document ends where a line begins with `---`, whatever is wrong in it.
///
/// ```
/// use std::path::Path;
///
/// use ingress_model::manifests::salvage;
///
/// let text = "kind: Service\nmetadata: {name: [\n---\napiVersion: v1\nkind: Service\nmetadata: {name: cart}\n";
/// let content = salvage(Path::new("cart.yaml"), text);
/// assert_eq!((content.objects.len(), content.broken.len()), (1, 1));
/// ```
#[must_use]
pub fn salvage(file: &Path, text: &str) -> Content {
    let mut content = Content::default();
    if file
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        Document {
            file,
            text,
            first_line: 0,
            part: None,
        }
        .add(&Json, &mut content);
        return content;
    }
    let documents = documents(text);
    let of = documents.len();
    for (number, (first_line, text)) in (1..).zip(documents) {
        Document {
            file,
            text,
            first_line,
            part: (of > 1).then_some(Part { number, of }),
        }
        .add(&Yaml, &mut content);
    }
    content
}

/// The documents of a YAML stream, each with the number of lines before it.
///
/// A line that begins with three hyphens starts a document wherever it stands, inside block texts too (YAML 1.2,
/// `c-forbidden`), so that lines are all that has to be looked at.
pub(super) fn documents(text: &str) -> Vec<(u64, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut start_line, mut offset) = (0, 0, 0);
    for (line_number, line) in (0_u64..).zip(text.split_inclusive('\n')) {
        let rest = line.strip_prefix("---");
        if offset > 0
            && rest.is_some_and(|rest| rest.starts_with(char::is_whitespace) || rest.is_empty())
        {
            documents.extend(text.get(start..offset).map(|text| (start_line, text)));
            (start, start_line) = (offset, line_number);
        }
        offset += line.len();
    }
    documents.extend(text.get(start..).map(|text| (start_line, text)));
    documents.retain(|(_, text)| !is_blank(text));
    documents
}

/// Whether a document holds nothing: marks, comments and directives only.
fn is_blank(document: &str) -> bool {
    document.lines().all(|line| {
        let line = line.strip_prefix("---").unwrap_or(line).trim();
        line.is_empty() || line == "..." || line.starts_with('#') || line.starts_with('%')
    })
}

/// A part of a file that holds one object or one list.
struct Document<'a> {
    file: &'a Path,
    text: &'a str,
    first_line: u64,
    part: Option<Part>,
}

impl Document<'_> {
    /// Adds what it holds, or what is wrong with it.
    fn add<F: Format>(&self, format: &F, content: &mut Content) {
        if let Err(error) = self.read(format, content) {
            content.broken.push(error);
        }
    }

    fn read<F: Format>(&self, format: &F, content: &mut Content) -> Result<(), ManifestError> {
        let explain = |error: F::Error| {
            let (line, column, mut reason) = format.explain(&error);
            if self.text.contains("{{") {
                reason.push_str("; a template ({{ }}) has to be rendered first");
            }
            self.error(Some((line, column)), reason)
        };
        let header = format.header(self.text).map_err(explain)?;
        if header.kind.is_empty() || header.api_version.is_empty() {
            return Err(self.error(None, "the object has no apiVersion or no kind".into()));
        }
        if let Some(kind) = header.kind.strip_suffix("List") {
            let list = format.list(self.text).map_err(explain)?;
            for (number, item) in (1_usize..).zip(list.items) {
                if let Err(error) = self.item(&header, kind, number, item, content) {
                    content.broken.push(error);
                }
            }
            return Ok(());
        }
        if let Some(object) = format.object(&header, self.text) {
            return self.keep(object.map_err(explain)?, content);
        }
        self.ignore(header.api_version, header.kind, content);
        Ok(())
    }

    /// Reads an item of a list; items of `IngressList` and the like need not name their kind.
    fn item(
        &self,
        list: &Header,
        kind: &str,
        number: usize,
        item: Value,
        content: &mut Content,
    ) -> Result<(), ManifestError> {
        let own = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
        let kind = own("kind").unwrap_or_else(|| kind.to_owned());
        let api_version = own("apiVersion").unwrap_or_else(|| list.api_version.clone());
        match Object::read(&api_version, &kind, item) {
            Some(Ok(object)) => self.keep(object, content),
            Some(Err(error)) => Err(self.error(
                None,
                format!("item {number} of the list, a {kind}: {error}"),
            )),
            None => {
                self.ignore(api_version, kind, content);
                Ok(())
            }
        }
    }

    fn keep(&self, mut object: Object, content: &mut Content) -> Result<(), ManifestError> {
        if object.meta().name.as_deref().is_none_or(str::is_empty) {
            let reason = format!("the {} has no metadata.name", object.kind());
            return Err(self.error(None, reason));
        }
        complete(&mut object);
        content.objects.push(object);
        content.lines.push(self.first_line + self.begin());
        Ok(())
    }

    fn ignore(&self, api_version: String, kind: String, content: &mut Content) {
        let line = self.first_line + self.begin();
        let ignored = Ignored::new(line, api_version, kind);
        content.ignored.push(ignored);
    }

    /// The line of the document where the object begins, from 1.
    fn begin(&self) -> u64 {
        (1_u64..)
            .zip(self.text.lines())
            .find(|(_, line)| !is_blank(line))
            .map_or(1, |(number, _)| number)
    }

    /// What is wrong at a line and column of the document; without these, with the object that begins there.
    fn error(&self, place: Option<(u64, u64)>, reason: String) -> ManifestError {
        let (line, column) = place.unwrap_or_else(|| (self.begin(), 0));
        ManifestError {
            file: self.file.to_owned(),
            line: Some(self.first_line + line.max(1)),
            column: Some(column).filter(|column| *column > 0),
            document: self.part,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(content: &Content) -> Vec<String> {
        content
            .objects
            .iter()
            .map(|object| object.reference().to_string())
            .collect()
    }

    fn yaml(text: &str) -> Result<Content, ManifestError> {
        parse(Path::new("a.yaml"), text)
    }

    #[test]
    fn a_file_may_hold_several_documents_and_lists() {
        let text = "\
# a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: x}
data:
  text: |
    one
     ---
    two
--- # the next one
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: b}}
- {apiVersion: v1, kind: Pod, metadata: {name: c}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClassList
items: [{metadata: {name: d}}]
...
---
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: e}
";
        let content = yaml(text).unwrap();
        assert_eq!(
            names(&content),
            ["ConfigMap x/a", "Secret default/b", "IngressClass d"]
        );
        assert_eq!(content.lines, [3, 12, 18]);
        let ignored: Vec<_> = content
            .ignored
            .iter()
            .map(|ignored| format!("{}: {} {}", ignored.line, ignored.api_version, ignored.kind))
            .collect();
        assert_eq!(ignored, ["12: v1 Pod", "24: apps/v1 Deployment"]);
        let Object::ConfigMap(map) = &content.objects[0] else {
            panic!()
        };
        assert_eq!(map.data.as_ref().unwrap()["text"], "one\n ---\ntwo\n");
    }

    #[test]
    fn json_is_read_with_tabs_too() {
        let text = "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Service\",\n\t\"metadata\": {\"name\": \"a\"}\n}\n";
        let content = parse(Path::new("a.json"), text).unwrap();
        assert_eq!(names(&content), ["Service default/a"]);
        let error = parse(Path::new("a.json"), "{\n \"apiVersion\": 3}").unwrap_err();
        assert_eq!((error.line, error.column), (Some(2), Some(16)));
    }

    #[test]
    fn an_empty_file_holds_nothing() {
        for text in [
            "",
            "\n",
            "---\n",
            "# nothing\n---\n# here\n",
            "%YAML 1.2\n---\n",
        ] {
            assert_eq!(yaml(text), Ok(Content::default()), "{text:?}");
        }
    }

    #[test]
    fn errors_name_line_column_and_reason() {
        let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n";
        for (text, line, column, reason) in [
            (
                "kind: Secret\nmetadata: {name: a}\n",
                5,
                None,
                "the object has no apiVersion or no kind",
            ),
            (
                "apiVersion: v1\nkind: Secret\n",
                5,
                None,
                "the Secret has no metadata.name",
            ),
            (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: a\n",
                7,
                Some(11),
                "unclosed bracket '{'",
            ),
            (
                "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports: [{port: web}]\n",
                9,
                Some(18),
                "",
            ),
            (
                "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: 3}]\n",
                5,
                None,
                "item 1 of the list, a Secret: invalid type",
            ),
        ] {
            let error = yaml(&format!("{good}{text}")).unwrap_err();
            assert_eq!((error.line, error.column), (Some(line), column), "{error}");
            assert!(error.reason.contains(reason), "{error}");
        }
        let error = yaml(&format!("{good}kind: [")).unwrap_err();
        assert!(!error.reason.contains("line"), "{error}");
        let error = yaml("kind: Secret\nkind: Service").unwrap_err();
        assert_eq!(error.reason, "duplicate mapping key: kind");
        let template = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Values.name }}\n";
        let error = yaml(template).unwrap_err();
        let hint = "; a template ({{ }}) has to be rendered first";
        assert!(error.reason.ends_with(hint), "{error}");
        let error = yaml("kind: Secret").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.yaml:1: the object has no apiVersion or no kind"
        );
    }

    #[test]
    fn what_can_be_read_of_a_file_is_kept() {
        let text = "\
apiVersion: v1
kind: Service
metadata: {name: a}
---
apiVersion: v1
kind: Service
metadata: {name: [b}
---
# Nothing.
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: c}}
- {apiVersion: v1, kind: Secret, metadata: 3}
- {apiVersion: v1, kind: Secret}
- {apiVersion: v1, kind: Secret, metadata: {name: d}}
---
text: \"a quote that nobody closes
---
apiVersion: v1
kind: Service
metadata: {name: e}
";
        let content = salvage(Path::new("a.yaml"), text);
        assert_eq!(
            names(&content),
            [
                "Service default/a",
                "Secret default/c",
                "Secret default/d",
                "Service default/e"
            ]
        );
        assert_eq!(content.lines, [1, 11, 11, 21]);
        let broken: Vec<_> = content.broken.iter().map(ToString::to_string).collect();
        let begins = [
            "a.yaml:7:18: document 2 of 5: ",
            "a.yaml:11: document 3 of 5: item 2 of the list, a Secret: ",
            "a.yaml:11: document 3 of 5: the Secret has no metadata.name",
            "a.yaml:20",
        ];
        assert_eq!(broken.len(), begins.len(), "{broken:#?}");
        for (broken, begin) in broken.iter().zip(begins) {
            assert!(broken.starts_with(begin), "{broken}");
        }
        assert_eq!(
            parse(Path::new("a.yaml"), text).as_ref().err(),
            content.broken.first()
        );
    }

    #[test]
    fn a_file_that_ends_within_a_document_has_those_before() {
        let whole = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: bb}\n";
        let second = whole.find("---").unwrap() + 3;
        for end in 0..=whole.len() {
            let content = salvage(Path::new("a.yaml"), &whole[..end]);
            let told = content.objects.len() + content.ignored.len() + content.broken.len();
            assert!(told >= usize::from(end > 0), "{end}");
            if end >= second {
                assert_eq!(
                    names(&content).first().map(String::as_str),
                    Some("Service default/a"),
                    "{end}"
                );
            }
        }
    }
}
