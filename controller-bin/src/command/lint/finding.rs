//! One thing that is wrong, and all of them.

use std::path::Path;

use clap::ValueEnum;
use ingress_model::{
    Diagnostic, ObjectKind, ObjectName, ObjectRef, Severity,
    manifests::{Ignored, ManifestError, Repeated, Slip, SlipKind},
};
use nginx_render::Source;
use serde::Serialize;

use super::{lost::lost, place::Place};
use crate::command::{nginx::TargetSummary, refused::place};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Something is not served at all.
    Error,
    /// Something is not served as its author meant it, or will not be for long.
    Warning,
    /// Worth knowing.
    Note,
}

impl Level {
    /// The level in one word.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    fn of(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Error,
            Severity::Warning => Self::Warning,
            Severity::Info => Self::Note,
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// What kind of thing it is: the reason of a diagnostic, or one of those below.
    pub(super) reason: &'static str,
    /// The object it is about.
    pub(super) object: Option<ObjectRef>,
    /// The annotation, key or field, as written.
    pub(super) key: Option<String>,
    pub(super) message: String,
    /// Where the object stands, if it comes from a manifest.
    #[serde(flatten)]
    pub(super) place: Option<Place>,
}

impl Finding {
    /// What the rules say.
    pub(super) fn diagnostic(said: &Diagnostic) -> Self {
        Self {
            level: Level::of(said.severity),
            reason: said.reason.as_str(),
            object: Some(said.object.clone()),
            key: said.key.clone(),
            message: said.message.clone(),
            place: None,
        }
    }

    /// A manifest, or a part of one, that cannot be read.
    pub(super) fn broken(error: &ManifestError) -> Self {
        let message = match error.document {
            Some(document) => format!("{document}: {}", error.reason),
            None => match lost(&error.file) {
                Some(lost) => format!("{}; all of the file is left out: {lost}", error.reason),
                None => error.reason.clone(),
            },
        };
        Self {
            level: Level::Error,
            reason: "BrokenManifest",
            object: None,
            key: None,
            message,
            place: Some(Place {
                file: error.file.clone(),
                line: error.line,
                column: error.column,
            }),
        }
    }

    /// An object that several manifests define.
    pub(super) fn repeated(repeated: &Repeated) -> Self {
        Self {
            level: Level::Warning,
            reason: "RepeatedObject",
            object: Some(repeated.object.clone()),
            key: None,
            message: format!(
                "it is defined more than once: what {} says holds, and {} is left out",
                repeated.used.display(),
                repeated.left_out.display()
            ),
            place: None,
        }
    }

    /// An object of a kind that is not read, if its author may think that it is.
    pub(super) fn unread(file: &Path, ignored: &Ignored) -> Option<Self> {
        let advice = ignored.advice?;
        Some(Self {
            level: Level::Warning,
            reason: "UnreadObject",
            object: None,
            key: None,
            message: format!(
                "objects of apiVersion {:?} and kind {:?} are not read: {advice}",
                ignored.api_version, ignored.kind
            ),
            place: Some(Place {
                file: file.to_owned(),
                line: Some(ignored.line),
                column: None,
            }),
        })
    }

    /// Something that an API server would refuse, or drop.
    pub(super) fn slip(file: &Path, slip: Slip) -> Self {
        let (reason, message) = match slip.kind {
            SlipKind::UnknownField => ("UnknownField", slip.message),
            SlipKind::RefusedValue => {
                let message = format!("an API server would refuse this: {}", slip.message);
                ("RefusedByApiServer", message)
            }
        };
        Self {
            level: Level::Error,
            reason,
            object: Some(slip.object),
            key: Some(slip.field),
            message,
            place: slip.line.map(|line| Place {
                file: file.to_owned(),
                line: Some(line),
                column: slip.column,
            }),
        }
    }

    /// A path that the webhook complains of, be it as a reason to refuse its Ingress or as a warning.
    pub(super) fn unadmitted(said: &Diagnostic) -> Self {
        let (level, reason, does) = match said.severity {
            Severity::Error => (Level::Warning, "RefusedByWebhook", "refuses this Ingress"),
            Severity::Warning | Severity::Info => (Level::Note, "OddPath", "warns of it"),
        };
        Self {
            level,
            reason,
            message: format!(
                "it is served, but the webhook {does} (ConfigMap key strict-validate-path-type): {}",
                said.message
            ),
            ..Self::diagnostic(said)
        }
    }

    /// An annotation under a former name.
    pub(super) fn deprecated(ingress: &ObjectName, key: &str, present: &str) -> Self {
        Self {
            level: Level::Warning,
            reason: "DeprecatedAnnotation",
            object: Some(ObjectRef::new(ObjectKind::Ingress, ingress.clone())),
            key: Some(key.to_owned()),
            message: format!("the annotation is called {present} now"),
            place: None,
        }
    }

    /// Something that the renderer could not write down as it was asked for.
    pub(super) fn unrendered(source: &Source, text: &str, config_map: Option<&ObjectName>) -> Self {
        Self::of_source(Level::Warning, "NotRendered", source, text, config_map)
    }

    /// Something that NGINX would refuse.
    pub(super) fn refused(source: &Source, text: &str, config_map: Option<&ObjectName>) -> Self {
        Self::of_source(Level::Error, "RefusedByNginx", source, text, config_map)
    }

    fn of_source(
        level: Level,
        reason: &'static str,
        source: &Source,
        text: &str,
        config_map: Option<&ObjectName>,
    ) -> Self {
        let ingress = source.ingress.as_ref();
        let object = ingress.map(|name| ObjectRef::new(ObjectKind::Ingress, name.clone()));
        let config_map = config_map.map(|name| ObjectRef::new(ObjectKind::ConfigMap, name.clone()));
        Self {
            level,
            reason,
            object: object.or(config_map),
            key: Some(source.what)
                .filter(|what| !matches!(*what, "server" | "location"))
                .map(str::to_owned),
            message: place(source) + text,
            place: None,
        }
    }
}

/// All findings that are told.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// In the order of their places, then of their objects.
    pub(super) findings: Vec<Finding>,
    /// How many there are of each level, told or not.
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) notes: usize,
    /// How many objects were looked at.
    pub(super) objects: usize,
    /// Which NGINX they are for.
    pub(super) nginx: TargetSummary,
}

impl Report {
    /// Of these findings, those of at least `lowest` are told.
    pub(super) fn new(
        mut findings: Vec<Finding>,
        objects: usize,
        nginx: TargetSummary,
        lowest: Level,
    ) -> Self {
        let count = |level| {
            let findings = findings.iter();
            findings.filter(|finding| finding.level == level).count()
        };
        let (errors, warnings, notes) = (
            count(Level::Error),
            count(Level::Warning),
            count(Level::Note),
        );
        findings.retain(|finding| finding.level <= lowest);
        findings.sort_by(|one, other| {
            let key = |finding: &Finding| {
                (
                    finding.place.clone(),
                    finding.object.clone(),
                    finding.level,
                    finding.key.clone(),
                )
            };
            key(one).cmp(&key(other))
        });
        findings.dedup();
        Self {
            findings,
            errors,
            warnings,
            notes,
            objects,
            nginx,
        }
    }
}
