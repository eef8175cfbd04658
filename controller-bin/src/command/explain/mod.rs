//! `nginx-ingress-controller explain`: what the controller would do with objects, and why.
//!
//! It looks at the objects once, merges them as the controller does, without what NGINX refuses, and tells what an
//! [`Explainer`] says. Nothing is written, and no NGINX is needed.

mod text;
pub(super) mod words;

use std::io::Write;

use clap::Parser;
use ingress_model::{
    Explainer,
    config::Fate,
    explain::{ConfigReport, Explanation, HostExplanation, Overview, PathError},
};
use serde::Serialize;

use super::{
    CommandError, OutputArgs, RefusalArgs, Subcommand, Verdict,
    refused::Judged,
    source::{self, Merged, Objects},
};
use crate::args::{Args, switch};

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
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = switch, help_heading = "Explanation")]
    pub config: bool,

    /// Show settings that have their defaults too
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = switch, help_heading = "Explanation")]
    pub defaults: bool,

    /// How it is found out what NGINX refuses.
    #[command(flatten)]
    pub refusal: RefusalArgs,

    /// How the explanation looks.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is told.
#[derive(Debug, Serialize)]
struct Report {
    /// Manifests that are left out: file, line and reason.
    broken_manifests: Vec<String>,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Request(Box<Explanation>),
    Host(Box<HostExplanation>),
    Overview(Overview),
    Config(ConfigReport),
    BadRequest { request: String, reason: String },
}

impl Answer {
    /// Whether what was asked about is served.
    fn is_found(&self) -> bool {
        match self {
            Self::Request(explanation) => explanation.is_served(),
            Self::Host(explanation) => explanation.is_served(),
            Self::Overview(_) => true,
            Self::Config(report) => report.exists,
            Self::BadRequest { .. } => false,
        }
    }
}

impl Subcommand for ExplainArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let found = source::find(&self.controller)?;
        let report = self.report(&found)?;
        let output = self.output.output;
        output.write(to, &report, |report| text::report(report, self.defaults))?;
        Ok(Verdict::fine_if(report.answer.is_found()))
    }
}

impl ExplainArgs {
    fn report(&self, found: &Objects) -> Result<Report, CommandError> {
        let judged = self.refusal.judge(found, &self.controller)?;
        let merged = &judged.merged;
        let own = [&self.controller.ports.health_check_path, "/nginx_status"];
        let explainer = Explainer::new(&judged.snapshot, &merged.options, &merged.outcome)
            .with_own_paths(own.map(str::to_owned));
        let answer = match self.target.as_deref().map(request) {
            _ if self.config => Answer::Config(config(found, &judged)?),
            None => Answer::Overview(explainer.overview()),
            Some((host, None)) => Answer::Host(Box::new(explainer.host(host))),
            Some((host, Some(path))) => match explainer.request(host, path) {
                Ok(explanation) => Answer::Request(Box::new(explanation)),
                Err(error) => bad_request(host, path, error),
            },
        };
        Ok(Report {
            broken_manifests: found.broken_manifests(),
            answer,
        })
    }
}

/// What becomes of the keys of the ConfigMap, of which NGINX may refuse some that the rules accept.
fn config(found: &Objects, judged: &Judged) -> Result<ConfigReport, CommandError> {
    let Merged { options, outcome } = &judged.merged;
    let report = Explainer::new(&found.snapshot, options, outcome).config();
    let mut report = report.ok_or(CommandError::NoConfigMap)?;
    for (key, reason) in &judged.keys {
        for used in report.keys.iter_mut().filter(|used| used.key == *key) {
            used.fate = Fate::Refused;
            used.notes.push(format!("nginx refuses it: {reason}"));
        }
    }
    Ok(report)
}

fn bad_request(host: &str, path: &str, error: PathError) -> Answer {
    Answer::BadRequest {
        request: format!("{host}{path}"),
        reason: error.to_string(),
    }
}

/// Host and path of `HOST[/PATH]`, in front of which a scheme may stand.
fn request(target: &str) -> (&str, Option<&str>) {
    let schemes = ["http://", "https://"];
    let rest = schemes
        .iter()
        .find_map(|scheme| target.strip_prefix(scheme))
        .unwrap_or(target);
    match rest.find('/') {
        Some(at) => {
            let (host, path) = rest.split_at(at);
            (host, Some(path))
        }
        None => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hosts_or_requests() {
        for (target, want) in [
            ("shop.test", ("shop.test", None)),
            ("shop.test/", ("shop.test", Some("/"))),
            (
                "https://shop.test:8443/a?b#c",
                ("shop.test:8443", Some("/a?b#c")),
            ),
            ("http://shop.test", ("shop.test", None)),
            ("/cart", ("", Some("/cart"))),
        ] {
            assert_eq!(request(target), want, "{target}");
        }
    }
}
