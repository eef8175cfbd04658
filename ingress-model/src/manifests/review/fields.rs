//! A document as an object, with a word about each field that objects of its kind do not have.
//!
//! Which fields there are is known from the types of the API: each of them names its fields to whom it is read from.

use std::{cell::RefCell, fmt};

use serde::{
    Deserializer,
    de::{
        DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::StrDeserializer,
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Value};

use super::{
    super::object::Object,
    written::{Key, Node, Written},
};
use crate::spelling::nearest;

/// A field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) field: String,
    pub(super) message: String,
}

/// What was found on the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Fields that do not exist.
    pub(super) unknown: Vec<Wrong>,
    /// Values that cannot be read as what the field holds.
    pub(super) refused: Vec<Wrong>,
}

/// How many fields are told as the known ones, where none is like the one that was written.
const FEW: usize = 4;

/// Reads a document as an object of a kind; `None` for kinds that the rules do not read.
pub(super) fn read(
    document: &Written,
    api_version: &str,
    kind: &str,
) -> (Option<Result<Object, Error>>, Found) {
    let found = RefCell::default();
    let reader = Reader {
        written: document,
        at: Path::Root,
        found: &found,
    };
    let object = Object::read(api_version, kind, reader);
    (object, found.into_inner())
}

/// The way to a value.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(above, name) => write!(f, "{above}.{name}"),
            Self::Item(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

/// Reads one value.
struct Reader<'de, 'a> {
    written: &'de Written,
    at: Path<'a>,
    found: &'a RefCell<Found>,
}

impl<'de> Reader<'de, '_> {
    /// Reads a map; of a type with fields, others are told of.
    fn map<V: Visitor<'de>>(
        &self,
        entries: &'de [(Key, Written)],
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Some(fields) = fields {
            let unknown = entries.iter().map(|(key, _)| key.text.as_str());
            for name in unknown.filter(|name| !fields.contains(name)) {
                self.found.borrow_mut().unknown.push(Wrong {
                    field: Path::Field(&self.at, name).to_string(),
                    message: unknown_field(name, fields),
                });
            }
        }
        visitor.visit_map(Entries {
            rest: entries.iter(),
            value: None,
            at: &self.at,
            found: self.found,
        })
    }
}

fn unknown_field(name: &str, fields: &[&'static str]) -> String {
    // Names that are as long as a word are told apart by less than the edits that misspelling takes.
    let same = |field: &&&str| field.eq_ignore_ascii_case(name);
    let begins = |field: &&&str| name.len() > 2 && field.starts_with(name);
    let meant = fields.iter().find(same).copied();
    let meant = meant.or_else(|| nearest(name, fields.iter().copied()));
    let meant = meant.or_else(|| fields.iter().find(begins).copied());
    match meant {
        Some(meant) => format!("there is no such field; did you mean {meant}?"),
        None if (2..=FEW).contains(&fields.len()) => {
            let (last, others) = fields.split_last().map_or(("", &[][..]), |(a, b)| (*a, b));
            format!(
                "there is no such field; {} and {last} are known",
                others.join(", ")
            )
        }
        None => "there is no such field".to_owned(),
    }
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.written.node {
            Node::Map(entries) => self.map(entries, None, visitor),
            Node::List(items) => visitor.visit_seq(Items {
                rest: items.iter().enumerate(),
                at: &self.at,
                found: self.found,
            }),
            Node::Scalar(value) => value.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.written.node {
            Node::Map(entries) => self.map(entries, Some(fields), visitor),
            Node::List(_) | Node::Scalar(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.written.node {
            Node::Scalar(Value::Null) => visitor.visit_none(),
            Node::Scalar(_) | Node::Map(_) | Node::List(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let text = match &self.written.node {
            Node::Scalar(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            Node::Scalar(_) | Node::Map(_) | Node::List(_) => return self.deserialize_any(visitor),
        };
        // What else there is to say of the object is not to wait for this to be mended.
        self.found.borrow_mut().refused.push(Wrong {
            field: self.at.to_string(),
            message: format!("{text} is no text unless it stands in quotes"),
        });
        visitor.visit_string(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// Reads what stands at a place; what is wrong with it is told once, where it stands.
fn read_at<'de, S: DeserializeSeed<'de>>(
    seed: S,
    written: &'de Written,
    at: Path<'_>,
    found: &RefCell<Found>,
) -> Result<S::Value, Error> {
    let known = found.borrow().refused.len();
    let read = seed.deserialize(Reader { written, at, found });
    if let Err(error) = &read {
        let mut found = found.borrow_mut();
        if found.refused.len() == known {
            found.refused.push(Wrong {
                field: at.to_string(),
                message: error.to_string(),
            });
        }
    }
    read
}

struct Entries<'de, 'a> {
    rest: std::slice::Iter<'de, (Key, Written)>,
    value: Option<&'de (Key, Written)>,
    at: &'a Path<'a>,
    found: &'a RefCell<Found>,
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.value = self.rest.next();
        let key = self.value.map(|(key, _)| {
            let key: StrDeserializer<'de, Error> = key.text.as_str().into_deserializer();
            seed.deserialize(key)
        });
        key.transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let entry = self.value.take();
        let (key, value) = entry.ok_or_else(|| Error::custom("a value without its name"))?;
        read_at(seed, value, Path::Field(self.at, &key.text), self.found)
    }
}

struct Items<'de, 'a> {
    rest: std::iter::Enumerate<std::slice::Iter<'de, Written>>,
    at: &'a Path<'a>,
    found: &'a RefCell<Found>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let item = self.rest.next();
        let item = item.map(|(i, item)| read_at(seed, item, Path::Item(self.at, i), self.found));
        item.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_named() {
        for (name, fields, want) in [
            ("path", &["paths"][..], "did you mean paths?"),
            (
                "targetport",
                &["port", "targetPort"],
                "did you mean targetPort?",
            ),
            ("serv", &["resource", "service"], "did you mean service?"),
            (
                "xyz",
                &["resource", "service"],
                "resource and service are known",
            ),
            ("xyz", &["a", "b", "c", "d", "e"], "there is no such field"),
        ] {
            let message = unknown_field(name, fields);
            assert!(message.ends_with(want), "{name}: {message}");
        }
    }
}
