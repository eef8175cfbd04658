//! What a merge yields.

use crate::{
    dependencies::Dependencies, diagnostic::Diagnostic, layout::Layout, live::Live,
    provenance::Provenance, snapshot::LastGood,
};

/// The configuration: what files show, and what a running NGINX is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Changes of it reload.
    pub layout: Layout,
    /// Changes of it never reload.
    pub live: Live,
}

/// The configuration and what there is to say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The configuration.
    pub model: Model,
    /// What objects' authors and the operator should know, sorted, without repetition.
    pub diagnostics: Vec<Diagnostic>,
    /// Who defined what, and who lost it.
    pub provenance: Provenance,
    /// The objects that matter: a change of another one needs no merge.
    pub dependencies: Dependencies,
    /// The versions of Ingresses that are served, for the next [`Snapshot`](crate::Snapshot).
    pub last_good: LastGood,
}
