//! What only a running controller knows, at `/debug` of the port of the health check, for its own subcommands: which
//! objects it keeps apart and why, its flags, and what NGINX runs with. Clients of this machine alone are answered.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};

use crate::{
    dataplane::DataPlane,
    near,
    quarantine::{self, Quarantine, Record},
    view::ModelView,
};

/// Where it is told what is kept apart.
pub(crate) const ISOLATED: &str = "/debug/isolated";

/// Where it is told what NGINX runs with.
pub(crate) const MODEL: &str = "/debug/model";

/// Where it is told which flags it has.
pub(crate) const FLAGS: &str = "/debug/flags";

/// What is looked into.
#[derive(Clone, Debug)]
pub(crate) struct Insight {
    /// What NGINX runs with.
    pub(crate) plane: Arc<DataPlane>,
    /// What is kept apart.
    pub(crate) quarantine: Arc<Quarantine>,
    /// The values of flags.
    pub(crate) flags: Arc<BTreeMap<String, String>>,
}

/// Answers `/debug/isolated`, `/debug/model` and `/debug/flags`. The router has to be served with the addresses of its clients.
pub(crate) fn router(insight: Insight) -> Router {
    Router::new()
        .route(ISOLATED, get(isolated))
        .route(MODEL, get(model))
        .route(FLAGS, get(flags))
        .route_layer(middleware::from_fn(near::refuse_strangers))
        .with_state(insight)
}

async fn isolated(State(insight): State<Insight>) -> Json<Record> {
    Json(insight.quarantine.record())
}

async fn flags(State(insight): State<Insight>) -> Json<BTreeMap<String, String>> {
    Json(insight.flags.as_ref().clone())
}

/// The layout of the files that NGINX has loaded, and what it is told.
async fn model(State(insight): State<Insight>) -> Response {
    let Some((loaded, live)) = insight.plane.loaded().zip(insight.plane.live()) else {
        let text = "nginx does not run with any configuration yet\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let layout = quarantine::deny(&loaded.outcome.model.layout, &loaded.without);
    match serde_json::to_string_pretty(&ModelView::new(&layout, &live)) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text + "\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
