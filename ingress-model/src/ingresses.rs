//! All Ingresses: which are served, each read once as long as it does not change.

use std::{collections::BTreeSet, sync::Arc};

use hashbrown::{HashMap, HashSet};
use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    annotation::{self, Guard, IngressSettings},
    changes::Changes,
    class::Refusal,
    context::Context,
    definition::Definition,
    diagnostic::{Diagnostic, Reason, Severity},
    inspect,
    object::{ObjectKind, ObjectName, ObjectRef},
    snapshot::{LastGood, Snapshot},
    specification::is_name,
    upstream::Edits,
};

/// What became of an Ingress.
#[derive(Debug, Default)]
struct Entry {
    definition: Option<Arc<Definition>>,
    /// Whether its current version is refused, so that an earlier one may be served.
    is_refused: bool,
    diagnostics: Vec<Diagnostic>,
}

/// Ingresses that were read.
#[derive(Debug, Default)]
pub(crate) struct Ingresses {
    entries: HashMap<ObjectName, Entry>,
    /// Ingresses by the objects that settings of their locations are taken from.
    referrers: HashMap<ObjectRef, HashSet<ObjectName>>,
    /// The versions that are served.
    pub(crate) last_good: LastGood,
}

/// The version of an Ingress that is served, as read.
type Served = (Arc<Ingress>, Definition);

impl Ingresses {
    /// The definition of an Ingress, if it is served.
    pub(crate) fn get(&self, name: &ObjectName) -> Option<&Arc<Definition>> {
        self.entries.get(name)?.definition.as_ref()
    }

    /// What there is to say about Ingresses, in any order.
    pub(crate) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.entries.values().flat_map(|entry| &entry.diagnostics)
    }

    /// Reads the changed Ingresses, those that refer to changed objects, and those refused ones of which another earlier
    /// version is known.
    pub(crate) fn update(
        &mut self,
        changes: &Changes<'_>,
        snapshot: &Snapshot,
        context: &Context,
    ) -> Edits {
        self.entries.reserve(changes.ingresses.len());
        let mut edits = Edits::default();
        let mut served = Vec::with_capacity(changes.ingresses.len());
        for change in &changes.ingresses {
            served.push(self.take(change.name, change.new, snapshot, context, &mut edits));
        }
        for name in self.concerned(changes) {
            let ingress = snapshot.ingresses.get(&name);
            served.push(self.take(&name, ingress, snapshot, context, &mut edits));
        }
        self.last_good.update(served);
        edits
    }

    /// Ingresses that did not change, but what they refer to did.
    fn concerned(&self, changes: &Changes<'_>) -> BTreeSet<ObjectName> {
        let earlier = changes.last_good.iter().filter(|change| {
            let entry = self.entries.get(change.name);
            entry.is_some_and(|entry| entry.is_refused)
        });
        let mut names: BTreeSet<_> = earlier.map(|change| change.name.clone()).collect();
        if !self.referrers.is_empty() {
            let objects = changes
                .secrets
                .iter()
                .map(|change| (ObjectKind::Secret, change.name));
            let maps = changes.config_maps.iter();
            let maps = maps.map(|change| (ObjectKind::ConfigMap, change.name));
            for (kind, name) in objects.chain(maps) {
                let object = ObjectRef::new(kind, name.clone());
                let referrers = self.referrers.get(&object).into_iter().flatten();
                names.extend(referrers.cloned());
            }
        }
        for change in &changes.ingresses {
            names.remove(change.name);
        }
        names
    }

    /// Reads one Ingress and notes what that changes; answers the version that is served now.
    fn take(
        &mut self,
        name: &ObjectName,
        ingress: Option<&Arc<Ingress>>,
        snapshot: &Snapshot,
        context: &Context,
        edits: &mut Edits,
    ) -> (ObjectName, Option<Arc<Ingress>>) {
        let Some(ingress) = ingress else {
            let old = self.entries.remove(name).and_then(|entry| entry.definition);
            self.refer(old.as_ref(), None);
            edits.removed.extend(old);
            return (name.clone(), None);
        };
        let (entry, served) = read(name, ingress, snapshot, context);
        let new = entry.definition.clone();
        let old = self.entries.insert(name.clone(), entry);
        let old = old.and_then(|entry| entry.definition);
        if new.is_some() && new == old {
            if let Some(known) = self.entries.get_mut(name) {
                known.definition = old;
            }
        } else {
            self.refer(old.as_ref(), new.as_ref());
            edits.removed.extend(old);
            edits.added.extend(new);
        }
        (name.clone(), served)
    }

    fn refer(&mut self, old: Option<&Arc<Definition>>, new: Option<&Arc<Definition>>) {
        if let Some(definition) = old {
            for object in definition.references() {
                if let Some(referrers) = self.referrers.get_mut(&object) {
                    referrers.remove(&definition.name);
                    if referrers.is_empty() {
                        self.referrers.remove(&object);
                    }
                }
            }
        }
        if let Some(definition) = new {
            for object in definition.references() {
                let referrers = self.referrers.entry(object).or_default();
                referrers.insert(definition.name.clone());
            }
        }
    }
}

fn read(
    name: &ObjectName,
    ingress: &Arc<Ingress>,
    snapshot: &Snapshot,
    context: &Context,
) -> (Entry, Option<Arc<Ingress>>) {
    let mut entry = Entry::default();
    if let Err(refusal) = context.filter.check(name, ingress) {
        entry.diagnostics.push(refusal.diagnostic(name));
        return (entry, None);
    }
    let served = admit(
        name,
        ingress,
        None,
        snapshot,
        context,
        &mut entry.diagnostics,
    );
    if let Some((served, definition)) = served {
        entry.definition = Some(Arc::new(definition));
        return (entry, Some(served));
    }
    entry.is_refused = true;
    let guard = Guard::read(ingress, &context.options, &context.config)
        .filter(|_| check_name(name).is_ok());
    // One that was deleted and made anew is another Ingress.
    let is_same = |earlier: &&Arc<Ingress>| earlier.metadata.uid == ingress.metadata.uid;
    let earlier = snapshot.last_good.get(name).filter(is_same);
    let guarding = guard
        .as_ref()
        .map(|guard| guarding(name, ingress, guard.clone()));
    let mut said = Vec::new();
    let fallen =
        earlier.and_then(|it| fall_back(name, it, guard.as_ref(), snapshot, context, &mut said));
    let (served, mut definition) = fallen.unzip();
    let mut further = false;
    match (&mut definition, guarding) {
        (Some(served), Some(guarding)) if served.answers_wherever(&guarding) => {
            further = served.close_further(guarding);
        }
        (_, Some(guarding)) => {
            said = vec![(Severity::Warning, standing(&guarding))];
            definition = Some(guarding);
        }
        (_, None) => {}
    }
    if further {
        let message = "the hosts and paths that its last acceptable version lacks are closed";
        said.push((Severity::Warning, message.into()));
    }
    let reason = refusal_of(&entry.diagnostics);
    let said = said.into_iter().map(|(severity, message)| {
        let about = ObjectRef::new(ObjectKind::Ingress, name.clone());
        Diagnostic::new(about, severity, reason, message)
    });
    entry.diagnostics.extend(said);
    entry.definition = definition.map(Arc::new);
    (entry, served)
}

/// An Ingress that is ours is served unless deep inspection or one of its annotations forbids it. It may be no more open
/// than a guard allows.
fn admit(
    name: &ObjectName,
    ingress: &Arc<Ingress>,
    guard: Option<&Guard>,
    snapshot: &Snapshot,
    context: &Context,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Served> {
    let options = &context.options;
    let mut check = check_name(name);
    if options.deep_inspect {
        check = check.and_then(|()| inspect::inspect(ingress));
    }
    if let Err(refusal) = check {
        diagnostics.push(refusal.diagnostic(name));
        return None;
    }
    let mut settings = settings(ingress, context, diagnostics)?;
    if let Some(guard) = guard {
        guard.tighten(&mut settings);
    }
    let policy = &context.config.policy;
    let location = settings.resolve(name, snapshot, options, policy, diagnostics);
    let definition = Definition::read(name, ingress, settings, location, diagnostics);
    Some((Arc::clone(ingress), definition))
}

/// What the annotations say. Ingresses without any of ours are alike.
fn settings(
    ingress: &Ingress,
    context: &Context,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<IngressSettings>> {
    let mut keys = ingress
        .metadata
        .annotations
        .iter()
        .flat_map(|all| all.keys());
    if let Some(plain) = &context.plain
        && !keys.any(|key| context.may_be_ours(key))
    {
        return Some(Arc::clone(plain));
    }
    annotation::parse(ingress, &context.options, &context.config, diagnostics).map(Arc::new)
}

/// An Ingress whose current version is refused goes on being served as it was before, if that version is still
/// acceptable.
///
/// ```
/// use ingress_model::{merge, testing::Fixture};
///
/// let ingress = |redirect| Fixture::default().and_ingress("shop/a", &[("permanent-redirect", redirect)], &["a.test/ web:80"]);
/// let before = ingress("https://b.test/").merge();
/// let mut snapshot = ingress("no target;").snapshot();
/// snapshot.last_good = before.outcome().last_good.clone();
/// let after = merge(&snapshot, &Default::default(), jiff::Timestamp::UNIX_EPOCH);
/// assert_eq!(after.model, before.outcome().model);
/// assert!(after.diagnostics.iter().any(|said| said.message.starts_with("its last acceptable version")));
/// ```
fn fall_back(
    name: &ObjectName,
    earlier: &Arc<Ingress>,
    guard: Option<&Guard>,
    snapshot: &Snapshot,
    context: &Context,
    said: &mut Vec<(Severity, String)>,
) -> Option<Served> {
    let served = admit(name, earlier, guard, snapshot, context, &mut Vec::new())?;
    let (_, definition) = &served;
    let message = match &definition.location.denied {
        Some(fault) => format!("the paths of its last acceptable version are closed: {fault}"),
        None => "its last acceptable version goes on being served".to_owned(),
    };
    said.push((Severity::Info, message));
    Some(served)
}

/// A refused Ingress of which no version is served keeps what it guards closed: the paths that it would hold answer 503,
/// and clients of its hosts are asked for certificates. Where nobody else would answer for a host, it is none.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let refused = [("auth-tls-secret", "shop/ca"), ("auth-tls-match-cn", "anybody")];
/// let alone = Fixture::default().and_ingress("shop/a", &refused, &["a.test/x web:80"]);
/// alone.merge().assert_hosts([]);
/// let served = alone.and_ingress("shop/b", &[], &["a.test/ web:80"]).merge();
/// let server = served.server("a.test").unwrap();
/// assert!(server.client_auth.as_ref().unwrap().value.denied.is_some());
/// assert!(server.locations.iter().any(|location| location.path == "/x/" && location.settings.denied.is_some()));
/// ```
fn guarding(name: &ObjectName, ingress: &Ingress, guard: Guard) -> Definition {
    let settings = Arc::new(guard.into_settings());
    let location = Arc::clone(&settings.location);
    let mut definition = Definition::read(name, ingress, settings, location, &mut Vec::new());
    definition.uses = Vec::new();
    if definition.settings.server.client_auth.is_none() {
        // Only who is asked for a certificate needs TLS.
        definition.tls = Vec::new();
    }
    definition
}

/// What becomes of the requests for what it guards.
fn standing(guarding: &Definition) -> String {
    let asks = match &guarding.settings.server.client_auth {
        Some(auth) if auth.secret.is_err() => ", and these hosts refuse every request",
        Some(_) => ", and client certificates are asked for there",
        None => "",
    };
    format!(
        "what it guards is not open to everybody: the paths that it would hold answer 503 on hosts for which other \
         Ingresses answer{asks}"
    )
}

/// Why the Ingress was refused.
fn refusal_of(diagnostics: &[Diagnostic]) -> Reason {
    let faults = diagnostics.iter().rev();
    let gravest = faults.map(|fault| (fault.severity, fault.reason)).max();
    gravest.map_or(Reason::InvalidAnnotation, |(_, reason)| reason)
}

/// Namespace and name have to be such as an API server accepts, since they become part of other names.
fn check_name(name: &ObjectName) -> Result<(), Refusal> {
    let is_valid = is_name(name.namespace(), b"-.", 253) && is_name(name.name(), b"-.", 253);
    if is_valid {
        return Ok(());
    }
    Err(Refusal {
        severity: Severity::Error,
        reason: Reason::SuspiciousText,
        key: "metadata.name".into(),
        message: "its namespace or name is no object name".into(),
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::{Host, Options, merge, testing::Fixture};

    /// An Ingress whose locations have response headers from a ConfigMap.
    fn with_headers(name: &ObjectName) -> Arc<Definition> {
        let mut settings = IngressSettings::default();
        settings.references.response_headers = Some(name.sibling("headers"));
        let location = Arc::clone(&settings.location);
        let ingress = Ingress::default();
        Arc::new(Definition::read(
            name,
            &ingress,
            Arc::new(settings),
            location,
            &mut Vec::new(),
        ))
    }

    #[test]
    fn a_change_concerns_those_who_refer_to_it() {
        let name = ObjectName::new("shop", "web");
        let definition = with_headers(&name);
        let mut ingresses = Ingresses::default();
        ingresses.refer(None, Some(&definition));
        let old = Snapshot::default();
        let concerned = |ingresses: &Ingresses, object: &str| {
            let mut new = Snapshot::default();
            new.config_maps
                .insert(name.sibling(object), ConfigMap::default());
            ingresses.concerned(&Changes::between(&old, &new))
        };
        assert_eq!(concerned(&ingresses, "headers"), [name.clone()].into());
        assert!(concerned(&ingresses, "others").is_empty());
        ingresses.refer(Some(&definition), None);
        assert!(concerned(&ingresses, "headers").is_empty());
        assert!(ingresses.referrers.is_empty());
    }

    #[test]
    fn one_that_is_made_anew_does_not_inherit_what_was_served() {
        let made = |uid: &str, redirect: &str| {
            Fixture::from_yaml(&format!(
                "{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: a, namespace: shop, uid: {uid},
                   annotations: {{nginx.ingress.kubernetes.io/permanent-redirect: '{redirect}'}}}},
                  spec: {{ingressClassName: nginx, rules: [{{host: a.test}}]}}}}"
            ))
            .unwrap()
        };
        let before = made("first", "https://b.test/").merge();
        for (uid, is_served) in [("first", true), ("second", false)] {
            let mut snapshot = made(uid, "no target;").snapshot();
            snapshot.last_good = before.outcome().last_good.clone();
            let outcome = merge(&snapshot, &Options::default(), Timestamp::UNIX_EPOCH);
            let host = Host::parse("a.test").unwrap();
            let servers = &outcome.model.layout.servers;
            assert_eq!(servers.contains_key(&host), is_served, "{uid}");
        }
    }
}
