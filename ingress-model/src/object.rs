//! Names of cluster objects, and maps of them that iterate in the same order every time.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use hashbrown::Equivalent;
use serde::{Serialize, Serializer};

use crate::shared_map::{Pair, SharedMap};

/// Namespace and name of an object. The namespace is empty for cluster-wide kinds.
///
/// Cloning is cheap (shared text). Orders by namespace, then name.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// `namespace/name`, or the name alone.
    text: Arc<str>,
    /// How long the namespace is.
    namespace: usize,
}

impl ObjectName {
    /// The object `name` in `namespace`.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        let text = if namespace.is_empty() {
            name.into()
        } else {
            [namespace, "/", name].concat().into()
        };
        Self {
            text,
            namespace: namespace.len(),
        }
    }

    /// A cluster-wide object.
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }

    /// Reads `namespace/name`; `None` unless both parts are there and neither holds another slash.
    ///
    /// ```
    /// use ingress_model::ObjectName;
    ///
    /// assert_eq!(ObjectName::parse("shop/cart"), Some(ObjectName::new("shop", "cart")));
    /// assert_eq!(ObjectName::parse("cart"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        let complete = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
        complete.then(|| Self {
            text: text.into(),
            namespace: namespace.len(),
        })
    }

    /// The namespace, empty for cluster-wide objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text.get(..self.namespace).unwrap_or_default()
    }

    /// The name within the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        let slash = usize::from(self.namespace > 0);
        self.text.get(self.namespace + slash..).unwrap_or_default()
    }

    /// Another object of the same namespace.
    #[must_use]
    pub fn sibling(&self, name: &str) -> Self {
        Self::new(self.namespace(), name)
    }

    /// As [`ObjectName::sibling`], to look something up.
    pub(crate) fn sibling_key<'a>(&'a self, name: &'a str) -> NameKey<'a> {
        NameKey(self.namespace(), name)
    }
}

impl Ord for ObjectName {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            // The slash stands at the same place.
            return self.text.cmp(&other.text);
        }
        let namespaces = self.namespace().cmp(other.namespace());
        namespaces.then_with(|| self.name().cmp(other.name()))
    }
}

impl PartialOrd for ObjectName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for ObjectName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NameKey(self.namespace(), self.name()).hash(state);
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ObjectName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Namespace and name by which a map of [`ObjectName`]s is asked without making one.
#[derive(Hash)]
pub(crate) struct NameKey<'a>(&'a str, &'a str);

impl Equivalent<ObjectName> for NameKey<'_> {
    fn equivalent(&self, name: &ObjectName) -> bool {
        self.0 == name.namespace() && self.1 == name.name()
    }
}

impl From<&NameKey<'_>> for ObjectName {
    fn from(key: &NameKey<'_>) -> Self {
        Self::new(key.0, key.1)
    }
}

/// The kinds of objects that the rules read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ObjectKind {
    /// `networking.k8s.io/v1` Ingress.
    Ingress,
    /// `networking.k8s.io/v1` IngressClass.
    IngressClass,
    /// `v1` Service.
    Service,
    /// `discovery.k8s.io/v1` EndpointSlice.
    EndpointSlice,
    /// `v1` Secret.
    Secret,
    /// `v1` ConfigMap.
    ConfigMap,
    /// `v1` Namespace.
    Namespace,
    /// `v1` Node.
    Node,
    /// `v1` Pod.
    Pod,
}

impl ObjectKind {
    /// The kind as written in a manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "Ingress",
            Self::IngressClass => "IngressClass",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Namespace => "Namespace",
            Self::Node => "Node",
            Self::Pod => "Pod",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object, by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectRef {
    /// What it is.
    pub kind: ObjectKind,
    /// Which one it is.
    pub name: ObjectName,
}

impl ObjectRef {
    /// The object of this kind and name.
    #[must_use]
    pub fn new(kind: ObjectKind, name: ObjectName) -> Self {
        Self { kind, name }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// Objects of one kind by name.
///
/// Cloning shares the whole map; a change after that copies a few of the map's shared pointers, never the objects.
#[derive(Debug)]
pub struct ObjectMap<K>(SharedMap<ObjectName, Arc<K>>);

impl<K> Clone for ObjectMap<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for ObjectMap<K> {
    fn default() -> Self {
        Self(SharedMap::default())
    }
}

impl<K> ObjectMap<K> {
    /// The object of that name.
    #[must_use]
    pub fn get(&self, name: &ObjectName) -> Option<&Arc<K>> {
        self.0.get(name)
    }

    /// Whether there is an object of that name.
    #[must_use]
    pub fn contains(&self, name: &ObjectName) -> bool {
        self.0.contains_key(name)
    }

    /// All objects, by name.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ObjectName, &Arc<K>)> {
        self.0.iter()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both are clones of one map without a change since: a fast answer, which may be no for equal maps.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.is_same(&other.0)
    }

    /// Adds or replaces an object; answers the one that was there.
    pub fn insert(&mut self, name: ObjectName, object: impl Into<Arc<K>>) -> Option<Arc<K>> {
        self.0.insert(name, object.into())
    }

    /// Takes an object away; answers the one that was there.
    pub fn remove(&mut self, name: &ObjectName) -> Option<Arc<K>> {
        self.0.remove(name)
    }

    /// The names of both maps, each once and in order, with their objects. Entries that both maps share are left out.
    pub(crate) fn differences<'a>(
        &'a self,
        newer: &'a Self,
    ) -> impl Iterator<Item = (&'a ObjectName, Pair<'a, Arc<K>>)> {
        self.0.differences(&newer.0)
    }
}

impl<K> FromIterator<(ObjectName, Arc<K>)> for ObjectMap<K> {
    fn from_iter<I: IntoIterator<Item = (ObjectName, Arc<K>)>>(objects: I) -> Self {
        Self(objects.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_only_when_complete() {
        for (text, want) in [
            ("a/b", Some(("a", "b"))),
            ("/b", None),
            ("a/", None),
            ("a", None),
            ("a/b/c", None),
            ("", None),
        ] {
            assert_eq!(
                ObjectName::parse(text),
                want.map(|(ns, name)| ObjectName::new(ns, name)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn names_order_by_namespace_first() {
        let mut names = [
            ("b", "a"),
            ("a", "b"),
            ("a-b", "a"),
            ("", "a/b"),
            ("a", "a"),
        ]
        .map(|(namespace, name)| ObjectName::new(namespace, name));
        names.sort();
        let parts = names.each_ref().map(|name| (name.namespace(), name.name()));
        assert_eq!(
            parts,
            [
                ("", "a/b"),
                ("a", "a"),
                ("a", "b"),
                ("a-b", "a"),
                ("b", "a")
            ]
        );
        assert_ne!(ObjectName::new("", "a/b"), ObjectName::new("a", "b"));
        assert_eq!(
            ObjectName::new("a", "b").sibling("c"),
            ObjectName::new("a", "c")
        );
    }

    #[test]
    fn a_clone_of_a_map_keeps_what_it_had() {
        let mut map = ObjectMap::default();
        map.insert(ObjectName::new("ns", "a"), 1);
        let earlier = map.clone();
        map.insert(ObjectName::new("ns", "b"), 2);
        map.remove(&ObjectName::new("ns", "a"));
        assert_eq!(earlier.len(), 1);
        assert_eq!(
            map.iter()
                .map(|(name, _)| name.to_string())
                .collect::<Vec<_>>(),
            ["ns/b"]
        );
    }
}
