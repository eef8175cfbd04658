//! Ingresses whose Services are missing, or have nobody to answer.

use std::collections::BTreeMap;

use ingress_model::{ObjectName, Outcome};
use prometheus::{IntGaugeVec, Registry};

use super::{Identity, controller::keep};
use crate::store::Store;

/// Shows for each Ingress whether one of its paths has no Service, and whether one has no endpoint.
#[derive(Debug)]
pub struct OrphanMetrics(IntGaugeVec);

/// What the paths of an Ingress lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lack {
    service: bool,
    endpoint: bool,
}

impl OrphanMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When the name is taken in the registry.
    pub fn register(registry: &Registry, identity: &Identity) -> Result<Self, prometheus::Error> {
        let opts = identity.opts(
            "orphan_ingress",
            "Whether a path of the Ingress has no Service, or a Service without endpoints",
        );
        let labels = ["ingress", "namespace", "type"];
        Ok(Self(keep(registry, IntGaugeVec::new(opts, &labels)?)?))
    }

    /// Shows what the Ingresses of an outcome lack.
    pub(super) fn refresh(&self, outcome: &Outcome, store: &Store) {
        self.0.reset();
        for (name, lack) in lacks(outcome, store) {
            for (kind, lacks) in [("no-service", lack.service), ("no-endpoint", lack.endpoint)] {
                let labels = [name.name(), name.namespace(), kind];
                self.0.with_label_values(&labels).set(lacks.into());
            }
        }
    }
}

fn lacks(outcome: &Outcome, store: &Store) -> BTreeMap<ObjectName, Lack> {
    let services = store.snapshot().services;
    let model = &outcome.model;
    let servers = model.layout.servers.values();
    let mut lacks: BTreeMap<ObjectName, Lack> = BTreeMap::new();
    for location in servers.flat_map(|server| &server.locations) {
        let (Some(ingress), Some(service)) = (&location.ingress, &location.service) else {
            continue;
        };
        let lack = lacks.entry(ingress.clone()).or_default();
        if services.contains(&ingress.sibling(&service.name)) {
            let backend = model.live.backend(&location.upstream, Some(ingress));
            lack.endpoint |= backend.is_none_or(|backend| backend.endpoints.is_empty());
        } else {
            lack.service = true;
        }
    }
    lacks
}
