//! An in-memory double of the Kubernetes API server, for tests of what watches and writes it.
//!
//! It speaks the documented HTTP API for the kinds a controller of Ingresses meets: LIST with
//! paging and selectors, WATCH with a bounded history, bookmarks and streaming lists, the write
//! verbs with optimistic concurrency, the `/status` subresource. Any client may talk to it; the
//! test holds the other end and can change objects, see every request and make things go wrong:
//!
//! ```text
//! controller ──HTTP──▶ Server ─▶ routes ─▶ registry ─▶ Store ─▶ history ─▶ Watch ──▶ controller
//!                                  ▲                    ▲
//!                                Faults              ApiDouble ◀── test
//! ```
//!
//! What it leaves out: authentication, admission and schema validation (a test may need an object
//! the real server would refuse), field ownership (server-side apply and strategic merge are
//! treated as JSON merge), JSON patch, deleting collections, garbage collection. `events` of the
//! core group and of `events.k8s.io` are two sets of objects.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failure here fails the test; indexing a JSON value does not panic"
)]

mod client;
mod error;
mod faults;
mod follower;
mod list;
mod registry;
mod request;
mod resource;
mod routes;
mod selector;
mod server;
mod state;
mod store;
mod watch;

use std::net::SocketAddr;

use serde::Serialize;
use serde_json::Value;

pub(crate) use self::{
    faults::{Fault, Hold, Target},
    follower::{Follower, Seen},
    request::{Request, Verb},
    state::State,
};
use self::{resource::Resource, server::Server, state::Shared, store::Signals};

/// How many changes of each kind a new double remembers.
const HISTORY: usize = 1000;

/// A running API server with an empty cluster. It ends, with all connections, when dropped.
///
/// Kinds are named as in URLs (`ingresses`); `events` are those of the core group, the others are
/// `events.events.k8s.io`. The namespace of cluster-wide kinds is empty.
#[derive(Debug)]
pub(crate) struct ApiDouble {
    address: SocketAddr,
    shared: Shared,
    server: tokio::sync::Mutex<Server>,
}

impl ApiDouble {
    /// Starts on a free port of the loopback interface.
    #[expect(clippy::unused_async, reason = "says that a runtime must be there")]
    pub(crate) async fn start() -> Self {
        let shared = Shared::new(HISTORY);
        let server =
            Server::start(routes::router(shared.clone())).expect("loopback has free ports");
        Self {
            address: server.address(),
            shared,
            server: tokio::sync::Mutex::new(server),
        }
    }

    // Objects.

    /// Creates an object or replaces it, as the test states it: nothing is checked, and status,
    /// `creationTimestamp` and `uid` are taken over. What it leaves out of these is kept or made
    /// up; the namespace defaults to `default`. Takes JSON values and typed objects.
    pub(crate) fn apply(&self, object: &impl Serialize) -> Value {
        let object = serde_json::to_value(object).expect("API objects serialize");
        self.shared
            .write(|state| Value::clone(&registry::impose(&mut state.store, object)))
    }

    /// [`ApiDouble::apply`] for each document of a manifest.
    pub(crate) fn apply_yaml(&self, manifest: &str) -> Vec<Value> {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(manifest).expect("the manifest is YAML");
        objects.iter().map(|object| self.apply(object)).collect()
    }

    /// Changes an object in place.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn edit(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        edit: impl FnOnce(&mut Value),
    ) -> Value {
        self.shared.write(|state| {
            let object = state.get(resource, namespace, name).cloned();
            let mut object = object.expect("the object to edit is there");
            edit(&mut object);
            Value::clone(&registry::impose(&mut state.store, object))
        })
    }

    /// Deletes an object, finalizers or not. Tells whether there was one.
    pub(crate) fn delete(&self, resource: &str, namespace: &str, name: &str) -> bool {
        let key = (namespace.to_owned(), name.to_owned());
        self.shared.write(|state| {
            state
                .store
                .remove(Resource::named(resource), &key)
                .is_some()
        })
    }

    /// An object as it is now.
    pub(crate) fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.read(|state| state.get(resource, namespace, name).cloned())
    }

    // What clients have done.

    /// All requests so far, in the order of their arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.read(|state| state.requests().to_vec())
    }

    /// Looks at objects and requests together.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        self.shared.read(read)
    }

    /// Waits until a condition on objects and requests holds. Every change is looked at.
    ///
    /// # Panics
    /// When it does not hold within two minutes; `what` completes the sentence "waited in vain until …".
    pub(crate) async fn wait_until(&self, what: &str, condition: impl Fn(&State) -> bool) {
        self.shared.wait_until(what, condition).await;
    }

    // Faults of single requests.

    /// Does this to the next so many requests of that sort. Among several faults for a request the
    /// one injected first is used up first.
    pub(crate) fn inject(&self, target: Target, fault: Fault, times: usize) {
        self.shared
            .write(|state| state.faults.arm(target, fault, times));
    }

    /// Keeps all requests of that sort waiting until the answer is dropped.
    pub(crate) fn hold(&self, target: Target) -> Hold {
        let (fault, hold) = Fault::hold();
        self.inject(target, fault, usize::MAX);
        hold
    }

    /// Cuts the next event of a kind in the middle of its line, and the connection with it.
    pub(crate) fn cut_next_event(&self, resource: &str) {
        self.shared
            .write(|state| state.faults.arm_cut(Resource::named(resource), 1));
    }

    /// Takes back what has not happened yet.
    pub(crate) fn clear_faults(&self) {
        self.shared.write(|state| state.faults.clear());
    }

    // Faults of watches and of the history.

    /// Ends the running watches of a kind in good order, as when their time is up.
    pub(crate) fn end_watches(&self, resource: &str) {
        self.signal(resource, |signals| signals.end += 1);
    }

    /// Sends an ERROR event with code 410 to the running watches of a kind and ends them.
    pub(crate) fn expire_watches(&self, resource: &str) {
        self.signal(resource, |signals| signals.expire += 1);
    }

    /// Sends a bookmark to the running watches of a kind that allow it.
    pub(crate) fn send_bookmarks(&self, resource: &str) {
        self.signal(resource, |signals| signals.bookmark += 1);
    }

    /// Forgets all changes of a kind: whoever asks for an older version, or has not been sent the
    /// last change yet, gets 410 and must list again.
    pub(crate) fn compact(&self, resource: &str) {
        self.shared
            .write(|state| state.store.compact(Resource::named(resource)));
    }

    /// Deletes an object and forgets that it happened: no watch is told, all watches of the kind
    /// get 410, and only the absence from the next list shows it.
    pub(crate) fn vanish(&self, resource: &str, namespace: &str, name: &str) {
        let (resource, key) = (
            Resource::named(resource),
            (namespace.to_owned(), name.to_owned()),
        );
        self.shared.write(|state| {
            assert!(
                state.store.remove(resource, &key).is_some(),
                "the object to vanish is there"
            );
            state.store.compact(resource);
        });
    }

    /// Remembers only that many changes of each kind.
    pub(crate) fn limit_history(&self, changes: usize) {
        self.shared
            .write(|state| state.store.limit_history(changes));
    }

    // Faults of the whole server.

    /// Resets all connections, in the middle of whatever they carry. New ones are accepted.
    pub(crate) async fn drop_connections(&self) {
        self.server.lock().await.break_connections();
    }

    /// Goes away: resets all connections and refuses new ones. Objects can be changed meanwhile.
    pub(crate) async fn go_away(&self) {
        self.server.lock().await.stop().await;
    }

    /// Comes back, on the same port.
    pub(crate) async fn come_back(&self) {
        self.server
            .lock()
            .await
            .resume()
            .expect("the port is reserved");
    }

    fn signal(&self, resource: &str, signal: impl FnOnce(&mut Signals)) {
        self.shared
            .write(|state| signal(&mut state.store.table_mut(Resource::named(resource)).signals));
    }
}
