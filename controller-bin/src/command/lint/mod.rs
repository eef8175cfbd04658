//! `nginx-ingress-controller lint`: what is wrong with objects, for people, for CI and for code scanners.
//!
//! There are no rules here. Findings are the [diagnostics](ingress_model::Diagnostic) of a merge, what is wrong with
//! manifests themselves, what an API server or the webhook would refuse of them, what the renderer could not write down,
//! and what NGINX would refuse.

mod finding;
mod lost;
mod place;
mod sarif;
mod text;

use std::io::Write;

use clap::{Parser, ValueEnum};
use ingress_model::{annotation, manifests::review, odd_paths};
use nginx_render::syntax;

pub use self::finding::Level;
use self::{
    finding::{Finding, Report},
    place::Places,
};
use super::{
    CommandError, OutputArgs, Subcommand, Verdict,
    nginx::{NginxChoice, Target},
    output,
    progress::Progress,
    source::{self, Merged, Objects},
};
use crate::{args::Args, variables};

/// What is to be checked, and how it is told.
///
/// The flags of the controller have the same meaning here, so that those of a deployment can be taken over as they are.
/// The exit code is 0 when all is well, 1 when there are errors, and 2 when the input cannot be read.
#[derive(Clone, Debug, Parser)]
pub struct LintArgs {
    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// Which NGINX the objects are for.
    #[command(flatten)]
    pub nginx: NginxChoice,

    /// Let the exit code be 1 for these too
    #[arg(long, value_enum, value_name = "FINDINGS", help_heading = "Findings")]
    pub deny: Option<Denied>,

    /// The lowest level that is told
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        default_value = "warning",
        help_heading = "Findings"
    )]
    pub level: Level,

    /// How findings look.
    #[command(flatten)]
    pub output: OutputArgs<LintOutput>,
}

/// What is not let through although it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Denied {
    /// Warnings.
    Warnings,
}

/// How findings look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LintOutput {
    /// For people.
    #[default]
    Table,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, for code scanners.
    Sarif,
}

impl Subcommand for LintArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let report = self.report()?;
        let text = match self.output.output {
            LintOutput::Table => text::report(&report),
            LintOutput::Json => output::json(&report)?,
            LintOutput::Sarif => output::json(&sarif::log(&report))?,
        };
        output::write(to, &text)?;
        let warnings_count = self.deny == Some(Denied::Warnings);
        let is_fine = report.errors == 0 && !(warnings_count && report.warnings > 0);
        Ok(Verdict::fine_if(is_fine))
    }
}

impl LintArgs {
    fn report(&self) -> Result<Report, CommandError> {
        let progress = Progress::start("reading objects");
        let found = source::find(&self.controller)?;
        let target = self.nginx.target(&self.controller)?;
        progress.next("merging and rendering");
        let merged = found.merge(&self.controller);
        let mut findings = of_manifests(&found);
        findings.extend(merged.outcome.diagnostics.iter().map(Finding::diagnostic));
        findings.extend(deprecated(&found, &merged));
        findings.extend(unadmitted(&found, &merged));
        findings.extend(of_nginx(&found, &merged, &target)?);
        let places = Places::read(&found.files);
        findings.extend(slips(&places));
        for finding in &mut findings {
            finding.place = finding.place.take().or_else(|| {
                let object = finding.object.as_ref()?;
                places.find(object, finding.key.as_deref())
            });
        }
        let objects = count(&found);
        Ok(Report::new(findings, objects, target.summary(), self.level))
    }
}

/// How many objects there are.
fn count(found: &Objects) -> usize {
    let snapshot = &found.snapshot;
    snapshot.ingresses.len()
        + snapshot.ingress_classes.len()
        + snapshot.services.len()
        + snapshot.endpoint_slices.len()
        + snapshot.secrets.len()
        + snapshot.config_maps.len()
}

/// What is wrong with manifests as such.
fn of_manifests(found: &Objects) -> Vec<Finding> {
    let broken = found.broken.iter().map(Finding::broken);
    let repeated = found.repeated.iter().map(Finding::repeated);
    let unread = found.ignored.iter();
    let unread = unread.filter_map(|(file, ignored)| Finding::unread(file, ignored));
    broken.chain(repeated).chain(unread).collect()
}

/// What an API server would refuse of manifests.
fn slips(places: &Places) -> Vec<Finding> {
    let slips = places.texts().flat_map(|(file, text)| {
        let slips = review(file, text).into_iter();
        slips.map(|slip| Finding::slip(file, slip))
    });
    slips.collect()
}

/// Annotations under a former name.
fn deprecated(found: &Objects, merged: &Merged) -> Vec<Finding> {
    let prefix = format!("{}/", merged.options.annotations_prefix);
    let served = |(name, _): &(&_, &_)| merged.outcome.last_good.get(name).is_some();
    let ingresses = found.snapshot.ingresses.iter().filter(served);
    let annotations = ingresses.flat_map(|(name, ingress)| {
        let keys = ingress.metadata.annotations.iter().flatten();
        keys.map(move |(key, _)| (name, key))
    });
    let former = annotations.filter_map(|(name, key)| {
        let written = key.strip_prefix(&prefix)?;
        let info = annotation::find(written).filter(|info| info.name != written)?;
        Some(Finding::deprecated(name, key, info.name))
    });
    former.collect()
}

/// Paths that are served, but that the webhook does not let through once their Ingress changes.
fn unadmitted(found: &Objects, merged: &Merged) -> Vec<Finding> {
    let served = |(name, _): &(&_, &_)| merged.outcome.last_good.get(name).is_some();
    let ingresses = found.snapshot.ingresses.iter().filter(served);
    let odd = ingresses
        .flat_map(|(_, ingress)| odd_paths(ingress, &found.snapshot, &merged.options).into_iter());
    odd.map(|said| Finding::unadmitted(&said)).collect()
}

/// What the renderer could not write down, and what NGINX would refuse.
fn of_nginx(
    found: &Objects,
    merged: &Merged,
    target: &Target,
) -> Result<Vec<Finding>, CommandError> {
    let rendered = target.render(&merged.outcome.model)?;
    let config_map = merged.options.config_map.as_ref();
    let notes = rendered.notes.iter();
    let mut findings: Vec<_> = notes
        .map(|note| Finding::unrendered(&note.source, &note.text, config_map))
        .collect();
    let ingresses = &found.snapshot.ingresses;
    for fault in syntax::check(&rendered, &target.directives) {
        let mut finding = Finding::refused(&fault.source, &fault.reason, config_map);
        if let Some(variable) = &fault.variable {
            let ingress = fault.source.ingress.as_ref();
            let ingress = ingress.and_then(|name| ingresses.get(name));
            let key = ingress.and_then(|it| variables::annotation_with(it, variable));
            finding.key = key.map(str::to_owned).or(finding.key);
        }
        findings.push(finding);
    }
    Ok(findings)
}
