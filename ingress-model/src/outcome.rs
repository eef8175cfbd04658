//! What a merge yields.

use std::collections::BTreeMap;

use crate::{
    dependencies::Dependencies, diagnostic::Diagnostic, host::Host, layout::Layout, live::Live,
    passthrough::Passthrough, provenance::Provenance, snapshot::LastGood,
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
    /// Hosts whose TLS is to be passed through; NGINX does not know of it.
    pub passthrough: BTreeMap<Host, Passthrough>,
    /// What objects' authors and the operator should know, sorted, without repetition.
    pub diagnostics: Vec<Diagnostic>,
    /// Who defined what, and who lost it.
    pub provenance: Provenance,
    /// The objects that matter: a change of another one needs no merge.
    pub dependencies: Dependencies,
    /// The versions of Ingresses that are served, for the next [`Snapshot`](crate::Snapshot).
    pub last_good: LastGood,
}
