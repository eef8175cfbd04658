//! Findings for people.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{
    super::table::Table,
    finding::{Finding, Level, Report},
    place::Place,
};

/// How many findings are read one by one.
const MANY: usize = 20;

/// The findings as a table, and how many there are.
pub(super) fn report(report: &Report) -> String {
    let mut table = Table::new(["LEVEL", "PLACE", "OBJECT", "FIELD", "REASON", "MESSAGE"]);
    for finding in &report.findings {
        let object = finding.object.as_ref();
        table.row([
            finding.level.as_str().to_owned(),
            place(finding),
            object.map_or_else(|| "-".to_owned(), ToString::to_string),
            finding.key.clone().unwrap_or_else(|| "-".to_owned()),
            finding.reason.to_owned(),
            finding.message.clone(),
        ]);
    }
    let mut text = table.lines(true);
    if !text.is_empty() {
        text.push('\n');
    }
    text + &sum(report) + &reasons(report)
}

/// How often there is each reason, the most frequent first, where there are too many findings to be read.
fn reasons(report: &Report) -> String {
    if report.findings.len() <= MANY {
        return String::new();
    }
    let mut counts: BTreeMap<(Level, &str), usize> = BTreeMap::new();
    for finding in &report.findings {
        *counts.entry((finding.level, finding.reason)).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|((level, _), count)| (*level, Reverse(*count)));
    let mut table = Table::new(["COUNT", "LEVEL", "REASON"]);
    table.rows(counts.into_iter().map(|((level, reason), count)| {
        [
            count.to_string(),
            level.as_str().to_owned(),
            reason.to_owned(),
        ]
    }));
    format!("\n{}", table.lines(true))
}

fn place(finding: &Finding) -> String {
    let Some(Place { file, line, .. }) = &finding.place else {
        return "-".to_owned();
    };
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}", file.display())
}

fn sum(report: &Report) -> String {
    let number = |count: usize, one: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {one}s")),
    };
    let parts = [
        number(report.errors, "error"),
        number(report.warnings, "warning"),
        number(report.notes, "note"),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let found = if parts.is_empty() {
        "no findings".to_owned()
    } else {
        parts.join(", ")
    };
    let unchecked = report.nginx.unchecked();
    let unchecked = unchecked.map(|text| format!("{text}\n"));
    let unchecked = unchecked.unwrap_or_default();
    format!("{found} in {} objects\n{unchecked}", report.objects)
}
