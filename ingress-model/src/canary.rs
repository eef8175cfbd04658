//! Canaries: backends that take a share of the requests for what other Ingresses define.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hashbrown::{HashMap, HashSet};

use crate::{
    definition::{BackendUse, Definition, PathField, ServiceUse},
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    hosts::Hosts,
    layout::PathType,
    live::{PortRef, UpstreamName},
    object::ObjectName,
    options::ConflictPolicy,
    upstream::{Upstreams, User},
};

/// Which canaries belong to which main backends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Canaries {
    /// Canaries by main backend, the one that holds first. Only that one is considered.
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
/// theirs, except of `upstream-default-backend` and of a backend for the same Service and port. A canary without any
/// main backend has no backend of its own.
///
/// * Of several canaries of a backend the one whose definition holds by the policy comes first, and only the first one
///   is considered: the others get no requests, and their authors are told ([`Reason::CanaryConflict`]).
/// * A main backend is shared by all paths that send to one Service's port with the same settings of balancing, so that
///   the canary gets a share of the requests for all of them, whatever their Ingress and host; its author is told which
///   ones it does not name ([`Reason::SharedCanary`]). A canary for some of them needs a Service of its own in front of
///   the same endpoints.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let canary = [("canary", "true"), ("canary-weight", "20")];
/// let served = Fixture::default()
///     .and_ingress("shop/cart", &[], &["shop.test/cart web:80"])
///     .and_ingress("shop/rest", &[], &["shop.test/ web:80"])
///     .and_ingress("shop/first", &canary, &["shop.test/cart next:80"])
///     .and_ingress("shop/second", &canary, &["shop.test/cart other:80"])
///     .merge();
/// let outcome = served.outcome();
/// assert_eq!(outcome.model.live.backends["shop-web-80"].alternatives[0].as_str(), "shop-other-80");
/// let said = |reason: &str| outcome.diagnostics.iter().find(|said| said.reason.as_str() == reason).unwrap();
/// assert_eq!(
///     said("CanaryConflict").to_string(),
///     "Ingress shop/first: spec.rules[0].http.paths[0].path: the canary gets no requests of Service shop/web port 80: \
///      that of Ingress shop/second does, and only one canary of a backend is considered (CanaryConflict)"
/// );
/// assert_eq!(
///     said("SharedCanary").to_string(),
///     "Ingress shop/second: canary: the canary gets a share of the requests for shop.test/ too, which go to Service \
///      shop/web port 80 as well (SharedCanary)"
/// );
/// ```
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
        first: BTreeMap::new(),
        canaries: Canaries::default(),
    };
    for definition in canaries {
        if let Some(backend) = &definition.default_backend {
            let targets = merge.all_of(&Host::catch_all());
            merge.join(definition, backend, &targets, &"spec.defaultBackend");
        }
        for rule in &definition.hosts {
            for path in &rule.paths {
                let target = merge.target(&rule.host, &path.path, path.path_type);
                merge.join(
                    definition,
                    &path.backend,
                    target.as_slice(),
                    &Key(path.field),
                );
            }
        }
    }
    merge.tell_of_further_paths();
    merge.canaries
}

struct Key(PathField);

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.path", self.0)
    }
}

/// A path of a host, as its Ingress writes it.
type Place<'a> = (&'a Host, &'a str, PathType);

/// A location that a canary may take a share of.
#[derive(Clone, Copy)]
struct Target<'a> {
    place: Place<'a>,
    main: &'a UpstreamName,
}

/// The canary of a main backend that is considered.
struct First<'a> {
    definition: &'a Definition,
    /// The paths that it names.
    named: HashSet<Place<'a>>,
}

struct Merge<'a> {
    hosts: &'a Hosts,
    upstreams: &'a Upstreams,
    /// Main backends of hosts that were looked at.
    locations: HashMap<&'a Host, HashMap<(&'a str, PathType), &'a UpstreamName>>,
    /// By main backend.
    first: BTreeMap<&'a UpstreamName, First<'a>>,
    canaries: Canaries,
}

impl<'a> Merge<'a> {
    fn target(&mut self, host: &'a Host, path: &'a str, path_type: PathType) -> Option<Target<'a>> {
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
        let main = locations.get(&(path, path_type))?;
        Some(Target {
            place: (host, path, path_type),
            main,
        })
    }

    fn all_of(&self, host: &Host) -> Vec<Target<'a>> {
        let hosts = self.hosts;
        let Some((host, entry)) = hosts.entries.get_key_value(host) else {
            return Vec::new();
        };
        let locations = entry.server.locations.iter();
        let targets = locations.map(|location| Target {
            place: (host, location.ingress_path.as_str(), location.path_type),
            main: &location.upstream,
        });
        targets.collect()
    }

    fn join(
        &mut self,
        definition: &'a Definition,
        backend: &BackendUse,
        targets: &[Target<'a>],
        key: &dyn std::fmt::Display,
    ) {
        let canary = backend.upstream(self.upstreams.names(definition));
        let mut joined = false;
        let mut passed_over = None;
        for target in targets {
            if !self.may_join(&canary, target.main) {
                continue;
            }
            joined = true;
            let main = target.main;
            let alternatives = self.canaries.alternatives.entry(main.clone()).or_default();
            if !alternatives.contains(&canary) {
                alternatives.push(canary.clone());
                let mains = self.canaries.mains.entry(canary.clone()).or_default();
                mains.push(main.clone());
            }
            let is_first = alternatives.first() == Some(&canary);
            let first = self.first.entry(main).or_insert_with(|| First {
                definition,
                named: HashSet::new(),
            });
            if is_first {
                first.named.insert(target.place);
            } else {
                passed_over.get_or_insert_with(|| (main, first.definition.name.clone()));
            }
        }
        if let Some((main, holder)) = passed_over {
            let message = format!(
                "the canary gets no requests of {}: that of Ingress {holder} does, and only one canary of a backend is \
                 considered",
                self.service_of(main)
            );
            self.tell(definition, Reason::CanaryConflict, key, message);
        } else if !joined {
            let message = "no other Ingress has a backend for this that the canary could join";
            self.tell(definition, Reason::OrphanCanary, key, message.to_owned());
        }
    }

    fn may_join(&self, canary: &UpstreamName, main: &UpstreamName) -> bool {
        let target = |users: &'a [User]| users.first().and_then(User::target).map(of_use);
        let group = |name| self.upstreams.group(name);
        main.as_str() != UpstreamName::DEFAULT_BACKEND
            && group(main).and_then(target) != group(canary).and_then(target)
    }

    /// The Service and port of a main backend, in words.
    fn service_of(&self, main: &UpstreamName) -> String {
        let users = self.upstreams.group(main).unwrap_or_default();
        let target = users.first().and_then(User::target).map(of_use);
        target.map_or_else(
            || main.to_string(),
            |(service, port)| format!("Service {service} port {port}"),
        )
    }

    /// Says which paths share the main backend of a canary that does not name them.
    fn tell_of_further_paths(&mut self) {
        for (main, first) in std::mem::take(&mut self.first) {
            let further = self.further_paths(main, &first);
            let Some(((host, path, _), others)) = further.split_first() else {
                continue;
            };
            let more = match others.len() {
                0 => String::new(),
                1 => " and another path".to_owned(),
                count => format!(" and {count} other paths"),
            };
            let message = format!(
                "the canary gets a share of the requests for {host}{path}{more} too, which go to {} as well",
                self.service_of(main)
            );
            self.tell(first.definition, Reason::SharedCanary, &"canary", message);
        }
    }

    fn further_paths(&self, main: &UpstreamName, first: &First<'_>) -> Vec<Place<'a>> {
        let hosts = self.hosts;
        let users = self.upstreams.group(main).unwrap_or_default();
        let catch_all = Host::catch_all();
        let of_rules = users.iter().flat_map(|user| &user.definition.hosts);
        let mut concerned: BTreeSet<&Host> = of_rules.map(|rule| &rule.host).collect();
        if users.iter().any(|user| user.definition.catch_all) {
            concerned.insert(&catch_all);
        }
        let entries = concerned
            .into_iter()
            .filter_map(|host| hosts.entries.get_key_value(host));
        let locations = entries.flat_map(|(host, entry)| {
            let locations = entry.server.locations.iter();
            let sharing = locations.filter(|location| location.upstream == *main);
            sharing.map(move |location| (host, location.ingress_path.as_str(), location.path_type))
        });
        let mut further: Vec<_> = locations
            .filter(|place| !first.named.contains(place))
            .collect();
        // A Prefix path is two locations.
        further.dedup();
        further
    }

    fn tell(
        &mut self,
        definition: &Definition,
        reason: Reason,
        key: &dyn std::fmt::Display,
        message: String,
    ) {
        let object = definition.reference();
        let diagnostic = Diagnostic::new(object, Severity::Warning, reason, message);
        self.canaries
            .diagnostics
            .push(diagnostic.with_key(key.to_string()));
    }
}

fn of_use(used: &ServiceUse) -> (&ObjectName, &PortRef) {
    (&used.service, &used.port)
}
