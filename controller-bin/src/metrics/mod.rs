//! What Prometheus scrapes, under the names that ingress-nginx's dashboards and alerts use.
//!
//! [`ControllerMetrics`] counts what the controller does; [`RequestMetrics`] what NGINX's workers report about requests
//! over the socket of [`monitor`]; [`nginx`], [`certificates`] and [`orphans`] show what is so at the moment of the
//! question. Names and labels are part of the interface; the `prometheus` crate is used since it exports names verbatim
//! (counters without `_total`). What ingress-nginx does not have is in [`progress`] and [`limit`].

pub mod admission;
pub mod certificates;
pub mod controller;
pub mod limit;
pub mod monitor;
pub mod nginx;
pub mod orphans;
pub mod progress;
pub mod requests;
mod scrapes;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    error::Error,
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use ingress_model::{Host, ObjectName, Outcome, Server, SharedMap};
use prometheus::{Encoder, Gauge, Opts, Registry, TextEncoder};
use sync_queue::Depth;

use self::{
    certificates::CertificateMetrics, limit::SeriesMetrics, monitor::Monitor, nginx::NginxMetrics,
    orphans::OrphanMetrics, progress::ProgressMetrics, scrapes::Scrapes,
};
use crate::{
    args::{Args, MetricsArgs},
    build,
    nginx::process::Process,
    observe::{Load, Observer, Told},
    publish::leader::Leadership,
    store::Store,
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
    scrapes: Scrapes,
    /// `None` without `--enable-metrics`.
    gathered: Option<Gathered>,
    /// One answer is made at a time: what is looked up is shown in gauges that all answers share.
    scraping: tokio::sync::Mutex<()>,
    next: Arc<dyn Observer>,
}

/// What is looked up when somebody asks for the metrics.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The objects.
    pub store: Arc<Store>,
    /// NGINX.
    pub process: Arc<Process>,
}

impl Sources {
    /// The objects of this store, and this NGINX.
    #[must_use]
    pub fn new(store: &Arc<Store>, process: &Arc<Process>) -> Self {
        Self {
            store: Arc::clone(store),
            process: Arc::clone(process),
        }
    }
}

struct Gathered {
    sources: Sources,
    /// NGINX's status server.
    status: SocketAddr,
    controller: ControllerMetrics,
    /// `None` without a webhook.
    admission: Option<AdmissionMetrics>,
    requests: Arc<RequestMetrics>,
    nginx: NginxMetrics,
    certificates: CertificateMetrics,
    orphans: OrphanMetrics,
    progress: ProgressMetrics,
    /// Whether it is for us to say when certificates end: we lead, or there is nobody else.
    shows_expiry: AtomicBool,
    /// What requests are counted for. Most syncs change endpoints only and leave it as it is.
    served: Mutex<Servers>,
    latest: Mutex<Option<Arc<Outcome>>>,
    queues: Mutex<Vec<(&'static str, DepthOf)>>,
}

/// Tells how much waits in a queue.
type DepthOf = Box<dyn Fn() -> Depth + Send + Sync>;

/// Servers by host, as a layout has them.
type Servers = SharedMap<Host, Arc<Server>>;

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
    pub fn new(
        args: &Args,
        sources: Sources,
        next: Arc<dyn Observer>,
    ) -> Result<Self, MetricsError> {
        let registry = Registry::new();
        #[cfg(target_os = "linux")]
        registry.register(Box::new(
            prometheus::process_collector::ProcessCollector::for_self(),
        ))?;
        let scrapes = Scrapes::register(&registry)?;
        let gathered = args
            .metrics
            .enable_metrics
            .then(|| Gathered::register(&registry, args, sources))
            .transpose()?;
        Ok(Self {
            registry,
            scrapes,
            gathered,
            scraping: tokio::sync::Mutex::default(),
            next,
        })
    }

    /// Shows how much waits in a queue.
    pub fn watch_queue(
        &self,
        name: &'static str,
        depth: impl Fn() -> Depth + Send + Sync + 'static,
    ) {
        if let Some(gathered) = &self.gathered {
            lock(&gathered.queues).push((name, Box::new(depth)));
        }
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
            gathered.shows_expiry.store(true, Ordering::Relaxed);
            leadership.lost().await;
            gathered.controller.leads(election, false);
            gathered.shows_expiry.store(false, Ordering::Relaxed);
        }
    }

    /// What the webhook counts, if there is one.
    #[must_use]
    pub fn admission(&self) -> Option<AdmissionMetrics> {
        self.gathered.as_ref()?.admission.clone()
    }

    /// Answers `/metrics`.
    pub fn router(self: &Arc<Self>) -> Router {
        let metrics = Arc::clone(self);
        Router::new().route("/metrics", get(async move || metrics.answer().await))
    }

    async fn answer(&self) -> Response {
        let scrape = self.scrapes.begin();
        let response = match self.text().await {
            Ok(text) => ([("content-type", prometheus::TEXT_FORMAT)], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        };
        scrape.answered(response.status());
        response
    }

    /// Everything as it is now, as Prometheus reads it.
    ///
    /// # Errors
    /// When a metric cannot be written as text, which a registered one always can.
    pub async fn text(&self) -> Result<String, prometheus::Error> {
        let _alone = self.scraping.lock().await;
        if let Some(gathered) = &self.gathered {
            gathered.look_up().await;
        }
        exposition(&self.registry)
    }
}

impl Gathered {
    fn register(registry: &Registry, args: &Args, sources: Sources) -> Result<Self, MetricsError> {
        let identity = Identity {
            class: args.rules.controller_class.clone(),
            namespace: args.kubernetes.pod_namespace.clone().unwrap_or_default(),
            pod: args.kubernetes.pod_name.clone().unwrap_or_default(),
        };
        let info = identity
            .opts("build_info", "Which controller this is")
            .const_label("release", build::RELEASE)
            .const_label("build", build::COMMIT.unwrap_or_default())
            .const_label("repository", env!("CARGO_PKG_NAME"));
        let info = Gauge::with_opts(info)?;
        info.set(1.0);
        registry.register(Box::new(info))?;
        let series = SeriesMetrics::register(registry, &identity)?;
        let limit = |sort| series.limit(sort, args.metrics.metrics_max_series);
        Ok(Self {
            sources,
            status: (Ipv4Addr::LOCALHOST, args.ports.status_port).into(),
            controller: ControllerMetrics::register(registry, &identity)?,
            admission: (args.admission.validating_webhook.as_ref())
                .map(|_| AdmissionMetrics::register(registry, &identity, limit("checks")))
                .transpose()?,
            requests: Arc::new(RequestMetrics::register(
                registry,
                &identity,
                settings(&args.metrics),
                limit("requests"),
            )?),
            nginx: NginxMetrics::register(registry, &identity)?,
            certificates: CertificateMetrics::register(registry, &identity.class)?,
            orphans: OrphanMetrics::register(registry, &identity)?,
            progress: ProgressMetrics::register(registry, &identity)?,
            shows_expiry: AtomicBool::new(args.kubernetes.manifests.is_some()),
            served: Mutex::default(),
            latest: Mutex::default(),
            queues: Mutex::default(),
        })
    }

    /// Counts requests for these servers from now on.
    fn serve(&self, servers: &Servers) {
        let mut served = lock(&self.served);
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

    /// Brings up to date what is looked up.
    async fn look_up(&self) {
        let Sources { store, process } = &self.sources;
        let latest = lock(&self.latest).clone();
        if let Some(outcome) = latest {
            let shows_expiry = self.shows_expiry.load(Ordering::Relaxed);
            self.certificates.refresh(&outcome, store, shows_expiry);
            self.orphans.refresh(&outcome, store);
        }
        for (name, depth) in &*lock(&self.queues) {
            self.progress.queue(name, depth());
        }
        self.nginx.refresh(process.pid(), self.status).await;
    }
}

impl fmt::Debug for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathered")
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            gathered.progress.merged(took);
            gathered.serve(&outcome.model.layout.servers);
            *lock(&gathered.latest) = Some(Arc::clone(outcome));
        }
        self.next.merged(outcome, took);
    }

    fn told(&self, told: &Told) {
        if let Some(gathered) = &self.gathered {
            gathered.progress.told(told);
        }
        self.next.told(told);
    }

    fn loaded(&self, load: &Load) {
        if let Some(gathered) = &self.gathered {
            gathered.progress.loaded(load);
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
        if let Some(gathered) = &self.gathered {
            gathered.progress.keep_apart(ingress, true);
        }
        self.next.isolated(ingress, reason);
    }

    fn recovered(&self, ingress: &ObjectName) {
        if let Some(gathered) = &self.gathered {
            gathered.progress.keep_apart(ingress, false);
        }
        self.next.recovered(ingress);
    }

    fn went_without(&self, ingress: &ObjectName, what: &str, reason: &str) {
        self.next.went_without(ingress, what, reason);
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
