//! What is told to this machine only, at a port that others reach too.

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, Request},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// What a page of ours may do: show itself and its own styles, and ask for itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// Refuses clients of other machines, and pages in a browser that reach this one under a name of theirs. The router has
/// to be served with the addresses of its clients.
pub(crate) async fn refuse_strangers(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let is_near =
        peer.is_some_and(|ConnectInfo(address)| address.ip().to_canonical().is_loopback());
    if !is_near || !names_this_machine(request.headers()) {
        let text =
            "this is answered at 127.0.0.1 only; use kubectl port-forward, or kubectl exec\n";
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
