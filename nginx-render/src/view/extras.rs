//! What goes with a server besides its text.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    rendered::{FileContent, RelativePath},
    source_map::{Note, Source, Sources},
};

use super::{
    access::ZoneMap, client_auth::OwnedFile, errors::ErrorPage, external_auth::AuthUpstreams,
    internal::InternalView, pool::Pools,
};

/// Collected while the view of a server is made.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) sources: Sources,
    pub(crate) files: Vec<OwnedFile>,
    /// What cannot be as it was asked for.
    pub(crate) notes: Vec<Note>,
    /// Further locations by what they match: several locations may share one.
    pub(crate) internal: BTreeMap<String, InternalView>,
    /// Statuses that a default backend answers.
    pub(crate) error_pages: BTreeSet<ErrorPage>,
    pub(crate) shared: Shared,
}

/// What servers need of the http block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) zones: ZoneMap,
    pub(crate) auth_upstreams: AuthUpstreams,
    /// Upstream blocks for connections that not everybody may share.
    pub(crate) pools: Pools,
    pub(crate) caches_answers: bool,
    /// The length of the longest name of a header for endpoints that an Ingress sets.
    pub(crate) longest_header: usize,
    /// Whether a server reads the identifier of a request in other places than the header for endpoints.
    pub(crate) reads_request_id: bool,
}

impl Extras {
    pub(crate) fn add_internal(&mut self, location: InternalView) {
        self.internal
            .entry(location.matcher.0.to_string())
            .or_insert(location);
    }

    /// Notes what cannot be as it was asked for.
    pub(crate) fn note(&mut self, source: &Arc<Source>, what: &'static str, text: &str) {
        self.notes.push(Note {
            source: Arc::new(Source {
                what,
                ..source.as_ref().clone()
            }),
            text: text.into(),
        });
    }

    pub(crate) fn add_file(&mut self, path: RelativePath, file: FileContent, source: &Arc<Source>) {
        self.files.push((path, file, Arc::clone(source)));
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
        self.pools.extend(
            other
                .pools
                .iter()
                .map(|(name, keeps)| (name.clone(), *keeps)),
        );
        self.caches_answers |= other.caches_answers;
        self.longest_header = self.longest_header.max(other.longest_header);
        self.reads_request_id |= other.reads_request_id;
    }
}
