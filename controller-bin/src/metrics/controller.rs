//! What the controller itself does: reloads, pushes, the configuration in force.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus::{
    Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, core::Collector,
};

use super::Identity;
use crate::observe::LoadReason;

/// Counters and gauges of the sync loop.
#[derive(Clone, Debug)]
pub struct ControllerMetrics {
    config_hash: Gauge,
    last_reload_successful: IntGauge,
    last_reload_timestamp: Gauge,
    success: IntCounter,
    errors: IntCounter,
    reload_reasons: IntCounterVec,
    leader: IntGaugeVec,
}

impl ControllerMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When one of the names is taken in the registry.
    pub fn register(registry: &Registry, identity: &Identity) -> Result<Self, prometheus::Error> {
        Ok(Self {
            config_hash: keep(
                registry,
                Gauge::with_opts(
                    identity.opts("config_hash", "Hash of the configuration in force"),
                )?,
            )?,
            last_reload_successful: keep(
                registry,
                IntGauge::with_opts(identity.opts(
                    "config_last_reload_successful",
                    "Whether the last reload succeeded",
                ))?,
            )?,
            last_reload_timestamp: keep(
                registry,
                Gauge::with_opts(identity.opts(
                    "config_last_reload_successful_timestamp_seconds",
                    "When a reload last succeeded, in seconds of Unix time",
                ))?,
            )?,
            success: keep(
                registry,
                IntCounter::with_opts(identity.opts("success", "Reloads that succeeded"))?,
            )?,
            errors: keep(
                registry,
                IntCounter::with_opts(identity.opts("errors", "Reloads that failed"))?,
            )?,
            reload_reasons: keep(
                registry,
                IntCounterVec::new(
                    identity.opts(
                        "reload_reasons",
                        "Reasons of reloads; one reload can have several",
                    ),
                    &["reason"],
                )?,
            )?,
            leader: keep(
                registry,
                IntGaugeVec::new(
                    identity.opts(
                        "leader_election_status",
                        "Whether this replica leads: 1 or 0; nothing before it first does",
                    ),
                    &["name"],
                )?,
            )?,
        })
    }

    /// A reload brought this configuration into force, for these reasons.
    pub fn reload_succeeded(&self, checksum: u64, reasons: &[LoadReason]) {
        self.success.inc();
        self.last_reload_successful.set(1);
        #[expect(
            clippy::cast_precision_loss,
            reason = "the metric has always been a float; it only has to change"
        )]
        self.config_hash.set(checksum as f64);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.last_reload_timestamp.set(now.as_secs_f64());
        for reason in reasons {
            self.reload_reasons
                .with_label_values(&[reason.label()])
                .inc();
        }
    }

    /// A reload failed; the configuration before it is still in force.
    pub fn reload_failed(&self) {
        self.errors.inc();
        self.last_reload_successful.set(0);
        self.config_hash.set(0.0);
    }

    /// This replica leads by the Lease of that name, or does not any more.
    pub fn leads(&self, lease: &str, leads: bool) {
        self.leader.with_label_values(&[lease]).set(leads.into());
    }
}

pub(super) fn keep<C: Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::exposition;

    #[test]
    fn a_failed_reload_shows_until_one_succeeds() {
        let registry = Registry::new();
        let identity = Identity {
            class: "c".into(),
            namespace: "n".into(),
            pod: "p".into(),
        };
        let metrics = ControllerMetrics::register(&registry, &identity).unwrap();
        let labels = r#"{controller_class="c",controller_namespace="n",controller_pod="p"}"#;
        metrics.reload_failed();
        let text = exposition(&registry).unwrap();
        assert!(
            text.contains(&format!(
                "nginx_ingress_controller_config_last_reload_successful{labels} 0"
            )),
            "{text}"
        );
        assert!(
            text.contains(&format!("nginx_ingress_controller_errors{labels} 1")),
            "{text}"
        );
        metrics.reload_succeeded(
            42,
            &[LoadReason::Objects(ingress_model::ReloadReason::First)],
        );
        let text = exposition(&registry).unwrap();
        assert!(
            text.contains(&format!(
                "nginx_ingress_controller_config_last_reload_successful{labels} 1"
            )),
            "{text}"
        );
        assert!(
            text.contains(&format!("nginx_ingress_controller_config_hash{labels} 42")),
            "{text}"
        );
        assert!(text.contains(r#"reason="first"} 1"#), "{text}");
    }
    #[test]
    fn the_leader_is_shown_once_it_leads() {
        let registry = Registry::new();
        let identity = Identity {
            class: "c".into(),
            namespace: "n".into(),
            pod: "p".into(),
        };
        let metrics = ControllerMetrics::register(&registry, &identity).unwrap();
        let name = "nginx_ingress_controller_leader_election_status";
        assert!(!exposition(&registry).unwrap().contains(name));
        for (leads, value) in [(true, 1), (false, 0)] {
            metrics.leads("chosen", leads);
            let labels =
                r#"controller_class="c",controller_namespace="n",controller_pod="p",name="chosen""#;
            let line = format!("{name}{{{labels}}} {value}\n");
            let text = exposition(&registry).unwrap();
            assert!(text.contains(&line), "{text}");
        }
    }
}
