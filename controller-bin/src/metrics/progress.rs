//! How far changes have come, and how long that took. None of these is in ingress-nginx.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use ingress_model::ObjectName;
use prometheus::{HistogramOpts, HistogramVec, IntGauge, IntGaugeVec, Opts, Registry};
use sync_queue::Depth;

use super::{Identity, controller::keep};
use crate::observe::{Load, Told};

/// Seconds: merging few changes takes parts of a millisecond, loading files may take minutes.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0,
];

/// Histograms and gauges of the way from a change to what NGINX does.
#[derive(Debug)]
pub struct ProgressMetrics {
    phases: HistogramVec,
    propagation: HistogramVec,
    queue_depth: IntGaugeVec,
    isolated: IntGauge,
    kept: Mutex<BTreeSet<ObjectName>>,
    behind: Mutex<Behind>,
}

/// Since when NGINX should load other files.
#[derive(Clone, Copy, Debug, Default)]
struct Behind {
    first: Option<Instant>,
    last: Option<Instant>,
}

impl ProgressMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When one of the names is taken in the registry.
    pub fn register(registry: &Registry, identity: &Identity) -> Result<Self, prometheus::Error> {
        let phases = identity.opts(
            "sync_phase_duration_seconds",
            "Time of each phase: merge and tell of a sync; render, test and load of files",
        );
        let propagation = identity.opts(
            "propagation_delay_seconds",
            "Time from a change of an object until NGINX acts on it, by the way it took",
        );
        let depth = identity.opts("queue_depth", "What waits to be synced or loaded");
        let isolated = identity.opts(
            "isolated_ingresses",
            "Ingresses that are kept apart since NGINX refuses them",
        );
        Ok(Self {
            phases: histograms(registry, phases, "phase")?,
            propagation: histograms(registry, propagation, "way")?,
            queue_depth: keep(registry, IntGaugeVec::new(depth, &["queue"])?)?,
            isolated: keep(registry, IntGauge::with_opts(isolated)?)?,
            kept: Mutex::default(),
            behind: Mutex::default(),
        })
    }

    /// Objects were merged in that time.
    pub(super) fn merged(&self, took: Duration) {
        self.phase("merge", took);
    }

    /// A sync is over.
    pub(super) fn told(&self, told: &Told) {
        self.phase("tell", told.tell);
        let delay = told.waited + told.merge + told.tell;
        if told.sent() > 0 {
            observe(&self.propagation, "push", delay);
        }
        if told.loads {
            let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = Instant::now().checked_sub(delay);
            behind.first = behind.first.or(changed);
            behind.last = changed;
        }
    }

    /// NGINX runs with new files.
    pub(super) fn loaded(&self, load: &Load) {
        self.phase("render", load.render);
        self.phase("test", load.test);
        self.phase("load", load.load);
        let now = Instant::now();
        let began = now.checked_sub(load.render + load.test + load.load);
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = behind.first {
            observe(&self.propagation, "reload", now.duration_since(first));
        }
        // What came while the files were made is in the next ones.
        let missed = behind
            .last
            .filter(|last| began.is_some_and(|began| *last > began));
        *behind = Behind {
            first: missed,
            last: missed,
        };
    }

    /// An Ingress is kept apart, or not any more.
    pub(super) fn keep_apart(&self, ingress: &ObjectName, is_kept: bool) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if is_kept {
            kept.insert(ingress.clone());
        } else {
            kept.remove(ingress);
        }
        self.isolated
            .set(i64::try_from(kept.len()).unwrap_or(i64::MAX));
    }

    /// So much waits in a queue.
    pub(super) fn queue(&self, name: &str, depth: Depth) {
        let waiting = depth.ready + depth.delayed;
        let gauge = self.queue_depth.with_label_values(&[name]);
        gauge.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    fn phase(&self, phase: &str, took: Duration) {
        observe(&self.phases, phase, took);
    }
}

fn histograms(
    registry: &Registry,
    opts: Opts,
    label: &str,
) -> Result<HistogramVec, prometheus::Error> {
    let opts = HistogramOpts::from(opts).buckets(BUCKETS.to_vec());
    keep(registry, HistogramVec::new(opts, &[label])?)
}

fn observe(histograms: &HistogramVec, label: &str, time: Duration) {
    histograms
        .with_label_values(&[label])
        .observe(time.as_secs_f64());
}

#[cfg(test)]
mod tests {
    use lua_sync_client::Applied;

    use super::*;

    fn metrics() -> ProgressMetrics {
        let identity = Identity {
            class: "c".into(),
            namespace: "n".into(),
            pod: "p".into(),
        };
        ProgressMetrics::register(&Registry::new(), &identity).unwrap()
    }

    fn told(waited: u64, sent: usize, loads: bool) -> Told {
        Told {
            applied: Applied {
                backends_sent: sent,
                ..Applied::default()
            },
            waited: Duration::from_secs(waited),
            loads,
            ..Told::default()
        }
    }

    fn load(took: u64) -> Load {
        Load {
            load: Duration::from_secs(took),
            ..Load::default()
        }
    }

    fn delays(metrics: &ProgressMetrics, way: &str) -> (u64, f64) {
        let histogram = metrics.propagation.with_label_values(&[way]);
        (histogram.get_sample_count(), histogram.get_sample_sum())
    }

    #[test]
    fn delays_count_from_the_change() {
        let metrics = metrics();
        metrics.told(&told(0, 0, false));
        assert_eq!(delays(&metrics, "push").0, 0, "nothing had to be told");
        metrics.told(&told(2, 1, false));
        let (count, sum) = delays(&metrics, "push");
        assert!(count == 1 && (2.0..2.5).contains(&sum), "{sum}");

        // Two changes wait for one load; it is the older one that has waited longest.
        metrics.told(&told(9, 0, true));
        metrics.told(&told(5, 0, true));
        metrics.loaded(&load(1));
        let (count, sum) = delays(&metrics, "reload");
        assert!(count == 1 && (9.0..9.5).contains(&sum), "{sum}");
        metrics.loaded(&load(1));
        assert_eq!(delays(&metrics, "reload").0, 1, "nothing has waited");
    }

    #[test]
    fn what_came_during_a_load_waits_for_the_next_one() {
        let metrics = metrics();
        metrics.told(&told(20, 0, true));
        metrics.told(&told(3, 0, true));
        metrics.loaded(&load(10));
        metrics.loaded(&load(1));
        let (count, sum) = delays(&metrics, "reload");
        assert!(count == 2 && (23.0..24.0).contains(&sum), "{sum}");
    }

    #[test]
    fn ingresses_are_kept_apart_once() {
        let metrics = metrics();
        let (a, b) = (ObjectName::new("n", "a"), ObjectName::new("n", "b"));
        for (ingress, is_kept, want) in
            [(&a, true, 1), (&a, true, 1), (&b, true, 2), (&a, false, 1)]
        {
            metrics.keep_apart(ingress, is_kept);
            assert_eq!(metrics.isolated.get(), want);
        }
    }
}
