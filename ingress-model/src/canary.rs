//! Canaries: backends that take a share of the requests for what other Ingresses define.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hashbrown::HashMap;

use crate::{
    definition::{BackendUse, Definition, PathField},
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    hosts::Hosts,
    layout::PathType,
    live::UpstreamName,
    options::ConflictPolicy,
    upstream::{Upstreams, User},
};

/// Which canaries belong to which main backends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Canaries {
    /// Canaries by main backend, the one that holds first.
    pub(crate) alternatives: BTreeMap<UpstreamName, Vec<UpstreamName>>,
    /// Main backends by canary, in the order in which they were found.
    pub(crate) mains: BTreeMap<UpstreamName, Vec<UpstreamName>>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Canaries {
    /// The backends for which the two differ.
    pub(crate) fn changed(&self, newer: &Self) -> BTreeSet<UpstreamName> {
        let differing = |old: &BTreeMap<_, Vec<_>>, new: &BTreeMap<_, Vec<_>>| {
            let names: BTreeSet<&UpstreamName> = old.keys().chain(new.keys()).collect();
            let names = names.into_iter();
            let names = names.filter(|name| old.get(*name) != new.get(*name));
            names.cloned().collect::<Vec<_>>()
        };
        let alternatives = differing(&self.alternatives, &newer.alternatives);
        let mains = differing(&self.mains, &newer.mains);
        alternatives.into_iter().chain(mains).collect()
    }
}

/// Finds the main backends of canaries.
///
/// A canary's path belongs to the locations of its host with the same path, as the Ingresses write it, and the same
/// path type; its default backend belongs to all locations of the catch-all host. Its backend becomes an alternative of
/// theirs, except of `upstream-default-backend` and of a backend for the same Service and port. As a main backend is
/// shared by the Ingresses that use it alike, the canary gets a share of the requests for all of them.
///
/// Of several canaries of a backend the one whose definition holds by the policy comes first. A canary without any
/// main backend has no backend of its own.
pub(crate) fn merge(
    mut canaries: Vec<&Arc<Definition>>,
    policy: ConflictPolicy,
    hosts: &Hosts,
    upstreams: &Upstreams,
) -> Canaries {
    canaries.sort_by(|a, b| policy.precedence(a, b));
    let mut merge = Merge {
        hosts,
        upstreams,
        locations: HashMap::new(),
        canaries: Canaries::default(),
    };
    for definition in canaries {
        if let Some(backend) = &definition.default_backend {
            let mains = merge.all_of(&Host::catch_all());
            merge.join(definition, backend, &mains, &"spec.defaultBackend");
        }
        for rule in &definition.hosts {
            for path in &rule.paths {
                let mains = merge.mains(&rule.host, &path.path, path.path_type);
                merge.join(definition, &path.backend, &mains, &Key(path.field));
            }
        }
    }
    merge.canaries
}

struct Key(PathField);

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.path", self.0)
    }
}

struct Merge<'a> {
    hosts: &'a Hosts,
    upstreams: &'a Upstreams,
    /// Main backends of hosts that were looked at.
    locations: HashMap<&'a Host, HashMap<(&'a str, PathType), &'a UpstreamName>>,
    canaries: Canaries,
}

impl<'a> Merge<'a> {
    fn mains(&mut self, host: &'a Host, path: &'a str, path_type: PathType) -> Vec<UpstreamName> {
        let hosts = self.hosts;
        let locations = self.locations.entry(host).or_insert_with(|| {
            let entry = hosts.entries.get(host);
            let locations = entry.iter().flat_map(|entry| &entry.server.locations);
            locations
                .map(|location| {
                    let key = (location.ingress_path.as_str(), location.path_type);
                    (key, &location.upstream)
                })
                .collect()
        });
        let main = locations.get(&(path, path_type));
        main.map(|main| (*main).clone()).into_iter().collect()
    }

    fn all_of(&self, host: &Host) -> Vec<UpstreamName> {
        let entry = self.hosts.entries.get(host);
        let locations = entry.iter().flat_map(|entry| &entry.server.locations);
        locations
            .map(|location| location.upstream.clone())
            .collect()
    }

    fn join(
        &mut self,
        definition: &Definition,
        backend: &BackendUse,
        mains: &[UpstreamName],
        key: &dyn std::fmt::Display,
    ) {
        let canary = backend.upstream(self.upstreams.names(definition));
        let mut joined = false;
        for main in mains {
            if !self.may_join(&canary, main) {
                continue;
            }
            joined = true;
            let alternatives = self.canaries.alternatives.entry(main.clone()).or_default();
            if !alternatives.contains(&canary) {
                alternatives.push(canary.clone());
                let mains = self.canaries.mains.entry(canary.clone()).or_default();
                mains.push(main.clone());
            }
        }
        if !joined {
            let message = "no other Ingress has a backend for this that the canary could join";
            let object = definition.reference();
            let diagnostic =
                Diagnostic::new(object, Severity::Warning, Reason::OrphanCanary, message);
            self.canaries
                .diagnostics
                .push(diagnostic.with_key(key.to_string()));
        }
    }

    fn may_join(&self, canary: &UpstreamName, main: &UpstreamName) -> bool {
        let target = |users: &'a [User]| {
            let user = users.first()?;
            user.target().map(|used| (&used.service, &used.port))
        };
        let group = |name| self.upstreams.group(name);
        main.as_str() != UpstreamName::DEFAULT_BACKEND
            && group(main).and_then(target) != group(canary).and_then(target)
    }
}
