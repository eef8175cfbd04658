//! WATCH: a replay from the history, then the changes as they happen, one JSON line each.

use std::{collections::VecDeque, io, mem, time::Duration};

use axum::body::Body;
use futures::stream;
use serde_json::{Value, json};
use tokio::{
    sync::watch::Receiver,
    time::{Instant, sleep_until},
};

use super::{
    error::ApiError,
    list::{Form, selector, show, wanted_version},
    request::Call,
    resource::Resource,
    selector::Selector,
    state::{Shared, State},
    store::{Change, Object, Signals},
};

/// Opens a watch. The answer is the body, which ends with the watch.
///
/// # Errors
/// 422 and 504 as for LIST. A version that is too old is not one of them: it is told by an ERROR
/// event in the stream, as the API server does.
pub(crate) fn open(
    shared: &Shared,
    resource: &'static Resource,
    call: &Call,
    form: Form,
) -> Result<Body, ApiError> {
    check_parameters(resource, call)?;
    let selector = selector(resource, call)?;
    let wanted = wanted_version(resource, call)?;
    let seconds = call.parameter("timeoutSeconds").parse::<u64>().unwrap_or(0);
    let deadline = (seconds > 0).then(|| Instant::now() + Duration::from_secs(seconds));
    let initial_events = match call.parameter("sendInitialEvents") {
        "" => wanted == 0,
        _ => call.flag("sendInitialEvents"),
    };
    let changes = shared.subscribe();
    let watch = shared.write(|state| {
        let current = state.store.version();
        if initial_events && wanted > current {
            return Err(ApiError::too_large(wanted, current));
        }
        let table = state.store.table_mut(resource);
        table.open_watches += 1;
        let mut watch = Watch {
            shared: shared.clone(),
            changes,
            resource,
            selector,
            form,
            bookmarks: call.flag("allowWatchBookmarks"),
            cursor: if wanted == 0 { current } else { wanted },
            signals: table.signals,
            lines: VecDeque::new(),
            deadline,
            phase: Phase::Open,
        };
        if initial_events {
            watch.cursor = current;
            for object in table
                .objects()
                .values()
                .filter(|object| watch.selector.matches(object))
            {
                watch
                    .lines
                    .push_back(Line::event("ADDED", &show(object, form)));
            }
            if call.flag("sendInitialEvents") && watch.bookmarks {
                let end = json!({"k8s.io/initial-events-end": "true"});
                watch.bookmark(Some(end));
            }
        } else if wanted != 0 && wanted < table.floor() {
            watch.fail(&ApiError::too_old(wanted, table.floor()));
        }
        Ok(watch)
    })?;
    Ok(body(watch))
}

/// The body of a watch that only says its version is too old.
pub(crate) fn expired(call: &Call) -> Body {
    let wanted = call.parameter("resourceVersion").parse().unwrap_or(0);
    let event = Line::event("ERROR", &ApiError::too_old(wanted, wanted + 1).to_status());
    Body::from(event.bytes)
}

/// One client's watch. It counts as open until it is dropped, which the HTTP server does as soon
/// as the stream has ended or the client has gone.
struct Watch {
    shared: Shared,
    changes: Receiver<u64>,
    resource: &'static Resource,
    selector: Selector,
    form: Form,
    bookmarks: bool,
    /// All changes up to this version have been turned into lines.
    cursor: u64,
    /// As they were when last looked at.
    signals: Signals,
    lines: VecDeque<Line>,
    deadline: Option<Instant>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Ends once all lines are sent.
    Ending,
    /// Stopped in the middle of a line; the connection breaks next.
    Cut,
    Over,
}

struct Line {
    bytes: Vec<u8>,
    /// Whether it tells of an object, not of a version or an error.
    about_object: bool,
}

impl Line {
    fn event(kind: &str, object: &Value) -> Self {
        let mut bytes = json!({"type": kind, "object": object})
            .to_string()
            .into_bytes();
        bytes.push(b'\n');
        Self {
            bytes,
            about_object: kind != "BOOKMARK" && kind != "ERROR",
        }
    }
}

impl Watch {
    async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        loop {
            if self.phase == Phase::Cut {
                // Lets the server flush the half line before the error ends the connection.
                tokio::task::yield_now().await;
                self.phase = Phase::Over;
                let cut = io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the test");
                return Some(Err(cut));
            }
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(self.send(line)));
            }
            match self.phase {
                Phase::Open => {}
                Phase::Ending | Phase::Cut | Phase::Over => return None,
            }
            self.changes.borrow_and_update();
            self.look();
            if self.lines.is_empty() && self.phase == Phase::Open {
                tokio::select! {
                    _ = self.changes.changed() => {}
                    () = reached(self.deadline) => self.phase = Phase::Ending,
                }
            }
        }
    }

    fn send(&mut self, line: Line) -> Vec<u8> {
        let resource = self.resource;
        let cut = line.about_object
            && self.shared.read(|state| state.faults.cuts(resource))
            && self.shared.write(|state| state.faults.take_cut(resource));
        let mut bytes = line.bytes;
        if cut {
            self.phase = Phase::Cut;
            bytes.truncate(bytes.len() / 2);
        }
        bytes
    }

    /// Turns what has happened since the last look into lines.
    fn look(&mut self) {
        let shared = self.shared.clone();
        shared.read(|state: &State| {
            let table = state.store.table(self.resource);
            let asked = mem::replace(&mut self.signals, table.signals);
            if table.has_lost_since(self.cursor) || asked.expire != table.signals.expire {
                self.fail(&ApiError::too_old(self.cursor, state.store.version()));
                return;
            }
            for change in table.changes_since(self.cursor) {
                self.lines.extend(self.line(change));
            }
            self.cursor = self.cursor.max(state.store.version());
            if asked.bookmark != table.signals.bookmark && self.bookmarks {
                self.bookmark(None);
            }
            if asked.end != table.signals.end {
                self.phase = Phase::Ending;
            }
        });
    }

    /// What a change looks like from here: an object that starts or stops matching the selector
    /// comes or goes, whatever has really happened to it.
    fn line(&self, change: &Change) -> Option<Line> {
        let selected = |object: &&Object| self.selector.matches(object);
        let before = change.before.as_ref().filter(selected);
        let after = change.after.as_ref().filter(selected);
        match (before, after) {
            (None, None) => None,
            (None, Some(after)) => Some(Line::event("ADDED", &show(after, self.form))),
            (Some(_), Some(after)) => Some(Line::event("MODIFIED", &show(after, self.form))),
            (Some(before), None) => {
                let mut last = show(before, self.form);
                last["metadata"]["resourceVersion"] = json!(change.version.to_string());
                Some(Line::event("DELETED", &last))
            }
        }
    }

    fn bookmark(&mut self, annotations: Option<Value>) {
        let mut bookmark = show(
            &json!({
                "kind": self.resource.kind,
                "apiVersion": self.resource.api_version(),
                "metadata": {"creationTimestamp": null, "resourceVersion": self.cursor.to_string()},
            }),
            self.form,
        );
        if let Some(annotations) = annotations {
            bookmark["metadata"]["annotations"] = annotations;
        }
        self.lines.push_back(Line::event("BOOKMARK", &bookmark));
    }

    fn fail(&mut self, error: &ApiError) {
        self.lines
            .push_back(Line::event("ERROR", &error.to_status()));
        self.phase = Phase::Ending;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared
            .write(|state| state.store.table_mut(self.resource).open_watches -= 1);
    }
}

fn body(watch: Watch) -> Body {
    Body::from_stream(stream::unfold(watch, |mut watch| async move {
        watch.next().await.map(|chunk| (chunk, watch))
    }))
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn check_parameters(resource: &Resource, call: &Call) -> Result<(), ApiError> {
    let asked = call.query.contains_key("sendInitialEvents");
    let cause = match (asked, call.parameter("resourceVersionMatch")) {
        (false, "") | (true, "NotOlderThan") => return Ok(()),
        (true, _) => {
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting \
             resourceVersionMatch to NotOlderThan"
        }
        (false, _) => {
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless \
             sendInitialEvents is provided"
        }
    };
    Err(ApiError::invalid(resource, "", cause))
}
