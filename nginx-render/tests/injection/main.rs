//! No text that a user writes adds, removes or changes a directive: neither one in an Ingress, nor one in a Secret or a
//! ConfigMap that it refers to, nor one in the controller's ConfigMap, nor one that got past the checks of the rules.
//!
//! What is rendered is read by [a parser](grammar) that shares nothing with the renderer, and by NGINX itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod config_map;
mod cves;
mod every_place;
mod grammar;
mod hostile;
mod layouts;
mod nginx;
mod objects;
mod places;
#[path = "../support/annotations.rs"]
#[allow(dead_code, reason = "these tests need a part of it")]
mod rows;
#[path = "../support/mod.rs"]
mod support;
