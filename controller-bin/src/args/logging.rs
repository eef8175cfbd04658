//! Flags about logs: our own, and klog's, which manifests for ingress-nginx may carry.

use clap::ValueEnum;

use super::value::{self, Given};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line; lines of NGINX itself stay as NGINX writes them.
    Json,
}

/// Logs.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Logs")]
#[expect(clippy::struct_excessive_bools, reason = "they are klog's switches")]
pub struct LoggingArgs {
    /// How log lines look
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub log_format: LogFormat,

    /// How much is logged: 0 to 5, where NGINX logs all it can, too; RUST_LOG overrides it for the controller
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub verbosity: i32,

    /// Verbosity by file (klog)
    #[arg(long, value_name = "PATTERNS", default_value = "", value_parser = value::text, hide = true)]
    pub vmodule: Given<String>,

    /// Log to standard error (klog)
    #[arg(long, default_value = "true", action = clap::ArgAction::Set, value_parser = value::switch, hide = true)]
    pub logtostderr: bool,

    /// Log to standard error as well (klog)
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch, hide = true)]
    pub alsologtostderr: bool,

    /// Least severity for standard error (klog)
    #[arg(long, value_name = "SEVERITY", default_value = "2", hide = true)]
    pub stderrthreshold: String,

    /// Directory of log files (klog)
    #[arg(long = "log_dir", value_name = "DIR", default_value = "", value_parser = value::text, hide = true)]
    pub log_dir: Given<String>,

    /// The log file (klog)
    #[arg(long = "log_file", value_name = "FILE", default_value = "", value_parser = value::text, hide = true)]
    pub log_file: Given<String>,

    /// Largest log file, in megabytes (klog)
    #[arg(
        long = "log_file_max_size",
        value_name = "MEGABYTES",
        default_value_t = 1800,
        hide = true
    )]
    pub log_file_max_size: u64,

    /// Name the directory of the source file in each line (klog)
    #[arg(long = "add_dir_header", default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch, hide = true)]
    pub add_dir_header: bool,

    /// Leave out the prefix of each line (klog)
    #[arg(long = "skip_headers", default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch, hide = true)]
    pub skip_headers: bool,

    /// Leave out the head of each log file (klog)
    #[arg(long = "skip_log_headers", default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch, hide = true)]
    pub skip_log_headers: bool,

    /// Write each line for its own severity only (klog)
    #[arg(long = "one_output", default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch, hide = true)]
    pub one_output: bool,

    /// Log a backtrace at this place (klog)
    #[arg(
        long = "log_backtrace_at",
        value_name = "FILE:LINE",
        default_value = ":0",
        hide = true
    )]
    pub log_backtrace_at: String,
}
