//! The Lua modules inside a real NGINX, seen from outside: the HTTP interface of the status port, and what requests and
//! TLS handshakes make of what was posted there.
//!
//! Each test starts an NGINX of its own with `tests/lua/nginx.conf`. They fail when there is no `nginx` with the Lua
//! module.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "test code may panic and say why, also outside of test functions"
)]

mod affinity;
mod canary;
mod certificates;
mod ewma;
mod external_names;
mod hashing;
mod metrics;
mod ocsp;
mod routing;
mod support;
mod units;
mod wire;
