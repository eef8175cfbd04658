//! The command line of the subcommand `explain`.

use clap::{Parser, ValueEnum};

use super::{Args, value};

/// What is to be explained, and how it is shown.
///
/// The flags of the controller have the same meaning here, so that those of a deployment can be taken over as they are.
#[derive(Clone, Debug, Parser)]
pub struct ExplainArgs {
    /// A host or a request, perhaps as a URL; without it all hosts and paths
    #[arg(value_name = "HOST[/PATH]")]
    pub target: Option<String>,

    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// Explain the keys of the ConfigMap that --configmap names
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch, help_heading = "Explanation")]
    pub config: bool,

    /// Show settings that have their defaults too
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch, help_heading = "Explanation")]
    pub defaults: bool,

    /// How the explanation looks
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Explanation"
    )]
    pub output: Output,
}

/// How an explanation looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// One JSON object, with all settings.
    Json,
}
