//! The objects, versioned as etcd does it, with a bounded history of changes for each kind.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::{Value, json};

use super::resource::{RESOURCES, Resource};

/// Namespace (empty for cluster-wide kinds) and name.
pub(crate) type Key = (String, String);

/// A stored object. Each version is a value of its own; nothing is changed in place.
pub(crate) type Object = Arc<Value>;

/// Everything stored, under one version counter for all kinds.
#[derive(Debug)]
pub(crate) struct Store {
    version: u64,
    uids: u64,
    history_limit: usize,
    tables: BTreeMap<&'static Resource, Table>,
}

/// The objects of one kind.
#[derive(Debug, Default)]
pub(crate) struct Table {
    objects: BTreeMap<Key, Object>,
    history: VecDeque<Change>,
    /// Requests that start from an older version get 410.
    floor: u64,
    /// Version of the latest change that is no longer in `history`. A watch that has not reached
    /// it has lost events.
    lost: u64,
    pub(crate) signals: Signals,
    /// Watches now being served.
    pub(crate) open_watches: usize,
}

/// One write.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) before: Option<Object>,
    /// `None` when the write deleted the object.
    pub(crate) after: Option<Object>,
}

/// What the test has asked all running watches of a kind to do: each is a count of the times
/// asked, so that a watch sees what has happened since it last looked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signals {
    pub(crate) end: u64,
    pub(crate) expire: u64,
    pub(crate) bookmark: u64,
}

impl Store {
    /// An empty store that remembers that many changes of each kind.
    pub(crate) fn new(history_limit: usize) -> Self {
        Self {
            version: 1,
            uids: 0,
            history_limit,
            tables: RESOURCES
                .iter()
                .map(|resource| (resource, Table::default()))
                .collect(),
        }
    }

    /// The version of the latest write to any kind.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn table(&self, resource: &'static Resource) -> &Table {
        &self.tables[resource]
    }

    pub(crate) fn table_mut(&mut self, resource: &'static Resource) -> &mut Table {
        self.tables
            .get_mut(resource)
            .expect("a table is made for each kind")
    }

    pub(crate) fn get(&self, resource: &'static Resource, key: &Key) -> Option<&Object> {
        self.table(resource).objects.get(key)
    }

    /// Writes an object, stamping the new version into it.
    pub(crate) fn put(
        &mut self,
        resource: &'static Resource,
        key: Key,
        mut object: Value,
    ) -> Object {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let before = self
            .table_mut(resource)
            .objects
            .insert(key, Arc::clone(&object));
        self.record(resource, before, Some(Arc::clone(&object)));
        object
    }

    /// Deletes an object. The answer is its last state.
    pub(crate) fn remove(&mut self, resource: &'static Resource, key: &Key) -> Option<Object> {
        let before = self.table_mut(resource).objects.remove(key)?;
        self.version += 1;
        self.record(resource, Some(Arc::clone(&before)), None);
        Some(before)
    }

    /// Forgets the changes of one kind made so far.
    pub(crate) fn compact(&mut self, resource: &'static Resource) {
        let version = self.version;
        let table = self.table_mut(resource);
        table.floor = version;
        if let Some(last) = table.history.back() {
            table.lost = last.version;
        }
        table.history.clear();
    }

    /// From now on remembers that many changes of each kind.
    pub(crate) fn limit_history(&mut self, changes: usize) {
        self.history_limit = changes;
        for table in self.tables.values_mut() {
            table.trim(changes);
        }
    }

    /// A number no other call has given.
    pub(crate) fn next_uid(&mut self) -> u64 {
        self.uids += 1;
        self.uids
    }

    fn record(
        &mut self,
        resource: &'static Resource,
        before: Option<Object>,
        after: Option<Object>,
    ) {
        let (version, limit) = (self.version, self.history_limit);
        let table = self.table_mut(resource);
        table.history.push_back(Change {
            version,
            before,
            after,
        });
        table.trim(limit);
    }
}

impl Table {
    /// The objects as they are, in the order of their keys.
    pub(crate) fn objects(&self) -> &BTreeMap<Key, Object> {
        &self.objects
    }

    /// The oldest version a request may start from.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// Whether changes after `version` have been forgotten.
    pub(crate) fn has_lost_since(&self, version: u64) -> bool {
        version < self.lost
    }

    /// The remembered changes later than `version`, oldest first.
    pub(crate) fn changes_since(&self, version: u64) -> impl Iterator<Item = &Change> {
        let start = self
            .history
            .partition_point(|change| change.version <= version);
        self.history.range(start..)
    }

    /// The objects as they were at `version`; `None` when that is no longer known.
    pub(crate) fn objects_at(&self, version: u64) -> Option<BTreeMap<Key, Object>> {
        if version < self.floor {
            return None;
        }
        let mut objects = self.objects.clone();
        for change in self
            .history
            .iter()
            .rev()
            .take_while(|change| change.version > version)
        {
            match (&change.before, &change.after) {
                (Some(before), _) => {
                    objects.insert(key_of(before), Arc::clone(before));
                }
                (None, Some(after)) => {
                    objects.remove(&key_of(after));
                }
                (None, None) => {}
            }
        }
        Some(objects)
    }

    fn trim(&mut self, limit: usize) {
        while self.history.len() > limit {
            if let Some(change) = self.history.pop_front() {
                self.floor = self.floor.max(change.version);
                self.lost = change.version;
            }
        }
    }
}

/// The key an object is stored under.
pub(crate) fn key_of(object: &Value) -> Key {
    (
        text(object, "/metadata/namespace").to_owned(),
        text(object, "/metadata/name").to_owned(),
    )
}

/// A string inside an object by JSON pointer, empty when absent.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
