//! An endpoint that tells what it is told.

use axum::{Router, http::HeaderMap};
use tokio::{net::TcpListener, task::JoinHandle};

/// An endpoint that answers with what it is told about the client: address, address in `X-Forwarded-For`, scheme, port.
pub(crate) async fn echo() -> (u16, JoinHandle<()>) {
    let router = Router::new().fallback(async |headers: HeaderMap| {
        let names = [
            "x-real-ip",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-forwarded-port",
        ];
        let values = names.map(|name| {
            let value = headers.get(name);
            value
                .map_or("none", |value| value.to_str().expect("NGINX sends text"))
                .to_owned()
        });
        values.join(" ")
    });
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("there are free ports");
    let port = listener.local_addr().expect("it is bound").port();
    let serving = tokio::spawn(async move {
        axum::serve(listener, router).await.expect("it never ends");
    });
    (port, serving)
}
