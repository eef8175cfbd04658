//! Canaries: backends that take a share of the requests for what other Ingresses define.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hashbrown::{HashMap, HashSet};

use crate::{
    changes::pairs,
    definition::{BackendUse, Definition, PathField, ServiceUse},
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    hosts::Hosts,
    layout::{Location, PathType},
    live::{PortRef, UpstreamName},
    object::{ObjectKind, ObjectName, ObjectRef},
    options::ConflictPolicy,
    upstream::{Upstreams, User},
};

/// Which canaries belong to which main backends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Canaries {
    /// Canaries by main backend, the one that holds first.
    alternatives: BTreeMap<UpstreamName, Vec<UpstreamName>>,
    /// Of those, the ones that name paths of an Ingress.
    named: BTreeMap<UpstreamName, BTreeMap<ObjectName, Vec<UpstreamName>>>,
    /// By canary, its main backends with the Ingresses of which it names paths.
    pub(crate) mains: BTreeMap<UpstreamName, Vec<(UpstreamName, ObjectName)>>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Canaries {
    fn add(&mut self, canary: &UpstreamName, target: &Target<'_>) {
        let alternatives = self.alternatives.entry(target.main.clone()).or_default();
        push(alternatives, canary);
        let named = self.named.entry(target.main.clone()).or_default();
        push(named.entry(target.ingress.clone()).or_default(), canary);
        let mains = self.mains.entry(canary.clone()).or_default();
        push(mains, &(target.main.clone(), target.ingress.clone()));
    }

    /// All canaries of a main backend.
    pub(crate) fn all_of(&self, main: &UpstreamName) -> &[UpstreamName] {
        self.alternatives.get(main).map_or(&[], Vec::as_slice)
    }

    /// The canaries of a main backend for requests for an Ingress's paths: those that name such a path come before the
    /// others. Only the first one is considered.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let canary = [("canary", "true"), ("canary-weight", "20")];
    /// let served = Fixture::default()
    ///     .and_ingress("shop/a", &[], &["a.test/ web:80"])
    ///     .and_ingress("shop/b", &[], &["b.test/ web:80"])
    ///     .and_ingress("shop/next-a", &canary, &["a.test/ next:80"])
    ///     .and_ingress("shop/next-b", &canary, &["b.test/ other:80"])
    ///     .merge();
    /// let canary_of = |request| Ok::<_, ingress_model::explain::PathError>(
    ///     served.explainer().request(request, "/")?.upstream.unwrap().canaries[0].name.to_string(),
    /// );
    /// assert_eq!(canary_of("a.test")?, "shop-next-80");
    /// assert_eq!(canary_of("b.test")?, "shop-other-80");
    /// # Ok::<_, ingress_model::explain::PathError>(())
    /// ```
    pub(crate) fn of(&self, main: &UpstreamName, ingress: &ObjectName) -> Vec<UpstreamName> {
        let all = self.all_of(main);
        let named = self.named_by(main, ingress);
        let others = all.iter().filter(|name| !named.contains(name));
        named.iter().chain(others).cloned().collect()
    }

    /// The one that is considered.
    pub(crate) fn first_of(
        &self,
        main: &UpstreamName,
        ingress: Option<&ObjectName>,
    ) -> Option<&UpstreamName> {
        let named = ingress.and_then(|ingress| self.named_by(main, ingress).first());
        named.or_else(|| self.all_of(main).first())
    }

    fn named_by(&self, main: &UpstreamName, ingress: &ObjectName) -> &[UpstreamName] {
        let named = self.named.get(main).and_then(|named| named.get(ingress));
        named.map_or(&[], Vec::as_slice)
    }

    /// The backends for which the two differ.
    pub(crate) fn changed(&self, newer: &Self) -> BTreeSet<UpstreamName> {
        let mut changed = BTreeSet::new();
        differing(&self.alternatives, &newer.alternatives, &mut changed);
        differing(&self.named, &newer.named, &mut changed);
        differing(&self.mains, &newer.mains, &mut changed);
        changed
    }
}

/// Adds what is not there yet.
fn push<T: PartialEq + Clone>(list: &mut Vec<T>, item: &T) {
    if !list.contains(item) {
        list.push(item.clone());
    }
}

/// The keys whose values differ.
fn differing<V: PartialEq>(
    old: &BTreeMap<UpstreamName, V>,
    new: &BTreeMap<UpstreamName, V>,
    found: &mut BTreeSet<UpstreamName>,
) {
    let differing = pairs(old, new).filter(|(_, (old, new))| old != new);
    found.extend(differing.map(|(name, _)| name.clone()));
}

/// Finds the main backends of canaries.
///
/// A canary's path belongs to the locations of its host with the same path, as the Ingresses write it, and the same
/// path type; its default backend belongs to all locations of the catch-all host. Its backend becomes an alternative of
/// theirs, except of `upstream-default-backend` and of a backend for the same Service and port. A canary without any
/// main backend has no backend of its own.
///
/// * Of several canaries for paths of one Ingress the one whose definition holds by the policy comes first, and only the
///   first one is considered: the others get no requests, and their authors are told ([`Reason::CanaryConflict`]).
/// * A main backend is shared by all paths that send to one Service's port, so that the canary gets a share of the
///   requests for all of them, whatever their Ingress and host, except for Ingresses whose paths
///   [another canary names](Canaries::of); its author is told which ones it does not name ([`Reason::SharedCanary`]). A
///   canary for some paths of an Ingress needs a Service of its own in front of the same endpoints.
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
/// let web = &outcome.model.live.backends["shop-web-80"];
/// assert_eq!(web.alternatives[0].as_str(), "shop-other-80");
/// assert!(web.variants.is_empty());
/// let said = |reason: &str| outcome.diagnostics.iter().find(|said| said.reason.as_str() == reason).unwrap();
/// assert_eq!(
///     said("CanaryConflict").to_string(),
///     "Ingress shop/first: spec.rules[0].http.paths[0].path: the canary gets no requests for paths of Ingress shop/cart to \
///      Service shop/web port 80: that of Ingress shop/second does, and only one canary is considered (CanaryConflict)"
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
        joined: BTreeMap::new(),
        canaries: Canaries::default(),
    };
    for definition in canaries {
        merge.tell_of_client_auth(definition);
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
    ingress: &'a ObjectName,
}

impl<'a> Target<'a> {
    /// None for a location of nobody.
    fn of(host: &'a Host, location: &'a Location) -> Option<Self> {
        Some(Self {
            place: (host, location.ingress_path.as_str(), location.path_type),
            main: &location.upstream,
            ingress: location.ingress.as_ref()?,
        })
    }
}

/// A canary that has main backends.
struct Joined<'a> {
    definition: &'a Definition,
    /// The paths that it names.
    named: HashSet<Place<'a>>,
}

struct Merge<'a> {
    hosts: &'a Hosts,
    upstreams: &'a Upstreams,
    /// Locations of hosts that were looked at.
    locations: HashMap<&'a Host, HashMap<(&'a str, PathType), Target<'a>>>,
    /// By the canary's backend.
    joined: BTreeMap<UpstreamName, Joined<'a>>,
    canaries: Canaries,
}

impl<'a> Merge<'a> {
    /// A canary sets nothing for its hosts. Whoever means to guard one is told.
    fn tell_of_client_auth(&mut self, definition: &Definition) {
        if definition.settings.server.client_auth.is_none() {
            return;
        }
        let message = "has no effect in a canary: clients are asked for certificates where an Ingress that serves the \
                       host says so";
        let diagnostic = Diagnostic::new(
            definition.reference(),
            Severity::Warning,
            Reason::InvalidAnnotation,
            message,
        );
        let diagnostics = &mut self.canaries.diagnostics;
        diagnostics.push(diagnostic.with_key("auth-tls-secret"));
    }

    fn target(&mut self, host: &'a Host, path: &'a str, path_type: PathType) -> Option<Target<'a>> {
        let hosts = self.hosts;
        let locations = self.locations.entry(host).or_insert_with(|| {
            let entry = hosts.entries.get(host);
            let locations = entry.iter().flat_map(|entry| &entry.server.locations);
            let targets = locations.filter_map(|location| Target::of(host, location));
            targets
                .map(|target| ((target.place.1, target.place.2), target))
                .collect()
        });
        locations.get(&(path, path_type)).copied()
    }

    fn all_of(&self, host: &Host) -> Vec<Target<'a>> {
        let hosts = self.hosts;
        let Some((host, entry)) = hosts.entries.get_key_value(host) else {
            return Vec::new();
        };
        let locations = entry.server.locations.iter();
        locations
            .filter_map(|location| Target::of(host, location))
            .collect()
    }

    fn join(
        &mut self,
        definition: &'a Definition,
        backend: &BackendUse,
        targets: &[Target<'a>],
        key: &dyn std::fmt::Display,
    ) {
        let canary = backend.upstream(self.upstreams.names(definition));
        let mut is_joined = false;
        let mut passed_over = None;
        for target in targets {
            if !self.may_join(&canary, target.main) {
                continue;
            }
            is_joined = true;
            self.canaries.add(&canary, target);
            let joined = self.joined.entry(canary.clone());
            let joined = joined.or_insert_with(|| Joined {
                definition,
                named: HashSet::new(),
            });
            joined.named.insert(target.place);
            let first = self.canaries.first_of(target.main, Some(target.ingress));
            if let Some(holder) = first.filter(|first| **first != canary)
                && let Some(holder) = self.joined.get(holder)
            {
                passed_over.get_or_insert_with(|| (target, holder.definition.name.clone()));
            }
        }
        if let Some((target, holder)) = passed_over {
            let message = format!(
                "the canary gets no requests for paths of Ingress {} to {}: that of Ingress {holder} does, and only one \
                 canary is considered",
                target.ingress,
                self.service_of(target.main)
            );
            self.tell(
                definition.name.clone(),
                Reason::CanaryConflict,
                key,
                message,
            );
        } else if !is_joined {
            let message = "no other Ingress has a backend for this that the canary could join";
            self.tell(
                definition.name.clone(),
                Reason::OrphanCanary,
                key,
                message.to_owned(),
            );
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
        let mut further = BTreeMap::new();
        for main in self.canaries.alternatives.keys() {
            self.find_further_paths(main, &mut further);
        }
        for ((definition, main), mut places) in further {
            // A Prefix path is two locations.
            places.dedup();
            let Some(((host, path, _), others)) = places.split_first() else {
                continue;
            };
            let more = match others.len() {
                0 => String::new(),
                1 => " and another path".to_owned(),
                count => format!(" and {count} other paths"),
            };
            let message = format!(
                "the canary gets a share of the requests for {host}{path}{more} too, which go to {} as well",
                self.service_of(&main)
            );
            self.tell(definition, Reason::SharedCanary, &"canary", message);
        }
    }

    /// Adds the paths that go to a main backend without being named by the canary that takes a share of them.
    fn find_further_paths(
        &self,
        main: &UpstreamName,
        further: &mut BTreeMap<(ObjectName, UpstreamName), Vec<Place<'a>>>,
    ) {
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
        let targets = entries.flat_map(|(host, entry)| {
            let locations = entry.server.locations.iter();
            locations.filter_map(move |location| Target::of(host, location))
        });
        for target in targets.filter(|target| target.main == main) {
            let first = self.canaries.first_of(main, Some(target.ingress));
            if let Some(first) = first.and_then(|first| self.joined.get(first))
                && !first.named.contains(&target.place)
            {
                let key = (first.definition.name.clone(), main.clone());
                further.entry(key).or_default().push(target.place);
            }
        }
    }

    fn tell(
        &mut self,
        ingress: ObjectName,
        reason: Reason,
        key: &dyn std::fmt::Display,
        message: String,
    ) {
        let object = ObjectRef::new(ObjectKind::Ingress, ingress);
        let diagnostic = Diagnostic::new(object, Severity::Warning, reason, message);
        self.canaries
            .diagnostics
            .push(diagnostic.with_key(key.to_string()));
    }
}

fn of_use(used: &ServiceUse) -> (&ObjectName, &PortRef) {
    (&used.service, &used.port.port)
}
