//! What has happened lately, kept for whoever looks.

use std::{
    collections::{BTreeMap, VecDeque},
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ingress_model::{Host, ObjectName, Outcome};
use jiff::Timestamp;

use crate::{
    chain::chain,
    health::Health,
    metrics::certificates::{Certificates, Facts},
    observe::{Load, Observer, Told},
    quarantine::{Levels, Quarantine},
    store::Store,
};

/// How many syncs, and how many loads, are remembered.
const REMEMBERED: usize = 20;

/// Remembers what the page shows.
#[derive(Debug)]
pub struct Board {
    started: Timestamp,
    store: Arc<Store>,
    health: Health,
    quarantine: Arc<Quarantine>,
    certificates: Certificates,
    latest: Mutex<Latest>,
}

/// What happened last, the newest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    pub(super) outcome: Arc<Outcome>,
    pub(super) syncs: VecDeque<(Timestamp, Told)>,
    pub(super) loads: VecDeque<(Timestamp, Loaded)>,
    /// Ingresses that are kept apart: since when, and why.
    pub(super) isolated: BTreeMap<ObjectName, (Timestamp, String)>,
}

/// How a load came out.
#[derive(Clone, Debug)]
pub(super) enum Loaded {
    Done(Load),
    Failed(String),
}

impl Board {
    /// A board of a controller that has just started.
    #[must_use]
    pub fn new(store: Arc<Store>, health: Health, quarantine: Arc<Quarantine>) -> Self {
        Self {
            started: Timestamp::now(),
            store,
            health,
            quarantine,
            certificates: Certificates::default(),
            latest: Mutex::default(),
        }
    }

    /// When the controller started.
    pub(super) fn started(&self) -> Timestamp {
        self.started
    }

    /// Whether it serves what it should.
    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    /// How far Ingresses are kept apart.
    pub(super) fn levels(&self) -> Levels {
        self.quarantine.levels()
    }

    /// What happened last.
    pub(super) fn latest(&self) -> Latest {
        self.lock().clone()
    }

    /// The certificates of an outcome's hosts.
    pub(super) fn certificates<'a>(&self, outcome: &'a Outcome) -> Vec<(&'a Host, Arc<Facts>)> {
        self.certificates.of_hosts(outcome, &self.store)
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Board {
    fn merged(&self, outcome: &Arc<Outcome>, _: Duration) {
        self.lock().outcome = Arc::clone(outcome);
    }

    fn told(&self, told: &Told) {
        if told.sent() > 0 || told.loads {
            remember(&mut self.lock().syncs, told.clone());
        }
    }

    fn loaded(&self, load: &Load) {
        remember(&mut self.lock().loads, Loaded::Done(load.clone()));
    }

    fn load_failed(&self, error: &dyn Error) {
        remember(&mut self.lock().loads, Loaded::Failed(chain(error)));
    }

    fn isolated(&self, ingress: &ObjectName, reason: &str) {
        let entry = (Timestamp::now(), reason.to_owned());
        self.lock().isolated.insert(ingress.clone(), entry);
    }

    fn recovered(&self, ingress: &ObjectName) {
        self.lock().isolated.remove(ingress);
    }
}

fn remember<T>(list: &mut VecDeque<(Timestamp, T)>, entry: T) {
    list.truncate(REMEMBERED - 1);
    list.push_front((Timestamp::now(), entry));
}
