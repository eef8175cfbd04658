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
    object::{ObjectName, ObjectRef},
    options::Options,
    snapshot::Snapshot,
};

use super::{Gathering, complete::complete, object::Object};

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

/// Puts together what files hold, given in the order of their names, by the rules of [`Gathering`].
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
    let mut gathering = Gathering::new(Arc::clone(assumed_class));
    for (number, (path, objects)) in files.into_iter().enumerate() {
        gathering.set((number, path), objects);
    }
    let repeated = gathering.repeated().into_iter();
    let repeated = repeated.map(|(object, (_, left_out), (_, used))| Repeated {
        object,
        left_out: left_out.to_owned(),
        used: used.to_owned(),
    });
    Together {
        repeated: repeated.collect(),
        class_is_assumed: gathering.class_is_assumed(),
        objects: gathering.changes().set.into_iter().collect(),
    }
}
