//! Judges Ingresses by the objects that are there now.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ingress_model::{
    AdmissionIndex, ObjectKind, ObjectName, Options, Snapshot, Verdict, admit, diagnostic::Reason,
    merge,
};
use jiff::Timestamp;
use k8s_openapi::api::networking::v1::Ingress;

use super::{
    Review,
    inspector::{Findings, Inspector, fault_of_nginx, servers_of},
    sandbox::Sandbox,
};
use crate::{metrics::AdmissionMetrics, store::Store};

/// Judges Ingresses by the same rules as those of a sync, and then reads what NGINX would have to read.
pub struct Reviewer {
    store: Arc<Store>,
    options: Options,
    index: Mutex<AdmissionIndex>,
    inspector: Option<Inspector>,
    sandbox: Option<Sandbox>,
    metrics: Option<AdmissionMetrics>,
}

/// How a review went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Course {
    /// How many Ingresses were considered.
    pub(crate) considered: usize,
    /// How many of them were rendered.
    pub(crate) rendered: usize,
    /// How many bytes of configuration that were.
    pub(crate) size: usize,
    /// Time before the configuration was read.
    pub(crate) before: Duration,
    /// Time that reading took.
    pub(crate) reading: Duration,
    /// Time of all of it.
    pub(crate) whole: Duration,
}

impl Reviewer {
    /// A reviewer that knows what a store has.
    #[must_use]
    pub fn new(store: Arc<Store>, options: Options) -> Self {
        Self {
            store,
            options,
            index: Mutex::default(),
            inspector: None,
            sandbox: None,
            metrics: None,
        }
    }

    /// Has it read what NGINX would have to read.
    #[must_use]
    pub fn with_inspector(mut self, inspector: Inspector) -> Self {
        self.inspector = Some(inspector);
        self
    }

    /// Has it ask NGINX about what it has found no fault with.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Option<Sandbox>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Has it count what it does.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Option<AdmissionMetrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// What the inspector finds. `None` when the Ingress is another controller's.
    fn inspect(
        &self,
        ingress: &Ingress,
        name: &ObjectName,
        excerpt: &Snapshot,
        snapshot: &Snapshot,
        options: &Options,
    ) -> Option<Findings> {
        let inspector = self.inspector.as_ref()?;
        let mut reviewed = excerpt.clone();
        reviewed.ingresses.insert(name.clone(), ingress.clone());
        let outcome = merge(&reviewed, options, Timestamp::UNIX_EPOCH);
        outcome.last_good.get(name)?;
        let layout = &outcome.model.layout;
        let mut findings = inspector.inspect(layout, ingress, name, snapshot);
        if let Some(sandbox) = self.sandbox.as_ref().filter(|_| findings.faults.is_empty()) {
            let with = servers_of(layout, name);
            reviewed.ingresses.remove(name);
            let outcome = merge(&reviewed, options, Timestamp::UNIX_EPOCH);
            let mut without = outcome.model.layout;
            without
                .servers
                .retain(|host, _| host.is_catch_all() || with.servers.contains_key(host));
            let fault = sandbox.judge(&with, &without, name);
            findings
                .faults
                .extend(fault.map(|reason| fault_of_nginx(name, &reason)));
        }
        Some(findings)
    }
}

impl Review for Reviewer {
    fn review(&self, ingress: &Ingress) -> Verdict {
        let began = Instant::now();
        let snapshot = self.store.snapshot();
        let options = Options {
            ingress_classes_readable: !self.store.is_refused(ObjectKind::IngressClass),
            ..self.options.clone()
        };
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let excerpt = index.excerpt(&snapshot, ingress, &options);
        drop(index);
        let mut verdict = admit(ingress, &excerpt, &options);
        let metadata = &ingress.metadata;
        let name = ObjectName::new(
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
        );
        let before = began.elapsed();
        let mut findings = None;
        if verdict.is_allowed() && metadata.deletion_timestamp.is_none() {
            findings = self.inspect(ingress, &name, &excerpt, &snapshot, &options);
            let faults = findings.iter().flat_map(|findings| &findings.faults);
            verdict.faults.extend(faults.cloned());
        }
        if let Some(metrics) = &self.metrics {
            let whole = began.elapsed();
            let findings = findings.as_ref();
            metrics.reviewed(&Course {
                considered: excerpt.ingresses.len(),
                rendered: findings.map_or(0, |findings| findings.ingresses),
                size: findings.map_or(0, |findings| findings.size),
                before,
                reading: whole.saturating_sub(before),
                whole,
            });
            if !verdict.is_allowed() {
                if verdict.faults.iter().any(|fault| counts(fault.reason)) {
                    metrics.refused(&name);
                }
            } else if findings.is_some() {
                metrics.accepted(&name);
            }
        }
        verdict
    }
}

/// Whether a refusal is one of those that are counted: of annotations, overlaps and what NGINX would refuse. Others are
/// refused earlier.
fn counts(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::InvalidAnnotation
            | Reason::RefusedAnnotation
            | Reason::PathConflict
            | Reason::InvalidPath
    )
}

impl fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}
