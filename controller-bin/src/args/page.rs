//! The page about flags, from the command line's own definition.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory};

use super::{Args, idle, with_switches};

const INTRODUCTION: &str = "\
# Flags

Flags of `nginx-ingress-controller`, which are those of ingress-nginx v1.15 and a few more. This page is generated from
the definition of the command line; a test keeps the two equal.

Each flag can also be given by an environment variable where one is named. A switch may be written without a value,
which means true; a value needs the equals sign: `--enable-metrics=false`. Flags without effect are read so that existing
manifests go on working, and are named in the log when they are given.
";

/// The documentation of all flags, in Markdown.
#[must_use]
pub fn flags_markdown() -> String {
    let command = with_switches(Args::command());
    let mut page = INTRODUCTION.to_owned();
    let mut title = None;
    for arg in command.get_arguments() {
        let Some(long) = arg.get_long() else { continue };
        let heading = arg.get_help_heading().unwrap_or("Other");
        if title != Some(heading) {
            title = Some(heading);
            // Writing to a text cannot fail.
            let _written = write!(
                page,
                "\n## {heading}\n\n| flag | value | default | acted on | meaning |\n|---|---|---|---|---|\n"
            );
        }
        let reason = idle::reason(arg.get_id().as_str());
        let acted_on = reason.map_or_else(|| "yes".to_owned(), |reason| format!("no: {reason}"));
        let _written = writeln!(
            page,
            "| `--{long}` | {} | {} | {acted_on} | {} |",
            value(arg),
            default(arg),
            meaning(arg),
        );
    }
    page
}

fn value(arg: &Arg) -> String {
    let possible = arg.get_possible_values();
    let possible: Vec<_> = possible
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !possible.is_empty() {
        return possible.join(", ");
    }
    let names = arg.get_value_names().unwrap_or_default();
    match names.first() {
        Some(name) => format!("`{}`", cell(name)),
        None => "switch".to_owned(),
    }
}

fn default(arg: &Arg) -> String {
    let values: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    match values.join(",").as_str() {
        "" => "none".to_owned(),
        text => format!("`{}`", cell(text)),
    }
}

fn meaning(arg: &Arg) -> String {
    let text = arg.get_long_help().or_else(|| arg.get_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    // A column of its own says so.
    let text = text.strip_suffix(idle::MARK).unwrap_or(&text);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let variable = arg.get_env().map(|name| name.to_string_lossy());
    let variable = variable.map_or_else(String::new, |name| format!(" (`{name}`)"));
    let stop = if text.ends_with('.') { "" } else { "." };
    format!("{}{variable}{stop}", cell(&text))
}

/// A text as it may stand in a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_of_a_list_is_all_of_it() {
        let row = |flag: &str| {
            let page = flags_markdown();
            let row = page.lines().find(|line| line.contains(flag));
            row.map(ToOwned::to_owned).unwrap_or_default()
        };
        assert!(
            row("`--size-buckets`").contains("| `10,100,1000,10000,100000,1000000,10000000` |")
        );
        assert!(
            row("`--time-buckets`").contains("| `0.005,0.01,0.025,0.05,0.1,0.25,0.5,1,2.5,5,10` |")
        );
        assert!(row("`--manifests`").contains("| none |"));
    }
}
