//! `nginx-ingress-controller general`: what the running NGINX keeps besides backends and certificates.

use std::io::Write;

use clap::{Parser, ValueEnum};
use serde_json::{Value, json};

use super::{CommandError, Subcommand, Verdict, local, output};
use crate::args::Args;

/// The flags that say where NGINX's status port is.
#[derive(Clone, Debug, Parser)]
pub struct GeneralArgs {
    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// How the answer looks
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "json",
        help_heading = "Output"
    )]
    pub output: GeneralOutput,
}

/// How the answer looks: there is nothing in it of which a table could be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GeneralOutput {
    /// One JSON value.
    #[default]
    Json,
}

impl Subcommand for GeneralArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let text = local::general(&self.controller)?;
        let general = text.map_or_else(
            || json!({}),
            |text| serde_json::from_str(&text).unwrap_or(Value::String(text)),
        );
        output::write(to, &output::json(&general)?)?;
        Ok(Verdict::Fine)
    }
}
