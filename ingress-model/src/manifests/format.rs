//! How a document is written: YAML or JSON.

use serde::Deserialize;
use serde_json::Value;

use super::object::{KINDS, Object};

/// What every object starts with.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Header {
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// A list of objects.
#[derive(Deserialize)]
pub(super) struct List {
    #[serde(default)]
    pub(super) items: Vec<Value>,
}

/// How a document is written.
pub(super) trait Format {
    /// Why a document cannot be read.
    type Error;

    fn header(&self, text: &str) -> Result<Header, Self::Error>;
    fn list(&self, text: &str) -> Result<List, Self::Error>;
    fn object(&self, header: &Header, text: &str) -> Option<Result<Object, Self::Error>>;
    /// Line and column within the document, from 1, and the reason.
    fn explain(&self, error: &Self::Error) -> (u64, u64, String);
}

/// What the YAML reader advises its callers, which is no business of those who write manifests.
const ADVICE: &str = ", set DuplicateKeyPolicy in Options if acceptable";

/// YAML.
pub(super) struct Yaml;

impl Format for Yaml {
    type Error = serde_saphyr::Error;

    fn header(&self, text: &str) -> Result<Header, Self::Error> {
        if let Some(header) = plain_header(text) {
            return Ok(header);
        }
        serde_saphyr::from_str(text)
    }

    fn list(&self, text: &str) -> Result<List, Self::Error> {
        serde_saphyr::from_str(text)
    }

    fn object(&self, header: &Header, text: &str) -> Option<Result<Object, Self::Error>> {
        let mut unknown = false;
        let read = serde_saphyr::with_deserializer_from_str(text, |from| {
            let read = Object::read(&header.api_version, &header.kind, from);
            unknown = read.is_none();
            read.transpose()
        });
        if unknown { None } else { read.transpose() }
    }

    fn explain(&self, error: &Self::Error) -> (u64, u64, String) {
        let plain = error.without_snippet();
        let (line, column) = plain
            .location()
            .map_or((0, 0), |place| (place.line(), place.column()));
        // The place is told apart, counted from the beginning of the file.
        let reason = plain
            .to_string()
            .replace(&format!(" at line {line}, column {column}"), "")
            .replace(ADVICE, "");
        (line, column, reason)
    }
}

/// JSON.
pub(super) struct Json;

impl Format for Json {
    type Error = serde_json::Error;

    fn header(&self, text: &str) -> Result<Header, Self::Error> {
        serde_json::from_str(text)
    }

    fn list(&self, text: &str) -> Result<List, Self::Error> {
        serde_json::from_str(text)
    }

    fn object(&self, header: &Header, text: &str) -> Option<Result<Object, Self::Error>> {
        let mut from = serde_json::Deserializer::from_str(text);
        Object::read(&header.api_version, &header.kind, &mut from)
    }

    fn explain(&self, error: &Self::Error) -> (u64, u64, String) {
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        (
            number(error.line()),
            number(error.column()),
            error.to_string(),
        )
    }
}

/// The header of an object that is read, where it can be seen without parsing the document: that takes as long as reading
/// the object. Lines of values are indented where the document is a block mapping, and only there do keys begin lines.
fn plain_header(text: &str) -> Option<Header> {
    if text.lines().any(|line| line.starts_with("...")) {
        return None;
    }
    let value = |key: &str| {
        let lines = text.lines();
        let mut values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        let value = values.next()?.trim();
        values.next().is_none().then_some(value)
    };
    let header = (value("apiVersion")?, value("kind")?);
    KINDS.contains(&header).then(|| Header {
        api_version: header.0.to_owned(),
        kind: header.1.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_seen_only_where_it_is_plain() {
        for (text, want) in [
            ("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n", true),
            (
                "---\nmetadata:\n  name: a\nkind: Service \r\napiVersion:  v1\r\n",
                true,
            ),
            ("apiVersion: v1\nkind: 'Service'\n", false),
            ("apiVersion: v1\nkind: Service # ours\n", false),
            ("apiVersion: v1\nkind: Pod\n", false),
            ("apiVersion: v1\nkind: Service\nkind: Secret\n", false),
            ("apiVersion: v1\nkind: Service\n...\nkind2: Secret\n", false),
            ("apiVersion: v1\nmetadata:\n  kind: Service\n", false),
            ("{apiVersion: v1, kind: Service}", false),
        ] {
            let seen = plain_header(text).map(|header| header.kind);
            assert_eq!(seen, want.then(|| "Service".to_owned()), "{text:?}");
        }
    }
}
