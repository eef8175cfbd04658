//! Whether the controller and its NGINX are well, as Kubernetes asks.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{RawQuery, State},
    http::StatusCode,
    routing::get,
};
use lua_sync_client::LuaSyncClient;
use serde::Serialize;
use tokio::time::timeout;

use crate::{build, nginx::process::Process, store::Store};

/// What the checks look at. Clones look at the same.
#[derive(Clone, Debug)]
pub struct Health(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    store: Arc<Store>,
    process: Arc<Process>,
    nginx: LuaSyncClient,
    patience: Duration,
    serving: AtomicBool,
    ending: AtomicBool,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Illness {
    /// The controller is about to end.
    Ending,
    /// Not every kind of object has been listed yet.
    NotListed(Vec<String>),
    /// NGINX does not serve any configuration yet.
    NotServing,
    /// The NGINX process is gone.
    NotRunning,
    /// NGINX was told nothing since it started.
    Untold,
    /// NGINX does not answer, or answers wrongly.
    Unanswered(String),
}

impl fmt::Display for Illness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ending => f.write_str("the controller is shutting down"),
            Self::NotListed(lists) => {
                write!(f, "waiting for the first list of {}", lists.join(", "))
            }
            Self::NotServing => f.write_str("the first configuration is not in force yet"),
            Self::NotRunning => f.write_str("nginx does not run"),
            Self::Untold => f.write_str("nginx has not been told its backends yet"),
            Self::Unanswered(why) => write!(f, "nginx does not answer: {why}"),
        }
    }
}

impl Health {
    /// Checks of an NGINX that may take so long to answer.
    #[must_use]
    pub fn new(
        store: Arc<Store>,
        process: Arc<Process>,
        nginx: LuaSyncClient,
        patience: Duration,
    ) -> Self {
        Self(Arc::new(Parts {
            store,
            process,
            nginx,
            patience,
            serving: AtomicBool::new(false),
            ending: AtomicBool::new(false),
        }))
    }

    /// Says that the first configuration is in force.
    pub fn set_serving(&self) {
        self.0.serving.store(true, Ordering::Relaxed);
    }

    /// Says that the controller is about to end, so that no new traffic is sent here.
    pub fn set_ending(&self) {
        self.0.ending.store(true, Ordering::Relaxed);
    }

    /// Looks whether all is well.
    ///
    /// # Errors
    ///
    /// The first thing that is not.
    pub async fn check(&self) -> Result<(), Illness> {
        let parts = &*self.0;
        if parts.ending.load(Ordering::Relaxed) {
            return Err(Illness::Ending);
        }
        if !parts.store.is_ready() {
            return Err(Illness::NotListed(parts.store.awaited()));
        }
        if !parts.serving.load(Ordering::Relaxed) {
            return Err(Illness::NotServing);
        }
        if parts.process.pid().is_none() {
            return Err(Illness::NotRunning);
        }
        match timeout(parts.patience, parts.nginx.initialized()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(Illness::Untold),
            Ok(Err(error)) => Err(Illness::Unanswered(error.to_string())),
            Err(_late) => Err(Illness::Unanswered(format!(
                "none within {:?}",
                parts.patience
            ))),
        }
    }
}

/// The name of the check that always succeeds.
const PING: &str = "ping";

/// The name of the check of the controller and its NGINX.
const CONTROLLER: &str = "nginx-ingress-controller";

/// The health check at `path`, its two parts below it, and `/build`. Merge metrics and whatever else is to be shown at
/// the same port into it. As with Kubernetes' own programs, `?verbose` lists the parts and `?exclude=NAME` leaves one out.
pub fn router(health: Health, path: &str) -> Router {
    let below = path.trim_end_matches('/');
    Router::new()
        .route(path, get(check))
        .route(&format!("{below}/{PING}"), get("ok"))
        .route(&format!("{below}/{CONTROLLER}"), get(check_controller))
        .route("/build", get(tell_build))
        .with_state(health)
}

async fn check(State(health): State<Health>, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let query = query.unwrap_or_default();
    let parameters = || query.split('&');
    let is_excluded =
        |name: &str| parameters().any(|word| word.strip_prefix("exclude=") == Some(name));
    let is_verbose = parameters().any(|word| word == "verbose" || word.starts_with("verbose="));
    let mut lines = Vec::new();
    let mut illness = None;
    for name in [PING, CONTROLLER] {
        if is_excluded(name) {
            lines.push(format!("[+]{name} excluded: ok"));
            continue;
        }
        let result = if name == CONTROLLER {
            health.check().await
        } else {
            Ok(())
        };
        match result {
            Ok(()) => lines.push(format!("[+]{name} ok")),
            Err(found) => {
                lines.push(format!("[-]{name} failed: {found}"));
                illness = Some(found);
            }
        }
    }
    let (status, verdict) = match illness {
        Some(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
        None => (StatusCode::OK, "passed"),
    };
    if status == StatusCode::OK && !is_verbose {
        return (status, "ok".to_owned());
    }
    lines.push(format!("healthz check {verdict}\n"));
    (status, lines.join("\n"))
}

async fn check_controller(State(health): State<Health>) -> (StatusCode, String) {
    match health.check().await {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(illness) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{CONTROLLER}: {illness}\n"),
        ),
    }
}

/// Which build this is.
#[derive(Debug, Serialize)]
struct Program {
    name: &'static str,
    release: &'static str,
    /// The commit.
    build: Option<&'static str>,
    repository: &'static str,
}

async fn tell_build() -> Json<Program> {
    Json(Program {
        name: CONTROLLER,
        release: build::RELEASE,
        build: build::COMMIT,
        repository: env!("CARGO_PKG_NAME"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use lua_sync_client::{Endpoint, Settings};

    use super::*;

    fn health(awaited: &[&str]) -> Health {
        let store = Store::awaiting(awaited.iter().map(|list| (*list).to_owned()));
        let process = Process::new(Path::new("/bin/false"), Path::new("/none"));
        let nginx = LuaSyncClient::new(Endpoint::Unix("/none".into()), Settings::default());
        Health::new(
            Arc::new(store),
            Arc::new(process),
            nginx,
            Duration::from_secs(1),
        )
    }

    #[tokio::test]
    async fn what_fails_first_is_named() {
        let ill = health(&["Ingress", "Service"]);
        let text = async || ill.check().await.unwrap_err().to_string();
        assert_eq!(
            text().await,
            "waiting for the first list of Ingress, Service"
        );
        for list in ["Ingress", "Service"] {
            ill.0.store.listed(list);
        }
        assert_eq!(text().await, "the first configuration is not in force yet");
        ill.set_serving();
        assert_eq!(text().await, "nginx does not run");
        ill.set_ending();
        assert_eq!(text().await, "the controller is shutting down");
    }

    async fn asked(health: Health, query: &str) -> (u16, String) {
        let query = (!query.is_empty()).then(|| query.to_owned());
        let (status, text) = check(State(health), RawQuery(query)).await;
        (status.as_u16(), text)
    }

    #[tokio::test]
    async fn illness_is_told_with_status_500() {
        let want = "[+]ping ok\n[-]nginx-ingress-controller failed: the first configuration is not in force yet\n\
                    healthz check failed\n";
        assert_eq!(asked(health(&[]), "").await, (500, want.to_owned()));
        let (status, text) = check_controller(State(health(&[]))).await;
        assert_eq!(
            (status.as_u16(), text.as_str()),
            (
                500,
                "nginx-ingress-controller: the first configuration is not in force yet\n"
            )
        );
    }

    #[tokio::test]
    async fn parts_can_be_left_out_and_listed() {
        let without = "exclude=nginx-ingress-controller";
        assert_eq!(asked(health(&[]), without).await, (200, "ok".to_owned()));
        let want = "[+]ping ok\n[+]nginx-ingress-controller excluded: ok\nhealthz check passed\n";
        let verbose = format!("verbose&{without}");
        assert_eq!(asked(health(&[]), &verbose).await, (200, want.to_owned()));
        assert_eq!(asked(health(&[]), "exclude=ping").await.0, 500);
    }
}
