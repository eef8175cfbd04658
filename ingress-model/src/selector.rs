//! Label selectors, as `--watch-namespace-selector` takes them.

use std::collections::BTreeMap;

use thiserror::Error;

/// Which labels an object has to have (Kubernetes docs: "Labels and Selectors").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

/// Why a text is no [`LabelSelector`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a requirement on labels: key, !key, key=value, key!=value, key in (a,b) or key notin (a,b)"
)]
pub struct SelectorError(String);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Missing(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

impl LabelSelector {
    /// Reads requirements separated by commas.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use ingress_model::selector::LabelSelector;
    ///
    /// let selector = LabelSelector::parse("team=shop, stage in (test, live)").unwrap();
    /// let labels = |stage: &str| BTreeMap::from([("team".into(), "shop".into()), ("stage".into(), stage.into())]);
    /// assert!(selector.matches(Some(&labels("live"))));
    /// assert!(!selector.matches(Some(&labels("old"))));
    /// ```
    ///
    /// # Errors
    /// When a part is no requirement.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        split(text)
            .into_iter()
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(requirement)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether an object with these labels is selected. One without labels lacks every key.
    #[must_use]
    pub fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let value = |key: &String| labels.and_then(|labels| labels.get(key));
        self.0.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Missing(key) => value(key).is_none(),
            Requirement::In(key, values) => value(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => {
                value(key).is_none_or(|value| !values.contains(value))
            }
        })
    }
}

/// The parts between commas that are not within parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|c| {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        c == ',' && !inside
    })
    .collect()
}

fn requirement(part: &str) -> Result<Requirement, SelectorError> {
    let fault = || SelectorError(part.chars().take(64).collect());
    let key = |text: &str| {
        let text = text.trim();
        let known = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
        let valid = !text.is_empty() && text.bytes().all(known);
        valid.then(|| text.to_owned()).ok_or_else(fault)
    };
    let one = |text: &str| vec![text.trim().to_owned()];
    if let Some(name) = part.strip_prefix('!') {
        return Ok(Requirement::Missing(key(name)?));
    }
    if let Some((name, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(key(name)?, one(value)));
    }
    if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::In(key(name)?, one(value)));
    }
    let Some((head, values)) = part.split_once('(') else {
        return Ok(Requirement::Exists(key(part)?));
    };
    let values = values.strip_suffix(')').ok_or_else(fault)?;
    let values = values.split(',').map(|value| value.trim().to_owned());
    match head.trim_end().rsplit_once(char::is_whitespace) {
        Some((name, "in")) => Ok(Requirement::In(key(name)?, values.collect())),
        Some((name, "notin")) => Ok(Requirement::NotIn(key(name)?, values.collect())),
        _ => Err(fault()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_all_to_hold() {
        let labels: BTreeMap<String, String> = [("team", "shop"), ("stage", "live")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        for (text, want) in [
            ("", true),
            ("team", true),
            ("!team", false),
            ("!other", true),
            ("team=shop", true),
            ("team==shop", true),
            ("team = shop , stage=live", true),
            ("team=shop,stage=test", false),
            ("team!=shop", false),
            ("other!=shop", true),
            ("stage in (test, live)", true),
            ("stage notin (test,live)", false),
            ("other notin (test)", true),
            ("other in (test)", false),
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.matches(Some(&labels)), want, "{text:?}");
        }
        assert!(!LabelSelector::parse("team").unwrap().matches(None));
        assert!(LabelSelector::parse("!team").unwrap().matches(None));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "=a",
            "a b",
            "a in b",
            "a in (b",
            "a among (b)",
            "in (a)",
            "a;b",
        ] {
            assert!(LabelSelector::parse(text).is_err(), "{text:?}");
        }
    }
}
