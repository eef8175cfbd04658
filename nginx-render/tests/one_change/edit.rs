//! One field of an object, changed.

use std::collections::BTreeMap;

use ingress_model::ObjectKind;
use serde_json::{Map, Value, json};

use crate::{
    dice::Dice,
    rows::{ROWS, Row},
};

const PREFIX: &str = "nginx.ingress.kubernetes.io/";

/// Texts that other places of a cluster have.
const TEXTS: &[&str] = &[
    "",
    "/",
    "/a",
    "/a/",
    "x",
    "shop.test",
    "SHOP.test",
    "*.bank.test",
    "www.passed.test",
    "old.test",
    "web",
    "http",
    "80",
    "a b",
    "$x",
    "nginx",
    "true",
];

const NUMBERS: &[i64] = &[0, 1, 53, 80, 81, 8080, 65_535, 65_536, -1];

/// Keys of the ConfigMap, and entries of the maps of TCP and UDP services.
const KEYS: &[(&str, &str)] = &[
    ("server-tokens", "true"),
    ("ssl-redirect", "false"),
    ("force-ssl-redirect", "true"),
    ("load-balance", "ewma"),
    ("proxy-read-timeout", "62"),
    ("proxy-ssl-location-only", "true"),
    ("custom-http-errors", "404"),
    ("global-auth-url", "http://auth.test/"),
    ("no-auth-locations", "/a"),
    ("block-cidrs", "192.0.2.0/24"),
    ("add-headers", "shop/headers"),
    ("proxy-set-headers", "shop/headers"),
    ("service-upstream", "true"),
    ("no-such-key", "1"),
    ("9000", "bank/api:80"),
    ("9001", "shop/web:http:PROXY:PROXY"),
    ("9002", "shop/far:80"),
    ("X-Team", "green"),
    ("auth", "noor:hash"),
];

/// Values by the member that holds them, and the members that objects have, by the member that holds the object.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    values: BTreeMap<String, Vec<Value>>,
    members: BTreeMap<String, Vec<(String, Value)>>,
}

impl Pools {
    /// Takes what an object has.
    pub(crate) fn learn(&mut self, key: &str, value: &Value) {
        let known = self.values.entry(key.to_owned()).or_default();
        if !known.contains(value) {
            known.push(value.clone());
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let pair = (name.clone(), member.clone());
                    let known = self.members.entry(key.to_owned()).or_default();
                    if !known.contains(&pair) {
                        known.push(pair);
                    }
                    self.learn(name, member);
                }
            }
            Value::Array(elements) => {
                let name = format!("{key}[]");
                for element in elements {
                    self.learn(&name, element);
                }
            }
            _ => {}
        }
    }

    fn value(&self, key: &str, dice: &mut Dice) -> Option<Value> {
        let values = self.values.get(key)?;
        Some(dice.pick(values).clone())
    }

    /// Another object that differs from `object` in one place; `None` if the choice leads to nothing.
    pub(crate) fn edit(&self, kind: ObjectKind, object: &Value, dice: &mut Dice) -> Option<Value> {
        let mut new = object.clone();
        match kind {
            ObjectKind::Ingress if dice.percent(45) => annotate(&mut new, dice),
            ObjectKind::ConfigMap | ObjectKind::Secret if dice.percent(60) => {
                set_key(kind, &mut new, dice);
            }
            _ => self.edit_anywhere(&mut new, dice)?,
        }
        (new != *object).then_some(new)
    }

    fn edit_anywhere(&self, object: &mut Value, dice: &mut Dice) -> Option<()> {
        let mut places = Vec::new();
        find(object, "", "", &mut places);
        let (pointer, key) = places.get(dice.below(places.len().max(1)))?.clone();
        if dice.percent(25) {
            return remove(object, &pointer);
        }
        let place = object.pointer_mut(&pointer)?;
        match place {
            Value::Array(elements) if dice.percent(80) => match dice.below(4) {
                0 => elements.reverse(),
                1 => elements.extend(elements.first().cloned()),
                2 => drop(elements.pop()),
                _ => elements.extend(self.value(&format!("{key}[]"), dice)),
            },
            Value::Object(members) if dice.percent(80) => {
                let (name, value) = dice.pick(self.members.get(&key)?).clone();
                members.insert(name, value);
            }
            _ if dice.percent(60) => *place = self.value(&key, dice)?,
            Value::String(text) => (*dice.pick(TEXTS)).clone_into(text),
            Value::Number(_) => *place = json!(dice.pick(NUMBERS)),
            Value::Bool(is_so) => *is_so = !*is_so,
            _ => *place = Value::Null,
        }
        Some(())
    }
}

/// All places within a value, but for what identifies the object.
fn find(value: &Value, pointer: &str, key: &str, places: &mut Vec<(String, String)>) {
    let is_identity = [
        "/apiVersion",
        "/kind",
        "/metadata/name",
        "/metadata/namespace",
    ]
    .contains(&pointer);
    if is_identity {
        return;
    }
    if !["", "/metadata"].contains(&pointer) {
        places.push((pointer.to_owned(), key.to_owned()));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                find(member, &format!("{pointer}/{escaped}"), name, places);
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                find(
                    element,
                    &format!("{pointer}/{index}"),
                    &format!("{key}[]"),
                    places,
                );
            }
        }
        _ => {}
    }
}

fn remove(object: &mut Value, pointer: &str) -> Option<()> {
    let (parent, last) = pointer.rsplit_once('/')?;
    match object.pointer_mut(parent)? {
        Value::Object(members) => {
            members.remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        Value::Array(elements) => {
            elements.remove(last.parse().ok()?);
        }
        _ => return None,
    }
    Some(())
}

fn member<'a>(object: &'a mut Value, pointer: &[&str]) -> &'a mut Map<String, Value> {
    let mut place = object;
    for name in pointer {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[*name];
    }
    if !place.is_object() {
        *place = json!({});
    }
    place.as_object_mut().unwrap()
}

/// Sets or takes away one annotation; mostly one whose companions are there already gets them first.
fn annotate(object: &mut Value, dice: &mut Dice) {
    let annotations = member(object, &["metadata", "annotations"]);
    let ours: Vec<_> = annotations
        .keys()
        .filter(|key| key.starts_with(PREFIX))
        .cloned()
        .collect();
    if !ours.is_empty() && dice.percent(30) {
        annotations.remove(dice.pick(&ours));
        return;
    }
    let (name, value, _, bad, companions): &Row = dice.pick(ROWS);
    let missing = companions.iter().filter(|(name, _)| {
        !name.contains(':') && !annotations.contains_key(&format!("{PREFIX}{name}"))
    });
    let missing: Vec<_> = missing.collect();
    let (name, value) = match (missing.as_slice(), bad) {
        (missing, _) if !missing.is_empty() => **dice.pick(missing),
        (_, Some(bad)) if dice.percent(20) => (*name, *bad),
        _ => (*name, *value),
    };
    annotations.insert(format!("{PREFIX}{name}"), json!(value));
}

/// Sets or takes away one key.
fn set_key(kind: ObjectKind, object: &mut Value, dice: &mut Dice) {
    let data = member(object, &["data"]);
    let keys: Vec<_> = data.keys().cloned().collect();
    if !keys.is_empty() && dice.percent(40) {
        data.remove(dice.pick(&keys));
        return;
    }
    let (key, value) = dice.pick(KEYS);
    // What a Secret holds is written in base64: "noor:hash".
    let value = if kind == ObjectKind::Secret {
        "bm9vcjpoYXNo"
    } else {
        value
    };
    data.insert((*key).to_owned(), json!(value));
}
