//! A page for people at `/ui`, on the port of the health check: what is served, what is not, and what happened last.
//!
//! ```text
//!  Observer ──▶ [board]: what happened ──▶ [page]: what of it is shown ──▶ templates/ui.html
//! ```
//!
//! The page is off unless `--enable-ui` is given, and answers only those who ask from the same machine, or through
//! `kubectl port-forward`. It shows no Secret's content, changes nothing, and loads nothing from elsewhere.

pub mod board;
mod page;
mod words;

use std::sync::Arc;

use askama::Template;
use axum::{
    Router,
    extract::{Query, State},
    http::StatusCode,
    middleware,
    response::{Html, IntoResponse, Response},
    routing::get,
};
use jiff::Timestamp;
use serde::Deserialize;

pub use self::board::Board;
use self::page::Page;
use crate::near;

/// What is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
struct Question {
    /// Only hosts, Ingresses and Services with this text.
    #[serde(default)]
    search: String,
}

/// Answers `/ui`. The router has to be served with the addresses of its clients.
pub fn router(board: Arc<Board>) -> Router {
    Router::new()
        .route("/ui", get(answer))
        .route_layer(middleware::from_fn(near::refuse_strangers))
        .with_state(board)
}

async fn answer(State(board): State<Arc<Board>>, Query(question): Query<Question>) -> Response {
    let health = board.health().check().await;
    let trouble = health.err().map(|illness| illness.to_string());
    let search = question.search.trim();
    let page = Page::new(
        &board,
        search,
        Timestamp::now(),
        trouble.unwrap_or_default(),
    );
    match page.render() {
        Ok(text) => Html(text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
