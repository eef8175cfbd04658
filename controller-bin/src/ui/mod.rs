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

use std::{net::SocketAddr, sync::Arc};

use askama::Template;
use axum::{
    Router,
    extract::{ConnectInfo, Query, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use jiff::Timestamp;
use serde::Deserialize;

pub use self::board::Board;
use self::page::Page;

/// What the page may do: show itself and its own styles, and ask for itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

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
        .layer(middleware::from_fn(refuse_strangers))
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

/// Refuses clients of other machines, and pages in a browser that reach this one under a name of theirs.
async fn refuse_strangers(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let is_near =
        peer.is_some_and(|ConnectInfo(address)| address.ip().to_canonical().is_loopback());
    if !is_near || !names_this_machine(request.headers()) {
        let text = "the status page answers at 127.0.0.1 only; use kubectl port-forward\n";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for (host, want) in [
            ("localhost", true),
            ("localhost:10254", true),
            ("127.0.0.1:1", true),
            ("[::1]:10254", true),
            ("[::1]", true),
            ("evil.test:10254", false),
            ("127.0.0.1.evil.test", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            assert_eq!(names_this_machine(&headers), want, "{host}");
        }
        assert!(!names_this_machine(&HeaderMap::new()));
    }
}
