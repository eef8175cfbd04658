//! What goes wrong, and for which requests.

use std::{collections::BTreeMap, time::Duration};

use tokio::sync::watch::{self, Receiver, Sender};

use super::{
    error::ApiError,
    request::{Call, Verb},
    resource::Resource,
};

/// What is done to a request instead of, or before, answering it.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Refuse it.
    Answer(ApiError),
    /// Say that the version it asks for is too old: an ERROR event for a watch, HTTP 410 with a
    /// new `continue` token for the later pages of a list.
    Expire,
    /// Let that time pass, then serve it.
    Delay(Duration),
    /// Break the connection without serving it.
    Drop,
    /// Serve it, then break the connection instead of answering: the write has happened, but the
    /// client cannot know.
    LoseAnswer,
    /// Keep it waiting until the test drops the [`Hold`].
    Hold(Receiver<()>),
}

/// Which requests a fault is for. Start from [`Target::any`] and narrow it down.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    verb: Option<Verb>,
    resource: Option<&'static Resource>,
    subresource: Option<&'static str>,
    later_page: bool,
}

/// Keeps requests waiting while it lives.
#[derive(Debug)]
#[must_use = "requests go on as soon as this is dropped"]
pub(crate) struct Hold(
    #[expect(dead_code, reason = "held for its drop, which is the signal")] Sender<()>,
);

/// The faults that are still to come.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    armed: Vec<Armed>,
    /// How many more events of a kind are to be cut in half.
    cuts: BTreeMap<&'static Resource, usize>,
}

#[derive(Debug)]
struct Armed {
    target: Target,
    fault: Fault,
    times: usize,
}

impl Fault {
    /// 403.
    pub(crate) fn forbidden() -> Self {
        Self::Answer(ApiError::forbidden("access is forbidden by the test"))
    }

    /// 404, as for a kind the server does not have.
    pub(crate) fn not_served() -> Self {
        Self::Answer(ApiError::no_such_path())
    }

    /// 429 with `Retry-After` in seconds. kube's client retries by itself.
    pub(crate) fn too_many_requests(retry_after: u32) -> Self {
        Self::Answer(ApiError::too_many_requests(retry_after))
    }

    /// 500.
    pub(crate) fn internal() -> Self {
        Self::Answer(ApiError::internal())
    }

    /// 503. kube's client retries by itself.
    pub(crate) fn unavailable() -> Self {
        Self::Answer(ApiError::unavailable())
    }

    /// [`Fault::Hold`] and what ends it.
    pub(crate) fn hold() -> (Self, Hold) {
        let (sender, receiver) = watch::channel(());
        (Self::Hold(receiver), Hold(sender))
    }
}

impl Target {
    /// Every request.
    pub(crate) fn any() -> Self {
        Self::default()
    }

    /// Only requests that do this.
    pub(crate) fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Only requests to this kind, named as for [`Resource::named`].
    pub(crate) fn on(mut self, resource: &str) -> Self {
        self.resource = Some(Resource::named(resource));
        self
    }

    /// Only requests to this subresource.
    pub(crate) fn subresource(mut self, subresource: &'static str) -> Self {
        self.subresource = Some(subresource);
        self
    }

    /// Only LISTs that continue an earlier one.
    pub(crate) fn later_page(mut self) -> Self {
        self.later_page = true;
        self
    }

    fn meets(&self, call: &Call) -> bool {
        self.verb.is_none_or(|verb| verb == call.verb)
            && self
                .resource
                .is_none_or(|resource| call.resource == Some(resource))
            && self
                .subresource
                .is_none_or(|name| call.subresource.as_deref() == Some(name))
            && (!self.later_page || !call.parameter("continue").is_empty())
    }
}

impl Faults {
    /// Arms a fault for the next so many requests it is meant for.
    pub(crate) fn arm(&mut self, target: Target, fault: Fault, times: usize) {
        self.armed.push(Armed {
            target,
            fault,
            times,
        });
    }

    /// Arms a cut for the next so many events of a kind, over all its watches.
    pub(crate) fn arm_cut(&mut self, resource: &'static Resource, times: usize) {
        self.cuts.insert(resource, times);
    }

    /// Disarms everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The fault for this request, the one armed first when there are several.
    pub(crate) fn take(&mut self, call: &Call) -> Option<Fault> {
        self.armed.retain(|armed| match &armed.fault {
            Fault::Hold(released) => armed.times > 0 && released.has_changed().is_ok(),
            Fault::Answer(_)
            | Fault::Expire
            | Fault::Delay(_)
            | Fault::Drop
            | Fault::LoseAnswer => armed.times > 0,
        });
        let armed = self
            .armed
            .iter_mut()
            .find(|armed| armed.target.meets(call))?;
        armed.times -= 1;
        Some(armed.fault.clone())
    }

    /// Whether an event of this kind is to be cut.
    pub(crate) fn cuts(&self, resource: &'static Resource) -> bool {
        self.cuts.get(resource).is_some_and(|times| *times > 0)
    }

    /// As [`Faults::cuts`], and counts it as done.
    pub(crate) fn take_cut(&mut self, resource: &'static Resource) -> bool {
        let Some(times) = self.cuts.get_mut(resource).filter(|times| **times > 0) else {
            return false;
        };
        *times -= 1;
        true
    }
}
