//! What NGINX's workers report about the requests they served.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Mutex, PoisonError, RwLock},
};

use ingress_model::ObjectName;
use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Registry};
use serde::Deserialize;

use super::{Identity, controller::keep, limit::SeriesLimit};

/// One request, as a worker reports it. Times are in seconds, lengths in bytes; `-1` means that there was none, or that
/// a retry left more than one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// `$host`.
    pub host: String,
    /// Namespace of the Ingress.
    pub namespace: String,
    /// Name of the Ingress.
    pub ingress: String,
    /// Name of the Service.
    pub service: String,
    /// The canary's backend, if one was used.
    pub canary: String,
    /// The path of the Ingress.
    pub path: String,
    /// `$request_method`.
    pub method: String,
    /// `$status`.
    pub status: String,
    /// `$request_length`.
    pub request_length: f64,
    /// `$request_time`.
    pub request_time: f64,
    /// `$bytes_sent`.
    pub response_length: f64,
    /// `$upstream_connect_time`.
    pub upstream_latency: f64,
    /// `$upstream_header_time`.
    pub upstream_header_time: f64,
    /// `$upstream_response_time`.
    pub upstream_response_time: f64,
}

/// What the flags say about request metrics.
#[derive(Clone, Debug)]
pub struct RequestMetricsSettings {
    /// `--metrics-per-host`: a label `host`, and no requests of hosts that are not served.
    pub per_host: bool,
    /// `--metrics-per-undefined-host`: requests of hosts that are not served count as well.
    pub per_undefined_host: bool,
    /// `--report-status-classes`: the label `status` is `2xx` and the like.
    pub status_classes: bool,
    /// `--time-buckets`, in seconds.
    pub time_buckets: Vec<f64>,
    /// `--length-buckets`, in bytes.
    pub length_buckets: Vec<f64>,
    /// `--size-buckets`, in bytes.
    pub size_buckets: Vec<f64>,
    /// `--exclude-socket-metrics`: names that are left out, with or without the common prefix.
    pub excluded: BTreeSet<String>,
}

/// What a histogram takes of a request.
type Measure = fn(&RequestRecord) -> f64;

/// Counters and histograms of requests.
#[derive(Debug)]
pub struct RequestMetrics {
    settings: RequestMetricsSettings,
    requests: Option<IntCounterVec>,
    histograms: Vec<(HistogramVec, Measure)>,
    /// Hosts that are served.
    hosts: RwLock<HashSet<String>>,
    /// The label values in use, by Ingress, so that they can go with it.
    series: Mutex<HashMap<ObjectName, HashSet<Vec<String>>>>,
    limit: SeriesLimit,
    unreported: IntCounter,
}

/// Methods that are told apart; a client may send any other word.
const METHODS: [&str; 20] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
    "PURGE",
    "QUERY",
];

/// What all other methods are counted as.
const OTHER_METHOD: &str = "_OTHER";

const LABELS: [&str; 7] = [
    "canary",
    "ingress",
    "method",
    "namespace",
    "path",
    "service",
    "status",
];

impl RequestMetrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// When one of the names is taken in the registry, or buckets are not in rising order.
    pub fn register(
        registry: &Registry,
        identity: &Identity,
        settings: RequestMetricsSettings,
        limit: SeriesLimit,
    ) -> Result<Self, prometheus::Error> {
        let mut labels = LABELS.to_vec();
        if settings.per_host {
            labels.push("host");
        }
        let included = |name: &str| {
            !settings.excluded.contains(name)
                && !settings
                    .excluded
                    .contains(&format!("{}_{name}", super::NAMESPACE))
        };
        let requests = if included("requests") {
            let counter = IntCounterVec::new(
                identity.opts("requests", "Requests that clients made"),
                &labels,
            )?;
            registry.register(Box::new(counter.clone()))?;
            Some(counter)
        } else {
            None
        };
        let (times, lengths, sizes) = (
            &settings.time_buckets,
            &settings.length_buckets,
            &settings.size_buckets,
        );
        let wanted: [(&str, &str, &Vec<f64>, Measure); 7] = [
            (
                "request_duration_seconds",
                "Time from the first byte of a request to the last of its answer",
                times,
                |r| r.request_time,
            ),
            (
                "response_duration_seconds",
                "Time to receive the answer from the endpoint",
                times,
                |r| r.upstream_response_time,
            ),
            (
                "header_duration_seconds",
                "Time to receive the first header from the endpoint",
                times,
                |r| r.upstream_header_time,
            ),
            (
                "connect_duration_seconds",
                "Time to connect to the endpoint",
                times,
                |r| r.upstream_latency,
            ),
            (
                "request_size",
                "Bytes of a request, header and body",
                lengths,
                |r| r.request_length,
            ),
            ("response_size", "Bytes sent to the client", lengths, |r| {
                r.response_length
            }),
            (
                "bytes_sent",
                "Bytes sent to the client; response_size is the name to use",
                sizes,
                |r| r.response_length,
            ),
        ];
        let mut histograms = Vec::new();
        for (name, help, buckets, measure) in wanted.into_iter().filter(|(name, ..)| included(name))
        {
            let opts = HistogramOpts::from(identity.opts(name, help)).buckets(buckets.clone());
            let histogram = HistogramVec::new(opts, &labels)?;
            registry.register(Box::new(histogram.clone()))?;
            histograms.push((histogram, measure));
        }
        let unreported = identity.opts(
            "requests_unreported",
            "Requests that are in no metric, since a worker had too many of them or could not report",
        );
        let unreported = keep(registry, IntCounter::with_opts(unreported)?)?;
        let (hosts, series) = (RwLock::default(), Mutex::default());
        Ok(Self {
            settings,
            requests,
            histograms,
            hosts,
            series,
            limit,
            unreported,
        })
    }

    /// Counts requests of which nothing else is known.
    pub fn miss(&self, requests: u64) {
        self.unreported.inc_by(requests);
    }

    /// Counts one request.
    pub fn observe(&self, record: &RequestRecord) {
        let settings = &self.settings;
        if settings.per_host
            && !settings.per_undefined_host
            && !self
                .hosts
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .contains(&record.host)
        {
            return;
        }
        let status = if settings.status_classes {
            record
                .status
                .chars()
                .next()
                .map(|class| format!("{class}xx"))
                .unwrap_or_default()
        } else {
            record.status.clone()
        };
        let method = Some(record.method.as_str()).filter(|method| METHODS.contains(method));
        let mut values = vec![
            record.canary.clone(),
            record.ingress.clone(),
            method.unwrap_or(OTHER_METHOD).to_owned(),
            record.namespace.clone(),
            record.path.clone(),
            record.service.clone(),
            status,
        ];
        if settings.per_host {
            values.push(record.host.clone());
        }
        let ingress = ObjectName::new(&record.namespace, &record.ingress);
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        // Behind the lock, so that no series comes back after its Ingress has gone.
        if !self
            .limit
            .admits(series.entry(ingress).or_default(), &values)
        {
            return;
        }
        if let Some(requests) = &self.requests {
            requests.with_label_values(&values).inc();
        }
        for (histogram, measure) in &self.histograms {
            let value = measure(record);
            if value >= 0.0 {
                histogram.with_label_values(&values).observe(value);
            }
        }
    }

    /// Says which hosts and Ingresses are served now; what was counted for other Ingresses is forgotten.
    pub fn serve(&self, hosts: HashSet<String>, ingresses: &BTreeSet<ObjectName>) {
        *self.hosts.write().unwrap_or_else(PoisonError::into_inner) = hosts;
        self.series
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|ingress, series| {
                // Requests that no Ingress answers are reported without a name.
                if ingresses.contains(ingress) || ingress.name().is_empty() || ingress.name() == "-"
                {
                    return true;
                }
                #[expect(
                    clippy::iter_over_hash_type,
                    reason = "removal does not depend on the order"
                )]
                for values in series.iter() {
                    // A vector lacks the series that it never observed.
                    if let Some(requests) = &self.requests {
                        let _absent = requests.remove_label_values(values);
                    }
                    for (histogram, _) in &self.histograms {
                        let _absent = histogram.remove_label_values(values);
                    }
                }
                self.limit.released(series.len());
                false
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{exposition, limit::SeriesMetrics};

    fn settings() -> RequestMetricsSettings {
        RequestMetricsSettings {
            per_host: true,
            per_undefined_host: false,
            status_classes: false,
            time_buckets: vec![0.1, 1.0],
            length_buckets: vec![10.0, 100.0],
            size_buckets: vec![10.0, 1000.0],
            excluded: BTreeSet::new(),
        }
    }

    fn record() -> RequestRecord {
        RequestRecord {
            host: "shop.test".into(),
            namespace: "ns".into(),
            ingress: "shop".into(),
            service: "web".into(),
            canary: String::new(),
            path: "/".into(),
            method: "GET".into(),
            status: "200".into(),
            request_length: 80.0,
            request_time: 0.05,
            response_length: 500.0,
            upstream_latency: 0.001,
            upstream_header_time: 0.01,
            upstream_response_time: -1.0,
        }
    }

    fn metrics(settings: RequestMetricsSettings) -> (Registry, RequestMetrics) {
        let registry = Registry::new();
        let identity = Identity {
            class: "c".into(),
            namespace: "n".into(),
            pod: "p".into(),
        };
        let series = SeriesMetrics::register(&registry, &identity).unwrap();
        let limit = series.limit("requests", 3);
        let metrics = RequestMetrics::register(&registry, &identity, settings, limit).unwrap();
        metrics.serve(
            HashSet::from(["shop.test".into()]),
            &BTreeSet::from([ObjectName::new("ns", "shop")]),
        );
        (registry, metrics)
    }

    #[test]
    fn only_served_hosts_count() {
        let (registry, metrics) = metrics(settings());
        metrics.observe(&record());
        metrics.observe(&RequestRecord {
            host: "other.test".into(),
            ..record()
        });
        let text = exposition(&registry).unwrap();
        assert!(
            text.contains(r#"host="shop.test""#) && !text.contains("other.test"),
            "{text}"
        );
    }

    #[test]
    fn a_value_that_is_not_one_number_is_not_observed() {
        let (registry, metrics) = metrics(settings());
        metrics.observe(&record());
        let text = exposition(&registry).unwrap();
        assert!(text.contains("header_duration_seconds_count"), "{text}");
        assert!(!text.contains("response_duration_seconds_count"), "{text}");
    }

    #[test]
    fn status_classes_and_exclusions() {
        let excluded = BTreeSet::from([
            "bytes_sent".into(),
            "nginx_ingress_controller_request_size".into(),
        ]);
        let (registry, metrics) = metrics(RequestMetricsSettings {
            status_classes: true,
            excluded,
            ..settings()
        });
        metrics.observe(&record());
        let text = exposition(&registry).unwrap();
        assert!(text.contains(r#"status="2xx""#), "{text}");
        assert!(
            !text.contains("bytes_sent") && !text.contains("request_size"),
            "{text}"
        );
    }

    #[test]
    fn no_client_can_make_series_without_end() {
        let (registry, metrics) = metrics(settings());
        for number in 0..100 {
            let method = format!("X-{number}");
            metrics.observe(&RequestRecord { method, ..record() });
        }
        for number in 0..10 {
            let status = (400 + number).to_string();
            metrics.observe(&RequestRecord { status, ..record() });
        }
        metrics.observe(&record());
        let text = exposition(&registry).unwrap();
        let count = |name: &str| {
            let mut lines = text.lines().filter(|line| line.contains(name));
            let line = lines.find(|line| !line.starts_with('#')).unwrap();
            line.rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(
            count(
                r#"requests{canary="",controller_class="c",controller_namespace="n",controller_pod="p",host="shop.test",ingress="shop",method="_OTHER""#
            ),
            "100"
        );
        assert_eq!(count("metric_series{"), "3");
        assert_eq!(count("metric_series_dropped{"), "9");
        // There is room again.
        metrics.serve(HashSet::from(["shop.test".into()]), &BTreeSet::new());
        metrics.observe(&record());
        let text = exposition(&registry).unwrap();
        assert!(text.contains(r#"method="GET""#), "{text}");
    }

    #[test]
    fn series_go_with_their_ingress() {
        let (registry, metrics) = metrics(settings());
        metrics.observe(&record());
        metrics.serve(HashSet::new(), &BTreeSet::new());
        let text = exposition(&registry).unwrap();
        assert!(!text.contains("shop"), "{text}");
    }
}
