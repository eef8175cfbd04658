//! How many series metrics may have: a bound that says when it is reached.
//!
//! Most labels hold what configuration names. Some hold what clients send, so that without a bound a client could fill
//! the memory of the controller and of Prometheus.

use std::collections::HashSet;

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{Identity, controller::keep};

/// Shows how many series there are, and what was left out since there were too many.
#[derive(Clone, Debug)]
pub struct SeriesMetrics {
    known: IntGaugeVec,
    dropped: IntCounterVec,
}

/// The bound of one sort of metrics.
#[derive(Clone, Debug)]
pub struct SeriesLimit {
    most: usize,
    known: IntGauge,
    dropped: IntCounter,
}

impl SeriesMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When one of the names is taken in the registry.
    pub fn register(registry: &Registry, identity: &Identity) -> Result<Self, prometheus::Error> {
        let known = identity.opts(
            "metric_series",
            "Label sets in use, by the sort of metrics that has them",
        );
        let dropped = identity.opts(
            "metric_series_dropped",
            "Observations left out since --metrics-max-series was reached, by the sort of metrics",
        );
        Ok(Self {
            known: keep(registry, IntGaugeVec::new(known, &["sort"])?)?,
            dropped: keep(registry, IntCounterVec::new(dropped, &["sort"])?)?,
        })
    }

    /// A bound for one sort of metrics. At most so many label sets; 0: as many as there are.
    #[must_use]
    pub fn limit(&self, sort: &str, most: usize) -> SeriesLimit {
        SeriesLimit {
            most: if most == 0 { usize::MAX } else { most },
            known: self.known.with_label_values(&[sort]),
            dropped: self.dropped.with_label_values(&[sort]),
        }
    }
}

impl SeriesLimit {
    /// Whether a label set may be used: it is known, or there is room for it.
    pub(super) fn admits(&self, known: &mut HashSet<Vec<String>>, labels: &[String]) -> bool {
        if known.contains(labels) {
            return true;
        }
        let used = usize::try_from(self.known.get()).unwrap_or_default();
        if used >= self.most {
            self.dropped.inc();
            return false;
        }
        known.insert(labels.to_vec());
        self.known.inc();
        true
    }

    /// So many label sets are not used any more.
    pub(super) fn released(&self, count: usize) {
        self.known.sub(i64::try_from(count).unwrap_or(i64::MAX));
    }
}
