//! A kube-runtime watcher with its reflector, run for a test and asked what it has seen.

use std::{fmt::Debug, time::Duration};

use futures::StreamExt as _;
use kube::{Api, Resource, ResourceExt as _};
use kube_runtime::{
    WatchStreamExt as _, reflector,
    reflector::Store,
    utils::Backoff,
    watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinSet,
    time::timeout,
};

const PATIENCE: Duration = Duration::from_mins(2);

/// What a watcher has reported, with objects by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Init,
    InitApply(String),
    InitDone,
    Apply(String),
    Delete(String),
    Error(String),
}

/// A watcher that runs while this lives.
pub(crate) struct Follower<K: Resource<DynamicType = ()> + 'static> {
    /// What the reflector holds.
    pub(crate) store: Store<K>,
    events: UnboundedReceiver<Seen>,
    _watching: JoinSet<()>,
}

impl<K> Follower<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Starts to watch.
    pub(crate) fn start(api: Api<K>, config: watcher::Config) -> Self {
        let (store, writer) = reflector::store();
        let (sender, events) = unbounded_channel();
        let mut watching = JoinSet::new();
        watching.spawn(async move {
            let mut stream = watcher(api, config).backoff(Prompt).reflect(writer).boxed();
            while let Some(event) = stream.next().await {
                if sender.send(Seen::from(event)).is_err() {
                    return;
                }
            }
        });
        Self {
            store,
            events,
            _watching: watching,
        }
    }

    /// Takes in events until this one comes, and answers with all that came, it included.
    ///
    /// # Panics
    /// When it does not come in time.
    pub(crate) async fn until(&mut self, last: &Seen) -> Vec<Seen> {
        self.take_until(&format!("{last:?}"), |seen| seen == last)
            .await
    }

    /// Takes in events until the watcher fails at something.
    ///
    /// # Panics
    /// When it does not in time.
    pub(crate) async fn until_error(&mut self) -> Vec<Seen> {
        self.take_until("an error", |seen| matches!(seen, Seen::Error(_)))
            .await
    }

    async fn take_until(&mut self, what: &str, is_last: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let mut new = Vec::new();
        while !new.last().is_some_and(&is_last) {
            match timeout(PATIENCE, self.events.recv()).await {
                Ok(Some(event)) => new.push(event),
                Ok(None) | Err(_) => panic!("waited in vain for {what}, saw {new:?}"),
            }
        }
        new
    }

    /// Names of the objects in the store, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .store
            .state()
            .iter()
            .map(|object| object.name_any())
            .collect();
        names.sort();
        names
    }
}

impl<K: Resource<DynamicType = ()>> From<watcher::Result<Event<K>>> for Seen {
    fn from(event: watcher::Result<Event<K>>) -> Self {
        match event {
            Ok(Event::Init) => Self::Init,
            Ok(Event::InitApply(object)) => Self::InitApply(object.name_any()),
            Ok(Event::InitDone) => Self::InitDone,
            Ok(Event::Apply(object)) => Self::Apply(object.name_any()),
            Ok(Event::Delete(object)) => Self::Delete(object.name_any()),
            Err(error) => Self::Error(error.to_string()),
        }
    }
}

/// Retries soon, so that tests of failures are quick.
struct Prompt;

impl Iterator for Prompt {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }
}

impl Backoff for Prompt {
    fn reset(&mut self) {}
}
