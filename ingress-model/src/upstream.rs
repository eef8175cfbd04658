//! Names of upstreams: which Ingresses share a backend, and what it is called.

use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
    sync::Arc,
};

use hashbrown::{HashMap, HashSet};

use crate::{
    annotation::BackendSettings,
    definition::{Definition, HostRule, ServiceUse},
    live::{TrafficShaping, UpstreamName},
    object::ObjectName,
};

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
        let paths = rule.paths.iter();
        let paths = paths.filter(|path| path.backend.index == self.index);
        let default = self.definition.default_backend.as_ref();
        let root = default.filter(|backend| backend.index == self.index);
        paths
            .map(|path| path.path.as_str())
            .chain(root.map(|_| "/"))
    }

    pub(crate) fn is_canary(&self) -> bool {
        self.definition.settings.canary.is_some()
    }
}

/// A backend to be: uses of one Service's port that want the same of it.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Never empty; the oldest first.
    pub(crate) users: Vec<User>,
}

/// All groups, and the name that each use got.
#[derive(Debug, Default)]
pub(crate) struct Upstreams {
    /// The uses that would give a backend the same name.
    bases: HashMap<UpstreamName, Vec<User>>,
    /// The groups of a base.
    by_base: HashMap<UpstreamName, Vec<UpstreamName>>,
    groups: HashMap<UpstreamName, Group>,
    /// The bases that concern a Service.
    by_service: HashMap<ObjectName, BTreeSet<UpstreamName>>,
    /// Names by Ingress, as its [`Definition::uses`].
    names: HashMap<ObjectName, Vec<UpstreamName>>,
}

/// What an update changed.
#[derive(Debug, Default)]
pub(crate) struct Regrouped {
    /// Backends to be built again, or taken away.
    pub(crate) backends: BTreeSet<UpstreamName>,
    /// Ingresses of which a backend has another name now.
    pub(crate) renamed: BTreeSet<ObjectName>,
}

impl Upstreams {
    /// The name of the backend for one of a definition's uses.
    pub(crate) fn name(&self, definition: &Definition, index: usize) -> UpstreamName {
        let names = self.names.get(&definition.name);
        let name = names.and_then(|names| names.get(index)).cloned();
        name.unwrap_or_else(UpstreamName::default_backend)
    }

    /// The uses that share a backend.
    pub(crate) fn group(&self, name: &UpstreamName) -> Option<&Group> {
        self.groups.get(name)
    }

    /// The backends of a Service.
    pub(crate) fn of_service<'a>(
        &'a self,
        service: &ObjectName,
    ) -> impl Iterator<Item = &'a UpstreamName> {
        let bases = self.by_service.get(service).into_iter().flatten();
        bases.filter_map(|base| self.by_base.get(base)).flatten()
    }

    /// Takes edits, and groups again what they concern.
    pub(crate) fn update(&mut self, edits: &Edits) -> Regrouped {
        let mut touched = self.remove(edits);
        for definition in &edits.added {
            let names = vec![UpstreamName::default_backend(); definition.uses.len()];
            self.names.insert(definition.name.clone(), names);
            for (index, used) in definition.uses.iter().enumerate() {
                let user = User {
                    definition: Arc::clone(definition),
                    index,
                };
                self.bases.entry_ref(&used.base).or_default().push(user);
                let bases = self.by_service.entry_ref(&used.service).or_default();
                bases.insert(used.base.clone());
                touched.insert(used.base.clone());
            }
        }
        let added: HashSet<_> = edits.added.iter().map(|added| &added.name).collect();
        let mut regrouped = Regrouped::default();
        for base in touched {
            self.regroup(&base, &mut regrouped);
        }
        regrouped.renamed.retain(|name| !added.contains(name));
        regrouped
    }

    fn remove(&mut self, edits: &Edits) -> BTreeSet<UpstreamName> {
        let removed = edits.removed_names();
        let gone = || edits.removed.iter().flat_map(|definition| &definition.uses);
        let touched: BTreeSet<_> = gone().map(|used| used.base.clone()).collect();
        for base in &touched {
            if let Some(users) = self.bases.get_mut(base) {
                users.retain(|user| !removed.contains(&user.definition.name));
            }
        }
        for used in gone() {
            let users = self.bases.get(&used.base).into_iter().flatten();
            let mut targets = users.filter_map(User::target);
            if targets.any(|target| target.service == used.service) {
                continue;
            }
            if let Some(bases) = self.by_service.get_mut(&used.service) {
                bases.remove(&used.base);
                if bases.is_empty() {
                    self.by_service.remove(&used.service);
                }
            }
        }
        for name in removed {
            self.names.remove(name);
        }
        touched
    }

    /// Groups the uses of one base: those of one Service's port with the same balancing settings share a backend, for
    /// annotations act on their own Ingress alone; a canary's backend is its own.
    ///
    /// The group with the oldest use is called `<namespace>-<service>-<port>`, main backends coming before canaries;
    /// the others have `@` and the Ingress of their oldest use behind that. Whatever one Ingress does, the backends of
    /// older ones keep their names.
    fn regroup(&mut self, base: &UpstreamName, regrouped: &mut Regrouped) {
        for name in self.by_base.remove(base).into_iter().flatten() {
            self.groups.remove(&name);
            regrouped.backends.insert(name);
        }
        let Some(users) = self.bases.get_mut(base).filter(|users| !users.is_empty()) else {
            self.bases.remove(base);
            return;
        };
        users.sort_by(|a, b| {
            let canary = a.is_canary().cmp(&b.is_canary());
            canary
                .then_with(|| a.definition.age.cmp(&b.definition.age))
                .then(a.index.cmp(&b.index))
        });
        let mut names: HashSet<UpstreamName> = HashSet::new();
        let mut order = Vec::new();
        for group in grouped(users) {
            let name = unused_name(base, &group, &names);
            for user in &group.users {
                let known = self.names.get_mut(&user.definition.name);
                let known = known.and_then(|names| names.get_mut(user.index));
                if let Some(known) = known.filter(|known| **known != name) {
                    *known = name.clone();
                    regrouped.renamed.insert(user.definition.name.clone());
                }
            }
            regrouped.backends.insert(name.clone());
            names.insert(name.clone());
            order.push(name.clone());
            self.groups.insert(name, group);
        }
        self.by_base.insert(base.clone(), order);
    }
}

fn grouped(users: &[User]) -> Vec<Group> {
    if let [only] = users {
        let users = vec![only.clone()];
        return vec![Group { users }];
    }
    let mut places: HashMap<Wish<'_>, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for user in users {
        let place = *places.entry(Wish::of(user)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.users.push(user.clone()),
            None => groups.push(Group {
                users: vec![user.clone()],
            }),
        }
    }
    groups
}

/// A name that no other group of the base has. `@` and `/` do not occur in the names of objects, so no other base has
/// it either.
fn unused_name(base: &UpstreamName, group: &Group, used: &HashSet<UpstreamName>) -> UpstreamName {
    let reserved = base.as_str() == UpstreamName::DEFAULT_BACKEND;
    if used.is_empty() && !reserved {
        return base.clone();
    }
    let owner = group.users.first();
    let owner = owner.map_or_else(String::new, |user| user.definition.name.to_string());
    let mut name = UpstreamName::new(&format!("{base}@{owner}"));
    let mut count = 1;
    while used.contains(&name) {
        count += 1;
        name = UpstreamName::new(&format!("{base}@{owner}#{count}"));
    }
    name
}

/// What a use wants of its backend.
#[derive(PartialEq, Eq)]
struct Wish<'a> {
    target: Option<(&'a ObjectName, &'a crate::live::PortRef)>,
    settings: &'a BackendSettings,
    canary: Option<&'a TrafficShaping>,
}

impl<'a> Wish<'a> {
    fn of(user: &'a User) -> Self {
        let settings = &user.definition.settings;
        Self {
            target: user.target().map(|target| (&target.service, &target.port)),
            settings: &settings.backend,
            canary: settings.canary.as_ref(),
        }
    }
}

impl Hash for Wish<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.hash(state);
        self.settings.service_upstream.hash(state);
        self.settings.load_balance.hash(state);
        self.settings.hash_by.hash(state);
        self.settings.affinity.hash(state);
        self.canary.hash(state);
    }
}
