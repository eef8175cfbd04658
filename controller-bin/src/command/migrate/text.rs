//! The report for people.

use super::report::{ConfigMapReport, InstallationReport, Outlook, Report};
use crate::command::{explain::words, table::Table};

/// The report as text.
pub(super) fn report(report: &Report) -> String {
    let mut parts = vec![
        installation(&report.installation, report.config_map.as_ref()),
        refused(&report.installation),
        keys(report.config_map.as_ref()),
        ingresses(report),
        differences(report),
        checks(report),
        objects(report),
        broken(report),
        sum(report),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn installation(found: &InstallationReport, config_map: Option<&ConfigMapReport>) -> String {
    let mut table = Table::plain();
    let mut row = |name: &str, what: String| table.row([name.to_owned(), what]);
    let workload = found.workload.clone();
    let given = if found.arguments.is_empty() {
        "none found; --args names its arguments"
    } else {
        "as --args says"
    };
    row(
        "ingress-nginx",
        workload.unwrap_or_else(|| given.to_owned()),
    );
    for other in &found.other_workloads {
        row("", format!("{other} is another one, and not looked at"));
    }
    if let Some(trouble) = &found.trouble {
        row("", trouble.clone());
    }
    let flags = found.arguments.iter().filter(|word| word.starts_with('-'));
    row("arguments", format!("{}", flags.count()));
    if let Some(map) = config_map {
        let exists = if map.exists {
            ""
        } else {
            ", which does not exist"
        };
        row(
            "ConfigMap",
            format!("{}, {} keys{exists}", map.name, map.keys),
        );
    }
    table.lines(false)
}

fn refused(found: &InstallationReport) -> String {
    let mut table = Table::new(["ARGUMENT", ""]);
    for refused in &found.refused {
        let (word, why) = refused.split_once(": ").unwrap_or((refused, ""));
        table.row([word.to_owned(), why.to_owned()]);
    }
    for flag in &found.without_effect {
        table.row([flag.clone(), "without effect here".to_owned()]);
    }
    table.lines(true)
}

fn keys(config_map: Option<&ConfigMapReport>) -> String {
    let mut table = Table::new(["KEY OF THE CONFIGMAP", "", ""]);
    for used in config_map.iter().flat_map(|map| &map.to_check) {
        let mut notes = used.notes.join("; ");
        if let (true, Some(suggestion)) = (notes.is_empty(), used.suggestion) {
            notes = format!("did you mean {suggestion}?");
        }
        table.row([used.key.clone(), words::fate(used.fate).to_owned(), notes]);
    }
    table.lines(true)
}

fn ingresses(report: &Report) -> String {
    let mut table = Table::new(["INGRESS", "OUTLOOK"]);
    for ingress in &report.ingresses {
        let outlook = match ingress.outlook {
            Outlook::Same => "the same",
            Outlook::Differs => "differs on purpose",
            Outlook::Check if ingress.differences.is_empty() => "to be checked",
            Outlook::Check => "differs on purpose, and to be checked",
            Outlook::NotOurs => "for another controller",
        };
        table.row([ingress.ingress.to_string(), outlook.to_owned()]);
    }
    table.lines(true)
}

fn differences(report: &Report) -> String {
    let mut table = Table::new(["DIFFERS ON PURPOSE", ""]);
    for ingress in &report.ingresses {
        for difference in &ingress.differences {
            table.row([ingress.ingress.to_string(), difference.text.clone()]);
        }
    }
    let mut text = table.lines(true);
    let ingresses = report.ingresses.iter();
    let mut all = ingresses.flat_map(|ingress| &ingress.differences);
    if all.any(|difference| difference.topic == super::difference::Topic::Conflict) {
        text += "--conflict-policy=oldest-wins decides conflicts as ingress-nginx does.\n";
    }
    text
}

fn checks(report: &Report) -> String {
    let mut table = Table::new(["TO BE CHECKED", "REASON", "FIELD", ""]);
    for ingress in &report.ingresses {
        for check in &ingress.to_check {
            table.row([
                ingress.ingress.to_string(),
                check.reason.clone(),
                check.key.clone().unwrap_or_else(|| "-".to_owned()),
                check.message.clone(),
            ]);
        }
    }
    table.lines(true)
}

fn objects(report: &Report) -> String {
    let mut table = Table::new(["OTHER OBJECTS", "REASON", "FIELD", ""]);
    for said in &report.objects {
        table.row([
            said.object.to_string(),
            said.reason.to_string(),
            said.key.clone().unwrap_or_else(|| "-".to_owned()),
            said.message.clone(),
        ]);
    }
    table.lines(true)
}

fn broken(report: &Report) -> String {
    let mut table = Table::new(["MANIFESTS THAT CANNOT BE READ"]);
    for manifest in &report.broken_manifests {
        table.row([manifest.clone()]);
    }
    table.lines(true)
}

fn sum(report: &Report) -> String {
    let sum = &report.summary;
    let others = match sum.not_ours {
        0 => String::new(),
        count => format!(", {count} for another controller"),
    };
    format!(
        "{} Ingresses: {} the same, {} differ on purpose, {} to be checked{others}\n",
        report.ingresses.len(),
        sum.same,
        sum.differs,
        sum.check
    )
}
