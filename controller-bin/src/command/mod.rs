//! What the program is asked to do: to run the controller, or to look at something.
//!
//! Each [`Subcommand`] reads objects as the controller does (`source`), asks the same rules, and writes what it found
//! as a table for people or as JSON for tools. None of them decides anything itself, and none changes a cluster.
//!
//! Exit codes are the same for all: 0 when all is well, 1 when there is something to see to (nothing serves the request,
//! there are findings, the two sides differ, what was asked for does not exist), 2 when the input cannot be read.

pub mod backends;
pub mod certs;
pub mod conf;
pub mod diff;
pub mod endpoints;
mod error;
pub mod explain;
pub mod general;
pub mod ingresses;
pub mod lint;
mod listing;
mod local;
pub mod migrate;
mod nginx;
mod output;
mod progress;
mod refused;
pub mod render;
pub mod shell;
mod source;
mod table;
mod version;

use std::{
    ffi::OsString,
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use clap::{
    ArgMatches, CommandFactory, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};

use self::{
    backends::BackendsArgs,
    certs::CertsArgs,
    conf::ConfArgs,
    diff::DiffArgs,
    endpoints::EndpointsArgs,
    explain::ExplainArgs,
    general::GeneralArgs,
    ingresses::IngressesArgs,
    lint::LintArgs,
    migrate::MigrateArgs,
    render::RenderArgs,
    shell::{CompletionsArgs, ManArgs},
};
use crate::{
    args::{Args, with_switches},
    chain::chain,
    logging,
};

pub use self::{
    error::CommandError,
    listing::ListingArgs,
    local::AskError,
    nginx::{AssumedNginx, NginxChoice},
    output::{Output, OutputArgs},
    refused::RefusalArgs,
};

/// What the program is asked to do.
#[derive(Debug)]
pub enum Command {
    /// To run the controller.
    Run(Box<Args>),
    /// To look at something.
    Look(Box<dyn Subcommand>),
}

/// A subcommand with its command line.
pub trait Subcommand: fmt::Debug {
    /// The flags of the controller that stand behind it; `None` where they would mean nothing.
    fn controller(&self) -> Option<&Args>;

    /// Writes what there is to tell.
    ///
    /// # Errors
    ///
    /// When the input cannot be read, or nothing can be written.
    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError>;
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Fine,
    /// There is something to see to.
    Findings,
}

impl Verdict {
    /// [`Verdict::Fine`] when it is.
    #[must_use]
    pub fn fine_if(is_fine: bool) -> Self {
        if is_fine { Self::Fine } else { Self::Findings }
    }
}

impl dyn Subcommand {
    /// Does it, for the code with which the program ends.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        let logging = self.controller().map(|args| &args.logging);
        if let Some(logging) = logging.filter(|logging| logging.verbosity > 0) {
            logging::start(logging);
        }
        match self.tell(&mut io::stdout().lock()) {
            Ok(Verdict::Fine) => ExitCode::SUCCESS,
            Ok(Verdict::Findings) => ExitCode::FAILURE,
            Err(error) => {
                // Where nobody reads our errors, the code has to do.
                let _written = writeln!(io::stderr(), "{}", chain(&error));
                ExitCode::from(error.code())
            }
        }
    }
}

/// The program's name.
const NAME: &str = "nginx-ingress-controller";

/// How a subcommand is called.
struct Entry {
    name: &'static str,
    about: &'static str,
    command: fn() -> clap::Command,
    read: Read,
}

type Read = fn(&ArgMatches) -> Result<Box<dyn Subcommand>, clap::Error>;

const fn entry<T>(name: &'static str, about: &'static str) -> Entry
where
    T: CommandFactory + FromArgMatches + Subcommand + 'static,
{
    Entry {
        name,
        about,
        command: T::command,
        read: |matches| Ok(Box::new(T::from_arg_matches(matches)?)),
    }
}

/// All subcommands, as the help lists them.
const SUBCOMMANDS: &[Entry] = &[
    entry::<ExplainArgs>(
        "explain",
        "Explains which server, location and endpoints a request gets and why, and what is not served",
    ),
    entry::<LintArgs>(
        "lint",
        "Checks all objects: what is not served, invalid, deprecated, in conflict or misspelt",
    ),
    entry::<RenderArgs>("render", "Renders NGINX's files without NGINX"),
    Entry {
        name: "diff",
        about: "Compares manifests, a cluster or the running NGINX: what changes, and whether it reloads",
        command: DiffArgs::command,
        read: |matches| Ok(Box::new(DiffArgs::parsed(matches)?)),
    },
    Entry {
        name: "migrate",
        about: "Tells what becomes of an installation of ingress-nginx here",
        command: MigrateArgs::command,
        read: |matches| Ok(Box::new(MigrateArgs::read(matches)?)),
    },
    entry::<IngressesArgs>(
        "ingresses",
        "Lists all Ingresses, and whether they are served",
    ),
    entry::<EndpointsArgs>(
        "endpoints",
        "Lists the endpoints of the Services that are served",
    ),
    entry::<BackendsArgs>(
        "backends",
        "Shows the backends that the running NGINX was told",
    ),
    entry::<CertsArgs>(
        "certs",
        "Shows the certificate that the running NGINX has for a host",
    ),
    entry::<ConfArgs>(
        "conf",
        "Shows the configuration in --nginx-dir, or one of its servers",
    ),
    entry::<GeneralArgs>("general", "Shows what the running NGINX keeps besides"),
    entry::<CompletionsArgs>("completions", "Writes completions for a shell"),
    entry::<ManArgs>("man", "Writes the manual page"),
];

/// The command line of the whole program.
fn program() -> clap::Command {
    let subcommands = SUBCOMMANDS.iter().map(|entry| {
        with_switches((entry.command)())
            .name(entry.name)
            .about(entry.about)
    });
    with_switches(Args::command())
        .subcommands(subcommands)
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
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
    /// let Command::Look(explain) = Command::try_parse_from(words)? else { panic!() };
    /// let mut explanation = Vec::new();
    /// explain.tell(&mut explanation)?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
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
        let mut program = program();
        let matches = program.try_get_matches_from_mut(words);
        let matches = matches.map_err(|error| stray_word(&error, &mut program).unwrap_or(error))?;
        let called = matches.subcommand().and_then(|(name, matches)| {
            let entry = SUBCOMMANDS.iter().find(|entry| entry.name == name)?;
            Some((entry, matches))
        });
        let Some((entry, matches)) = called else {
            return Ok(Self::Run(Box::new(Args::read(&matches, &mut program)?)));
        };
        let subcommand = (entry.read)(matches)?;
        if let Some(args) = subcommand.controller() {
            args.check()
                .map_err(|error| program.error(ErrorKind::ArgumentConflict, error))?;
        }
        Ok(Self::Look(subcommand))
    }
}

/// What is said of a word that stands behind flags of the controller. The parser takes each for a subcommand, of which it
/// says that flags exclude it; what was meant is more likely a flag's value or a subcommand with flags behind it.
fn stray_word(error: &clap::Error, program: &mut clap::Command) -> Option<clap::Error> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    if error.kind() != ErrorKind::ArgumentConflict {
        return None;
    }
    let text = if program.find_subcommand(word).is_some() {
        format!("the flags of a subcommand stand behind it: {NAME} {word} [OPTIONS]")
    } else {
        format!(
            "unexpected word '{word}': a flag's value follows an equals sign, and the controller takes no arguments"
        )
    };
    Some(program.error(ErrorKind::UnknownArgument, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: [&str; 3] = [
        "--manifests=x",
        "--ingress-class-by-name",
        "--configmap=a/b",
    ];

    #[test]
    fn flags_of_the_controller_mean_the_same_to_each_subcommand() {
        let words = |first: &[&'static str]| [&["test"], first, &FLAGS].concat();
        let Ok(Command::Run(args)) = Command::try_parse_from(words(&[])) else {
            panic!("no controller")
        };
        let mut compared = 0;
        for entry in SUBCOMMANDS {
            let Ok(Command::Look(subcommand)) = Command::try_parse_from(words(&[entry.name]))
            else {
                // It has arguments that cannot be left out, or no flags of the controller at all.
                continue;
            };
            let Some(controller) = subcommand.controller() else {
                continue;
            };
            compared += 1;
            assert_eq!(args.options(), controller.options(), "{}", entry.name);
            assert_eq!(
                args.kubernetes.manifests, controller.kubernetes.manifests,
                "{}",
                entry.name
            );
        }
        assert!(compared > 0);
    }

    #[test]
    fn the_program_is_sound() {
        program().debug_assert();
    }

    #[test]
    fn words_behind_flags_are_told_of() {
        let refusal = |words: &[&str]| {
            let words = [&["test"], words].concat();
            Command::try_parse_from(words).unwrap_err().to_string()
        };
        let stray = refusal(&["--enable-metrics", "false"]);
        assert!(
            stray.starts_with("error: unexpected word 'false'"),
            "{stray}"
        );
        let behind = refusal(&["--manifests=x", "explain"]);
        assert!(behind.contains("explain [OPTIONS]"), "{behind}");
        let unknown = refusal(&["explian"]);
        assert!(unknown.contains("'explain'"), "{unknown}");
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
