//! What Prometheus scrapes, under the names that ingress-nginx's dashboards and alerts use.
//!
//! [`ControllerMetrics`] counts what the controller does; [`RequestMetrics`] what NGINX's workers report about requests
//! over the socket of [`monitor`]. Names and labels are part of the interface; the `prometheus` crate is used since it
//! exports names verbatim (counters without `_total`).

pub mod admission;
pub mod controller;
pub mod monitor;
pub mod requests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    error::Error,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{Router, http::StatusCode, response::IntoResponse, routing::get};
use ingress_model::{Host, ObjectName, Outcome, Server};
use lua_sync_client::Applied;
use prometheus::{Encoder, Gauge, Opts, Registry, TextEncoder};

use self::monitor::Monitor;
use crate::{
    args::{Args, MetricsArgs},
    observe::{Load, Observer},
    publish::leader::Leadership,
};

pub use admission::AdmissionMetrics;
pub use controller::ControllerMetrics;
pub use requests::{RequestMetrics, RequestMetricsSettings, RequestRecord};

/// The prefix of every name.
pub const NAMESPACE: &str = "nginx_ingress_controller";

/// Labels that each of our metrics carries: which controller it is about.
#[derive(Clone, Debug)]
pub struct Identity {
    /// `--controller-class`.
    pub class: String,
    /// Namespace of the controller's Pod.
    pub namespace: String,
    /// Name of the controller's Pod.
    pub pod: String,
}

impl Identity {
    fn opts(&self, name: &str, help: &str) -> Opts {
        let labels = [
            ("controller_class", &self.class),
            ("controller_namespace", &self.namespace),
            ("controller_pod", &self.pod),
        ];
        let labels: HashMap<_, _> = labels
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        Opts::new(format!("{NAMESPACE}_{name}"), help).const_labels(labels)
    }
}

/// Why metrics cannot be gathered.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The flags about buckets do not fit together.
    #[error("cannot make the metrics that the flags ask for")]
    Register(#[from] prometheus::Error),
    /// Workers have nowhere to report to.
    #[error("cannot make the socket {} for request metrics", socket.display())]
    Socket {
        /// Where it should be.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// All metrics of a controller. Told what happens as an [`Observer`]; passes it on to the next one.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// `None` without `--enable-metrics`.
    gathered: Option<Gathered>,
    next: Arc<dyn Observer>,
}

#[derive(Debug)]
struct Gathered {
    controller: ControllerMetrics,
    /// `None` without a webhook.
    admission: Option<AdmissionMetrics>,
    requests: Arc<RequestMetrics>,
    /// What requests are counted for. Most syncs change endpoints only and leave it as it is.
    served: Mutex<Servers>,
}

/// Servers by host, as a layout has them.
type Servers = BTreeMap<Host, Arc<Server>>;

/// The socket that workers report to, below NGINX's directory.
#[must_use]
pub fn socket(directory: &Path) -> PathBuf {
    directory.join("run").join("metrics.sock")
}

impl Metrics {
    /// Makes the metrics that the flags ask for.
    ///
    /// # Errors
    /// When buckets are not in rising order.
    pub fn new(args: &Args, next: Arc<dyn Observer>) -> Result<Self, MetricsError> {
        let registry = Registry::new();
        #[cfg(target_os = "linux")]
        registry.register(Box::new(
            prometheus::process_collector::ProcessCollector::for_self(),
        ))?;
        let gathered = args
            .metrics
            .enable_metrics
            .then(|| Gathered::register(&registry, args))
            .transpose()?;
        Ok(Self {
            registry,
            gathered,
            next,
        })
    }

    /// Opens the socket that workers report to; the answer counts what they say while it is polled.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn listen(
        &self,
        directory: &Path,
    ) -> Result<impl Future<Output = ()> + use<>, MetricsError> {
        let socket = socket(directory);
        let monitor = self
            .gathered
            .as_ref()
            .map(|gathered| Monitor::bind(&socket, Arc::clone(&gathered.requests)))
            .transpose()
            .map_err(|source| MetricsError::Socket { socket, source })?;
        Ok(async move {
            if let Some(monitor) = monitor {
                monitor.run().await;
            }
        })
    }

    /// Shows whether this replica leads, for ever.
    pub async fn follow_election(&self, election: &str, mut leadership: Leadership) {
        let Some(gathered) = &self.gathered else {
            return;
        };
        loop {
            leadership.gained().await;
            gathered.controller.leads(election, true);
            leadership.lost().await;
            gathered.controller.leads(election, false);
        }
    }

    /// What the webhook counts, if there is one.
    #[must_use]
    pub fn admission(&self) -> Option<AdmissionMetrics> {
        self.gathered.as_ref()?.admission.clone()
    }

    /// Answers `/metrics`.
    pub fn router(&self) -> Router {
        let registry = self.registry.clone();
        Router::new().route(
            "/metrics",
            get(async move || match exposition(&registry) {
                Ok(text) => ([("content-type", prometheus::TEXT_FORMAT)], text).into_response(),
                Err(error) => {
                    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
                }
            }),
        )
    }
}

impl Gathered {
    fn register(registry: &Registry, args: &Args) -> Result<Self, MetricsError> {
        let identity = Identity {
            class: args.rules.controller_class.clone(),
            namespace: args.kubernetes.pod_namespace.clone().unwrap_or_default(),
            pod: args.kubernetes.pod_name.clone().unwrap_or_default(),
        };
        let build = identity
            .opts("build_info", "Which controller this is")
            .const_label("release", env!("CARGO_PKG_VERSION"))
            .const_label("build", "")
            .const_label("repository", env!("CARGO_PKG_NAME"));
        let build = Gauge::with_opts(build)?;
        build.set(1.0);
        registry.register(Box::new(build))?;
        Ok(Self {
            controller: ControllerMetrics::register(registry, &identity)?,
            admission: (args.admission.validating_webhook.as_ref())
                .map(|_| AdmissionMetrics::register(registry, &identity))
                .transpose()?,
            requests: Arc::new(RequestMetrics::register(
                registry,
                &identity,
                settings(&args.metrics),
            )?),
            served: Mutex::default(),
        })
    }

    /// Counts requests for these servers from now on.
    fn serve(&self, servers: &Servers) {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if *served == *servers {
            return;
        }
        let hosts = servers.keys().map(|host| host.as_str().to_owned());
        let locations = servers.values().flat_map(|server| &server.locations);
        let ingresses: BTreeSet<ObjectName> = locations
            .filter_map(|location| location.ingress.clone())
            .collect();
        self.requests.serve(hosts.collect(), &ingresses);
        served.clone_from(servers);
    }
}

fn settings(args: &MetricsArgs) -> RequestMetricsSettings {
    let excluded = args.exclude_socket_metrics.as_deref().unwrap_or_default();
    let excluded = excluded
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    RequestMetricsSettings {
        per_host: args.metrics_per_host,
        per_undefined_host: args.metrics_per_undefined_host,
        status_classes: args.report_status_classes,
        time_buckets: args.time_buckets.clone(),
        length_buckets: args.length_buckets.clone(),
        size_buckets: args.size_buckets.clone(),
        excluded: excluded.map(str::to_owned).collect(),
    }
}

impl Observer for Metrics {
    fn merged(&self, outcome: &Arc<Outcome>, took: Duration) {
        if let Some(gathered) = &self.gathered {
            gathered.controller.sync_ended(took);
            gathered.serve(&outcome.model.layout.servers);
        }
        self.next.merged(outcome, took);
    }

    fn told(&self, applied: &Applied) {
        self.next.told(applied);
    }

    fn loaded(&self, load: &Load) {
        if let Some(gathered) = &self.gathered {
            gathered
                .controller
                .reload_succeeded(load.checksum.parse().unwrap_or_default(), &load.reasons);
        }
        self.next.loaded(load);
    }

    fn load_failed(&self, error: &dyn Error) {
        if let Some(gathered) = &self.gathered {
            gathered.controller.reload_failed();
        }
        self.next.load_failed(error);
    }

    fn isolated(&self, ingress: &ObjectName, reason: &str) {
        self.next.isolated(ingress, reason);
    }

    fn recovered(&self, ingress: &ObjectName) {
        self.next.recovered(ingress);
    }
}

/// Everything registered, as Prometheus reads it.
///
/// # Errors
/// When a metric cannot be written as text, which a registered one always can.
pub fn exposition(registry: &Registry) -> Result<String, prometheus::Error> {
    let mut text = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
