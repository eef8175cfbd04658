//! A small back end: answers each request with its name, the method, the path and what the proxy says of the client.
//!
//! ```text
//! cargo run -p examples --example backend -- storefront 127.0.0.1:9001
//! ```

use std::{error::Error, process::ExitCode};

use axum::{
    Router,
    http::{HeaderMap, Method, Uri},
};

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: backend NAME ADDRESS:PORT".into());
    };
    let app = Router::new().fallback(
        move |method: Method, uri: Uri, headers: HeaderMap| async move {
            let header = |name: &str| {
                headers
                    .get(name)
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or("-")
                    .to_owned()
            };
            let (host, scheme) = (header("host"), header("x-forwarded-proto"));
            format!("{name}: {method} {uri} for {host} over {scheme}\n")
        },
    );
    let listener = tokio::net::TcpListener::bind(&address).await?;
    axum::serve(listener, app).await?;
    Ok(ExitCode::SUCCESS)
}
