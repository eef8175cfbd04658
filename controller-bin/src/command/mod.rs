//! What the program is asked to do: to run the controller, or to explain what it would do.

pub mod explain;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, error::ErrorKind};

use crate::args::{Args, ExplainArgs, with_switches};

/// What the program is asked to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// To run the controller.
    Run(Box<Args>),
    /// `explain`.
    Explain(Box<ExplainArgs>),
}

impl Command {
    /// Reads the command line of this process; `--help` and errors end it, as the user expects.
    #[must_use]
    pub fn parse() -> Self {
        Self::try_parse_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Reads a command line, the program's name first. Without a subcommand, it is the controller's.
    ///
    /// ```
    /// use controller_bin::Command;
    ///
    /// let words = ["nginx-ingress-controller", "explain", "--manifests=.", "shop.test/cart"];
    /// let Command::Explain(explain) = Command::try_parse_from(words)? else { panic!() };
    /// assert_eq!(explain.target.as_deref(), Some("shop.test/cart"));
    /// # Ok::<_, clap::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong with it, ready to be shown; asking for help counts as an error here.
    pub fn try_parse_from<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let explain = with_switches(ExplainArgs::command())
            .name(explain::NAME)
            .about(explain::ABOUT);
        let mut command = with_switches(Args::command())
            .subcommand(explain)
            .args_conflicts_with_subcommands(true)
            .disable_help_subcommand(true);
        let matches = command.try_get_matches_from_mut(words)?;
        match matches.subcommand() {
            Some((explain::NAME, matches)) => {
                let explain = ExplainArgs::from_arg_matches(matches)?;
                explain
                    .controller
                    .check()
                    .map_err(|error| command.error(ErrorKind::ArgumentConflict, error))?;
                Ok(Self::Explain(Box::new(explain)))
            }
            _ => Ok(Self::Run(Box::new(Args::read(&matches, &mut command)?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_controller_mean_the_same_to_explain() {
        let flags = [
            "--manifests=x",
            "--ingress-class-by-name",
            "--configmap=a/b",
        ];
        let words = |first: &[&'static str]| [&["test"], first, &flags].concat();
        let Ok(Command::Run(args)) = Command::try_parse_from(words(&[])) else {
            panic!("no controller")
        };
        let Ok(Command::Explain(explain)) = Command::try_parse_from(words(&["explain"])) else {
            panic!("no explanation")
        };
        assert_eq!(args.options(), explain.controller.options());
        assert_eq!(
            args.kubernetes.manifests,
            explain.controller.kubernetes.manifests
        );
        assert!(explain.target.is_none() && !explain.config);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for words in [
            &["test", "shop.test"][..],
            &["test", "--manifests=x", "explain"],
            &["test", "explain", "a.test", "b.test"],
            &["test", "explain", "--manifests=x", "--kubeconfig=y"],
            &["test", "explain", "-o", "yaml"],
        ] {
            assert!(Command::try_parse_from(words).is_err(), "{words:?}");
        }
    }
}
