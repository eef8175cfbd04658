//! Writes to the status of Ingresses at which addresses they are reached.
//!
//! Written while this replica leads, for Ingresses of ours, where the status differs. The object is read before, so that
//! nothing else of it is touched, and written with the version that was read.

use std::{collections::HashMap, fmt, num::NonZeroU16, pin::pin, sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use ingress_model::ObjectName;
use k8s_openapi::api::networking::v1::Ingress;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde_json::{Value, json};
use sync_queue::{Limiter, Rate};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};
use tracing::{debug, info};

use super::{
    addresses::{self, Addresses, Source},
    feed::Outcomes,
    leader::Leadership,
    request::{RequestError, until, within},
    trouble::Trouble,
};
use crate::{args::Args, store::Store};

/// How many Ingresses are written at once.
const PARALLEL: usize = 10;

/// Time between the beginnings of two writes once the burst is used up.
const PERIOD: Duration = Duration::from_millis(10);

/// How many may begin at once.
const BURST: NonZeroU16 = NonZeroU16::MIN.saturating_add(19);

/// How often one Ingress is tried when others write it as well.
const TRIES: usize = 5;

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(10);

/// How long to wait after something has failed.
const RETRY: Duration = Duration::from_secs(5);

/// What is written, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSettings {
    /// Where the addresses come from.
    pub source: Source,
    /// Time between two looks at all of them.
    pub interval: Duration,
    /// Whether they are taken back when the last replica ends.
    pub take_back: bool,
    /// The pod that this is.
    pub pod: Option<ObjectName>,
}

/// An Ingress in one version.
type Version = (ObjectName, Arc<Ingress>);

/// Writes the status of Ingresses.
pub struct StatusWriter {
    client: Client,
    store: Arc<Store>,
    outcomes: Outcomes,
    settings: StatusSettings,
    limiter: Limiter,
    /// Versions of Ingresses of which the status was written since, and what it holds.
    done: HashMap<ObjectName, (Arc<Ingress>, Addresses)>,
    look_up: Trouble,
    write: Trouble,
}

impl StatusSettings {
    /// As the flags say; `None` if nothing is to be written, or nothing tells what.
    #[must_use]
    pub fn from_flags(args: &Args, pod: Option<ObjectName>) -> Option<Self> {
        if !args.status.update_status {
            return None;
        }
        let Some(source) = Source::from_flags(&args.status, pod.as_ref()) else {
            info!(
                "nothing tells at which addresses Ingresses are reached; their status is not written"
            );
            return None;
        };
        Some(Self {
            source,
            interval: args.status.update_interval(),
            take_back: args.status.update_status_on_shutdown,
            pod,
        })
    }
}

impl StatusWriter {
    /// A writer of the status of those Ingresses that the outcomes say are ours.
    #[must_use]
    pub fn new(
        client: &Client,
        store: &Arc<Store>,
        outcomes: Outcomes,
        settings: StatusSettings,
    ) -> Self {
        Self {
            client: client.clone(),
            store: Arc::clone(store),
            outcomes,
            settings,
            limiter: limiter(),
            done: HashMap::new(),
            look_up: Trouble::new("look up the addresses of Ingresses"),
            write: Trouble::new("write the status of Ingresses"),
        }
    }

    /// Writes while this replica leads, until the controller ends; then takes the addresses back if it is the last one.
    pub async fn run(mut self, mut leadership: Leadership, ended: watch::Receiver<bool>) {
        loop {
            let mut standing = leadership.clone();
            tokio::select! {
                () = lead(&mut self, &mut leadership, ended.clone()) => break,
                () = async { standing.gained().await; standing.lost().await } => {}
            }
        }
        if self.settings.take_back && leadership.is_held() {
            tokio::select! {
                () = self.take_back() => {}
                () = leadership.lost() => {}
            }
        }
    }

    /// Keeps the status of all Ingresses right until the controller ends.
    async fn keep(&mut self, mut ended: watch::Receiver<bool>) {
        self.done.clear();
        let mut clock = interval(self.settings.interval);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known: Option<Addresses> = None;
        let mut is_stale = false;
        let mut retry_at: Option<Instant> = None;
        loop {
            let look_up = tokio::select! {
                () = end(&mut ended) => return,
                _ = clock.tick() => true,
                () = until(retry_at) => is_stale,
                Ok(()) = self.outcomes.changed() => false,
            };
            if look_up {
                self.forget_deleted();
                let found = self.look_up().await;
                is_stale = found.is_none();
                // What was known before still holds as far as we can tell.
                known = found.or(known);
            }
            let failed = match &known {
                Some(addresses) => {
                    let wrong = self.wrong(addresses);
                    let mut ended = ended.clone();
                    let end = async move { end(&mut ended).await };
                    !self.write(wrong, addresses, end).await
                }
                None => false,
            };
            retry_at = (is_stale || failed).then(|| Instant::now() + RETRY);
        }
    }

    /// The addresses as they are now; `None` if the API server does not tell.
    async fn look_up(&mut self) -> Option<Addresses> {
        let nodes = self.store.snapshot().nodes;
        let looked = self.settings.source.look_up(&self.client, &nodes);
        match within(REQUEST, looked).await {
            Ok(addresses) => {
                self.look_up.ended();
                Some(addresses)
            }
            Err(error) => {
                self.look_up.met(&error);
                None
            }
        }
    }

    /// Writes the status of some Ingresses where it differs; begins with none any more at the `end`. Answers whether all
    /// of it succeeded.
    async fn write(
        &mut self,
        ingresses: Vec<Version>,
        addresses: &Addresses,
        end: impl Future<Output = ()>,
    ) -> bool {
        if ingresses.is_empty() {
            return true;
        }
        debug!(
            ingresses = ingresses.len(),
            "writing the status of Ingresses"
        );
        let (client, limiter) = (&self.client, &self.limiter);
        let writes = stream::iter(ingresses)
            .take_until(end)
            .map(async |(name, ingress)| {
                limiter.ready().await;
                let written = write(client, &name, addresses).await;
                (name, ingress, written)
            });
        let mut writes = pin!(writes.buffer_unordered(PARALLEL));
        let mut failure = None;
        while let Some((name, ingress, written)) = writes.next().await {
            match written {
                Ok(()) => {
                    self.done.insert(name, (ingress, addresses.clone()));
                }
                Err(error) => failure = Some(error),
            }
        }
        match &failure {
            Some(error) => self.write.met(error),
            None => self.write.ended(),
        }
        failure.is_none()
    }

    /// Ingresses of ours.
    fn ours(&mut self) -> Vec<Version> {
        let outcome = self.outcomes.borrow_and_update().clone();
        let snapshot = self.store.snapshot();
        let is_ours = |name: &ObjectName| {
            let outcome = outcome.as_ref();
            outcome.is_some_and(|outcome| outcome.last_good.get(name).is_some())
        };
        snapshot
            .ingresses
            .iter()
            .filter(|(name, _)| is_ours(name))
            .map(|(name, ingress)| (name.clone(), Arc::clone(ingress)))
            .collect()
    }

    /// Those of which the status differs, as far as we know.
    fn wrong(&mut self, addresses: &Addresses) -> Vec<Version> {
        let mut ingresses = self.ours();
        ingresses.retain(|(name, ingress)| match self.done.get(name) {
            // The store has not heard of what we wrote.
            Some((version, written)) if Arc::ptr_eq(version, ingress) => written != addresses,
            _ => addresses::of_status(ingress) != *addresses,
        });
        ingresses
    }

    fn forget_deleted(&mut self) {
        let ingresses = self.store.snapshot().ingresses;
        self.done.retain(|name, _| ingresses.contains(name));
    }

    /// Takes the addresses back, unless another replica is there to go on.
    async fn take_back(&mut self) {
        // A Service that is gone has no addresses that somebody could go on to use.
        let addresses = self.look_up().await.unwrap_or_default();
        if addresses.len() > 1 {
            debug!("several addresses: the status of Ingresses is left to the next leader");
            return;
        }
        if let Some(pod) = &self.settings.pod {
            match within(REQUEST, addresses::is_last(&self.client, pod)).await {
                Ok(true) => {}
                Ok(false) => {
                    debug!("another replica runs: the status of Ingresses is left to it");
                    return;
                }
                Err(error) => {
                    self.look_up.met(&error);
                    return;
                }
            }
        }
        info!("the last replica ends; taking the addresses of Ingresses back");
        // Whatever the store says: it need not know yet what was written last.
        let all = self.ours();
        self.write(all, &Addresses::new(), std::future::pending())
            .await;
    }
}

impl fmt::Debug for StatusWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusWriter")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Keeps the status right from the moment at which this replica leads, until the controller ends.
async fn lead(
    writer: &mut StatusWriter,
    leadership: &mut Leadership,
    mut ended: watch::Receiver<bool>,
) {
    tokio::select! {
        () = end(&mut ended) => return,
        () = leadership.gained() => {}
    }
    writer.keep(ended).await;
}

/// Waits for the controller's end.
async fn end(ended: &mut watch::Receiver<bool>) {
    // Without a sender the end has come as well.
    let _ended = ended.wait_for(|ended| *ended).await;
}

/// Brings the status of one Ingress up to date.
async fn write(
    client: &Client,
    name: &ObjectName,
    addresses: &Addresses,
) -> Result<(), RequestError> {
    let kind = ApiResource::erase::<Ingress>(&());
    let ingresses = Api::<DynamicObject>::namespaced_with(client.clone(), name.namespace(), &kind);
    for _ in 1..TRIES {
        match within(REQUEST, try_write(&ingresses, name.name(), addresses)).await {
            Err(error) if error.is_conflict() => {}
            // It was deleted meanwhile.
            Err(error) if error.is_missing() => return Ok(()),
            done => return done,
        }
    }
    within(REQUEST, try_write(&ingresses, name.name(), addresses)).await
}

async fn try_write(
    ingresses: &Api<DynamicObject>,
    name: &str,
    addresses: &Addresses,
) -> Result<(), kube::Error> {
    let mut ingress = ingresses.get(name).await?;
    let typed: Option<Ingress> = ingress.clone().try_parse().ok();
    if typed.is_some_and(|ingress| addresses::of_status(&ingress) == *addresses) {
        return Ok(());
    }
    set_addresses(&mut ingress.data, addresses);
    ingresses
        .replace_status(name, &PostParams::default(), &ingress)
        .await?;
    Ok(())
}

fn set_addresses(ingress: &mut Value, addresses: &Addresses) {
    let balancer = if addresses.is_empty() {
        json!({})
    } else {
        json!({"ingress": addresses})
    };
    match ingress.get_mut("status").and_then(Value::as_object_mut) {
        Some(status) => {
            status.insert("loadBalancer".to_owned(), balancer);
        }
        None => ingress["status"] = json!({"loadBalancer": balancer}),
    }
}

fn limiter() -> Limiter {
    let rate = Rate::every(PERIOD).map(|rate| rate.with_burst(BURST));
    Limiter::new(rate.unwrap_or(Rate::UNLIMITED))
}
