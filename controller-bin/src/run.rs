//! The controller as a whole: what it is put together from, in the order in which it starts and ends.

mod ending;
mod error;
mod prepare;
mod source;

use std::{process::ExitCode, sync::Arc, time::Duration};

use lua_sync_client::{Endpoint, LuaSyncClient, Retry, Settings, Synchronizer};
use sync_queue::{Queue, Rate, RateError};
use tokio::{runtime::Handle, sync::watch as signal, task::JoinSet};
use tracing::{error, info, warn};

pub use self::error::Error;
use self::{
    ending::{EndedWithUs, broken_off, drain, finish},
    prepare::Prepared,
};
use crate::{
    admission::Reviewer,
    args::Args,
    chain::chain,
    dataplane::DataPlane,
    debug::Insight,
    download::Downloads,
    health::Health,
    issuers::{self, Issuers},
    load::{Loader, Memory},
    metrics::{Metrics, MetricsError, Sources},
    observe::{Load, Observer},
    planner::Planner,
    publish::Publisher,
    quarantine::Quarantine,
    shutdown::{self, Signals},
    store::Store,
    stream_files::StreamFiles,
    sync::{Cause, LoadFiles, Sync},
    triggers,
    ui::Board,
};

/// How long the last syncs may take at the end.
const DRAIN: Duration = Duration::from_secs(5);

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
        let insight = Insight {
            plane: Arc::clone(&plane),
            quarantine: Arc::clone(&quarantine),
            flags: Arc::new(self.values.clone()),
        };
        let health = Health::new(
            Arc::clone(&store),
            Arc::clone(&process),
            client.clone(),
            self.ports.health_check_timeout(),
        );
        let (ending, ended) = signal::channel(false);
        let publisher = self.publish(&source, &store, &ended);
        let board = self.board(&store, &health, &quarantine);
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
        let directives = inspector.directives.clone();
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
            directives,
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
        tasks.spawn(self.serve_health(health.clone(), &metrics, insight, board)?);
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
            work: "load",
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

    fn warn_of_flags(&self) {
        if !self.without_effect.is_empty() {
            warn!(
                flags = self.without_effect.join(" "),
                "flags without effect in this version"
            );
        }
    }

    /// What remembers what happens for the page, if there is one.
    fn board(
        &self,
        store: &Arc<Store>,
        health: &Health,
        quarantine: &Arc<Quarantine>,
    ) -> Option<Arc<Board>> {
        let board = || Board::new(Arc::clone(store), health.clone(), Arc::clone(quarantine));
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

/// Says that the controller is ready once the first configuration is in force.
#[derive(Debug)]
struct Readiness(Health);

impl Observer for Readiness {
    fn loaded(&self, _: &Load) {
        self.0.set_serving();
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
