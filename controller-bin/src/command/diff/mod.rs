//! `nginx-ingress-controller diff`: what a change of objects changes, and whether it reloads.
//!
//! Compared are two sets of manifests, the objects of a cluster with a set of manifests, or objects with what a running
//! controller's NGINX has. Whether and why there would be a reload is said by the [plan](ingress_model::plan()) by which the
//! controller reloads; what a running controller tells of its model is compared in the same way.

mod reasons;
mod running;
mod side;
mod text;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, ArgMatches, FromArgMatches, Parser};
use ingress_model::{live::LiveDelta, plan};
use serde::Serialize;

use self::{running::Running, side::Side};
use super::{
    CommandError, Output, OutputArgs, RefusalArgs, Subcommand, Verdict,
    nginx::NginxChoice,
    output,
    progress::Progress,
    source::{self, Objects},
};
use crate::args::{Args, switch};

/// What is compared, and how differences look.
///
/// Without --running, two directories of manifests are compared, or the objects that --manifests or a cluster gives with
/// one directory. The flags of the controller have the same meaning here and count for both sides. The exit code is 0
/// when there is no difference, and 1 when there is.
#[derive(Clone, Debug, Parser)]
#[command(group = ArgGroup::new("compared").args(["sets", "running"]).required(true).multiple(true))]
pub struct DiffArgs {
    /// Directories of manifests: the one before and the one after
    #[arg(value_name = "DIR", num_args = 1..=2)]
    pub sets: Vec<PathBuf>,

    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// Which NGINX the configuration is for.
    #[command(flatten)]
    pub nginx: NginxChoice,

    /// Compare the controller and the NGINX that run on this machine (--healthz-port, --nginx-dir, --status-port) with one
    /// directory, or with --manifests or a cluster
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = switch, help_heading = "Differences")]
    pub running: bool,

    /// Tell what changes, and leave out the text of the differences
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = switch, help_heading = "Differences")]
    pub brief: bool,

    /// Lines that are shown around each difference
    #[arg(
        long,
        value_name = "LINES",
        default_value_t = 3,
        help_heading = "Differences"
    )]
    pub context: usize,

    /// How differences look.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is different.
#[derive(Debug, Serialize)]
struct Report {
    /// Manifests that are left out: file, line and reason.
    broken_manifests: Vec<String>,
    /// Whether there is any difference.
    differs: bool,
    /// Whether NGINX would have to reload.
    reload: bool,
    /// Why.
    reasons: Vec<Reason>,
    /// What NGINX would be told without a reload.
    told: Vec<Told>,
    /// Flags of the running controller that are others here, so that files may be.
    flags: Vec<FlagDifference>,
    /// What NGINX would refuse of the side after, so that a controller keeps it apart.
    refused: Vec<String>,
    /// Differences of the model, as a unified diff of JSON.
    model: String,
    /// Differences of the configuration files, as a unified diff.
    configuration: String,
    /// Files that differ and that only NGINX may read.
    hidden_files: Vec<String>,
}

/// Why there would be a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Reason {
    /// As the metric of reloads names it.
    reason: &'static str,
    text: String,
}

/// A flag that is another one on the two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct FlagDifference {
    flag: String,
    running: String,
    here: String,
}

/// One thing that NGINX would be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Told {
    /// `backend`, `certificate`, `certificate of host`, `TCP port`, `UDP port` or `passed-through host`.
    kind: &'static str,
    name: String,
    change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    /// It is new, or another one.
    Set,
    /// It is gone.
    Removed,
}

impl Subcommand for DiffArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let report = self.report()?;
        match self.output.output {
            Output::Table => output::write_shown(to, &text::report(&report))?,
            Output::Json => output::write(to, &output::json(&report)?)?,
        }
        Ok(Verdict::fine_if(!report.differs))
    }
}

impl DiffArgs {
    /// Reads the command line, and remembers the values of flags.
    pub(super) fn parsed(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let args = Self::from_arg_matches(matches)?;
        Ok(Self {
            controller: args.controller.with_values(matches),
            ..args
        })
    }

    fn report(&self) -> Result<Report, CommandError> {
        let progress = Progress::start("reading objects");
        let target = self.nginx.target(&self.controller)?;
        let side =
            |(name, found): (String, Objects)| Side::new(&name, &found, &self.controller, &target);
        if self.running {
            let (name, found) = match self.sets.as_slice() {
                [] => self.of_flags()?,
                [new] => self.read(new)?,
                _ => return Err(CommandError::Sets),
            };
            progress.next("asking the running controller");
            let refusal = RefusalArgs {
                nginx: self.nginx,
                running: true,
            };
            let judged = refusal.judge(&found, &self.controller)?;
            let new = Side::of_model(&name, &found, judged.merged.outcome.model, &target)?;
            let old = Running::ask(&self.controller, &new)?;
            return self.against_running(&old, &new);
        }
        let (old, new) = match self.sets.as_slice() {
            [old, new] => (side(self.read(old)?)?, side(self.read(new)?)?),
            [new] => (side(self.of_flags()?)?, side(self.read(new)?)?),
            _ => return Err(CommandError::Sets),
        };
        progress.next("comparing");
        Ok(self.between(&old, &new))
    }

    /// The objects of a directory, and what they are called.
    fn read(&self, directory: &Path) -> Result<(String, Objects), CommandError> {
        let found = source::read(&self.controller, directory)?;
        Ok((directory.display().to_string(), found))
    }

    /// The same of what flags name.
    fn of_flags(&self) -> Result<(String, Objects), CommandError> {
        let found = source::find(&self.controller)?;
        let manifests = self.controller.kubernetes.manifests.as_ref();
        let name = manifests.map_or_else(
            || "cluster".to_owned(),
            |directory| directory.display().to_string(),
        );
        Ok((name, found))
    }

    fn between(&self, old: &Side, new: &Side) -> Report {
        let reasons = plan(Some(&old.layout), &new.layout).into_iter();
        let reasons: Vec<_> = reasons
            .map(|reason| Reason {
                reason: reason.label(),
                text: reason.to_string(),
            })
            .collect();
        let told = told(&old.live.diff(&new.live));
        let hidden_files = side::hidden(&old.files, &new.files);
        let broken = old.broken_manifests.iter().chain(&new.broken_manifests);
        Report {
            broken_manifests: broken.cloned().collect(),
            differs: !reasons.is_empty() || !told.is_empty(),
            reload: !reasons.is_empty(),
            reasons,
            told,
            flags: Vec::new(),
            refused: new.refused.clone(),
            model: self.unified(
                "model.json",
                (&old.name, &old.model),
                (&new.name, &new.model),
            ),
            configuration: self.configuration((&old.name, &old.files), (&new.name, &new.files)),
            hidden_files,
        }
    }

    fn against_running(&self, old: &Running, new: &Side) -> Result<Report, CommandError> {
        let flags = old.flags(&self.controller.values);
        let differences = old.differences(new, &flags)?;
        let differs = !differences.reasons.is_empty() || !differences.told.is_empty();
        Ok(Report {
            broken_manifests: new.broken_manifests.clone(),
            differs,
            reload: !differences.reasons.is_empty(),
            reasons: differences.reasons,
            told: differences.told,
            flags: if differs { flags } else { Vec::new() },
            refused: new.refused.clone(),
            model: self.unified(
                "model.json",
                (running::NAME, &old.model),
                (&new.name, &new.model),
            ),
            configuration: self.configuration((running::NAME, &old.files), (&new.name, &new.files)),
            hidden_files: differences.hidden_files,
        })
    }

    fn configuration(&self, old: (&str, &side::Files), new: (&str, &side::Files)) -> String {
        let mut paths: Vec<_> = old.1.keys().chain(new.1.keys()).collect();
        paths.sort();
        paths.dedup();
        let text = |files: &side::Files, path: &str| {
            let file = files.get(path);
            file.and_then(|file| file.text().map(str::to_owned))
                .unwrap_or_default()
        };
        let differences = paths.into_iter().map(|path| {
            let (before, after) = (text(old.1, path), text(new.1, path));
            self.unified(path, (old.0, &before), (new.0, &after))
        });
        differences.collect()
    }

    /// The differences of a file; nothing when there is none, or they are not wanted.
    fn unified(&self, file: &str, old: (&str, &str), new: (&str, &str)) -> String {
        if self.brief || old.1 == new.1 {
            return String::new();
        }
        let name = |side: &str| format!("{}/{file}", side.trim_end_matches('/'));
        similar::TextDiff::from_lines(old.1, new.1)
            .unified_diff()
            .context_radius(self.context)
            .header(&name(old.0), &name(new.0))
            .to_string()
    }
}

/// What NGINX would be told.
fn told(delta: &LiveDelta) -> Vec<Told> {
    let set = |kind, name: String| Told {
        kind,
        name,
        change: Change::Set,
    };
    let removed = |kind, name: String| Told {
        kind,
        name,
        change: Change::Removed,
    };
    let mut told: Vec<Told> = Vec::new();
    let backends = delta.set_backends.iter();
    told.extend(backends.map(|backend| set("backend", backend.name.to_string())));
    let backends = delta.remove_backends.iter();
    told.extend(backends.map(|name| removed("backend", name.to_string())));
    let certificates = delta.set_certificates.iter();
    told.extend(certificates.map(|made| set("certificate", made.id.as_str().to_owned())));
    let certificates = delta.remove_certificates.iter();
    told.extend(certificates.map(|id| removed("certificate", id.as_str().to_owned())));
    let servers = delta.set_servers.iter();
    told.extend(servers.map(|(host, _)| set("certificate of host", host.to_string())));
    let servers = delta.remove_servers.iter();
    told.extend(servers.map(|host| removed("certificate of host", host.to_string())));
    for (kind, set_ports, removed_ports) in [
        ("TCP port", &delta.set_tcp, &delta.remove_tcp),
        ("UDP port", &delta.set_udp, &delta.remove_udp),
    ] {
        told.extend(
            set_ports
                .iter()
                .map(|(port, _)| set(kind, port.to_string())),
        );
        told.extend(
            removed_ports
                .iter()
                .map(|port| removed(kind, port.to_string())),
        );
    }
    let hosts = delta.set_passthrough.iter();
    told.extend(hosts.map(|(host, _)| set("passed-through host", host.to_string())));
    let hosts = delta.remove_passthrough.iter();
    told.extend(hosts.map(|host| removed("passed-through host", host.to_string())));
    told.sort();
    told
}
