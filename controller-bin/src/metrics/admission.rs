//! What the validating webhook does.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use ingress_model::ObjectName;
use prometheus::{Gauge, IntCounterVec, IntGauge, Registry};

use super::{Identity, controller::keep, limit::SeriesLimit};
use crate::admission::Course;

/// Counters of verdicts, and gauges about the last review.
#[derive(Clone, Debug)]
pub struct AdmissionMetrics {
    success: IntCounterVec,
    errors: IntCounterVec,
    limit: SeriesLimit,
    /// Verdicts and Ingresses that are counted. Those that were refused need not exist, so that they never go.
    known: Arc<Mutex<HashSet<Vec<String>>>>,
    tested_ingresses: IntGauge,
    tested_duration: Gauge,
    render_ingresses: IntGauge,
    render_duration: Gauge,
    config_size: IntGauge,
    roundtrip_duration: Gauge,
}

impl AdmissionMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When one of the names is taken in the registry.
    pub fn register(
        registry: &Registry,
        identity: &Identity,
        limit: SeriesLimit,
    ) -> Result<Self, prometheus::Error> {
        let verdicts = |name, help| {
            let opts = identity.opts(name, help);
            keep(
                registry,
                IntCounterVec::new(opts, &["namespace", "ingress"])?,
            )
        };
        let count = |name, help| {
            keep(
                registry,
                IntGauge::with_opts(identity.opts(&format!("admission_{name}"), help))?,
            )
        };
        let time = |name, help| {
            keep(
                registry,
                Gauge::with_opts(identity.opts(&format!("admission_{name}"), help))?,
            )
        };
        Ok(Self {
            success: verdicts("check_success", "Ingresses that the webhook accepted")?,
            errors: verdicts("check_errors", "Ingresses that the webhook refused")?,
            limit,
            known: Arc::default(),
            tested_ingresses: count("tested_ingresses", "Ingresses rendered in the last review")?,
            tested_duration: time(
                "tested_duration",
                "Seconds that rendering and reading took in the last review",
            )?,
            render_ingresses: count(
                "render_ingresses",
                "Ingresses considered in the last review",
            )?,
            render_duration: time(
                "render_duration",
                "Seconds before anything was rendered in the last review",
            )?,
            config_size: count(
                "config_size",
                "Bytes of configuration read in the last review",
            )?,
            roundtrip_duration: time("roundtrip_duration", "Seconds of the last review")?,
        })
    }

    /// An Ingress was accepted.
    pub fn accepted(&self, name: &ObjectName) {
        self.count("accepted", &self.success, name);
    }

    /// An Ingress was refused.
    pub fn refused(&self, name: &ObjectName) {
        self.count("refused", &self.errors, name);
    }

    fn count(&self, verdict: &str, counter: &IntCounterVec, name: &ObjectName) {
        let labels = [name.namespace(), name.name()];
        let series = [verdict, labels[0], labels[1]].map(str::to_owned);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if self.limit.admits(&mut known, &series) {
            counter.with_label_values(&labels).inc();
        }
    }

    /// A review has taken this course.
    pub(crate) fn reviewed(&self, course: &Course) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.tested_ingresses.set(number(course.rendered));
        self.tested_duration.set(course.reading.as_secs_f64());
        self.render_ingresses.set(number(course.considered));
        self.render_duration.set(course.before.as_secs_f64());
        self.config_size.set(number(course.size));
        self.roundtrip_duration.set(course.whole.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{exposition, limit::SeriesMetrics};

    #[test]
    fn verdicts_are_counted_by_ingress() {
        let registry = Registry::new();
        let identity = Identity {
            class: "c".into(),
            namespace: "n".into(),
            pod: "p".into(),
        };
        let series = SeriesMetrics::register(&registry, &identity).unwrap();
        let limit = series.limit("checks", 2);
        let metrics = AdmissionMetrics::register(&registry, &identity, limit).unwrap();
        metrics.accepted(&ObjectName::new("shop", "cart"));
        metrics.refused(&ObjectName::new("shop", "bad"));
        metrics.refused(&ObjectName::new("shop", "worse"));
        metrics.reviewed(&Course {
            considered: 3,
            ..Course::default()
        });
        let text = exposition(&registry).unwrap();
        for line in [
            r#"check_success{controller_class="c",controller_namespace="n",controller_pod="p",ingress="cart",namespace="shop"} 1"#,
            r#"check_errors{controller_class="c",controller_namespace="n",controller_pod="p",ingress="bad",namespace="shop"} 1"#,
            r#"metric_series_dropped{controller_class="c",controller_namespace="n",controller_pod="p",sort="checks"} 1"#,
            r#"admission_render_ingresses{controller_class="c",controller_namespace="n",controller_pod="p"} 3"#,
        ] {
            assert!(
                text.contains(&format!("nginx_ingress_controller_{line}")),
                "{text}"
            );
        }
    }
}
