//! The controller.

pub mod args;
pub mod certificate;
pub mod cluster;
pub mod health;
pub mod logging;
pub mod manifests;
pub mod nginx;
mod selector;
pub mod shutdown;
pub mod store;
pub mod stored;
pub mod watch;

pub use args::Args;
