//! What the rules have to say about objects: becomes a log line, an Event, a row of `explain` or a webhook's refusal.

use std::fmt;

use serde::Serialize;

use crate::object::ObjectRef;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Severity {
    /// Worth knowing; everything is served as written.
    Info,
    /// Something is not served as its author meant it.
    Warning,
    /// Something is not served at all.
    Error,
}

/// Why a [`Diagnostic`] was made: a closed list, so that tools can match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Reason {
    /// The Ingress is for another class.
    ForeignClass,
    /// The Ingress names an IngressClass that does not exist.
    MissingClass,
    /// The Ingress is outside the watched namespaces.
    ForeignNamespace,
    /// `spec.defaultBackend` while `--disable-catch-all` is set.
    CatchAllDisabled,
    /// Deep inspection found text that could smuggle configuration.
    SuspiciousText,
    /// A host that is no DNS name.
    InvalidHost,
    /// A path that NGINX could not serve.
    InvalidPath,
    /// An annotation's value cannot be used.
    InvalidAnnotation,
    /// An annotation under our prefix that does not exist.
    UnknownAnnotation,
    /// An annotation that the administrator does not allow (risk level, snippets, blocked words).
    RefusedAnnotation,
    /// A ConfigMap key's value cannot be used; the default holds.
    InvalidConfigKey,
    /// A ConfigMap key that does not exist.
    UnknownConfigKey,
    /// A ConfigMap key that this version does not act on yet.
    UnsupportedConfigKey,
    /// A backend that is not a Service.
    UnsupportedBackend,
    /// A Service that does not exist.
    MissingService,
    /// A port that the Service does not have.
    MissingServicePort,
    /// A Service that cannot give endpoints (for example a refused external name).
    InvalidService,
    /// A Secret that does not exist.
    MissingSecret,
    /// A Secret whose content cannot be used.
    InvalidSecret,
    /// A ConfigMap that does not exist.
    MissingConfigMap,
    /// The certificate is not for the host; the default certificate is served.
    CertificateMismatch,
    /// The certificate has expired or soon will.
    CertificateExpiry,
    /// Another Ingress holds the host and path.
    PathConflict,
    /// Another Ingress holds the host's TLS section.
    TlsConflict,
    /// Another Ingress holds a server-level setting of the host.
    ServerSettingConflict,
    /// Another server holds the alias, or the name that was to be redirected.
    AliasConflict,
    /// A canary Ingress without a main one for its host and path.
    OrphanCanary,
    /// A canary Ingress whose main backend has another canary already.
    CanaryConflict,
    /// A canary Ingress that acts for paths that it does not name, since they share its main backend.
    SharedCanary,
    /// A TCP or UDP service entry that cannot be used.
    InvalidStreamService,
    /// What NGINX refuses. No merge says so: those do who have asked NGINX, or read the configuration as it does.
    RefusedByNginx,
    /// What the configuration leaves out although it was asked for. No merge says so: those do who have rendered it.
    NotRendered,
}

impl Reason {
    /// The reason as an Event carries it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ForeignClass => "ForeignClass",
            Self::MissingClass => "MissingClass",
            Self::ForeignNamespace => "ForeignNamespace",
            Self::CatchAllDisabled => "CatchAllDisabled",
            Self::SuspiciousText => "SuspiciousText",
            Self::InvalidHost => "InvalidHost",
            Self::InvalidPath => "InvalidPath",
            // The name under which ingress-nginx's users know it.
            Self::InvalidAnnotation => "AnnotationParsingFailed",
            Self::UnknownAnnotation => "UnknownAnnotation",
            Self::RefusedAnnotation => "RefusedAnnotation",
            Self::InvalidConfigKey => "InvalidConfigKey",
            Self::UnknownConfigKey => "UnknownConfigKey",
            Self::UnsupportedConfigKey => "UnsupportedConfigKey",
            Self::UnsupportedBackend => "UnsupportedBackend",
            Self::MissingService => "MissingService",
            Self::MissingServicePort => "MissingServicePort",
            Self::InvalidService => "InvalidService",
            Self::MissingSecret => "MissingSecret",
            Self::InvalidSecret => "InvalidSecret",
            Self::MissingConfigMap => "MissingConfigMap",
            Self::CertificateMismatch => "CertificateMismatch",
            Self::CertificateExpiry => "CertificateExpiry",
            Self::PathConflict => "PathConflict",
            Self::TlsConflict => "TlsConflict",
            Self::ServerSettingConflict => "ServerSettingConflict",
            Self::AliasConflict => "AliasConflict",
            Self::OrphanCanary => "OrphanCanary",
            Self::CanaryConflict => "CanaryConflict",
            Self::SharedCanary => "SharedCanary",
            Self::InvalidStreamService => "InvalidStreamService",
            Self::RefusedByNginx => "RefusedByNginx",
            Self::NotRendered => "NotRendered",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that an object's author or the operator should know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// The object it is about.
    pub object: ObjectRef,
    /// The annotation, ConfigMap key or field it is about, as written.
    pub key: Option<String>,
    /// How bad it is.
    pub severity: Severity,
    /// What kind of thing it is.
    pub reason: Reason,
    /// The fault and, where one is known, the cure. Lower case, no full stop; never a Secret's content.
    pub message: String,
}

/// The text with control characters spelt out: it may quote what an author wrote, and is to look like nobody else's line
/// in a log.
fn one_line(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    let mut line = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

impl Diagnostic {
    /// About the object as a whole.
    #[must_use]
    pub fn new(
        object: ObjectRef,
        severity: Severity,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            object,
            key: None,
            severity,
            reason,
            message: one_line(message.into()),
        }
    }

    /// About one annotation, key or field of the object.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.object)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{} ({})", self.message, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        let message = |text: &str| one_line(text.to_owned());
        assert_eq!(
            message("Secret a/ä \"x\" does not exist"),
            "Secret a/ä \"x\" does not exist"
        );
        assert_eq!(
            message("a\nERROR b\r\tc\u{7f}"),
            "a\\nERROR b\\r\\tc\\u{7f}"
        );
    }
}
