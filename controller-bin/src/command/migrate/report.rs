//! What is told about an installation.

use std::collections::{BTreeMap, BTreeSet};

use ingress_model::{
    ConflictPolicy, Diagnostic, Explainer, ObjectKind, ObjectName, Severity, config::Fate,
    config::KeyUse, diagnostic::Reason,
};
use nginx_render::{
    Rendered,
    syntax::{self, Fault},
};
use serde::Serialize;

use super::{
    difference::{Comparison, Difference},
    installation::Installation,
};
use crate::command::{
    CommandError,
    nginx::{Target, TargetSummary},
    refused::place,
    source::{Merged, Objects},
};

/// What is told about an installation.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Manifests that are left out: file, line and reason.
    pub(super) broken_manifests: Vec<String>,
    pub(super) installation: InstallationReport,
    pub(super) nginx: TargetSummary,
    pub(super) config_map: Option<ConfigMapReport>,
    pub(super) ingresses: Vec<IngressReport>,
    /// What there is to say of other objects.
    pub(super) objects: Vec<Diagnostic>,
    pub(super) summary: Summary,
}

/// Where the arguments come from, and what becomes of them.
#[derive(Debug, Serialize)]
pub(super) struct InstallationReport {
    /// The workload that runs ingress-nginx; `None`: none was found, or arguments were given.
    pub(super) workload: Option<String>,
    pub(super) other_workloads: Vec<String>,
    pub(super) trouble: Option<String>,
    pub(super) arguments: Vec<String>,
    /// Arguments that are not understood here, and why.
    pub(super) refused: Vec<String>,
    /// Flags that are read and have no effect here.
    pub(super) without_effect: Vec<String>,
}

/// The keys of the ConfigMap that do not hold as they stand.
#[derive(Debug, Serialize)]
pub(super) struct ConfigMapReport {
    pub(super) name: ObjectName,
    pub(super) exists: bool,
    pub(super) keys: usize,
    pub(super) to_check: Vec<KeyUse>,
}

/// What becomes of an Ingress.
#[derive(Debug, Serialize)]
pub(super) struct IngressReport {
    pub(super) ingress: ObjectName,
    pub(super) outlook: Outlook,
    pub(super) differences: BTreeSet<Difference>,
    pub(super) to_check: Vec<Check>,
}

/// What becomes of an Ingress, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outlook {
    /// It behaves the same.
    Same,
    /// Something differs on purpose.
    Differs,
    /// Something is to be checked, whatever else differs.
    Check,
    /// It is for another controller.
    NotOurs,
}

/// Something to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Check {
    pub(super) reason: String,
    pub(super) key: Option<String>,
    pub(super) message: String,
}

/// How many Ingresses there are of each outlook.
#[derive(Debug, Default, Serialize)]
pub(super) struct Summary {
    pub(super) same: usize,
    pub(super) differs: usize,
    pub(super) check: usize,
    pub(super) not_ours: usize,
}

impl Report {
    /// Whether nothing differs, and nothing is to be looked at.
    pub(super) fn is_the_same(&self) -> bool {
        let config_map = self.config_map.as_ref();
        self.summary.differs == 0
            && self.summary.check == 0
            && self.objects.is_empty()
            && self.broken_manifests.is_empty()
            && self.installation.refused.is_empty()
            && self.installation.trouble.is_none()
            && config_map.is_none_or(|map| map.to_check.is_empty())
    }
}

/// Compares what either controller makes of the objects.
pub(super) fn make(
    installation: &Installation,
    found: &Objects,
    target: &Target,
) -> Result<Report, CommandError> {
    let here = found.merge(&installation.args);
    let mut options = here.options.clone();
    options.conflict_policy = ConflictPolicy::OldestWins;
    let there = found.merge_by(options);
    let rendered = target.render(&here.outcome.model)?;
    let differences = Comparison {
        found,
        here: &here,
        there: &there,
    };
    let mut differences = differences.differences();
    let faults = syntax::check(&rendered, &target.directives);
    let mut checks = checks(&here, &rendered, &faults);
    let names = found.snapshot.ingresses.iter().map(|(name, _)| name);
    let ingresses: Vec<_> = names
        .map(|name| {
            let differences = differences.remove(name).unwrap_or_default();
            let to_check: Vec<_> = checks
                .remove(name)
                .unwrap_or_default()
                .into_iter()
                .collect();
            IngressReport {
                ingress: name.clone(),
                outlook: outlook(name, &here, &differences, &to_check),
                differences,
                to_check,
            }
        })
        .collect();
    let is_about_others = |said: &&Diagnostic| {
        let kinds = [ObjectKind::Ingress, ObjectKind::ConfigMap];
        !kinds.contains(&said.object.kind) && said.severity > Severity::Info
    };
    let objects = here.outcome.diagnostics.iter().filter(is_about_others);
    Ok(Report {
        broken_manifests: found.broken_manifests(),
        installation: InstallationReport {
            workload: installation.workload.clone(),
            other_workloads: installation.others.clone(),
            trouble: installation.trouble.clone(),
            arguments: installation.words.clone(),
            refused: installation.refused.clone(),
            without_effect: installation.args.without_effect.clone(),
        },
        nginx: target.summary(),
        config_map: config_map(found, &here, &faults),
        summary: summary(&ingresses),
        ingresses,
        objects: objects.cloned().collect(),
    })
}

fn outlook(
    name: &ObjectName,
    here: &Merged,
    differences: &BTreeSet<Difference>,
    to_check: &[Check],
) -> Outlook {
    let is_foreign = |said: &Diagnostic| {
        let reasons = [Reason::ForeignClass, Reason::ForeignNamespace];
        said.object.name == *name && reasons.contains(&said.reason)
    };
    let is_served = here.outcome.last_good.get(name).is_some();
    if !is_served && here.outcome.diagnostics.iter().any(is_foreign) {
        Outlook::NotOurs
    } else if !to_check.is_empty() {
        Outlook::Check
    } else if !differences.is_empty() {
        Outlook::Differs
    } else {
        Outlook::Same
    }
}

/// What is to be looked at, by Ingress: what was said of it, but for conflicts, which are differences or the same with
/// ingress-nginx; what cannot be rendered; what NGINX would refuse; and raw configuration.
fn checks(
    here: &Merged,
    rendered: &Rendered,
    faults: &[Fault],
) -> BTreeMap<ObjectName, BTreeSet<Check>> {
    let mut checks: BTreeMap<ObjectName, BTreeSet<Check>> = BTreeMap::new();
    let mut add = |ingress: &ObjectName, check| {
        checks.entry(ingress.clone()).or_default().insert(check);
    };
    let said = here.outcome.diagnostics.iter().filter(|said| {
        let is_conflict = matches!(
            said.reason,
            Reason::PathConflict | Reason::TlsConflict | Reason::ServerSettingConflict
        );
        said.object.kind == ObjectKind::Ingress && said.severity > Severity::Info && !is_conflict
    });
    for said in said {
        let check = Check {
            reason: said.reason.to_string(),
            key: said.key.clone(),
            message: said.message.clone(),
        };
        add(&said.object.name, check);
    }
    for note in &rendered.notes {
        let check = Check {
            reason: "NotRendered".to_owned(),
            key: Some(note.source.what.to_owned()),
            message: note.text.clone(),
        };
        if let Some(ingress) = &note.source.ingress {
            add(ingress, check);
        }
    }
    for fault in faults {
        let source = &fault.source;
        let is_annotation = !matches!(source.what, "server" | "location");
        let check = Check {
            reason: Reason::RefusedByNginx.to_string(),
            key: is_annotation.then(|| source.what.to_owned()),
            message: format!("{}{}", place(source), fault.reason),
        };
        if let Some(ingress) = &source.ingress {
            add(ingress, check);
        }
    }
    for (ingress, annotation) in snippets(here) {
        let check = Check {
            reason: "RawConfiguration".to_owned(),
            key: Some(annotation.to_owned()),
            message: "it goes to NGINX as it is: see that its variables and modules are there"
                .to_owned(),
        };
        add(ingress, check);
    }
    checks
}

/// Raw configuration that is in force.
fn snippets(here: &Merged) -> Vec<(&ObjectName, &'static str)> {
    let layout = &here.outcome.model.layout;
    let mut snippets = Vec::new();
    for server in layout.servers.values() {
        let of_server = server.snippet.iter();
        snippets.extend(of_server.map(|snippet| (&snippet.ingress, "server-snippet")));
        let locations = server.locations.iter();
        let locations = locations.filter(|location| location.settings.snippet.is_some());
        let ingresses = locations.filter_map(|location| location.ingress.as_ref());
        snippets.extend(ingresses.map(|ingress| (ingress, "configuration-snippet")));
    }
    let of_stream = layout.stream_snippets.iter();
    snippets.extend(of_stream.map(|snippet| (&snippet.ingress, "stream-snippet")));
    snippets
}

fn config_map(found: &Objects, here: &Merged, faults: &[Fault]) -> Option<ConfigMapReport> {
    let explainer = Explainer::new(&found.snapshot, &here.options, &here.outcome);
    let mut report = explainer.config()?;
    let faults = faults.iter().filter(|fault| fault.source.ingress.is_none());
    for fault in faults {
        let what = fault.source.what;
        for used in report.keys.iter_mut().filter(|used| used.key == what) {
            used.fate = Fate::Refused;
            used.notes
                .push(format!("nginx refuses it: {}", fault.reason));
        }
    }
    let keys = report.keys.len();
    let to_check = report.keys.into_iter();
    Some(ConfigMapReport {
        name: report.config_map,
        exists: report.exists,
        keys,
        to_check: to_check
            .filter(|used| used.fate != Fate::Accepted)
            .collect(),
    })
}

fn summary(ingresses: &[IngressReport]) -> Summary {
    let count = |outlook| {
        let ingresses = ingresses.iter();
        ingresses.filter(|report| report.outlook == outlook).count()
    };
    Summary {
        same: count(Outlook::Same),
        differs: count(Outlook::Differs),
        check: count(Outlook::Check),
        not_ours: count(Outlook::NotOurs),
    }
}
