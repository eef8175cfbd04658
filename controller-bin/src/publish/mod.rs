//! Tells the API server what the controller knows: Events about objects, and the addresses at which Ingresses are reached.
//!
//! ```text
//!  Observer ──▶ [feed] ─┬─▶ [announce] ──▶ [events]: create, patch ──▶ API server
//!                       └─▶ [status]: update ingresses/status ───────▶     ▲
//!                             ▲ only while it leads                        │
//!                           [leader] ◀── [election] ── Lease ──────────────┘
//! ```
//!
//! Every replica makes Events, under names that are the same for all replicas, so that what two of them say of one
//! object is one Event. The status is written by the leader only. All of this is besides serving: whatever fails here is
//! logged once, tried again, and keeps nothing else waiting.
//!
//! The rights that it takes are those of ingress-nginx's role: `create` and `patch` of events, `update` of
//! ingresses/status, `get`, `create` and `update` of the Lease, `get` of pods, nodes and services, `list` of pods.
//!
//! [announce]: crate::publish::announce
//! [events]: crate::publish::events
//! [feed]: crate::publish::feed
//! [status]: crate::publish::status
//! [leader]: crate::publish::leader
//! [election]: crate::publish::election

pub mod addresses;
pub mod announce;
mod backlog;
pub mod election;
pub mod events;
pub mod feed;
pub mod leader;
mod request;
pub mod status;
mod trouble;

use std::{fs, sync::Arc, time::Duration};

use ingress_model::ObjectName;
use jiff::Timestamp;
use kube::Client;
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tracing::{info, warn};

use self::{
    announce::Announcer,
    election::Terms,
    events::Recorder,
    feed::Feed,
    leader::{Candidate, Leadership},
    status::{StatusSettings, StatusWriter},
};
use crate::{args::Args, observe::Observer, store::Store};

/// How long what is left to be told may take at the end.
const FAREWELL: Duration = Duration::from_secs(30);

/// Tells the API server until the controller ends.
#[derive(Debug)]
pub struct Publisher {
    feed: Arc<Feed>,
    leadership: Option<Leadership>,
    tasks: JoinSet<()>,
}

impl Publisher {
    /// Begins as the flags say. When `ended` turns true, a leader takes addresses back if it is to do so, and gives its
    /// Lease up.
    #[must_use]
    pub fn start(
        args: &Args,
        client: &Client,
        store: &Arc<Store>,
        ended: &watch::Receiver<bool>,
    ) -> Self {
        let (feed, outcomes, happenings) = Feed::new();
        let pod = pod(args);
        let mut tasks = JoinSet::new();
        let announcer = Announcer::new(args, pod.clone());
        let recorder = Recorder::new(client);
        tasks.spawn(announce::run(
            announcer,
            recorder,
            Arc::clone(store),
            outcomes.clone(),
            happenings,
            ended.clone(),
        ));
        if args.status.disable_leader_election {
            info!("without an election of a leader, the status of Ingresses is not written");
            return Self {
                feed,
                leadership: None,
                tasks,
            };
        }
        let namespace = match &args.kubernetes.pod_namespace {
            Some(namespace) => namespace.as_str(),
            None => client.default_namespace(),
        };
        let identity = pod
            .as_ref()
            .map_or_else(identity, |pod| pod.name().to_owned());
        let terms = Terms::from_ttl(args.status.election_ttl());
        let (candidate, leadership) = Candidate::new(
            client,
            namespace,
            &args.status.election_id,
            &identity,
            terms,
        );
        let (finished, mut is_finished) = watch::channel(());
        tasks.spawn(candidate.run(ended.clone(), async move {
            // It ends when the sender is dropped.
            while is_finished.changed().await.is_ok() {}
        }));
        let writer = StatusSettings::from_flags(args, pod)
            .map(|settings| StatusWriter::new(client, store, outcomes, settings));
        let mut ended = ended.clone();
        let standing = leadership.clone();
        tasks.spawn(async move {
            match writer {
                Some(writer) => writer.run(leadership, ended).await,
                None => {
                    // Without a sender the end has come as well.
                    let _ended = ended.wait_for(|ended| *ended).await;
                }
            }
            drop(finished);
        });
        Self {
            feed,
            leadership: Some(standing),
            tasks,
        }
    }

    /// Who is to be told what the controller does.
    #[must_use]
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.feed) as _
    }

    /// Whether this replica leads; `None` if none is elected.
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        self.leadership.clone()
    }

    /// Waits until everything is told that is to be told at the end, but not for ever.
    pub async fn finish(mut self) {
        let told = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(FAREWELL, told).await.is_err() {
            warn!("ending before the API server was told everything");
        }
    }
}

/// The pod that the controller runs in, if it says so.
fn pod(args: &Args) -> Option<ObjectName> {
    let namespace = args.kubernetes.pod_namespace.as_deref()?;
    Some(ObjectName::new(
        namespace,
        args.kubernetes.pod_name.as_deref()?,
    ))
}

/// A name for a controller that runs in no pod, different each time.
fn identity() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{:x}", host.trim(), Timestamp::now().as_nanosecond())
}
