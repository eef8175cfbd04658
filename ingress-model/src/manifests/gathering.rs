//! What files say together, kept up to date as they come, change and go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hashbrown::HashMap;

use crate::object::{ObjectKind, ObjectRef};

use super::{Object, Placed, order::Order};

/// What files say together, kept up to date as they come, change and go. A change of one file is looked at without
/// looking at the others.
///
/// `F` names files, and orders them.
///
/// * An object that two files define is taken from the later one; so is one that a file defines twice.
/// * Ingresses without `creationTimestamp` count as created in the order in which files and their documents hold them,
///   all of them before those that have one.
/// * Where no file defines an IngressClass, there is the assumed one.
///
/// ```
/// use std::{path::Path, sync::Arc};
///
/// use ingress_model::{Options, manifests::{AssumedClass, Gathering, parse}};
///
/// let cart = |host: &str| {
///     let text = format!("{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: cart}}, \
///                          spec: {{rules: [{{host: {host}}}]}}}}");
///     let content = parse(Path::new("cart.yaml"), &text)?;
///     Ok::<_, ingress_model::manifests::ManifestError>(content.objects.into_iter().map(Arc::new).collect::<Vec<_>>())
/// };
/// let mut files = Gathering::new(Arc::new(AssumedClass::ours(&Options::default()).object()));
/// files.set("10-cart.yaml", &cart("a.test")?);
/// assert_eq!(files.changes().set.len(), 2);
/// assert!(files.class_is_assumed());
///
/// files.set("20-cart.yaml", &cart("b.test")?);
/// let changes = files.changes();
/// assert_eq!((changes.set.len(), changes.gone.len(), files.repeated().len()), (1, 0, 1));
///
/// files.set("10-cart.yaml", &[]);
/// assert!(files.changes().set.is_empty());
/// # Ok::<_, ingress_model::manifests::ManifestError>(())
/// ```
#[derive(Debug)]
pub struct Gathering<F> {
    assumed_class: Arc<Object>,
    files: BTreeMap<F, Vec<Defined>>,
    /// Where objects are defined, in order. The last place holds.
    places: HashMap<ObjectRef, Vec<Place<F>>>,
    /// Objects that are defined more than once.
    repeated: BTreeSet<ObjectRef>,
    /// How many IngressClasses are defined.
    classes: usize,
    order: Order<Place<F>>,
    /// Objects that may be others than they were told to be.
    touched: BTreeSet<ObjectRef>,
    told: HashMap<ObjectRef, Told<F>>,
}

/// A file, and which of its objects.
type Place<F> = (F, usize);

#[derive(Debug)]
struct Defined {
    reference: ObjectRef,
    object: Arc<Object>,
}

#[derive(Debug)]
struct Told<F> {
    placed: Placed,
    /// Its place in the order of undated Ingresses.
    undated: Option<Place<F>>,
}

/// What is different.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Objects that are new or others, sorted.
    pub set: Vec<(ObjectRef, Placed)>,
    /// Objects that are gone, sorted.
    pub gone: Vec<ObjectRef>,
}

impl<F: Ord + Clone> Gathering<F> {
    /// No files yet.
    #[must_use]
    pub fn new(assumed_class: Arc<Object>) -> Self {
        Self {
            touched: BTreeSet::from([assumed_class.reference()]),
            assumed_class,
            files: BTreeMap::new(),
            places: HashMap::new(),
            repeated: BTreeSet::new(),
            classes: 0,
            order: Order::default(),
            told: HashMap::new(),
        }
    }

    /// Says which objects a file holds now; none if it is gone. An object that is the same shared pointer in the same
    /// place has not changed.
    pub fn set(&mut self, file: F, objects: &[Arc<Object>]) {
        let defined = objects.iter().map(|object| Defined {
            reference: object.reference(),
            object: Arc::clone(object),
        });
        let new: Vec<_> = defined.collect();
        let old = self.files.remove(&file).unwrap_or_default();
        let had_the_same = old.len() == new.len()
            && old
                .iter()
                .zip(&new)
                .all(|(old, new)| old.reference == new.reference);
        if had_the_same {
            let changed = old
                .iter()
                .zip(&new)
                .filter(|(old, new)| !Arc::ptr_eq(&old.object, &new.object));
            self.touched
                .extend(changed.map(|(_, new)| new.reference.clone()));
        } else {
            for (index, defined) in old.into_iter().enumerate() {
                self.remove(&(file.clone(), index), defined.reference);
            }
            for (index, defined) in new.iter().enumerate() {
                self.add((file.clone(), index), &defined.reference);
            }
        }
        if !new.is_empty() {
            self.files.insert(file, new);
        }
    }

    fn remove(&mut self, place: &Place<F>, reference: ObjectRef) {
        if let Some(places) = self.places.get_mut(&reference) {
            places.retain(|known| known != place);
            if places.len() < 2 {
                self.repeated.remove(&reference);
            }
            if places.is_empty() {
                self.places.remove(&reference);
                self.count_class(&reference, -1);
            }
        }
        self.touched.insert(reference);
    }

    fn add(&mut self, place: Place<F>, reference: &ObjectRef) {
        let places = self.places.entry_ref(reference).or_default();
        let behind = places.partition_point(|known| *known < place);
        places.insert(behind, place);
        match places.len() {
            1 => self.count_class(reference, 1),
            _ => {
                self.repeated.insert(reference.clone());
            }
        }
        self.touched.insert(reference.clone());
    }

    fn count_class(&mut self, reference: &ObjectRef, more: isize) {
        if reference.kind == ObjectKind::IngressClass {
            self.classes = self.classes.saturating_add_signed(more);
            self.touched.insert(self.assumed_class.reference());
        }
    }

    /// Whether the IngressClass is the assumed one.
    #[must_use]
    pub fn class_is_assumed(&self) -> bool {
        self.classes == 0
    }

    /// Objects that are defined more than once: with each, the file whose version is left out and the one that is used
    /// instead of it, in the order of the latter.
    #[must_use]
    pub fn repeated(&self) -> Vec<(ObjectRef, F, F)> {
        let mut repeated = Vec::new();
        for reference in &self.repeated {
            for pair in self
                .places
                .get(reference)
                .iter()
                .flat_map(|all| all.windows(2))
            {
                if let [(left_out, _), used] = pair {
                    repeated.push((used, reference, left_out));
                }
            }
        }
        repeated.sort_unstable();
        let repeated = repeated.into_iter();
        repeated
            .map(|((used, _), reference, left_out)| {
                (reference.clone(), left_out.clone(), used.clone())
            })
            .collect()
    }

    /// What is different since this was last asked; all objects, at first.
    pub fn changes(&mut self) -> Changes {
        let mut touched = std::mem::take(&mut self.touched);
        let moved = touched.iter().filter_map(|reference| {
            let before = self
                .told
                .get(reference)
                .and_then(|told| told.undated.clone());
            let now = self.undated_place(reference);
            (before != now).then_some((reference, before, now))
        });
        let moved: Vec<_> = moved.collect();
        let moved = moved.into_iter().map(|(reference, before, now)| {
            let created = before.and_then(|before| self.order.remove(&before));
            (reference.clone(), created, now)
        });
        // Places are free before others move there.
        let moved: Vec<_> = moved.collect();
        for (reference, created, now) in moved {
            if let Some(now) = now {
                self.order.insert(now, reference, created);
            }
        }
        touched.extend(self.order.settle());
        let mut changes = Changes::default();
        for reference in touched {
            let Some(now) = self.now(&reference) else {
                if self.told.remove(&reference).is_some() {
                    changes.gone.push(reference);
                }
                continue;
            };
            let placed = now.placed.clone();
            let before = self.told.insert(reference.clone(), now);
            if before.is_none_or(|before| before.placed != placed) {
                changes.set.push((reference, placed));
            }
        }
        changes
    }

    /// The object that holds, wherever it is defined.
    fn now(&self, reference: &ObjectRef) -> Option<Told<F>> {
        let undated = self.undated_place(reference);
        let created = undated.as_ref().and_then(|place| self.order.created(place));
        let object = match self.places.get(reference).and_then(|places| places.last()) {
            Some(place) => self.at(place)?,
            None if self.class_is_assumed() && self.assumed_class.reference() == *reference => {
                &self.assumed_class
            }
            None => return None,
        };
        let placed = Placed {
            object: Arc::clone(object),
            created,
        };
        Some(Told { placed, undated })
    }

    /// The place of an Ingress without date.
    fn undated_place(&self, reference: &ObjectRef) -> Option<Place<F>> {
        if reference.kind != ObjectKind::Ingress {
            return None;
        }
        let place = self.places.get(reference)?.last()?;
        let object = self.at(place)?;
        object
            .meta()
            .creation_timestamp
            .is_none()
            .then(|| place.clone())
    }

    fn at(&self, (file, index): &Place<F>) -> Option<&Arc<Object>> {
        let defined = self.files.get(file)?.get(*index)?;
        Some(&defined.object)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{
        manifests::{AssumedClass, Together, parse, together},
        options::Options,
    };

    use super::*;

    fn objects(text: &str) -> Vec<Arc<Object>> {
        let content = parse(Path::new("x.yaml"), text).unwrap();
        content.objects.into_iter().map(Arc::new).collect()
    }

    fn ingress(name: &str, host: &str) -> String {
        format!(
            "{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: {name}}}, \
             spec: {{rules: [{{host: {host}}}]}}}}\n---\n"
        )
    }

    fn class() -> Arc<Object> {
        Arc::new(AssumedClass::ours(&Options::default()).object())
    }

    /// Names of Ingresses, the oldest first.
    fn by_age(together: &Together) -> Vec<String> {
        let objects = together.objects.iter();
        let mut dated: Vec<_> = objects
            .filter_map(|(object, placed)| Some((placed.created?, object.name.name().to_owned())))
            .collect();
        dated.sort();
        dated.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn what_is_told_step_by_step_is_what_files_say_together() {
        let class_text = "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}, spec: {controller: x}}";
        let steps: &[(usize, String)] = &[
            (1, ingress("a", "a.test") + &ingress("b", "b.test")),
            (0, ingress("c", "c.test")),
            // Moves within a file, defined twice.
            (
                1,
                ingress("b", "b.test") + &ingress("a", "a.test") + &ingress("b", "d.test"),
            ),
            // Held by a later file, and given back.
            (2, ingress("c", "other.test")),
            (3, class_text.to_owned()),
            (0, String::new()),
            (2, String::new()),
            (0, ingress("c", "c.test") + &ingress("a", "first.test")),
            (3, ingress("z", "z.test")),
            (1, String::new()),
        ];
        let mut files: BTreeMap<usize, Vec<Arc<Object>>> = BTreeMap::new();
        let mut gathering = Gathering::new(class());
        let mut told: BTreeMap<ObjectRef, Placed> = BTreeMap::new();
        for (file, text) in steps {
            let held = objects(text);
            gathering.set(*file, &held);
            files.insert(*file, held);
            let changes = gathering.changes();
            for gone in &changes.gone {
                assert!(told.remove(gone).is_some(), "{gone} was never there");
            }
            told.extend(changes.set);
            let all = files.values().map(|held| (Path::new("x"), held.as_slice()));
            let want = together(all, &class());
            let now = Together {
                objects: told.clone(),
                ..Together::default()
            };
            assert_eq!(by_age(&now), by_age(&want));
            let plain = |together: &Together| {
                let objects = together.objects.clone().into_iter();
                objects
                    .map(|(reference, placed)| (reference, placed.object))
                    .collect::<Vec<_>>()
            };
            assert_eq!(plain(&now), plain(&want));
            assert_eq!(gathering.class_is_assumed(), want.class_is_assumed);
            assert_eq!(gathering.repeated().len(), want.repeated.len());
            assert_eq!(gathering.changes(), Changes::default());
        }
    }

    #[test]
    fn an_ingress_that_comes_changes_no_other() {
        let mut gathering = Gathering::new(class());
        gathering.set(1, &objects(&ingress("a", "a.test")));
        gathering.set(3, &objects(&ingress("b", "b.test")));
        assert_eq!(gathering.changes().set.len(), 3);
        gathering.set(2, &objects(&ingress("c", "c.test")));
        let changes = gathering.changes();
        let names: Vec<_> = changes
            .set
            .iter()
            .map(|(object, _)| object.name.name())
            .collect();
        assert_eq!(names, ["c"]);
    }
}
