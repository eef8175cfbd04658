//! Label and field selectors, as LIST and WATCH take them in their query.

use serde_json::Value;

use super::{error::ApiError, resource::Resource};

/// Which objects of a kind a request is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    namespace: Option<String>,
    labels: Vec<LabelTest>,
    fields: Vec<FieldTest>,
}

#[derive(Debug, Clone, PartialEq)]
enum LabelTest {
    In(String, Vec<String>),
    /// Holds for an object without the label, too.
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

#[derive(Debug, Clone, PartialEq)]
struct FieldTest {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector`; without a namespace all of them are meant.
    ///
    /// # Errors
    /// 400 when a selector cannot be parsed or names a field that cannot be selected.
    pub(crate) fn parse(
        resource: &Resource,
        namespace: Option<&str>,
        labels: &str,
        fields: &str,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            labels: terms(labels).map(label_test).collect::<Result<_, _>>()?,
            fields: terms(fields)
                .map(|term| field_test(resource, term))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Whether the object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        self.namespace
            .as_ref()
            .is_none_or(|namespace| metadata["namespace"] == namespace.as_str())
            && self
                .labels
                .iter()
                .all(|test| test.holds(&metadata["labels"]))
            && self.fields.iter().all(|test| test.holds(object))
    }

    /// Whether it selects by label or field at all. The server then cannot tell how many items
    /// remain after a page.
    pub(crate) fn filters(&self) -> bool {
        !(self.labels.is_empty() && self.fields.is_empty())
    }
}

impl LabelTest {
    fn holds(&self, labels: &Value) -> bool {
        let label = |key: &String| labels.get(key).and_then(Value::as_str);
        let among = |key, values: &[String]| {
            label(key).is_some_and(|label| values.iter().any(|value| value == label))
        };
        match self {
            Self::In(key, values) => among(key, values),
            Self::NotIn(key, values) => !among(key, values),
            Self::Exists(key) => label(key).is_some(),
            Self::Absent(key) => label(key).is_none(),
        }
    }
}

impl FieldTest {
    fn holds(&self, object: &Value) -> bool {
        let field = self
            .path
            .split('.')
            .try_fold(object, |value, key| value.get(key));
        let text = match field {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        (text == self.value) == self.equal
    }
}

/// Splits at the commas that are not inside parentheses.
fn terms(selector: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    selector
        .split(move |c| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            c == ',' && depth == 0
        })
        .map(str::trim)
        .filter(|term| !term.is_empty())
}

fn label_test(term: &str) -> Result<LabelTest, ApiError> {
    let test = if let Some(key) = term.strip_prefix('!') {
        LabelTest::Absent(label_key(key, term)?)
    } else if let Some((head, set)) = term.split_once('(') {
        let values = set.strip_suffix(')').ok_or_else(|| unparsable(term))?;
        let values = values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        match head.split_whitespace().collect::<Vec<_>>().as_slice() {
            [key, "in"] => LabelTest::In(label_key(key, term)?, values),
            [key, "notin"] => LabelTest::NotIn(label_key(key, term)?, values),
            _ => return Err(unparsable(term)),
        }
    } else if let Some((key, value, equal)) = comparison(term) {
        let (key, values) = (label_key(key, term)?, vec![value.to_owned()]);
        if equal {
            LabelTest::In(key, values)
        } else {
            LabelTest::NotIn(key, values)
        }
    } else {
        LabelTest::Exists(label_key(term, term)?)
    };
    Ok(test)
}

fn field_test(resource: &Resource, term: &str) -> Result<FieldTest, ApiError> {
    let (path, value, equal) = comparison(term).ok_or_else(|| {
        ApiError::bad_request(format!(
            "invalid selector: {term:?}; can't understand {term:?}"
        ))
    })?;
    let of_all = ["metadata.name", "metadata.namespace"];
    if !of_all.contains(&path) && !resource.fields.contains(&path) {
        return Err(ApiError::bad_request(format!(
            "field label not supported: {path}"
        )));
    }
    Ok(FieldTest {
        path: path.to_owned(),
        value: value.to_owned(),
        equal,
    })
}

/// `a=b`, `a==b` and `a!=b`; the flag tells equal from unequal.
fn comparison(term: &str) -> Option<(&str, &str, bool)> {
    let (key, value, equal) = if let Some((key, value)) = term.split_once("!=") {
        (key, value, false)
    } else {
        let (key, value) = term.split_once('=')?;
        (key, value.strip_prefix('=').unwrap_or(value), true)
    };
    Some((key.trim(), value.trim(), equal))
}

fn label_key(key: &str, term: &str) -> Result<String, ApiError> {
    let key = key.trim();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if key.is_empty() || !key.chars().all(allowed) {
        return Err(unparsable(term));
    }
    Ok(key.to_owned())
}

fn unparsable(term: &str) -> ApiError {
    ApiError::bad_request(format!("unable to parse requirement: {term:?}"))
}
