//! The controller as a whole: what it is put together from, in the order in which it starts and ends.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use ingress_model::{Options, live::Certificate};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use lua_sync_client::{Endpoint, LuaSyncClient, Retry, Settings, Synchronizer};
use nginx_render::{Capabilities, Environment, Renderer, endpoint_files};
use rustix::{
    fs::Mode,
    process::{Pid, Signal, kill_process, umask},
};
use sync_queue::{Queue, Rate, RateError};
use tokio::{
    runtime::Handle,
    sync::watch::{self as signal, Receiver},
    task::JoinSet,
};
use tracing::{error, info, warn};

use crate::{
    admission::{AdmissionError, Inspector, Reviewer, Sandbox},
    args::Args,
    certificate,
    chain::chain,
    cluster::{self, ClusterError},
    dataplane::DataPlane,
    download::Downloads,
    geoip,
    health::Health,
    issuers::{self, Issuers},
    load::{Loader, Memory},
    manifests::{self, AssumedClass, Manifests, ManifestsError},
    metrics::{Metrics, MetricsError, Sources},
    nginx::{
        configuration::{Configuration, ConfigurationError},
        machine,
        process::Process,
        program::{self, ProgramError},
    },
    observe::{Load, Observer},
    planner::Planner,
    preflight::{self, PreflightError},
    publish::Publisher,
    quarantine::Quarantine,
    shutdown::{self, Signals},
    store::Store,
    stream_files::StreamFiles,
    sync::{Cause, LoadFiles, Sync},
    triggers,
    ui::Board,
    watch,
};

/// How long the last syncs may take at the end.
const DRAIN: Duration = Duration::from_secs(5);

/// How much longer than its workers NGINX may take to end.
const QUIT_MARGIN: Duration = Duration::from_secs(5);

/// Why the controller does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// NGINX's program cannot be used.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// NGINX's directory cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The API server cannot be reached.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The directory of manifests cannot be used.
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    /// No certificate can be made.
    #[error("cannot make the certificate for hosts without one")]
    Certificate(#[from] rcgen::Error),
    /// Nobody can be asked by TLS.
    #[error("cannot ask for the certificates of issuers")]
    Tls(#[from] rustls::Error),
    /// The webhook cannot be served.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// Metrics cannot be gathered.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The rate of reloads is none.
    #[error("cannot use flag --sync-rate-limit")]
    Rate(#[from] RateError),
    /// NGINX could not do its work.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// Health checks cannot be answered.
    #[error("cannot listen for health checks at {address}")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Signals cannot be taken.
    #[error("cannot listen for signals")]
    Signals {
        /// What the system said.
        source: io::Error,
    },
}

/// An NGINX that is about to be started.
struct Prepared {
    renderer: Renderer,
    inspector: Inspector,
    sandbox: Option<Sandbox>,
    configuration: Configuration,
    process: Arc<Process>,
    certificate: Certificate,
    /// Those of TCP and UDP services.
    endpoints_have_to_be_loaded: bool,
}

/// Ends NGINX when the controller goes down by a fault: nobody would look after it.
struct EndedWithUs(Arc<Process>);

impl Drop for EndedWithUs {
    fn drop(&mut self) {
        let pid = self.0.pid().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // It fails when NGINX has just ended.
            let _gone = kill_process(pid, Signal::TERM);
        }
    }
}

/// Keeps objects coming while it lives.
enum Source {
    Manifests {
        _followed: Manifests,
    },
    Cluster {
        client: Client,
        _watches: JoinSet<()>,
    },
}

impl Args {
    /// Runs the controller until a signal ends it.
    ///
    /// # Errors
    ///
    /// When it cannot start. What goes wrong later is logged and tried again.
    #[expect(
        clippy::too_many_lines,
        reason = "the order in which everything starts and ends is told in one place"
    )]
    pub async fn run(self) -> Result<ExitCode, Error> {
        let mut signals = Signals::listen().map_err(|source| Error::Signals { source })?;
        // It fails when a program around us has chosen already.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        self.warn_of_flags();

        let Prepared {
            renderer,
            configuration,
            process,
            certificate,
            inspector,
            sandbox,
            endpoints_have_to_be_loaded,
        } = self.prepare_nginx().await?;

        let _ended_with_us = EndedWithUs(Arc::clone(&process));
        let directory = self.nginx_directory();
        let (store, source) = self.follow_objects().await?;
        let client = LuaSyncClient::new(
            Endpoint::Tcp(([127, 0, 0, 1], self.ports.status_port).into()),
            client_settings(),
        );
        let quarantine = Arc::new(Quarantine::new(self.nginx.on_invalid));
        let plane = Arc::new(DataPlane::new(
            Arc::clone(&process),
            Arc::clone(&quarantine),
            Synchronizer::new(client.clone()),
            StreamFiles::below(&directory.join("stream"), endpoints_have_to_be_loaded),
        ));
        let health = Health::new(
            Arc::clone(&store),
            Arc::clone(&process),
            client.clone(),
            self.ports.health_check_timeout(),
        );
        let (ending, ended) = signal::channel(false);
        let publisher = self.publish(&source, &store, &ended);
        let board = self.board(&store, &health);
        let sources = Sources::new(&store, &process);
        let metrics = self.metrics(&health, sources, publisher.as_ref(), board.as_ref())?;
        let metrics = Arc::new(metrics);

        let (syncs, sync_queue) = sync_queue::channel(sync_queue::Settings {
            shutdown_within: Some(DRAIN),
            ..sync_queue::Settings::default()
        });
        let (loads, load_queue) = self.load_queue()?;
        show_depths(&metrics, &syncs, &loads);
        let options = self.rules_for(&source, certificate).await;
        let reviewer = Reviewer::new(Arc::clone(&store), options.clone())
            .with_inspector(inspector)
            .with_sandbox(sandbox)
            .with_metrics(metrics.admission());
        let webhook = self
            .serve_webhook(source.client(), &store, reviewer, ended)
            .await?;
        let (issuers, answering) = self.issuers(&syncs)?.unzip();
        let planner = Planner::new(
            Arc::clone(&store),
            Arc::clone(&plane),
            Arc::clone(&quarantine),
            Arc::clone(&metrics) as _,
            options,
        );
        let planner = Arc::new(planner.with_issuers(issuers));
        let loader = Loader {
            plane: Arc::clone(&plane),
            renderer,
            configuration,
            client: client.clone(),
            planner: Arc::clone(&planner),
            quarantine,
            observer: Arc::clone(&metrics) as _,
            annotations_prefix: self.rules.annotations_prefix.clone(),
            most_generations: self.nginx.most_generations(),
            memory: Memory::default(),
        };
        let sync = Sync {
            store: Arc::clone(&store),
            planner,
            plane: Arc::clone(&plane),
            loads: loads.clone(),
            observer: Arc::clone(&metrics) as _,
        };

        let mut tasks = JoinSet::new();
        tasks.spawn(triggers::sync_on_change(Arc::clone(&store), syncs.clone()));
        tasks.spawn(triggers::sync_on_start(
            Arc::clone(&process),
            client,
            syncs.clone(),
        ));
        tasks.spawn(triggers::repair(
            Arc::clone(&plane),
            syncs.clone(),
            loads.clone(),
            self.kubernetes.sync_period,
        ));
        if let Some(answering) = answering {
            tasks.spawn(answering);
        }
        tasks.spawn(metrics.listen(&directory)?);
        tasks.spawn(self.follow_election(&metrics, publisher.as_ref()));
        tasks.spawn(self.serve_health(health.clone(), &metrics, board)?);
        let reopen = shutdown::reopen_logs(Arc::clone(&process));
        tasks.spawn(reopen.map_err(|source| Error::Signals { source })?);
        tasks.spawn(webhook);
        // On threads of their own: merging and rendering take the processor for a while.
        let mut queues = JoinSet::new();
        queues.spawn_blocking(move || Handle::current().block_on(run_syncs(sync_queue, sync)));
        queues.spawn_blocking(move || Handle::current().block_on(run_loads(load_queue, loader)));

        let code = tokio::select! {
            () = signals.asked() => ExitCode::SUCCESS,
            () = broken_off(&mut queues, &mut tasks) => {
                error!("a fault in the controller broke off its work; shutting down so that it is started anew");
                ExitCode::FAILURE
            }
        };
        health.set_ending();
        ending.send_replace(true);
        signals.grace(self.nginx.shutdown_grace_period()).await;
        drop(source);
        syncs.close();
        loads.close();
        drain(&mut queues, &mut signals).await;
        finish(&plane, publisher, &mut signals).await;
        self.rest(&mut signals).await;
        info!("ended");
        Ok(code)
    }

    fn load_queue(&self) -> Result<(sync_queue::Handle<LoadFiles>, Queue<LoadFiles>), RateError> {
        Ok(sync_queue::channel(sync_queue::Settings {
            rate: Rate::per_second(self.nginx.sync_rate_limit)?,
            // An NGINX that is about to end need not load anything any more.
            shutdown_within: Some(Duration::ZERO),
            ..sync_queue::Settings::default()
        }))
    }

    /// Who completes certificates, and what has to run for that, if flags ask for it.
    fn issuers(
        &self,
        syncs: &sync_queue::Handle<Cause>,
    ) -> Result<Option<(Arc<Issuers>, impl Future<Output = ()> + use<>)>, Error> {
        if !self.rules.enable_ssl_chain_completion {
            return Ok(None);
        }
        let (issuers, questions) = Issuers::new();
        let downloads = Downloads::new()?;
        let answering = issuers::answer(Arc::clone(&issuers), questions, downloads, syncs.clone());
        Ok(Some((issuers, answering)))
    }

    /// Waits between the end of NGINX and our own.
    async fn rest(&self, signals: &mut Signals) {
        let rest = self.nginx.post_shutdown_grace_period();
        if !rest.is_zero() {
            info!(?rest, "waiting, as --post-shutdown-grace-period says");
        }
        signals.grace(rest).await;
    }

    fn warn_of_flags(&self) {
        if !self.without_effect.is_empty() {
            warn!(
                flags = self.without_effect.join(" "),
                "flags without effect in this version"
            );
        }
    }

    /// Finds NGINX, lays out its directory, and sees that nothing is in its way. It is not started yet.
    async fn prepare_nginx(&self) -> Result<Prepared, Error> {
        // Whatever umask we were started with: NGINX's workers have to read what is public.
        umask(Mode::from_raw_mode(0o022));
        let binary = program::find(self.nginx.nginx_binary.as_deref());
        let capabilities = program::probe(&binary).await?;
        info!(release = env!("CARGO_PKG_VERSION"), nginx = ?capabilities.version(), "starting");
        preflight::check_modules(&binary, &capabilities)?;
        let directory = self.nginx_directory();
        let in_pod = self.kubernetes.pod_name.is_some();
        let group = machine::workers_group();
        let configuration = Configuration::prepare(&directory, &binary, group, in_pod)?;
        let certificate = certificate::generate(Timestamp::now())?;
        geoip::fetch(&self.nginx, Path::new(machine::GEOIP)).await;
        let environment = machine::environment(self, &directory, &certificate.pem);
        let process = Process::new(&binary, &configuration.main());
        process.end_leftovers().await;
        preflight::check_ports(&binary, self.ports.of_nginx())?;
        Ok(Prepared {
            endpoints_have_to_be_loaded: endpoint_files::have_to_be_loaded(&capabilities),
            sandbox: self.sandbox(&binary, &capabilities, &environment)?,
            inspector: Inspector {
                directives: program::directives(&binary).await?,
                capabilities: capabilities.clone(),
                environment: environment.clone(),
            },
            renderer: Renderer::new(capabilities, environment),
            configuration,
            process: Arc::new(process),
            certificate,
        })
    }

    /// Where the webhook asks NGINX, if flags ask for it.
    fn sandbox(
        &self,
        binary: &Path,
        capabilities: &Capabilities,
        environment: &Environment,
    ) -> Result<Option<Sandbox>, AdmissionError> {
        let flags = &self.admission;
        if !flags.admission_nginx_test || flags.validating_webhook.is_none() {
            return Ok(None);
        }
        let directory = self.nginx_directory();
        let (capabilities, environment) = (capabilities.clone(), environment.clone());
        Ok(Some(Sandbox::prepare(
            binary,
            &directory,
            capabilities,
            environment,
        )?))
    }

    /// NGINX's directory, from the root: its own working directory is another one than ours.
    pub(crate) fn nginx_directory(&self) -> PathBuf {
        let directory = &self.nginx.nginx_dir;
        std::path::absolute(directory).unwrap_or_else(|_| directory.clone())
    }

    /// Begins to bring objects into a store.
    async fn follow_objects(&self) -> Result<(Arc<Store>, Source), Error> {
        if let Some(directory) = &self.kubernetes.manifests {
            let store = Arc::new(Store::awaiting([manifests::LIST.to_owned()]));
            let class = AssumedClass {
                name: self.rules.ingress_class.clone(),
                controller: self.rules.controller_class.clone(),
            };
            let followed = Manifests::start(directory, class, Arc::clone(&store))?;
            return Ok((
                store,
                Source::Manifests {
                    _followed: followed,
                },
            ));
        }
        let client = cluster::client(&self.kubernetes).await?;
        let lists = watch::lists(self);
        let store = Arc::new(Store::awaiting(lists.iter().map(ToString::to_string)));
        let watches = watch::start(&client, lists, &store);
        Ok((
            store,
            Source::Cluster {
                client,
                _watches: watches,
            },
        ))
    }

    /// What the rules have to know of the flags and of where we run.
    async fn rules_for(&self, source: &Source, certificate: Certificate) -> Options {
        let mut options = self.options();
        options.generated_certificate = Some(certificate);
        if let Source::Cluster { client, .. } = source
            && self.rules.enable_topology_aware_routing
            && options.node.is_none()
        {
            options.node = self.node_of_pod(client).await;
        }
        options
    }

    /// The node that our pod runs on.
    async fn node_of_pod(&self, client: &Client) -> Option<String> {
        let namespace = self.kubernetes.pod_namespace.as_deref()?;
        let name = self.kubernetes.pod_name.as_deref()?;
        let pod = Api::<Pod>::namespaced(client.clone(), namespace)
            .get(name)
            .await;
        match pod {
            Ok(pod) => pod.spec?.node_name,
            Err(error) => {
                warn!(%error, "cannot tell which node the controller runs on; endpoints of all zones are used");
                None
            }
        }
    }

    /// What remembers what happens for the page, if there is one.
    fn board(&self, store: &Arc<Store>, health: &Health) -> Option<Arc<Board>> {
        let board = || Board::new(Arc::clone(store), health.clone());
        self.ports.enable_ui.then(|| Arc::new(board()))
    }

    /// What counts what happens, and passes it on to who acts on it.
    fn metrics(
        &self,
        health: &Health,
        sources: Sources,
        publisher: Option<&Publisher>,
        board: Option<&Arc<Board>>,
    ) -> Result<Metrics, MetricsError> {
        let mut observers: Vec<Arc<dyn Observer>> = vec![Arc::new(Readiness(health.clone()))];
        observers.extend(publisher.map(Publisher::observer));
        observers.extend(board.map(|board| Arc::clone(board) as _));
        Metrics::new(self, sources, Arc::new(observers))
    }

    /// Shows whether this replica leads, if one is elected.
    fn follow_election(
        &self,
        metrics: &Arc<Metrics>,
        publisher: Option<&Publisher>,
    ) -> impl Future<Output = ()> + use<> {
        let metrics = Arc::clone(metrics);
        let leadership = publisher.and_then(Publisher::leadership);
        let election = self.status.election_id.clone();
        async move {
            if let Some(leadership) = leadership {
                metrics.follow_election(&election, leadership).await;
            }
        }
    }

    /// Begins to tell the API server what the controller knows, if objects come from one.
    fn publish(
        &self,
        source: &Source,
        store: &Arc<Store>,
        ended: &Receiver<bool>,
    ) -> Option<Publisher> {
        match source {
            Source::Manifests { .. } => None,
            Source::Cluster { client, .. } => Some(Publisher::start(self, client, store, ended)),
        }
    }
}

/// Shows how much waits in the queues.
fn show_depths(
    metrics: &Metrics,
    syncs: &sync_queue::Handle<Cause>,
    loads: &sync_queue::Handle<LoadFiles>,
) {
    let (syncs, loads) = (syncs.clone(), loads.clone());
    metrics.watch_queue("syncs", move || syncs.depth());
    metrics.watch_queue("loads", move || loads.depth());
}

impl Source {
    /// A client of the API server that objects come from, if they come from one.
    fn client(&self) -> Option<&Client> {
        match self {
            Self::Manifests { .. } => None,
            Self::Cluster { client, .. } => Some(client),
        }
    }
}

/// Says that the controller is ready once the first configuration is in force.
#[derive(Debug)]
struct Readiness(Health);

impl Observer for Readiness {
    fn loaded(&self, _: &Load) {
        self.0.set_serving();
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Manifests { .. } => "Manifests",
            Self::Cluster { .. } => "Cluster",
        })
    }
}

/// What fails is tried again by the queue, which can tell whether it is still wanted.
fn client_settings() -> Settings {
    Settings {
        retry: Retry::never(),
        ..Settings::default()
    }
}

async fn run_syncs(queue: Queue<Cause>, mut sync: Sync) {
    // What was left undone has been logged.
    let _drain = queue
        .run(async |task| sync.run(&task).await.map_err(|error| chain(&error)))
        .await;
}

async fn run_loads(queue: Queue<LoadFiles>, mut loader: Loader) {
    let _drain = queue
        .run(async |_| loader.run().await.map_err(|error| chain(&error)))
        .await;
}

/// Waits until a queue ends although it was not closed, or another task panics.
async fn broken_off(queues: &mut JoinSet<()>, tasks: &mut JoinSet<()>) {
    loop {
        tokio::select! {
            _ended = queues.join_next() => return,
            Some(ended) = tasks.join_next() => {
                if ended.is_err_and(|error| error.is_panic()) {
                    return;
                }
            }
        }
    }
}

/// Waits until the queues have ended.
async fn drain(queues: &mut JoinSet<()>, signals: &mut Signals) {
    tokio::select! {
        () = async { while queues.join_next().await.is_some() {} } => {}
        () = signals.hurry() => {}
    }
}

async fn end_nginx(plane: &DataPlane, signals: &mut Signals) {
    let loaded = plane.loaded();
    let timeout = loaded.map_or(0, |files| {
        files.outcome.model.layout.config.worker_shutdown_timeout.0
    });
    let within = Duration::from_secs(timeout.into()) + QUIT_MARGIN;
    let process = plane.process();
    tokio::select! {
        () = process.quit(within) => {}
        () = signals.hurry() => process.quit(Duration::ZERO).await,
    }
}

/// Ends NGINX, and waits until the API server is told what is left to be told.
async fn finish(plane: &DataPlane, publisher: Option<Publisher>, signals: &mut Signals) {
    end_nginx(plane, signals).await;
    let Some(publisher) = publisher else { return };
    tokio::select! {
        () = publisher.finish() => {}
        () = signals.hurry() => {}
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_breaks_work_off() {
        let mut queues = JoinSet::new();
        queues.spawn(pending());
        let mut tasks = JoinSet::new();
        tasks.spawn(async {});
        tasks.spawn(async { panic!("on purpose") });
        broken_off(&mut queues, &mut tasks).await;
    }

    #[tokio::test]
    async fn tasks_that_end_break_nothing_off() {
        let mut queues = JoinSet::new();
        queues.spawn(pending());
        let mut tasks = JoinSet::new();
        let (said, heard) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn(async {
            let _dropped = said;
        });
        assert!(heard.await.is_err());
        assert_eq!(broken_off(&mut queues, &mut tasks).now_or_never(), None);
    }
}
