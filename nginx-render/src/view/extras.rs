//! What goes with a server besides its text.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    rendered::{FileContent, RelativePath},
    source_map::{Source, Sources},
};

use super::{
    access::ZoneMap, client_auth::OwnedFile, external_auth::AuthUpstreams, internal::InternalView,
};

/// Collected while the view of a server is made.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) sources: Sources,
    pub(crate) files: Vec<OwnedFile>,
    /// Further locations by what they match: several locations may share one.
    pub(crate) internal: BTreeMap<String, InternalView>,
    /// Statuses that the default backend answers.
    pub(crate) statuses: BTreeSet<u16>,
    pub(crate) shared: Shared,
}

/// What servers need of the http block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) zones: ZoneMap,
    pub(crate) auth_upstreams: AuthUpstreams,
    pub(crate) caches_answers: bool,
    /// The length of the longest name of a header for endpoints that an Ingress sets.
    pub(crate) longest_header: usize,
}

impl Extras {
    pub(crate) fn add_internal(&mut self, location: InternalView) {
        self.internal
            .entry(location.matcher.0.to_string())
            .or_insert(location);
    }

    pub(crate) fn add_file(
        &mut self,
        path: RelativePath,
        file: FileContent,
        source: &std::sync::Arc<Source>,
    ) {
        self.files.push((path, file, std::sync::Arc::clone(source)));
    }
}

impl Shared {
    /// Takes in what another server needs.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.zones
            .extend(other.zones.iter().map(|(id, zones)| (*id, zones.clone())));
        self.auth_upstreams.extend(
            other
                .auth_upstreams
                .iter()
                .map(|(id, upstream)| (*id, upstream.clone())),
        );
        self.caches_answers |= other.caches_answers;
        self.longest_header = self.longest_header.max(other.longest_header);
    }
}
