//! `nginx-ingress-controller completions` and `man`: the command line for shells and for readers of manual pages.

use std::io::{self, Write};

use clap::Parser;
use clap_complete::Shell;

use super::{CommandError, NAME, Subcommand, Verdict, output, program};
use crate::args::Args;

/// For which shell completions are written.
#[derive(Clone, Debug, Parser)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// The manual page of the program, or of one of its subcommands.
#[derive(Clone, Debug, Parser)]
pub struct ManArgs {
    /// The subcommand; without it the program as a whole
    #[arg(value_name = "SUBCOMMAND")]
    pub subcommand: Option<String>,
}

impl Subcommand for CompletionsArgs {
    fn controller(&self) -> Option<&Args> {
        None
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program(), NAME, &mut script);
        output::write(to, &String::from_utf8_lossy(&script))?;
        Ok(Verdict::Fine)
    }
}

impl Subcommand for ManArgs {
    fn controller(&self) -> Option<&Args> {
        None
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let program = program().version(env!("CARGO_PKG_VERSION"));
        let command = match self.subcommand.as_deref() {
            None => program,
            Some(name) => {
                let found = program.find_subcommand(name).cloned();
                let found = found.ok_or_else(|| CommandError::Subcommand(name.to_owned()))?;
                found
                    .display_name(format!("{NAME}-{name}"))
                    .bin_name(format!("{NAME} {name}"))
                    .version(env!("CARGO_PKG_VERSION"))
            }
        };
        let page = page(command).map_err(|source| CommandError::Write { source })?;
        output::write(to, &page)?;
        Ok(Verdict::Fine)
    }
}

fn page(command: clap::Command) -> io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
