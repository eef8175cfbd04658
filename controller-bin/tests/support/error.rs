//! The `Status` bodies the API server answers with when it refuses a request.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::resource::Resource;

/// A refusal: HTTP code, machine-readable reason and message, as in the `Status` kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Value,
    /// Seconds, sent as `Retry-After` too.
    retry_after: Option<u32>,
    /// What an expired `continue` token is answered with, to go on from the latest state.
    continue_token: Option<String>,
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            retry_after: None,
            continue_token: None,
        }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = json!({"name": name, "group": resource.group, "kind": resource.plural});
        self
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// 404: there is no such object.
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.full_name());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    /// 404: there is no such path.
    pub(crate) fn no_such_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
    }

    /// 405: the path is there, but not for this verb.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message)
    }

    /// 409 on create: the name is taken.
    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.full_name());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    /// 409 on write: the writer has not seen the object's latest version.
    pub(crate) fn conflict(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::failed_precondition(resource, name, why)
    }

    /// 409: a precondition (uid, resourceVersion) does not hold.
    pub(crate) fn failed_precondition(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            resource.full_name()
        );
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// 410 for a watch: the changes since that version are no longer known.
    pub(crate) fn too_old(wanted: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {wanted} ({oldest})");
        Self::new(410, "Expired", message)
    }

    /// 410 for a list: the page's snapshot is gone. `token` goes on from the latest state.
    pub(crate) fn continue_expired(token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list \
                       result. You can start a new list without the continue parameter, or use \
                       the continue token in this response to retrieve the remainder of the \
                       results.";
        let mut error = Self::new(410, "Expired", message);
        error.continue_token = Some(token);
        error
    }

    /// 422: the object or an option breaks a rule; `cause` names the field.
    pub(crate) fn invalid(resource: &Resource, name: &str, cause: &str) -> Self {
        let message = format!("{} {name:?} is invalid: {cause}", resource.kind);
        Self::new(422, "Invalid", message).about(resource, name)
    }

    /// 400: the request cannot be understood.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 415: a body format the double does not read.
    pub(crate) fn unsupported_media_type(content_type: &str) -> Self {
        let message = format!("the body of the request was in an unknown format: {content_type:?}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 504: the client has seen a version this server has not reached.
    pub(crate) fn too_large(wanted: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let mut error = Self::new(504, "Timeout", message).retry_after(1);
        error.details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        });
        error
    }

    /// 403, as RBAC answers when a rule is missing.
    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(403, "Forbidden", message)
    }

    /// 429, as priority and fairness answers under load.
    pub(crate) fn too_many_requests(retry_after: u32) -> Self {
        let message = "too many requests, please try again later";
        Self::new(429, "TooManyRequests", message).retry_after(retry_after)
    }

    /// 500.
    pub(crate) fn internal() -> Self {
        Self::new(
            500,
            "InternalError",
            "Internal error occurred: etcdserver: request timed out",
        )
    }

    /// 503.
    pub(crate) fn unavailable() -> Self {
        let message = "the server is currently unable to handle the request";
        Self::new(503, "ServiceUnavailable", message)
    }

    /// The `Status` object, as bodies and ERROR events carry it.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        if let Some(seconds) = self.retry_after {
            status["details"]["retryAfterSeconds"] = json!(seconds);
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = json!(token);
        }
        status
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = StatusCode::from_u16(self.code).expect("codes come from this file");
        let mut response = (code, Json(self.to_status())).into_response();
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
