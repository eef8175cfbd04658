//! Flags about metrics.

use super::{
    ArgsError,
    value::{self, Given},
};

/// Metrics.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Metrics")]
pub struct MetricsArgs {
    /// Gather metrics of NGINX and the controller
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub enable_metrics: bool,

    /// Tell requests of different hosts apart
    #[arg(long, default_value = "true", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub metrics_per_host: bool,

    /// Count requests for hosts that no Ingress names as well
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub metrics_per_undefined_host: bool,

    /// Show classes of status codes such as 2xx instead of codes
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub report_status_classes: bool,

    /// Metrics of requests that are not gathered, separated by commas
    #[arg(long, value_name = "NAMES", default_value = "", value_parser = value::text)]
    pub exclude_socket_metrics: Given<String>,

    /// Most requests that a worker reports at once
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub monitor_max_batch_size: u32,

    /// Most label sets that metrics of requests may have, and those of the webhook; 0: no bound
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    pub metrics_max_series: usize,

    /// Upper bounds of the buckets of times, in seconds
    #[arg(long, value_name = "BOUNDS", value_delimiter = ',',
          default_values_t = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])]
    pub time_buckets: Vec<f64>,

    /// Upper bounds of the buckets of the lengths of requests and responses
    #[arg(long, value_name = "BOUNDS", value_delimiter = ',',
          default_values_t = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0])]
    pub length_buckets: Vec<f64>,

    /// Upper bounds of the buckets of the bytes sent
    #[arg(long, value_name = "BOUNDS", value_delimiter = ',',
          default_values_t = [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0, 10_000_000.0])]
    pub size_buckets: Vec<f64>,

    /// Growth of the buckets of native histograms; above 1 turns these on
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0)]
    pub bucket_factor: f64,

    /// Most buckets of a native histogram
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub max_buckets: u32,
}

impl MetricsArgs {
    pub(super) fn check(&self) -> Result<(), ArgsError> {
        if self.metrics_per_undefined_host && !self.metrics_per_host {
            return Err(ArgsError::Needs(
                "--metrics-per-undefined-host",
                "--metrics-per-host",
            ));
        }
        Ok(())
    }
}
