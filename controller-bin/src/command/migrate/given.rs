//! Flags as they were given, so that they can be read again behind others.

use std::{collections::BTreeSet, ffi::OsString};

use clap::{ArgMatches, CommandFactory, Id, parser::ValueSource};

use crate::args::Args;

/// The flags of the controller that stand on the command line, each as one word.
pub(super) fn flags(matches: &ArgMatches) -> Vec<OsString> {
    let known: BTreeSet<&Id> = matches.ids().collect();
    let command = Args::command();
    let arguments = command.get_arguments();
    let flags = arguments.filter_map(|argument| {
        let id = argument.get_id();
        let is_given = known.contains(id)
            && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        let long = argument.get_long().filter(|_| is_given)?;
        let value = matches.get_raw(id.as_str())?.next_back()?;
        let mut word = OsString::from(format!("--{long}="));
        word.push(value);
        Some(word)
    });
    flags.collect()
}
