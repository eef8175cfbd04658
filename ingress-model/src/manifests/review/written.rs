//! What a document says, as it is written, with the place of each of its parts.

use std::{fmt, path::Path};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use super::super::{complete::is_cluster_wide, parse::documents as parts};
use crate::object::{ObjectKind, ObjectName, ObjectRef};

/// A line and a column, from 1.
pub(super) type Place = (u64, u64);

/// A value, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) node: Node,
    place: Option<Place>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Map(Vec<(Key, Written)>),
    List(Vec<Written>),
    Scalar(Value),
}

/// The name of an entry, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) text: String,
    place: Option<Place>,
}

/// The documents of a file, but for those that cannot be read.
pub(super) fn documents(file: &Path, text: &str) -> Vec<Written> {
    if file.extension().is_some_and(|it| it == "json") {
        let value = serde_json::from_str::<Value>(text);
        return value.into_iter().map(Written::from).collect();
    }
    let documents = parts(text).into_iter();
    let documents = documents.filter_map(|(first_line, text)| {
        let mut document: Written = serde_saphyr::from_str(text).ok()?;
        document.move_down(first_line);
        Some(document)
    });
    documents.collect()
}

impl Written {
    /// The entry of that name.
    fn entry(&self, name: &str) -> Option<&Self> {
        let Node::Map(entries) = &self.node else {
            return None;
        };
        let entry = entries.iter().find(|(key, _)| key.text == name);
        entry.map(|(_, value)| value)
    }

    /// The text of an entry.
    pub(super) fn text_at(&self, name: &str) -> Option<&str> {
        match &self.entry(name)?.node {
            Node::Scalar(Value::String(text)) => Some(text),
            Node::Scalar(_) | Node::Map(_) | Node::List(_) => None,
        }
    }

    /// The text of an entry that should be a text, and may be a number or the like for want of quotes.
    fn unquoted_at(&self, name: &str) -> Option<String> {
        match &self.entry(name)?.node {
            Node::Scalar(Value::String(text)) => Some(text.clone()),
            Node::Scalar(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
            Node::Scalar(_) | Node::Map(_) | Node::List(_) => None,
        }
    }

    /// The items of a list of objects.
    pub(super) fn items(&self) -> &[Self] {
        match self.entry("items").map(|items| &items.node) {
            Some(Node::List(items)) => items,
            Some(Node::Map(_) | Node::Scalar(_)) | None => &[],
        }
    }

    /// The object that a document of a kind says it is.
    pub(super) fn reference(&self, kind: ObjectKind) -> Option<ObjectRef> {
        let metadata = self.entry("metadata")?;
        let namespace = metadata.unquoted_at("namespace");
        let namespace = match namespace.as_deref().filter(|name| !name.is_empty()) {
            _ if is_cluster_wide(kind) => "",
            namespace => namespace.unwrap_or("default"),
        };
        let name = ObjectName::new(namespace, &metadata.unquoted_at("name")?);
        Some(ObjectRef::new(kind, name))
    }

    /// Where a field such as `spec.rules[0].host` stands: its name, or of a field that is missing, the nearest one around
    /// it.
    pub(super) fn place_of(&self, field: &str) -> Option<Place> {
        match &self.node {
            Node::Map(entries) => {
                let mut found = entries.iter().filter_map(|(key, value)| {
                    let rest = field.strip_prefix(&key.text)?;
                    let ends = rest.is_empty() || rest.starts_with(['.', '[']);
                    ends.then(|| (key, value, rest.strip_prefix('.').unwrap_or(rest)))
                });
                let (key, value, rest) = found.next()?;
                let within = || value.place_of(rest);
                Some(rest)
                    .filter(|rest| !rest.is_empty())
                    .and_then(|_| within())
                    .or(key.place)
            }
            Node::List(items) => {
                let (index, rest) = field.strip_prefix('[')?.split_once(']')?;
                let item = items.get(index.parse::<usize>().ok()?)?;
                let rest = rest.strip_prefix('.').unwrap_or(rest);
                item.place_of(rest).or(item.place)
            }
            Node::Scalar(_) => None,
        }
    }

    /// Counts lines from the beginning of the file.
    fn move_down(&mut self, lines: u64) {
        let shift = |place: &mut Option<Place>| {
            *place = place.map(|(line, column)| (line + lines, column));
        };
        shift(&mut self.place);
        match &mut self.node {
            Node::Map(entries) => {
                for (key, value) in entries {
                    shift(&mut key.place);
                    value.move_down(lines);
                }
            }
            Node::List(items) => items.iter_mut().for_each(|item| item.move_down(lines)),
            Node::Scalar(_) => {}
        }
    }
}

impl From<Value> for Written {
    fn from(value: Value) -> Self {
        let node = match value {
            Value::Object(entries) => {
                let entries = entries.into_iter();
                let entries =
                    entries.map(|(text, value)| (Key { text, place: None }, value.into()));
                Node::Map(entries.collect())
            }
            Value::Array(items) => Node::List(items.into_iter().map(Self::from).collect()),
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                Node::Scalar(scalar)
            }
        };
        Self { node, place: None }
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::<Node>::deserialize(from)?;
        Ok(Self {
            node: value,
            place: place(referenced),
        })
    }
}

fn place(location: Location) -> Option<Place> {
    (location.line() > 0).then(|| (location.line(), location.column()))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        Node::deserialize(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let place = place(key.referenced);
            let key = Key {
                text: key.value,
                place,
            };
            entries.push((key, map.next_value()?));
        }
        Ok(Node::Map(entries))
    }
}
