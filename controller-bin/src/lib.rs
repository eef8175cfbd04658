//! The controller.

pub mod args;
pub mod certificate;
mod chain;
pub mod cluster;
mod culprit;
pub mod dataplane;
pub mod health;
pub mod load;
pub mod logging;
pub mod manifests;
pub mod metrics;
pub mod nginx;
pub mod observe;
pub mod quarantine;
mod run;
pub mod shutdown;
pub mod store;
pub mod stored;
pub mod stream_files;
pub mod sync;
pub mod watch;

pub use args::Args;
pub use run::Error;
