//! What keeps the controller from starting.

use std::io;

use sync_queue::RateError;

use crate::{
    admission::AdmissionError,
    cluster::ClusterError,
    manifests::ManifestsError,
    metrics::MetricsError,
    nginx::{configuration::ConfigurationError, program::ProgramError},
    preflight::PreflightError,
};

/// Why the controller does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// NGINX's program cannot be used.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// NGINX's directory cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The API server cannot be reached.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The directory of manifests cannot be used.
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    /// No certificate can be made.
    #[error("cannot make the certificate for hosts without one")]
    Certificate(#[from] rcgen::Error),
    /// Nobody can be asked by TLS.
    #[error("cannot ask for the certificates of issuers")]
    Tls(#[from] rustls::Error),
    /// The webhook cannot be served.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// Metrics cannot be gathered.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The rate of reloads is none.
    #[error("cannot use flag --sync-rate-limit")]
    Rate(#[from] RateError),
    /// NGINX could not do its work.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// Health checks cannot be answered.
    #[error("cannot listen for health checks at {address}")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Signals cannot be taken.
    #[error("cannot listen for signals")]
    Signals {
        /// What the system said.
        source: io::Error,
    },
}
