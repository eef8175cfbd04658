//! `nginx-ingress-controller render`: the files that NGINX would run with, without NGINX.

mod directory;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
};

use clap::Parser;
use nginx_render::{Rendered, Source, syntax};
use serde::Serialize;

use super::{
    CommandError, OutputArgs, Subcommand, Verdict,
    nginx::{NginxChoice, Target, TargetSummary},
    output,
    output::Output,
    progress::Progress,
    source,
    table::printable_lines,
};
use crate::args::Args;

/// What is to be rendered, and where to.
///
/// The flags of the controller have the same meaning here, so that those of a deployment can be taken over as they are.
/// The files are those that a controller with these flags writes, but for the certificate that it makes at its start.
/// The exit code is 1 when something was left out, a manifest that cannot be read or what cannot be rendered, or when NGINX
/// would refuse something.
#[derive(Clone, Debug, Parser)]
pub struct RenderArgs {
    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// Which NGINX the files are for.
    #[command(flatten)]
    pub nginx: NginxChoice,

    /// Write all files below this directory instead of nginx.conf to standard output
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub output_dir: Option<PathBuf>,

    /// How what is written to standard output looks.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What was rendered.
#[derive(Debug, Serialize)]
struct Report {
    /// Manifests that are left out: file, line and reason.
    broken_manifests: Vec<String>,
    /// The NGINX that the files are for.
    nginx: TargetSummary,
    /// Stands for all files.
    checksum: String,
    /// What could not be rendered as it was asked for.
    notes: Vec<Note>,
    /// What NGINX would refuse: a controller keeps it apart.
    refused: Vec<Note>,
    /// Where the files are, if they were written.
    directory: Option<PathBuf>,
    /// The files by their path below NGINX's directory; `None` for what only NGINX may read.
    files: BTreeMap<String, Option<String>>,
}

#[derive(Debug, Serialize)]
struct Note {
    ingress: Option<String>,
    host: Option<String>,
    path: Option<String>,
    what: &'static str,
    text: String,
}

/// The main file, below NGINX's directory.
const MAIN: &str = "nginx.conf";

impl Subcommand for RenderArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let progress = Progress::start("reading objects");
        let found = source::find(&self.controller)?;
        progress.next("merging and rendering");
        let target = self.nginx.target(&self.controller)?;
        let merged = found.merge(&self.controller);
        let rendered = target.render(&merged.outcome.model)?;
        if let Some(directory) = &self.output_dir {
            progress.next("writing");
            directory::write(directory, &rendered)?;
        }
        drop(progress);
        let report = Report {
            broken_manifests: found.broken_manifests(),
            nginx: target.summary(),
            checksum: rendered.checksum.to_string(),
            notes: notes(&rendered),
            refused: refused(&rendered, &target),
            directory: self.output_dir.clone(),
            files: files(&rendered),
        };
        match (self.output.output, &self.output_dir) {
            (Output::Json, _) => output::write(to, &output::json(&report)?)?,
            (Output::Table, None) => output::write_shown(to, &rendered.main)?,
            (Output::Table, Some(_)) => output::write(to, &written(&report))?,
        }
        if self.output.output == Output::Table {
            // Standard output has the configuration. Where nobody reads our warnings, the code has to do.
            let _written = io::stderr().write_all(left_out(&report).as_bytes());
        }
        let is_whole = report.broken_manifests.is_empty() && report.notes.is_empty();
        Ok(Verdict::fine_if(is_whole && report.refused.is_empty()))
    }
}

impl Note {
    fn new(source: &Source, text: &str) -> Self {
        Self {
            ingress: source.ingress.as_ref().map(ToString::to_string),
            host: source.host.as_ref().map(ToString::to_string),
            path: source.path.clone(),
            what: source.what,
            text: text.to_owned(),
        }
    }

    fn line(&self, kind: &str) -> String {
        let ingress = self.ingress.as_ref();
        let ingress = ingress.map(|name| format!("Ingress {name}: "));
        let (ingress, what) = (ingress.unwrap_or_default(), self.what);
        format!("{kind}: {ingress}{what}: {}\n", self.text)
    }
}

fn notes(rendered: &Rendered) -> Vec<Note> {
    let notes = rendered.notes.iter();
    notes
        .map(|note| Note::new(&note.source, &note.text))
        .collect()
}

fn refused(rendered: &Rendered, target: &Target) -> Vec<Note> {
    let faults = syntax::check(rendered, &target.directives);
    let faults = faults.iter();
    faults
        .map(|fault| Note::new(&fault.source, &fault.reason))
        .collect()
}

fn files(rendered: &Rendered) -> BTreeMap<String, Option<String>> {
    let main = (MAIN.to_owned(), Some(rendered.main.clone()));
    let others = rendered.files.iter().map(|(path, file)| {
        let text = || String::from_utf8_lossy(&file.bytes).into_owned();
        (path.to_string(), (!file.private).then(text))
    });
    others.chain([main]).collect()
}

/// Which files were written.
fn written(report: &Report) -> String {
    let directory = report.directory.clone().unwrap_or_default();
    let files = report.files.keys();
    let lines = files.map(|file| format!("{}\n", directory.join(file).display()));
    lines.collect()
}

/// What was left out, and what NGINX would refuse.
fn left_out(report: &Report) -> String {
    let broken = report.broken_manifests.iter();
    let broken = broken.map(|manifest| format!("left out: {manifest}\n"));
    let notes = report.notes.iter().map(|note| note.line("note"));
    let refused = report
        .refused
        .iter()
        .map(|note| note.line("nginx would refuse"));
    let text: String = broken.chain(notes).chain(refused).collect();
    printable_lines(&text)
}
