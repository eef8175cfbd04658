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
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use lua_sync_client::LuaSyncClient;
use serde::Serialize;
use tokio::time::timeout;

use crate::{nginx::process::Process, store::Store};

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

/// The health check at `path`, and `/build`. Merge metrics and whatever else is to be shown at the same port into it.
pub fn router(health: Health, path: &str) -> Router {
    let ping = format!("{}/ping", path.trim_end_matches('/'));
    Router::new()
        .route(path, get(check))
        .route(&ping, get("ok"))
        .route("/build", get(build))
        .with_state(health)
}

async fn check(State(health): State<Health>) -> Response {
    match health.check().await {
        Ok(()) => "ok".into_response(),
        Err(illness) => {
            let text = format!("nginx-ingress-controller: {illness}\n");
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

/// Which build this is.
#[derive(Debug, Serialize)]
struct Build {
    name: &'static str,
    release: &'static str,
}

async fn build() -> Json<Build> {
    Json(Build {
        name: "nginx-ingress-controller",
        release: env!("CARGO_PKG_VERSION"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use axum::{body::to_bytes, http::StatusCode};
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

    #[tokio::test]
    async fn illness_is_told_with_status_500() {
        let response = check(State(health(&[]))).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = to_bytes(response.into_body(), 1000).await.unwrap();
        assert_eq!(
            body,
            "nginx-ingress-controller: the first configuration is not in force yet\n"
        );
    }
}
