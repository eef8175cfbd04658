//! Makes Events of notices.
//!
//! The same notice has the same Event, whichever replica makes it and however often: its name is a hash of what it says,
//! and a repetition counts it up. `events.k8s.io` is not used, since ingress-nginx's role allows Events of the core group
//! only, and of these no reading.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    num::NonZeroU16,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ingress_model::{ObjectKind, ObjectRef};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sync_queue::{Limiter, Rate};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use tracing::{debug, warn};

use super::{
    backlog::{Backlog, Due},
    request::{RequestError, until, within},
    trouble::Trouble,
};

/// Who makes our Events.
pub const COMPONENT: &str = "nginx-ingress-controller";

/// Time between two writes once the burst is used up.
const PERIOD: Duration = Duration::from_millis(50);

/// How many writes may come at once.
const BURST: NonZeroU16 = NonZeroU16::MIN.saturating_add(49);

/// How long one write may take.
const REQUEST: Duration = Duration::from_secs(10);

/// How long to leave an API server alone that does not answer.
const PAUSE: Duration = Duration::from_secs(2);

/// The longest message, in bytes. API servers refuse longer ones in Events of the newer group.
const LONGEST_MESSAGE: usize = 1024;

/// The longest name of an object, in bytes.
const LONGEST_NAME: usize = 253;

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weight {
    /// Worth knowing.
    Normal,
    /// Something should be done about it.
    Warning,
}

/// The object that a notice is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct About {
    /// Its kind and name.
    pub object: ObjectRef,
    /// Its UID, by which tools find its Events.
    pub uid: Option<String>,
}

/// Something to be said about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// About what.
    pub about: About,
    /// How much it matters.
    pub weight: Weight,
    /// What kind of thing it is: one word, for tools.
    pub reason: &'static str,
    /// What it is, for people.
    pub message: String,
}

/// Makes Events.
pub struct Recorder {
    client: Client,
    backlog: Mutex<Backlog>,
    work: Notify,
}

impl Recorder {
    /// A recorder that has nothing to tell yet.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            backlog: Mutex::new(Backlog::new(Instant::now())),
            work: Notify::new(),
        }
    }

    /// Takes in something to be told.
    pub fn report(&self, notice: Notice) {
        let object = notice.about.object.clone();
        if self.backlog().report(notice, Instant::now()) {
            self.work.notify_one();
        } else {
            debug!(%object, "too much waits to be told by Events; one more is left out");
        }
    }

    /// The client that it writes with.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Tells what there is to be told, for ever.
    pub async fn run(&self) {
        let limiter = limiter();
        let mut trouble = Trouble::new("make Events");
        loop {
            let (due, wake) = {
                let mut backlog = self.backlog();
                (backlog.next(Instant::now()), backlog.wake())
            };
            let Some(due) = due else {
                tokio::select! {
                    () = self.work.notified() => {}
                    () = until(wake) => {}
                }
                continue;
            };
            limiter.ready().await;
            match self.write(&due).await {
                Ok(count) => {
                    trouble.ended();
                    self.backlog().told(&due, count, Instant::now());
                }
                // The object is gone, and its namespace with it.
                Err(error) if error.is_missing() => self.backlog().give_up(&due),
                Err(error) => {
                    trouble.met(&error);
                    let refused = error.is_refusal();
                    if !self.backlog().failed(&due, refused, Instant::now()) {
                        let object = &due.notice.about.object;
                        warn!(%object, "the API server refuses an Event again and again; giving up");
                    }
                    if !refused {
                        sleep(PAUSE).await;
                    }
                }
            }
        }
    }

    /// Writes an Event; answers how often it says that it happened.
    async fn write(&self, due: &Due) -> Result<i32, RequestError> {
        let event = event(&due.notice, due.count, Timestamp::now());
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let events = Api::<Event>::namespaced(self.client.clone(), namespace);
        if due.told > 0 {
            let patch = json!({"count": event.count, "lastTimestamp": event.last_timestamp});
            match patch_event(&events, name, patch).await {
                // Its time was up.
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(due.count),
            }
        }
        match within(REQUEST, events.create(&PostParams::default(), &event)).await {
            Ok(_) => Ok(due.count),
            // Another replica, or we before a restart, have said it already: it still holds.
            Err(error) if error.is_conflict() => {
                let patch = json!({"lastTimestamp": event.last_timestamp});
                let patched = patch_event(&events, name, patch).await?;
                Ok(patched.count.unwrap_or(1))
            }
            Err(error) => Err(error),
        }
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

fn limiter() -> Limiter {
    let rate = Rate::every(PERIOD).map(|rate| rate.with_burst(BURST));
    Limiter::new(rate.unwrap_or(Rate::UNLIMITED))
}

async fn patch_event(events: &Api<Event>, name: &str, patch: Value) -> Result<Event, RequestError> {
    let params = PatchParams::default();
    within(REQUEST, events.patch(name, &params, &Patch::Merge(patch))).await
}

fn event(notice: &Notice, count: i32, now: Timestamp) -> Event {
    let About { object, uid } = &notice.about;
    let namespaced = Some(object.name.namespace()).filter(|namespace| !namespace.is_empty());
    let now = Some(Time(now));
    Event {
        metadata: ObjectMeta {
            name: Some(name(notice)),
            // Events about cluster-wide objects are kept there.
            namespace: Some(namespaced.unwrap_or("default").to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(api_version(object.kind).to_owned()),
            kind: Some(object.kind.as_str().to_owned()),
            namespace: namespaced.map(str::to_owned),
            name: Some(object.name.name().to_owned()),
            uid: uid.clone(),
            ..ObjectReference::default()
        },
        type_: Some(
            match notice.weight {
                Weight::Normal => "Normal",
                Weight::Warning => "Warning",
            }
            .to_owned(),
        ),
        reason: Some(notice.reason.to_owned()),
        message: Some(cut(&notice.message, LONGEST_MESSAGE)),
        source: Some(EventSource {
            component: Some(COMPONENT.to_owned()),
            host: None,
        }),
        reporting_component: Some(COMPONENT.to_owned()),
        reporting_instance: Some(String::new()),
        count: Some(count),
        first_timestamp: now.clone(),
        last_timestamp: now,
        ..Event::default()
    }
}

/// The object's name and a hash of what is said about it.
fn name(notice: &Notice) -> String {
    let mut hasher = DefaultHasher::new();
    notice.hash(&mut hasher);
    let hash = format!(".{:016x}", hasher.finish());
    let object = notice.about.object.name.name();
    let end = object.floor_char_boundary(LONGEST_NAME - hash.len());
    let object = object.get(..end).unwrap_or_default();
    format!("{}{hash}", object.trim_end_matches(['-', '.']))
}

/// A text of at most so many bytes.
fn cut(text: &str, longest: usize) -> String {
    const SIGN: &str = "…";
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(longest - SIGN.len());
    format!("{}{SIGN}", text.get(..end).unwrap_or_default())
}

fn api_version(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Ingress | ObjectKind::IngressClass => "networking.k8s.io/v1",
        ObjectKind::EndpointSlice => "discovery.k8s.io/v1",
        ObjectKind::Service
        | ObjectKind::Secret
        | ObjectKind::ConfigMap
        | ObjectKind::Namespace
        | ObjectKind::Node
        | ObjectKind::Pod => "v1",
    }
}

#[cfg(test)]
mod tests {
    use ingress_model::ObjectName;

    use super::*;

    fn notice(name: ObjectName, kind: ObjectKind) -> Notice {
        Notice {
            about: About {
                object: ObjectRef::new(kind, name),
                uid: Some("u".into()),
            },
            weight: Weight::Warning,
            reason: "Test",
            message: "m".into(),
        }
    }

    #[test]
    fn what_is_said_makes_the_name() {
        let first = notice(ObjectName::new("a", "b"), ObjectKind::Ingress);
        assert_eq!(name(&first), name(&first.clone()));
        assert!(name(&first).starts_with("b."));
        let mut second = first.clone();
        second.message.push('!');
        let mut third = first.clone();
        third.about.uid = None;
        for other in [second, third] {
            assert_ne!(name(&first), name(&other));
        }
    }

    #[test]
    fn long_names_are_cut_so_that_they_stay_names() {
        let long = format!("{}-{}", "a".repeat(235), "b".repeat(17));
        assert_eq!(long.len(), LONGEST_NAME);
        let name = name(&notice(ObjectName::new("a", &long), ObjectKind::Ingress));
        let (object, hash) = name.rsplit_once('.').unwrap();
        assert_eq!((object, hash.len()), ("a".repeat(235).as_str(), 16));
    }

    #[test]
    fn long_messages_are_cut() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("äöüä", 6), "ä…");
        let mut notice = notice(ObjectName::new("a", "b"), ObjectKind::Ingress);
        notice.message = "ü".repeat(1000);
        let message = event(&notice, 1, Timestamp::UNIX_EPOCH).message.unwrap();
        assert!((1020..=1024).contains(&message.len()), "{}", message.len());
    }

    #[test]
    fn events_about_cluster_wide_objects_are_kept_in_a_namespace() {
        let notice = notice(ObjectName::cluster("n"), ObjectKind::Node);
        let event = event(&notice, 2, Timestamp::UNIX_EPOCH);
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(event.involved_object.namespace, None);
        assert_eq!(event.involved_object.api_version.as_deref(), Some("v1"));
        assert_eq!(event.count, Some(2));
    }
}
