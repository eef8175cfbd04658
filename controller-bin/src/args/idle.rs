//! Flags that are read so that existing manifests go on working, and that nothing acts on.

use std::collections::BTreeSet;

use clap::{ArgMatches, CommandFactory, parser::ValueSource};

use super::Args;

/// What the help says of them.
pub(super) const MARK: &str = " (without effect)";

const KLOG: &str = "all lines go to standard error, as --log-format says";

const HISTOGRAMS: &str =
    "the text format has no native histograms; the buckets of the other flags are always there";

const PROFILER: &str = "it is Go's profiler; perf and the like work without one";

/// Each with the reason.
const FLAGS: &[(&str, &str)] = &[
    (
        "dynamic_configuration_retries",
        "what could not be told is told again until it is",
    ),
    ("bucket_factor", HISTOGRAMS),
    ("max_buckets", HISTOGRAMS),
    ("profiling", PROFILER),
    ("profiler_port", PROFILER),
    ("profiler_address", PROFILER),
    ("internal_logger_address", "there is no chroot image"),
    ("vmodule", KLOG),
    ("logtostderr", KLOG),
    ("alsologtostderr", KLOG),
    ("stderrthreshold", KLOG),
    ("log_dir", KLOG),
    ("log_file", KLOG),
    ("log_file_max_size", KLOG),
    ("add_dir_header", KLOG),
    ("skip_headers", KLOG),
    ("skip_log_headers", KLOG),
    ("one_output", KLOG),
    ("log_backtrace_at", KLOG),
    (
        "disable_full_test",
        "the webhook always renders the hosts of the Ingress only, and merges it with all others",
    ),
];

/// Why nothing acts on a flag; `None` for those that do something. `id` is the flag with `_` for `-`.
pub(super) fn reason(id: &str) -> Option<&'static str> {
    let mut flags = FLAGS.iter();
    flags
        .find(|(flag, _)| *flag == id)
        .map(|(_, reason)| *reason)
}

/// Those that a command line has.
pub(super) fn given(matches: &ArgMatches) -> Vec<String> {
    let given: BTreeSet<&str> = matches
        .ids()
        .map(clap::Id::as_str)
        .filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine))
        .collect();
    let command = Args::command();
    command
        .get_arguments()
        .filter(|arg| {
            let id = arg.get_id().as_str();
            given.contains(id) && reason(id).is_some()
        })
        .filter_map(|arg| arg.get_long())
        .map(|long| format!("--{long}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_flags_only() {
        let command = Args::command();
        for (id, _) in FLAGS {
            assert!(
                command.get_arguments().any(|arg| arg.get_id() == id),
                "{id}"
            );
        }
    }
}
