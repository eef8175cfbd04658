//! Findings for code scanners: SARIF 2.1.0 (OASIS), as far as code hosts read it.

use std::{env, path::Path};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    finding::{Finding, Report},
    place::Place,
};

/// The log of one run.
pub(super) fn log(report: &Report) -> impl Serialize {
    let mut rules: Vec<&str> = report
        .findings
        .iter()
        .map(|finding| finding.reason)
        .collect();
    rules.sort_unstable();
    rules.dedup();
    let results = report.findings.iter();
    let results: Vec<_> = results.map(|finding| result(finding, &rules)).collect();
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| json!({"id": rule, "shortDescription": {"text": words(rule)}}))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "nginx-ingress-controller",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn result(finding: &Finding, rules: &[&str]) -> Value {
    let object = finding.object.as_ref().map(ToString::to_string);
    let subject = [object.as_deref(), finding.key.as_deref()];
    let subject: Vec<_> = subject.into_iter().flatten().collect();
    let message = match subject.as_slice() {
        [] => finding.message.clone(),
        subject => format!("{}: {}", subject.join(", "), finding.message),
    };
    let mut location = serde_json::Map::new();
    if let Some(place) = &finding.place {
        location.insert("physicalLocation".to_owned(), physical(place));
    }
    if let Some(object) = object {
        let logical = json!([{"fullyQualifiedName": object, "kind": "object"}]);
        location.insert("logicalLocations".to_owned(), logical);
    }
    json!({
        "ruleId": finding.reason,
        "ruleIndex": rules.binary_search(&finding.reason).ok(),
        "level": finding.level.as_str(),
        "message": {"text": message},
        "locations": [location],
    })
}

fn physical(place: &Place) -> Value {
    let mut physical = serde_json::Map::new();
    let file = json!({"uri": uri(&place.file)});
    physical.insert("artifactLocation".to_owned(), file);
    let region = place.line.map(|line| match place.column {
        Some(column) => json!({"startLine": line, "startColumn": column}),
        None => json!({"startLine": line}),
    });
    physical.extend(region.map(|region| ("region".to_owned(), region)));
    physical.into()
}

/// A file as a reference that is relative to the working directory, where it lies below it, as code hosts want it.
fn uri(file: &Path) -> String {
    let directory = env::current_dir().ok();
    let below = directory.and_then(|directory| {
        let file = std::path::absolute(file).ok()?;
        Some(file.strip_prefix(directory).ok()?.to_owned())
    });
    let path = below.as_deref().unwrap_or(file).to_string_lossy();
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let bytes = path.bytes().map(|byte| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    scheme.to_owned() + &bytes.collect::<String>()
}

/// `MissingServicePort` → `missing service port`.
fn words(reason: &str) -> String {
    let mut words = String::new();
    for c in reason.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_referred_to_as_uris() {
        let here = env::current_dir().unwrap();
        assert_eq!(uri(Path::new("a b/ä.yaml")), "a%20b/%C3%A4.yaml");
        assert_eq!(uri(&here.join("x.yaml")), "x.yaml");
        assert_eq!(uri(Path::new("/none/x.yaml")), "file:///none/x.yaml");
    }

    #[test]
    fn reasons_are_told_in_words() {
        assert_eq!(words("MissingServicePort"), "missing service port");
    }
}
