//! All of the double's state behind one lock, with a signal for whoever waits on it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    sync::watch::{self, Receiver},
    time::timeout,
};

use super::{
    faults::Faults,
    request::{Call, Request, Verb},
    resource::Resource,
    store::Store,
};

/// How long a test waits for a condition before it fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// What conditions are written on: the objects and what clients have done.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) faults: Faults,
    log: Vec<Request>,
}

/// Handle to the state. Waiters are woken after each write through it.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    state: Arc<Mutex<State>>,
    writes: watch::Sender<u64>,
}

impl State {
    /// An object, with kinds named as for [`Resource::named`] and an empty namespace for
    /// cluster-wide ones.
    pub(crate) fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        let key = (namespace.to_owned(), name.to_owned());
        self.store
            .get(Resource::named(resource), &key)
            .map(AsRef::as_ref)
    }

    /// All objects of a kind in the order of namespace and name.
    pub(crate) fn list(&self, resource: &str) -> Vec<&Value> {
        let objects = self.store.table(Resource::named(resource)).objects();
        objects.values().map(AsRef::as_ref).collect()
    }

    /// All requests so far, in the order of their arrival.
    pub(crate) fn requests(&self) -> &[Request] {
        &self.log
    }

    /// How many such requests there were, subresources aside.
    pub(crate) fn count(&self, verb: Verb, resource: &str) -> usize {
        self.log
            .iter()
            .filter(|request| request.is(verb, resource))
            .count()
    }

    /// How many watches of a kind are being served.
    pub(crate) fn open_watches(&self, resource: &str) -> usize {
        self.store.table(Resource::named(resource)).open_watches
    }

    /// Logs a request; [`State::answered`] takes the number given.
    pub(crate) fn arrived(&mut self, call: &Call, body: Option<&Value>) -> usize {
        self.log.push(Request {
            at: Instant::now(),
            call: call.clone(),
            body: body.cloned(),
            code: None,
        });
        self.log.len() - 1
    }

    /// Logs how a request was answered.
    pub(crate) fn answered(&mut self, number: usize, code: u16) {
        if let Some(request) = self.log.get_mut(number) {
            request.code = Some(code);
        }
    }
}

impl Shared {
    /// An empty cluster that remembers that many changes of each kind.
    pub(crate) fn new(history_limit: usize) -> Self {
        let state = State {
            store: Store::new(history_limit),
            faults: Faults::default(),
            log: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            writes: watch::Sender::new(0),
        }
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.lock())
    }

    pub(crate) fn write<R>(&self, write: impl FnOnce(&mut State) -> R) -> R {
        let result = write(&mut self.lock());
        self.writes.send_modify(|writes| *writes += 1);
        result
    }

    /// Changes after each write.
    pub(crate) fn subscribe(&self) -> Receiver<u64> {
        self.writes.subscribe()
    }

    /// Waits until the condition holds.
    ///
    /// # Panics
    /// When it does not within [`PATIENCE`]; the message says `what` was waited for.
    pub(crate) async fn wait_until(&self, what: &str, condition: impl Fn(&State) -> bool) {
        let mut writes = self.subscribe();
        let reached = async {
            while !self.read(&condition) {
                writes.changed().await.expect("self holds the sender");
            }
        };
        if timeout(PATIENCE, reached).await.is_err() {
            let requests: Vec<String> = self.read(|state| {
                let line = |request: &Request| {
                    let Call { verb, path, .. } = &request.call;
                    format!("{verb:?} {path} -> {:?}", request.code)
                };
                state.requests().iter().map(line).collect()
            });
            panic!("waited {PATIENCE:?} in vain until {what}; requests so far: {requests:#?}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
