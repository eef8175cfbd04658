//! Judges Ingresses by the objects that are there now.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ingress_model::{AdmissionIndex, ObjectKind, Options, Verdict, admit};
use k8s_openapi::api::networking::v1::Ingress;

use super::Review;
use crate::store::Store;

/// Judges Ingresses by the same rules as those of a sync.
pub struct Reviewer {
    store: Arc<Store>,
    options: Options,
    index: Mutex<AdmissionIndex>,
}

impl Reviewer {
    /// A reviewer that knows what a store has.
    #[must_use]
    pub fn new(store: Arc<Store>, options: Options) -> Self {
        Self {
            store,
            options,
            index: Mutex::default(),
        }
    }
}

impl Review for Reviewer {
    fn review(&self, ingress: &Ingress) -> Verdict {
        let snapshot = self.store.snapshot();
        let options = Options {
            ingress_classes_readable: !self.store.is_refused(ObjectKind::IngressClass),
            ..self.options.clone()
        };
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let excerpt = index.excerpt(&snapshot, ingress, &options);
        drop(index);
        admit(ingress, &excerpt, &options)
    }
}

impl fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}
