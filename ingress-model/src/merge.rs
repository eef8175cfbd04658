//! From objects to the model: the rules in the order in which they apply.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    assemble::{self, Parts},
    backends::{Backends, Sources},
    canary::{self, Canaries},
    changes::Changes,
    context::Context,
    definition::{Age, Definition},
    dependencies::Dependencies,
    diagnostic::Diagnostic,
    endpoints::Protocol,
    hosts::{Causes, Hosts, Rebuilt},
    ingresses::Ingresses,
    layout::Owned,
    live::UpstreamName,
    options::Options,
    outcome::Outcome,
    secrets::Secrets,
    services::{self, Services},
    snapshot::Snapshot,
    stand_in::StandIns,
    stream::{self, Streams},
    upstream::{Edits, Upstreams},
    value::Snippet,
};

/// Turns the objects of a cluster into the configuration of NGINX.
///
/// Total and pure: any input gives an outcome, and the same input the same outcome. `now` serves to tell expired
/// certificates.
///
/// ```
/// use ingress_model::{Host, Options, Snapshot, merge};
///
/// let outcome = merge(&Snapshot::default(), &Options::default(), jiff::Timestamp::UNIX_EPOCH);
/// let server = &outcome.model.layout.servers[&Host::catch_all()];
/// assert_eq!(server.locations[0].upstream.as_str(), "upstream-default-backend");
/// ```
#[must_use]
pub fn merge(snapshot: &Snapshot, options: &Options, now: Timestamp) -> Outcome {
    Merger::default().merge(snapshot, options, now)
}

/// [`merge()`] with a memory, so that a merge after few changes is cheap: what no change concerns is not looked at
/// again, and stays the same shared pointer. The outcome is the one that [`merge()`] gives.
#[derive(Debug, Default)]
pub struct Merger {
    /// What the state below was made from.
    snapshot: Snapshot,
    context: Option<Context>,
    config_diagnostics: Vec<Diagnostic>,
    ingresses: Ingresses,
    services: Services,
    secrets: Secrets,
    upstreams: Upstreams,
    hosts: Hosts,
    /// Canaries by age.
    canary_definitions: BTreeMap<Age, Arc<Definition>>,
    canaries: Canaries,
    stand_ins: StandIns,
    backends: Backends,
    tcp: Streams,
    udp: Streams,
    /// Stream snippets by the age of their Ingresses.
    stream_snippets: BTreeMap<Age, Owned<Snippet>>,
    dependencies: Dependencies,
}

impl Merger {
    /// Turns the objects of a cluster into the configuration of NGINX, as [`merge()`] does.
    #[must_use]
    pub fn merge(&mut self, snapshot: &Snapshot, options: &Options, now: Timestamp) -> Outcome {
        let context = self.renew(snapshot, options);
        let before = std::mem::replace(&mut self.snapshot, snapshot.clone());
        let mut changes = Changes::between(&before, snapshot);
        changes.let_secrets_count(|name| self.secrets.is_unusable(name));
        let edits = self.ingresses.update(&changes, snapshot, &context);
        self.note(&edits);
        self.secrets.update(
            &snapshot.secrets,
            &snapshot.last_good.secrets,
            &changes.secrets,
        );
        let regrouped = self.upstreams.update(&edits);
        let renamed = regrouped.renamed.iter();
        let causes = Causes {
            edits: &edits,
            renamed: renamed
                .filter_map(|name| self.ingresses.get(name).cloned())
                .collect(),
            secrets: &changes.secrets,
        };
        let rebuilt = self
            .hosts
            .update(&causes, &context, &self.upstreams, &mut self.secrets);
        let mut backends = regrouped.backends;
        backends.extend(self.stand_ins.update(&edits));
        backends.extend(self.aliased_backends(&rebuilt));
        backends.extend(self.serving_backends(&changes, before.ingresses.is_empty()));
        if rebuilt.any || !edits.is_empty() {
            backends.extend(self.join_canaries(&context));
        }
        let sources = Sources {
            context: &context,
            services: &self.services,
            hosts: &self.hosts,
            upstreams: &self.upstreams,
            canaries: &self.canaries,
            stand_ins: &self.stand_ins,
        };
        self.backends.update(backends, sources);
        let read = |protocol, old| stream::read(protocol, snapshot, &self.services, &context, old);
        (self.tcp, self.udp) = (
            read(Protocol::Tcp, &self.tcp),
            read(Protocol::Udp, &self.udp),
        );
        self.depend(&context);
        let outcome = self.outcome(&context, now);
        self.context = Some(context);
        outcome
    }

    /// What is the same for all. If it is not what it was, everything is read again.
    fn renew(&mut self, snapshot: &Snapshot, options: &Options) -> Context {
        if let Some(known) = self.context.take() {
            if known.is_current(&self.snapshot, snapshot, options) {
                return known;
            }
            let mut diagnostics = Vec::new();
            let context = Context::read(snapshot, options, &mut diagnostics);
            if context == known {
                self.config_diagnostics = diagnostics;
                return known;
            }
        }
        *self = Self::default();
        Context::read(snapshot, options, &mut self.config_diagnostics)
    }

    /// Keeps what is few among many: dependencies, canaries and stream snippets, the latter in order of age.
    fn note(&mut self, edits: &Edits) {
        self.dependencies.update(edits);
        for definition in &edits.removed {
            self.canary_definitions.remove(&definition.age);
            self.stream_snippets.remove(&definition.age);
        }
        for definition in &edits.added {
            if definition.settings.canary.is_some() {
                let canary = Arc::clone(definition);
                self.canary_definitions
                    .insert(definition.age.clone(), canary);
            }
            if let Some(snippet) = &definition.settings.stream_snippet {
                let snippet = Owned {
                    ingress: definition.name.clone(),
                    value: snippet.clone(),
                };
                self.stream_snippets.insert(definition.age.clone(), snippet);
            }
        }
    }

    /// The backends whose peers may be other ones.
    fn serving_backends(&mut self, changes: &Changes<'_>, is_first: bool) -> Vec<UpstreamName> {
        self.services.update(changes);
        if is_first {
            // Every backend is a new one, and built in any case.
            return Vec::new();
        }
        let services = services::concerned(changes);
        let backends = services.flat_map(|name| {
            let stand_in = self.stand_ins.of_service(&name);
            let backends = self.upstreams.of_service(&name).cloned();
            backends.chain(stand_in).collect::<Vec<_>>()
        });
        backends.collect()
    }

    /// The backends with affinity of hosts that have other aliases now: their cookie may be set for those too.
    fn aliased_backends(&self, rebuilt: &Rebuilt) -> Vec<UpstreamName> {
        let entries = rebuilt.aliases.iter();
        let entries = entries.filter_map(|host| self.hosts.entries.get(host));
        let definitions = entries
            .flat_map(|entry| &entry.claims)
            .map(|claim| &claim.definition)
            .filter(|definition| definition.settings.backend.affinity.is_some());
        let names = definitions.flat_map(|definition| self.upstreams.names(definition).iter());
        names.cloned().collect()
    }

    /// Finds the main backends of canaries; answers the backends that are concerned.
    fn join_canaries(&mut self, context: &Context) -> BTreeSet<UpstreamName> {
        let policy = context.options.conflict_policy;
        let definitions = self.canary_definitions.values().collect();
        let canaries = canary::merge(definitions, policy, &self.hosts, &self.upstreams);
        let changed = self.canaries.changed(&canaries);
        self.canaries = canaries;
        changed
    }

    /// What flags and ConfigMaps refer to.
    fn depend(&mut self, context: &Context) {
        let mut fixed: BTreeSet<_> = context.dependencies().into_iter().collect();
        fixed.extend(self.tcp.dependencies.iter().cloned());
        fixed.extend(self.udp.dependencies.iter().cloned());
        self.dependencies.set_fixed(fixed);
    }

    fn outcome(&mut self, context: &Context, now: Timestamp) -> Outcome {
        let parts = Parts {
            context,
            hosts: &self.hosts,
            backends: &self.backends,
            tcp: &self.tcp,
            udp: &self.udp,
            stream_snippets: &self.stream_snippets,
            now,
        };
        let mut diagnostics = self.config_diagnostics.clone();
        let (model, provenance) = assemble::assemble(parts, &mut self.secrets, &mut diagnostics);
        diagnostics.extend(self.ingresses.diagnostics().cloned());
        diagnostics.extend(self.hosts.name_diagnostics.iter().cloned());
        diagnostics.extend(self.canaries.diagnostics.iter().cloned());
        diagnostics.extend(self.backends.diagnostics.values().flatten().cloned());
        diagnostics.extend(self.tcp.diagnostics.iter().cloned());
        diagnostics.extend(self.udp.diagnostics.iter().cloned());
        diagnostics.sort();
        diagnostics.dedup();
        Outcome {
            model,
            diagnostics,
            provenance,
            dependencies: self.dependencies.clone(),
            last_good: self
                .ingresses
                .last_good
                .clone()
                .with_secrets(self.secrets.last_good()),
        }
    }
}
