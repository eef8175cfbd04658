//! `nginx-ingress-controller migrate`: what becomes of an installation of ingress-nginx here.
//!
//! It reads the objects, the ConfigMap and the arguments of ingress-nginx's own controller, merges them by the rule of
//! either controller about conflicts, and tells for each Ingress what stays the same, what differs on
//! purpose, and what is to be looked at. Nothing is changed.

mod difference;
mod given;
mod installation;
mod report;
mod text;

use std::{ffi::OsString, io::Write};

use clap::{ArgMatches, FromArgMatches, Parser};

use self::{installation::Installation, report::Report};
use super::{
    CommandError, OutputArgs, Subcommand, Verdict, nginx::NginxChoice, progress::Progress, source,
};
use crate::args::Args;

/// Where the installation is, and how the report looks.
///
/// Objects come from --manifests or from a cluster, as everywhere. The arguments of ingress-nginx are those of --args, or
/// of the Deployment or DaemonSet that runs it and that is looked for there; flags of the controller that are given here
/// count more than these. The exit code is 0 when nothing differs and nothing is to be checked, else 1.
#[derive(Clone, Debug, Parser)]
pub struct MigrateArgs {
    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// Which NGINX the objects are for.
    #[command(flatten)]
    pub nginx: NginxChoice,

    /// Arguments of ingress-nginx's controller, in one text
    #[arg(
        long,
        value_name = "ARGUMENTS",
        allow_hyphen_values = true,
        help_heading = "Migration"
    )]
    pub args: Option<String>,

    /// How the report looks.
    #[command(flatten)]
    pub output: OutputArgs,

    /// The flags of the controller as they were given.
    #[arg(skip)]
    given: Vec<OsString>,
}

impl MigrateArgs {
    /// Reads the command line, and remembers which flags were given.
    pub(super) fn read(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            given: given::flags(matches),
            ..Self::from_arg_matches(matches)?
        })
    }

    fn report(&self) -> Result<Report, CommandError> {
        let progress = Progress::start("looking for the installation");
        let installation = match &self.args {
            Some(text) => Installation::of_text(text, &self.given)?,
            None => Installation::find(&self.controller, &self.given)?,
        };
        progress.next("reading objects");
        let found = source::find(&installation.args)?;
        progress.next("merging and rendering");
        let target = self.nginx.target(&installation.args)?;
        report::make(&installation, &found, &target)
    }
}

impl Subcommand for MigrateArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let report = self.report()?;
        self.output.output.write(to, &report, text::report)?;
        Ok(Verdict::fine_if(report.is_the_same()))
    }
}
