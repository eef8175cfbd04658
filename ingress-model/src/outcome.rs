//! What a merge yields.

use crate::{diagnostic::Diagnostic, layout::Layout, live::Live};

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
}
