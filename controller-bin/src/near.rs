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

/// What says that a request was passed on, by NGINX for one: by a name that leads back here, an `ExternalName` has it
/// pass on what anybody asks, under a `Host` that its Ingress chooses.
const PASSED_ON: [&str; 7] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
    "x-request-id",
    "x-sent-from",
];

/// Refuses clients of other machines, also through a proxy of this one, and pages in a browser that reach this one under
/// a name of theirs. The router has to be served with the addresses of its clients.
pub(crate) async fn refuse_strangers(request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    if !is_near(peer.map(|peer| peer.0), request.headers()) {
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

fn is_near(peer: Option<SocketAddr>, headers: &HeaderMap) -> bool {
    let is_local = peer.is_some_and(|address| address.ip().to_canonical().is_loopback());
    let is_direct = !PASSED_ON.iter().any(|name| headers.contains_key(*name));
    is_local && is_direct && names_this_machine(headers)
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
    fn what_a_proxy_of_this_machine_passes_on_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        let near = Some(SocketAddr::from(([127, 0, 0, 1], 1)));
        assert!(is_near(near, &headers));
        assert!(!is_near(
            Some(SocketAddr::from(([10, 0, 0, 1], 1))),
            &headers
        ));
        assert!(!is_near(None, &headers));
        for name in PASSED_ON {
            let mut headers = headers.clone();
            headers.insert(name, HeaderValue::from_static("nginx"));
            assert!(!is_near(near, &headers), "{name}");
        }
    }

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
