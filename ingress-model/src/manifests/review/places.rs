//! Where the fields of objects stand.

use std::path::Path;

use super::{
    super::object::Object,
    written::{Written, documents},
};
use crate::object::ObjectRef;

/// Where the objects of a file have their fields.
///
/// ```
/// use std::path::Path;
///
/// use ingress_model::{ObjectKind, ObjectName, ObjectRef, manifests::FieldPlaces};
///
/// let text = "apiVersion: networking.k8s.io/v1
/// kind: Ingress
/// metadata: {name: front, namespace: shop}
/// spec:
///   rules:
///   - host: shop.test
///   - host: cart.test
/// ";
/// let places = FieldPlaces::read(Path::new("front.yaml"), text);
/// let front = ObjectRef::new(ObjectKind::Ingress, ObjectName::new("shop", "front"));
/// assert_eq!(places.find(&front, "spec.rules[1].host"), Some((7, 5)));
/// assert_eq!(places.find(&front, "spec.rules[1].http"), Some((7, 5)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct FieldPlaces(Vec<(ObjectRef, Written)>);

impl FieldPlaces {
    /// Reads the text of a file. Of documents that cannot be read, and of JSON, no place is known.
    #[must_use]
    pub fn read(file: &Path, text: &str) -> Self {
        let mut found = Vec::new();
        for document in documents(file, text) {
            let kind = document.text_at("kind").unwrap_or_default().to_owned();
            let Some(of_items) = kind.strip_suffix("List") else {
                found.extend(named(&kind, document));
                continue;
            };
            for item in document.items() {
                let own = item.text_at("kind").unwrap_or(of_items);
                found.extend(named(own, item.clone()));
            }
        }
        Self(found)
    }

    /// The line and the column, from 1, of a field such as `spec.rules[0].host`: of its name, or where it is missing, of
    /// the nearest thing around it. Of an object that is defined twice, the last definition counts.
    #[must_use]
    pub fn find(&self, object: &ObjectRef, field: &str) -> Option<(u64, u64)> {
        let mut found = self.0.iter().rev().filter(|(name, _)| name == object);
        let (_, written) = found.next()?;
        written.place_of(field)
    }
}

fn named(kind: &str, written: Written) -> Option<(ObjectRef, Written)> {
    let name = written.reference(Object::kind_called(kind)?)?;
    Some((name, written))
}
