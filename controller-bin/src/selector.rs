//! Label selectors as the command line writes them: `tier=edge,env in (a, b),!legacy`.

use std::collections::BTreeSet;

use kube::core::{Expression, Selector};

/// Why a label selector cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the requirement {requirement:?} of a label selector")]
pub(crate) struct SelectorError {
    /// The part that is not understood.
    requirement: String,
}

/// Reads a selector: requirements separated by commas, all of which have to hold.
///
/// The grammar is that of `kubectl get -l`: `key`, `!key`, `key=value`, `key==value`, `key!=value`, `key in (a,b)` and
/// `key notin (a,b)`.
///
/// # Errors
///
/// When a requirement is none of these.
pub(crate) fn parse(text: &str) -> Result<Selector, SelectorError> {
    let requirements = split(text);
    requirements
        .iter()
        .map(|requirement| expression(requirement))
        .collect()
}

/// Splits at the commas that are outside brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .collect()
}

fn expression(requirement: &str) -> Result<Expression, SelectorError> {
    let refused = || SelectorError {
        requirement: requirement.to_owned(),
    };
    let key = |text: &str| key(text).ok_or_else(refused);
    let value = |text: &str| value(text).ok_or_else(refused);

    if let Some(open) = requirement.find('(') {
        let (head, values) = requirement.split_at(open);
        let values = values
            .strip_prefix('(')
            .and_then(|values| values.strip_suffix(')'))
            .ok_or_else(refused)?
            .split(',')
            .map(value)
            .collect::<Result<BTreeSet<_>, _>>()?;
        let (name, operator) = head
            .trim_end()
            .rsplit_once(char::is_whitespace)
            .ok_or_else(refused)?;
        return match operator {
            "in" => Ok(Expression::In(key(name)?, values)),
            "notin" => Ok(Expression::NotIn(key(name)?, values)),
            _ => Err(refused()),
        };
    }
    if let Some((name, wanted)) = requirement.split_once("!=") {
        return Ok(Expression::NotEqual(key(name)?, value(wanted)?));
    }
    if let Some((name, wanted)) = requirement.split_once('=') {
        let wanted = wanted.strip_prefix('=').unwrap_or(wanted);
        return Ok(Expression::Equal(key(name)?, value(wanted)?));
    }
    if let Some(name) = requirement.strip_prefix('!') {
        return Ok(Expression::DoesNotExist(key(name)?));
    }
    Ok(Expression::Exists(key(requirement)?))
}

/// A label's name, with or without a prefix (Kubernetes docs: labels, "Syntax and character set").
fn key(text: &str) -> Option<String> {
    let text = text.trim();
    let (prefix, name) = text.split_once('/').unwrap_or(("a", text));
    let valid = !prefix.is_empty() && !name.is_empty() && value(prefix).is_some();
    valid.then(|| value(name)).flatten()?;
    Some(text.to_owned())
}

/// A label's value; it may be empty.
fn value(text: &str) -> Option<String> {
    let text = text.trim();
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: char| c.is_ascii_alphanumeric();
    let valid = text.chars().all(inner)
        && text.chars().next().is_none_or(ends)
        && text.chars().last().is_none_or(ends);
    valid.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_requirement_is_read() {
        for (text, want) in [
            ("tier=edge", "tier=edge"),
            ("tier==edge", "tier=edge"),
            ("tier != edge", "tier!=edge"),
            ("example.test/tier", "example.test/tier"),
            ("!legacy", "!legacy"),
            ("env in (a, b),tier=", "env in (a,b),tier="),
            ("env notin (a)", "env notin (a)"),
        ] {
            let read = parse(text).map(|selector| selector.to_string());
            assert_eq!(read.as_deref(), Ok(want), "{text:?}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "=edge",
            "a=b=c",
            "env in a",
            "env of (a)",
            "a b",
            "a,,b",
            "(a)",
            "/x",
            "tier=$x",
            "-a",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
