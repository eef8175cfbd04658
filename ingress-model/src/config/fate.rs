//! What becomes of each key of a ConfigMap: for those who explain it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;

use crate::{
    diagnostic::Diagnostic,
    object::{ObjectKind, ObjectName, ObjectRef},
};

use super::{
    GlobalConfig, Report, keys,
    keys::{KeyInfo, find_key},
};

/// What becomes of a key of the ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Its value holds.
    Accepted,
    /// Items of its list that cannot be used are left out.
    InPart,
    /// Its value cannot be used; the default holds.
    Refused,
    /// There is no such key.
    Unknown,
    /// This version does not act on it yet.
    NotYet,
    /// The same key in lower case is there, and holds.
    Overridden,
}

/// A key of a ConfigMap, as written, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyUse {
    /// The key as written.
    pub key: String,
    /// The value, without white space around it; `None` for one that nobody but NGINX may see.
    pub value: Option<String>,
    /// What becomes of it.
    pub fate: Fate,
    /// What there is to say about it.
    pub notes: Vec<String>,
    /// The key that an unknown one was most likely meant to be.
    pub suggestion: Option<&'static str>,
}

/// What becomes of each key of a ConfigMap when [`GlobalConfig::parse`] reads it, by key as written.
///
/// ```
/// use ingress_model::config::{Fate, key_uses};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let map = ConfigMap {
///     data: Some([("proxy-body-sice".to_owned(), "8m".to_owned())].into()),
///     ..ConfigMap::default()
/// };
/// let [used] = &key_uses(&map)[..] else { panic!() };
/// assert_eq!((used.fate, used.suggestion), (Fate::Unknown, Some("proxy-body-size")));
/// ```
#[must_use]
pub fn key_uses(config_map: &ConfigMap) -> Vec<KeyUse> {
    let mut diagnostics = Vec::new();
    let mut report = Report {
        about: ObjectRef::new(ObjectKind::ConfigMap, ObjectName::cluster("")),
        diagnostics: &mut diagnostics,
        fates: BTreeMap::new(),
    };
    let _config = GlobalConfig::read(config_map, &mut report);
    let fates = report.fates;
    let uses = config_map.data.iter().flatten().map(|(key, value)| {
        let info = find_key(key);
        let is_confidential = info.is_some_and(KeyInfo::is_confidential);
        let about = |said: &&Diagnostic| said.key.as_ref() == Some(key);
        let notes = diagnostics.iter().filter(about);
        KeyUse {
            key: key.clone(),
            value: (!is_confidential).then(|| value.trim().to_owned()),
            fate: fates.get(key).copied().unwrap_or(Fate::Accepted),
            notes: notes.map(|said| said.message.clone()).collect(),
            suggestion: keys::suggestion(key).filter(|_| info.is_none()),
        }
    });
    uses.collect()
}
