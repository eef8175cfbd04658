//! All Ingresses: which are served, each read once as long as it does not change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    annotation,
    class::Refusal,
    context::Context,
    definition::{Definition, is_name},
    diagnostic::{Diagnostic, Reason, Severity},
    inspect,
    object::{ObjectKind, ObjectName, ObjectRef},
    snapshot::{LastGood, Snapshot},
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
    entries: BTreeMap<ObjectName, Entry>,
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

    /// What there is to say about Ingresses.
    pub(crate) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.entries.values().flat_map(|entry| &entry.diagnostics)
    }

    /// Those that have stream snippets or are canaries are few, so they are looked for only after an edit.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        let entries = self.entries.values();
        entries.filter_map(|entry| entry.definition.as_ref())
    }

    /// Reads the changed Ingresses, and those refused ones of which another earlier version is known.
    pub(crate) fn update(
        &mut self,
        changed: Vec<ObjectName>,
        earlier: Vec<ObjectName>,
        snapshot: &Snapshot,
        context: &Context,
    ) -> Edits {
        let refused = earlier.into_iter().filter(|name| {
            let entry = self.entries.get(name);
            entry.is_some_and(|entry| entry.is_refused)
        });
        let names: BTreeSet<_> = refused.chain(changed).collect();
        let mut edits = Edits::default();
        for name in names {
            let (entry, served) = read(&name, snapshot, context);
            let old = self.entries.remove(&name).unwrap_or_default();
            match &served {
                Some(ingress) => self.last_good.insert(&name, ingress),
                None => self.last_good.remove(&name),
            }
            let mut entry = entry;
            if entry.definition.is_some() && entry.definition == old.definition {
                entry.definition = old.definition;
            } else {
                edits.removed.extend(old.definition);
                edits.added.extend(entry.definition.clone());
            }
            if snapshot.ingresses.contains(&name) {
                self.entries.insert(name, entry);
            }
        }
        edits
    }
}

fn read(
    name: &ObjectName,
    snapshot: &Snapshot,
    context: &Context,
) -> (Entry, Option<Arc<Ingress>>) {
    let mut entry = Entry::default();
    let Some(ingress) = snapshot.ingresses.get(name) else {
        return (entry, None);
    };
    if let Err(refusal) = context.filter.check(name, ingress) {
        entry.diagnostics.push(refusal.diagnostic(name));
        return (entry, None);
    }
    let served = admit(name, ingress, context, &mut entry.diagnostics);
    entry.is_refused = served.is_none();
    let served = served.or_else(|| fall_back(name, snapshot, context, &mut entry.diagnostics));
    let (ingress, definition) = served.unzip();
    entry.definition = definition.map(Arc::new);
    (entry, ingress)
}

/// An Ingress that is ours is served unless deep inspection or one of its annotations forbids it.
fn admit(
    name: &ObjectName,
    ingress: &Arc<Ingress>,
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
    let settings = annotation::parse(ingress, options, &context.config, diagnostics)?;
    let definition = Definition::read(name, ingress, settings, diagnostics);
    Some((Arc::clone(ingress), definition))
}

/// An Ingress whose current version is refused goes on being served as it was before, if that version is still
/// acceptable.
fn fall_back(
    name: &ObjectName,
    snapshot: &Snapshot,
    context: &Context,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Served> {
    let earlier = snapshot.last_good.get(name)?;
    let served = admit(name, earlier, context, &mut Vec::new())?;
    diagnostics.push(Diagnostic::new(
        ObjectRef::new(ObjectKind::Ingress, name.clone()),
        Severity::Info,
        Reason::InvalidAnnotation,
        "its last acceptable version goes on being served",
    ));
    Some(served)
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
