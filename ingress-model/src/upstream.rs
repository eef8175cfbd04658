//! Names of upstreams: which Ingresses share a backend, and what it is called. How the requests of each are balanced is
//! no matter of names, so that a change of it reloads nothing.

use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use hashbrown::{HashMap, HashSet};

use crate::{
    annotation::BackendSettings,
    definition::{Definition, HostRule, PathRule, ServiceUse},
    live::{CookieAffinity, PortRef, TrafficShaping, UpstreamName},
    object::ObjectName,
};

/// Parts a base from what tells its groups apart. It does not occur in names of objects.
const SUFFIX: char = '@';

/// Definitions that came and went. A changed one is in both.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    pub(crate) removed: Vec<Arc<Definition>>,
    pub(crate) added: Vec<Arc<Definition>>,
}

impl Edits {
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    /// The names of those that went.
    pub(crate) fn removed_names(&self) -> HashSet<&ObjectName> {
        self.removed
            .iter()
            .map(|definition| &definition.name)
            .collect()
    }
}

/// A use of a Service's port by an Ingress.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) definition: Arc<Definition>,
    index: usize,
}

impl User {
    /// The Service's port.
    pub(crate) fn target(&self) -> Option<&ServiceUse> {
        self.definition.uses.get(self.index)
    }

    /// The paths of a host that go there.
    pub(crate) fn paths<'a>(&'a self, rule: &'a HostRule) -> impl Iterator<Item = &'a str> {
        let root = self.is_default().then_some("/");
        self.written_paths(rule).chain(root)
    }

    /// Those of them that the Ingress writes.
    pub(crate) fn written_paths<'a>(&'a self, rule: &'a HostRule) -> impl Iterator<Item = &'a str> {
        self.rules(rule).map(|path| path.path.as_str())
    }

    /// Where the Ingress first says so.
    pub(crate) fn field(&self) -> Option<String> {
        let fields = self
            .definition
            .hosts
            .iter()
            .flat_map(|rule| self.rules(rule));
        let first = fields.map(|path| path.field).min();
        first
            .map(|field| format!("{field}.backend"))
            .or_else(|| self.is_default().then(|| "spec.defaultBackend".to_owned()))
    }

    fn rules<'a>(&'a self, rule: &'a HostRule) -> impl Iterator<Item = &'a PathRule> {
        let paths = rule.paths.iter();
        paths.filter(|path| path.backend.index == self.index)
    }

    fn is_default(&self) -> bool {
        let default = self.definition.default_backend.as_ref();
        default.is_some_and(|backend| backend.index == self.index)
    }

    /// How it wants clients to be kept on their peers.
    pub(crate) fn affinity(&self) -> Option<&CookieAffinity> {
        self.definition.settings.backend.affinity.as_ref()
    }

    pub(crate) fn is_canary(&self) -> bool {
        self.definition.settings.canary.is_some()
    }
}

/// The uses that would give a backend one name, and their groups.
#[derive(Debug, Default)]
struct Base {
    /// The oldest first, those of canaries behind the others.
    users: Vec<User>,
    groups: Groups,
    /// To be grouped again.
    is_touched: bool,
}

/// Backends to be: uses of one Service's port, the oldest first, and of canaries those that want the same of it.
#[derive(Debug, Default)]
enum Groups {
    #[default]
    None,
    /// All users.
    One(UpstreamName),
    Several(Vec<(UpstreamName, Vec<User>)>),
}

impl Groups {
    fn names(&self) -> impl Iterator<Item = &UpstreamName> {
        let (one, several) = match self {
            Self::None => (None, &[][..]),
            Self::One(name) => (Some(name), &[][..]),
            Self::Several(groups) => (None, groups.as_slice()),
        };
        one.into_iter().chain(several.iter().map(|(name, _)| name))
    }
}

/// All groups, and the name that each use got.
#[derive(Debug, Default)]
pub(crate) struct Upstreams {
    bases: HashMap<UpstreamName, Base>,
    /// The bases that concern a Service. Found out when a Service first changes, and kept since.
    by_service: OnceLock<HashMap<ObjectName, Vec<UpstreamName>>>,
    /// Names by Ingress, as its [`Definition::uses`], where one of them is not the [base](ServiceUse::base) of its use.
    names: HashMap<ObjectName, Vec<UpstreamName>>,
}

/// The names of the backends for a definition's uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    uses: &'a [ServiceUse],
    others: Option<&'a [UpstreamName]>,
}

impl<'a> Names<'a> {
    /// The name for one of the uses.
    pub(crate) fn of(self, index: usize) -> Option<&'a UpstreamName> {
        match self.others {
            Some(names) => names.get(index),
            None => self.uses.get(index).map(|used| &used.base),
        }
    }

    /// All of them.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a UpstreamName> {
        (0..self.uses.len()).filter_map(move |index| self.of(index))
    }
}

/// What an update changed.
#[derive(Debug, Default)]
pub(crate) struct Regrouped {
    /// Backends to be built again, or taken away; they may be repeated.
    pub(crate) backends: Vec<UpstreamName>,
    /// Ingresses of which a backend has another name now.
    pub(crate) renamed: BTreeSet<ObjectName>,
}

impl Upstreams {
    /// The names of the backends for a definition's uses.
    pub(crate) fn names<'a>(&'a self, definition: &'a Definition) -> Names<'a> {
        Names {
            uses: &definition.uses,
            others: self.names.get(&definition.name).map(Vec::as_slice),
        }
    }

    /// The uses that share a backend, the oldest first; never none.
    pub(crate) fn group(&self, name: &UpstreamName) -> Option<&[User]> {
        let text = name.as_str();
        let base = text.split_once(SUFFIX).map_or(text, |(base, _)| base);
        let base = self.bases.get(base)?;
        match &base.groups {
            Groups::None => None,
            Groups::One(known) => (known == name).then_some(base.users.as_slice()),
            Groups::Several(groups) => {
                let mut groups = groups.iter();
                groups.find_map(|(known, users)| (known == name).then_some(users.as_slice()))
            }
        }
    }

    /// The backends of a Service.
    pub(crate) fn of_service<'a>(
        &'a self,
        service: &ObjectName,
    ) -> impl Iterator<Item = &'a UpstreamName> {
        let by_service = self.by_service.get_or_init(|| by_service(&self.bases));
        let bases = by_service.get(service).into_iter().flatten();
        let bases = bases.filter_map(|base| self.bases.get(base));
        bases.flat_map(|base| base.groups.names())
    }

    /// Takes edits, and groups again what they concern.
    pub(crate) fn update(&mut self, edits: &Edits) -> Regrouped {
        let removed = edits.removed_names();
        let mut touched: Vec<&UpstreamName> = Vec::with_capacity(edits.added.len());
        for used in edits.removed.iter().flat_map(|definition| &definition.uses) {
            if let Some(base) = self.bases.get_mut(&used.base)
                && !std::mem::replace(&mut base.is_touched, true)
            {
                base.users
                    .retain(|user| !removed.contains(&user.definition.name));
                touched.push(&used.base);
            }
        }
        for definition in &edits.removed {
            self.names.remove(&definition.name);
            for used in &definition.uses {
                self.forget_service(used);
            }
        }
        self.bases.reserve(edits.added.len());
        for definition in &edits.added {
            self.add(definition, &mut touched);
        }
        let mut regrouped = Regrouped::default();
        regrouped.backends.reserve(touched.len());
        for base in touched {
            self.regroup(base, &mut regrouped);
        }
        for definition in &edits.added {
            regrouped.renamed.remove(&definition.name);
        }
        regrouped
    }

    fn add<'a>(&mut self, definition: &'a Arc<Definition>, touched: &mut Vec<&'a UpstreamName>) {
        for (index, used) in definition.uses.iter().enumerate() {
            let base = self.bases.entry_ref(&used.base).or_default();
            // Most Services' ports have one user.
            if base.users.is_empty() {
                base.users.reserve_exact(1);
            }
            base.users.push(User {
                definition: Arc::clone(definition),
                index,
            });
            if !std::mem::replace(&mut base.is_touched, true) {
                touched.push(&used.base);
            }
            if let Some(by_service) = self.by_service.get_mut() {
                concern(by_service, used);
            }
        }
    }

    /// A base concerns a Service as long as a use does.
    fn forget_service(&mut self, used: &ServiceUse) {
        let Some(by_service) = self.by_service.get_mut() else {
            return;
        };
        let users = self.bases.get(&used.base).map(|base| &base.users);
        let mut targets = users.into_iter().flatten().filter_map(User::target);
        if targets.any(|target| target.service == used.service) {
            return;
        }
        if let Some(bases) = by_service.get_mut(&used.service) {
            bases.retain(|base| *base != used.base);
            if bases.is_empty() {
                by_service.remove(&used.service);
            }
        }
    }

    /// Groups the uses of one base: all of one Service's port share a backend, however their Ingresses want requests to
    /// be balanced ([variants](crate::live::Variant) of the backend see to that); a canary's backend is its own, shared
    /// by canaries that want the same.
    ///
    /// The group with the oldest use is called `<namespace>-<service>-<port>`, main backends coming before canaries;
    /// the others have `@` and the Ingress of their oldest use behind that.
    ///
    /// NGINX's files name the upstream of each path. No name there depends on how requests are balanced, which may
    /// change without a reload.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let served = Fixture::default()
    ///     .and_ingress("shop/a", &[], &["a.test/ web:80"])
    ///     .and_ingress("shop/b", &[("load-balance", "ewma")], &["b.test/ web:80"])
    ///     .and_ingress("shop/c", &[("canary", "true")], &["c.test/ web:80", "d.test/ web:80"])
    ///     .and_ingress("shop/d", &[], &["d.test/ api:80"])
    ///     .merge();
    /// served.assert_locations("a.test", ["/ shop/a shop-web-80"]);
    /// served.assert_locations("b.test", ["/ shop/b shop-web-80"]);
    /// let backends = &served.outcome().model.live.backends;
    /// assert_eq!(backends["shop-api-80"].alternatives[0].as_str(), "shop-web-80@shop/c");
    /// ```
    fn regroup(&mut self, name: &UpstreamName, regrouped: &mut Regrouped) {
        let Some(base) = self.bases.get_mut(name) else {
            return;
        };
        base.is_touched = false;
        let before = std::mem::take(&mut base.groups);
        let is_new = matches!(before, Groups::None);
        regrouped.backends.extend(before.names().cloned());
        base.users.sort_by(|a, b| {
            let canary = a.is_canary().cmp(&b.is_canary());
            canary
                .then_with(|| a.definition.age.cmp(&b.definition.age))
                .then(a.index.cmp(&b.index))
        });
        let Some((oldest, others)) = base.users.split_first() else {
            self.bases.remove(name);
            return;
        };
        let wish = Wish::of(oldest);
        if others.iter().all(|user| Wish::of(user) == wish) {
            let group = unused_name(name, oldest, &HashSet::new());
            if is_new && group == *name {
                // So it is called until it is grouped.
                regrouped.backends.push(group.clone());
            } else {
                regrouped.call(&group, &base.users, &mut self.names);
            }
            base.groups = Groups::One(group);
            return;
        }
        let mut used = HashSet::new();
        let mut named = Vec::new();
        for users in grouped(&base.users) {
            let owner = users.first().unwrap_or(oldest);
            let name = unused_name(name, owner, &used);
            regrouped.call(&name, &users, &mut self.names);
            used.insert(name.clone());
            named.push((name, users));
        }
        base.groups = Groups::Several(named);
    }
}

impl Regrouped {
    /// Notes what the backend of some uses is called now.
    fn call(
        &mut self,
        name: &UpstreamName,
        users: &[User],
        names: &mut HashMap<ObjectName, Vec<UpstreamName>>,
    ) {
        for user in users {
            let uses = &user.definition.uses;
            let known = names.get(&user.definition.name);
            let known = known.and_then(|names| names.get(user.index));
            let known = known.or_else(|| uses.get(user.index).map(|used| &used.base));
            if known == Some(name) {
                continue;
            }
            let names = names.entry_ref(&user.definition.name);
            let names =
                names.or_insert_with(|| uses.iter().map(|used| used.base.clone()).collect());
            if let Some(known) = names.get_mut(user.index) {
                *known = name.clone();
            }
            self.renamed.insert(user.definition.name.clone());
        }
        self.backends.push(name.clone());
    }
}

fn by_service(bases: &HashMap<UpstreamName, Base>) -> HashMap<ObjectName, Vec<UpstreamName>> {
    let mut by_service = HashMap::with_capacity(bases.len());
    let users = bases.values().flat_map(|base| &base.users);
    for used in users.filter_map(User::target) {
        concern(&mut by_service, used);
    }
    by_service
}

/// Notes that a use's base concerns its Service.
fn concern(by_service: &mut HashMap<ObjectName, Vec<UpstreamName>>, used: &ServiceUse) {
    let bases = by_service.entry_ref(&used.service).or_default();
    if !bases.contains(&used.base) {
        // Most have one.
        bases.reserve_exact(1);
        bases.push(used.base.clone());
    }
}

fn grouped(users: &[User]) -> Vec<Vec<User>> {
    let mut places: HashMap<Wish<'_>, usize> = HashMap::new();
    let mut groups: Vec<Vec<User>> = Vec::new();
    for user in users {
        let place = *places.entry(Wish::of(user)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(user.clone()),
            None => groups.push(vec![user.clone()]),
        }
    }
    groups
}

/// A name that no other group of the base has. `@` and `/` do not occur in the names of objects, so no other base has
/// it either.
fn unused_name(base: &UpstreamName, owner: &User, used: &HashSet<UpstreamName>) -> UpstreamName {
    let text = base.as_str();
    let reserved =
        text == UpstreamName::DEFAULT_BACKEND || text.starts_with(UpstreamName::STAND_IN);
    if used.is_empty() && !reserved {
        return base.clone();
    }
    let owner = &owner.definition.name;
    let mut name = UpstreamName::new(&format!("{base}{SUFFIX}{owner}"));
    let mut count = 1;
    while used.contains(&name) {
        count += 1;
        name = UpstreamName::new(&format!("{base}{SUFFIX}{owner}#{count}"));
    }
    name
}

/// What a use wants of its backend.
#[derive(PartialEq, Eq)]
struct Wish<'a> {
    target: Option<(&'a ObjectName, &'a PortRef)>,
    /// How requests are balanced, and which of them a canary gets.
    canary: Option<(&'a BackendSettings, &'a TrafficShaping)>,
}

impl<'a> Wish<'a> {
    fn of(user: &'a User) -> Self {
        let settings = &user.definition.settings;
        let canary = settings.canary.as_ref();
        Self {
            target: user
                .target()
                .map(|target| (&target.service, &target.port.port)),
            canary: canary.map(|shaping| (&settings.backend, shaping)),
        }
    }
}

impl Hash for Wish<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.hash(state);
        self.canary.map(|(_, shaping)| shaping).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::networking::v1::{
        Ingress, IngressBackend, IngressServiceBackend, IngressSpec, ServiceBackendPort,
    };

    use super::*;

    /// An Ingress whose default backend is port 80 of a Service.
    fn definition(name: &str, service: &str) -> Arc<Definition> {
        let ingress = Ingress {
            spec: Some(IngressSpec {
                default_backend: Some(IngressBackend {
                    service: Some(IngressServiceBackend {
                        name: service.into(),
                        port: Some(ServiceBackendPort {
                            number: Some(80),
                            name: None,
                        }),
                    }),
                    resource: None,
                }),
                ..IngressSpec::default()
            }),
            ..Ingress::default()
        };
        let name = ObjectName::new("shop", name);
        Arc::new(Definition::read(
            &name,
            &ingress,
            Arc::default(),
            Arc::default(),
            &mut Vec::new(),
        ))
    }

    #[test]
    fn nothing_is_left_of_ingresses_that_went() {
        let (one, two) = (definition("one", "a"), definition("two", "a"));
        let name = UpstreamName::new("shop-a-80");
        let mut upstreams = Upstreams::default();
        let added = vec![Arc::clone(&one), Arc::clone(&two)];
        let regrouped = upstreams.update(&Edits {
            added,
            removed: Vec::new(),
        });
        assert_eq!(regrouped.backends, std::slice::from_ref(&name));
        assert_eq!(upstreams.group(&name).unwrap().len(), 2);
        for gone in [one, two] {
            let service = ObjectName::new("shop", "a");
            assert_eq!(upstreams.of_service(&service).collect::<Vec<_>>(), [&name]);
            upstreams.update(&Edits {
                removed: vec![gone],
                added: Vec::new(),
            });
        }
        assert!(upstreams.group(&name).is_none());
        assert!(upstreams.bases.is_empty());
        assert!(upstreams.by_service.get().unwrap().is_empty());
        assert!(upstreams.names.is_empty());
    }
}
