//! What a running NGINX makes of the configuration.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod access;
mod closed;
mod errors;
mod forwarding;
#[path = "../support/nginx.rs"]
mod nginx;
mod redirects;
mod strangers;
mod streams;
#[path = "../support/mod.rs"]
mod support;

use ingress_model::{
    Server,
    layout::{LocationSettings, Modifier},
};

use support::{location, server};

/// What locations send requests to unless they say otherwise.
const BACKEND: &[&str] = &["shop-cart-80"];

/// A host with one path, and that path's settings.
fn host(name: &str, settings: &LocationSettings) -> Server {
    server(name, [location(Modifier::Prefix, "/", settings)])
}
