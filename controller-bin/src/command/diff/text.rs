//! Differences for people: what changes, then the differences as `diff -u` shows them.

use super::{Change, Report};

/// The report as text.
pub(super) fn report(report: &Report) -> String {
    let broken = report.broken_manifests.iter();
    let mut lines: Vec<String> = broken
        .map(|manifest| format!("left out: {manifest}"))
        .collect();
    let verdict = match (report.differs, report.reload) {
        (false, _) => "no difference",
        (true, false) => "no reload",
        (true, true) => "reload, since:",
    };
    lines.push(verdict.to_owned());
    let reasons = report.reasons.iter();
    lines.extend(reasons.map(|reason| format!("  {}", reason.text)));
    if !report.told.is_empty() {
        lines.push("told to the running NGINX:".to_owned());
    }
    let told = report.told.iter();
    lines.extend(told.map(|told| {
        let change = match told.change {
            Change::Set => "set",
            Change::Removed => "removed",
        };
        format!("  {} {} {change}", told.kind, told.name)
    }));
    if !report.flags.is_empty() {
        lines.push("flags that differ:".to_owned());
    }
    let named = |value: &str| match value {
        "" => "nothing".to_owned(),
        value => value.to_owned(),
    };
    let flags = report.flags.iter();
    lines.extend(flags.map(|it| {
        let (running, here) = (named(&it.running), named(&it.here));
        format!("  {}: {running} runs, {here} is given here", it.flag)
    }));
    if !report.refused.is_empty() {
        lines.push("nginx would refuse, so that a controller keeps it apart:".to_owned());
    }
    let refused = report.refused.iter();
    lines.extend(refused.map(|refused| format!("  {refused}")));
    let hidden = report.hidden_files.iter();
    lines.extend(hidden.map(|file| format!("file {file} differs (not shown)")));
    let mut text = lines.join("\n") + "\n";
    for differences in [&report.model, &report.configuration] {
        if !differences.is_empty() {
            text.push('\n');
            text += differences;
        }
    }
    text
}
