//! The controller.

pub mod args;
pub mod cluster;
pub mod manifests;
pub mod nginx;
mod selector;
pub mod store;
pub mod stored;
pub mod watch;

pub use args::Args;
