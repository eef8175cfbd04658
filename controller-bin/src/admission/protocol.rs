//! AdmissionReviews of `admission.k8s.io/v1` (Kubernetes docs, "Dynamic Admission Control").

use std::borrow::Cow;

use ingress_model::Verdict;
use k8s_openapi::api::networking::v1::Ingress;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tracing::{debug, info};

use super::Review;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// API servers may cut longer warnings off.
const LONGEST_WARNING: usize = 256;

/// So many warnings tell what is wrong; API servers take 4,096 bytes of them altogether.
const MOST_WARNINGS: usize = 16;

/// So many faults tell what is wrong.
const MOST_FAULTS: usize = 100;

/// What stands for the end of a name that is not known yet.
const STAND_IN: &str = "00000";

/// Why a text is no question.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// It is no JSON, or JSON of another shape.
    #[error("cannot read the {KIND}")]
    Json(#[from] serde_json::Error),
    /// It is something else, or of another version.
    #[error("it takes the {KIND} of {API_VERSION}, not the {kind:?} of {api_version:?}")]
    Kind {
        /// Its version.
        api_version: String,
        /// What it is.
        kind: String,
    },
    /// It asks nothing.
    #[error("the {KIND} has no request")]
    NoRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: String,
    kind: GroupVersionKind,
    sub_resource: Option<String>,
    operation: String,
    namespace: Option<String>,
    name: Option<String>,
    /// Read once it is known to be an Ingress.
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GroupVersionKind {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    api_version: &'static str,
    kind: &'static str,
    response: Response,
}

#[derive(Serialize)]
struct Response {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Failure>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Failure {
    status: &'static str,
    message: String,
    reason: &'static str,
    code: u16,
}

/// Answers a question, both as JSON.
///
/// # Errors
///
/// When the text is no question.
pub fn answer(question: &[u8], reviewer: &dyn Review) -> Result<Vec<u8>, QuestionError> {
    let question: Question<'_> = serde_json::from_slice(question)?;
    if question.api_version != API_VERSION || question.kind != KIND {
        return Err(QuestionError::Kind {
            api_version: question.api_version.into_owned(),
            kind: question.kind.into_owned(),
        });
    }
    let request = question.request.ok_or(QuestionError::NoRequest)?;
    let (refusal, warnings) = match request.ingress() {
        Ok(Some(ingress)) => judge(&ingress, reviewer),
        Ok(None) => (None, Vec::new()),
        Err(refusal) => (Some(refusal), Vec::new()),
    };
    let answer = Answer {
        api_version: API_VERSION,
        kind: KIND,
        response: Response {
            uid: request.uid,
            allowed: refusal.is_none(),
            status: refusal.map(|message| Failure {
                status: "Failure",
                message,
                reason: "BadRequest",
                code: 400,
            }),
            warnings,
        },
    };
    Ok(serde_json::to_vec(&answer)?)
}

impl Request<'_> {
    /// The Ingress in question; `None` when it does not matter; or why there is none.
    fn ingress(&self) -> Result<Option<Ingress>, String> {
        let GroupVersionKind {
            group,
            version,
            kind,
        } = &self.kind;
        let known = ("networking.k8s.io", "v1", "Ingress");
        if (group.as_str(), version.as_str(), kind.as_str()) != known {
            return Err(format!(
                "this webhook reviews Ingresses of networking.k8s.io/v1, not {kind:?} of \"{group}/{version}\"; leave \
                 other kinds out of its rules"
            ));
        }
        let is_part = self
            .sub_resource
            .as_ref()
            .is_some_and(|name| !name.is_empty());
        if is_part || !matches!(self.operation.as_str(), "CREATE" | "UPDATE") {
            return Ok(None);
        }
        let Some(object) = self.object else {
            return Err("the review holds no object".into());
        };
        let ingress = serde_json::from_str::<Ingress>(object.get());
        let mut ingress = ingress.map_err(|error| format!("cannot read the Ingress: {error}"))?;
        let metadata = &mut ingress.metadata;
        for (field, known) in [
            (&mut metadata.namespace, &self.namespace),
            (&mut metadata.name, &self.name),
        ] {
            if field.is_none() {
                field.clone_from(known);
            }
        }
        // Who has the API server find a name asks before it has done so.
        let prefix = metadata.generate_name.as_ref();
        if metadata.name.as_ref().is_none_or(String::is_empty) {
            metadata.name = prefix.map(|prefix| format!("{prefix}{STAND_IN}"));
        }
        Ok(Some(ingress))
    }
}

fn judge(ingress: &Ingress, reviewer: &dyn Review) -> (Option<String>, Vec<String>) {
    let verdict: Verdict = reviewer.review(ingress);
    let namespace = ingress.metadata.namespace.as_deref().unwrap_or_default();
    let name = ingress.metadata.name.as_deref().unwrap_or_default();
    let refusal = verdict.refusal().map(shortened);
    if let Some(message) = &refusal {
        info!(namespace, name, message, "refused an Ingress");
    } else {
        debug!(namespace, name, "allowed an Ingress");
    }
    (refusal, warnings(&verdict))
}

/// The first of a refusal's lines, if there are many.
fn shortened(refusal: String) -> String {
    let more = refusal.lines().count().saturating_sub(MOST_FAULTS);
    if more == 0 {
        return refusal;
    }
    let first: Vec<_> = refusal.lines().take(MOST_FAULTS).collect();
    format!("{}\nand {more} more", first.join("\n"))
}

fn warnings(verdict: &Verdict) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for line in verdict.warning_lines().map(|line| presentable(&line)) {
        if told.contains(&line) {
            continue;
        }
        if told.len() == MOST_WARNINGS {
            told.push("there are more warnings, which are not told here".to_owned());
            break;
        }
        told.push(line);
    }
    told
}

/// Warnings travel in headers: one line each, and not a long one.
fn presentable(warning: &str) -> String {
    const CUT: &str = "...";
    let mut line = warning.replace(char::is_control, " ");
    if line.len() > LONGEST_WARNING {
        let end = line.floor_char_boundary(LONGEST_WARNING - CUT.len());
        line.truncate(end);
        line.push_str(CUT);
    }
    line
}

#[cfg(test)]
mod tests {
    use ingress_model::{Diagnostic, ObjectKind, ObjectName, ObjectRef, Reason, Severity};
    use serde_json::{Value, json};

    use super::*;

    fn request(change: impl FnOnce(&mut Value)) -> Value {
        let mut review = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "42",
                "kind": {"group": "networking.k8s.io", "version": "v1", "kind": "Ingress"},
                "resource": {"group": "networking.k8s.io", "version": "v1", "resource": "ingresses"},
                "operation": "CREATE",
                "namespace": "shop",
                "name": "web",
                "userInfo": {},
                "object": {
                    "apiVersion": "networking.k8s.io/v1",
                    "kind": "Ingress",
                    "metadata": {"name": "web"},
                },
                "oldObject": null,
            },
        });
        change(&mut review["request"]);
        review
    }

    fn diagnostic(message: &str) -> Diagnostic {
        let about = ObjectRef::new(ObjectKind::Ingress, ObjectName::new("shop", "web"));
        Diagnostic::new(about, Severity::Error, Reason::InvalidPath, message)
    }

    /// Finds fault with everything, and says what it was shown.
    fn strict(ingress: &Ingress) -> Verdict {
        let metadata = &ingress.metadata;
        Verdict {
            faults: vec![diagnostic(&format!(
                "{:?} {:?}",
                metadata.namespace.as_deref(),
                metadata.name.as_deref()
            ))],
            warnings: vec![diagnostic("a\nb"), diagnostic(&"ä".repeat(200))],
        }
    }

    fn ask(review: &Value, reviewer: &dyn Review) -> Value {
        let answer = answer(review.to_string().as_bytes(), reviewer).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer["response"]["uid"], "42");
        answer["response"].clone()
    }

    #[test]
    fn a_verdict_becomes_a_response() {
        let fine = ask(&request(|_| {}), &|_: &Ingress| Verdict::default());
        assert_eq!(fine, json!({"uid": "42", "allowed": true}));
        let refused = ask(&request(|_| {}), &strict);
        assert_eq!(refused["allowed"], false);
        assert_eq!(
            refused["status"],
            json!({
                "status": "Failure",
                "message": "Some(\"shop\") Some(\"web\")",
                "reason": "BadRequest",
                "code": 400,
            })
        );
        assert_eq!(refused["warnings"][0], "a\\nb");
        let long = refused["warnings"][1].as_str().unwrap();
        assert_eq!((long.len(), long.ends_with("ä...")), (255, true));
    }

    #[test]
    fn a_name_that_is_not_known_yet_is_no_fault() {
        for name in [Value::Null, "".into()] {
            let review = request(|request| {
                request["name"] = "".into();
                request["object"]["metadata"] = json!({"generateName": "web-", "name": name});
            });
            let response = ask(&review, &strict);
            let message = response["status"]["message"].as_str().unwrap();
            assert!(message.ends_with("Some(\"web-00000\")"), "{message}");
        }
    }

    #[test]
    fn the_first_of_many_faults_are_told() {
        let faulty = |count: usize| {
            let verdict = move |_: &Ingress| Verdict {
                faults: (0..count).map(|n| diagnostic(&n.to_string())).collect(),
                warnings: Vec::new(),
            };
            let response = ask(&request(|_| {}), &verdict);
            response["status"]["message"].as_str().unwrap().to_owned()
        };
        assert!(faulty(MOST_FAULTS).ends_with("\n99"));
        assert!(faulty(MOST_FAULTS + 7).ends_with("\n99\nand 7 more"));
    }

    #[test]
    fn warnings_are_told_once_and_not_all_of_many() {
        let chatty = |_: &Ingress| Verdict {
            faults: Vec::new(),
            warnings: (0..100)
                .map(|n| diagnostic(&format!("number {}", n / 2)))
                .collect(),
        };
        let response = ask(&request(|_| {}), &chatty);
        let warnings = response["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), MOST_WARNINGS + 1);
        assert_eq!(warnings[1], "number 1");
        let last = warnings[MOST_WARNINGS].as_str().unwrap();
        assert!(last.contains("more warnings"), "{last}");
    }

    #[test]
    fn what_changes_no_ingress_is_allowed() {
        for (field, value) in [
            ("operation", "DELETE"),
            ("operation", "CONNECT"),
            ("subResource", "status"),
        ] {
            let review = request(|request| {
                request[field] = value.into();
                request["object"] = Value::Null;
            });
            assert_eq!(ask(&review, &strict)["allowed"], true, "{value}");
        }
    }

    #[test]
    fn what_cannot_be_judged_is_refused() {
        for (field, value, words) in [
            ("object", Value::Null, "no object"),
            ("object", json!({"spec": 1}), "cannot read the Ingress"),
            ("object", json!("x"), "cannot read the Ingress"),
            (
                "kind",
                json!({"version": "v1", "kind": "Pod"}),
                "not \"Pod\" of \"/v1\"",
            ),
            (
                "kind",
                json!({"group": "networking.k8s.io", "version": "v1beta1", "kind": "Ingress"}),
                "v1beta1",
            ),
        ] {
            let review = request(|request| request[field] = value);
            let response = ask(&review, &|_: &Ingress| Verdict::default());
            assert_eq!(response["allowed"], false);
            let message = response["status"]["message"].as_str().unwrap();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn anything_else_is_no_question() {
        let other = |field: &str, value: &str| {
            let mut review = request(|_| {});
            review[field] = value.into();
            review.to_string()
        };
        for (text, words) in [
            (String::new(), "cannot read"),
            ("[".repeat(100_000), "cannot read"),
            ("null".into(), "cannot read"),
            (other("kind", "Status"), "Status"),
            (other("apiVersion", "admission.k8s.io/v1beta1"), "v1beta1"),
            ("{}".into(), "not the \"\" of \"\""),
            (
                r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#.into(),
                "no request",
            ),
        ] {
            let error = answer(text.as_bytes(), &strict).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(answer(b"\xff", &strict).is_err());
    }

    #[test]
    fn a_namespace_in_the_object_counts() {
        let review = request(|request| {
            request["object"]["metadata"] = json!({"namespace": "bank", "name": "x"});
        });
        let response = ask(&review, &strict);
        assert_eq!(response["status"]["message"], "Some(\"bank\") Some(\"x\")");
    }
}
