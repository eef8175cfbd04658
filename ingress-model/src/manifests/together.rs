//! What several files say together.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::networking::v1::{IngressClass, IngressClassSpec},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};

use crate::{
    object::{ObjectKind, ObjectName, ObjectRef},
    options::Options,
    snapshot::Snapshot,
};

use super::{complete::complete, object::Object};

/// The IngressClass that there is when no file defines one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssumedClass {
    /// Its name (`--ingress-class`).
    pub name: String,
    /// Its `spec.controller` (`--controller-class`).
    pub controller: String,
}

impl AssumedClass {
    /// The one that is ours by these options.
    #[must_use]
    pub fn ours(options: &Options) -> Self {
        Self {
            name: options.ingress_class.clone(),
            controller: options.controller_class.clone(),
        }
    }

    /// As an object.
    #[must_use]
    pub fn object(self) -> Object {
        let name = ObjectName::cluster(&self.name);
        let mut class = Object::IngressClass(IngressClass {
            metadata: ObjectMeta {
                name: Some(name.name().to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(IngressClassSpec {
                controller: Some(self.controller),
                parameters: None,
            }),
        });
        complete(&mut class);
        class
    }
}

/// An object as the files have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The object.
    pub object: Arc<Object>,
    /// When it counts as created, where it does not say so itself.
    pub created: Option<Timestamp>,
}

impl Placed {
    /// The object with its time of creation.
    #[must_use]
    pub fn dated(&self) -> Object {
        let mut object = Object::clone(&self.object);
        if let Some(created) = self.created {
            object.meta_mut().creation_timestamp = Some(Time(created));
        }
        object
    }
}

/// An object that two files define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Which one.
    pub object: ObjectRef,
    /// The file whose version is left out.
    pub left_out: PathBuf,
    /// The file whose version holds.
    pub used: PathBuf,
}

/// What several files say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Together {
    /// The objects.
    pub objects: BTreeMap<ObjectRef, Placed>,
    /// Those that are defined more than once.
    pub repeated: Vec<Repeated>,
    /// Whether the IngressClass is the assumed one.
    pub class_is_assumed: bool,
}

impl Together {
    /// The objects for a merge.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for placed in self.objects.values() {
            placed.dated().insert(&mut snapshot);
        }
        snapshot
    }
}

/// Puts together what files hold, given in the order of their names.
///
/// * An object that two files define is taken from the later one.
/// * Ingresses without `creationTimestamp` count as created in the order in which files and their documents hold them,
///   all of them before those that have one.
/// * Where no file defines an IngressClass, there is the assumed one.
///
/// ```
/// use std::{path::Path, sync::Arc};
///
/// use ingress_model::{Options, manifests::{AssumedClass, parse, together}};
///
/// let text = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: cart}\n";
/// let file = Path::new("cart.yaml");
/// let objects: Vec<_> = parse(file, text)?.objects.into_iter().map(Arc::new).collect();
/// let class = Arc::new(AssumedClass::ours(&Options::default()).object());
/// let snapshot = together([(file, &objects[..])], &class).snapshot();
/// assert_eq!((snapshot.ingresses.len(), snapshot.ingress_classes.len()), (1, 1));
/// # Ok::<_, ingress_model::manifests::ManifestError>(())
/// ```
#[must_use]
pub fn together<'a>(
    files: impl IntoIterator<Item = (&'a Path, &'a [Arc<Object>])>,
    assumed_class: &Arc<Object>,
) -> Together {
    let mut objects: BTreeMap<ObjectRef, (&Path, Placed)> = BTreeMap::new();
    let mut together = Together::default();
    let mut position = 0_i64;
    for (path, file) in files {
        for object in file {
            let undated =
                object.kind() == ObjectKind::Ingress && object.meta().creation_timestamp.is_none();
            let created = undated.then(|| {
                position += 1;
                Timestamp::from_second(position).unwrap_or(Timestamp::UNIX_EPOCH)
            });
            let placed = Placed {
                object: Arc::clone(object),
                created,
            };
            let reference = object.reference();
            if let Some((earlier, _)) = objects.insert(reference.clone(), (path, placed)) {
                together.repeated.push(Repeated {
                    object: reference,
                    left_out: earlier.to_owned(),
                    used: path.to_owned(),
                });
            }
        }
    }
    let objects = objects.into_iter();
    together.objects = objects
        .map(|(reference, (_, placed))| (reference, placed))
        .collect();
    let mut kinds = together.objects.keys().map(|object| object.kind);
    if !kinds.any(|kind| kind == ObjectKind::IngressClass) {
        together.class_is_assumed = true;
        let placed = Placed {
            object: Arc::clone(assumed_class),
            created: None,
        };
        together.objects.insert(assumed_class.reference(), placed);
    }
    together
}
