//! Whether an Ingress may be stored, before it is: what a validating webhook answers.
//!
//! There is no second set of rules: the Ingress is merged with those that share a host with it, and what the merge has
//! to say about it is weighed. Of the faults that refuse an Ingress, all are told, in the order of [`ORDER`].
//!
//! An Ingress that is not ours, by class or namespace, is allowed without a word, as is one that is being deleted.
//! Objects that an Ingress refers to need not exist yet: what is missing, or cannot be used, is a warning. Nor is it known
//! here whether NGINX would load the configuration; whoever renders it can add its own faults to a [`Verdict`].

mod index;
mod overlap;

use jiff::Timestamp;
use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    annotation,
    config::GlobalConfig,
    diagnostic::{Diagnostic, Reason, Severity},
    merge::{Merger, merge},
    object::{ObjectKind, ObjectMap, ObjectName, ObjectRef},
    options::Options,
    snapshot::Snapshot,
};

pub use self::index::AdmissionIndex;

/// Reasons for which an Ingress is refused, the most general first.
const ORDER: [Reason; 8] = [
    Reason::CatchAllDisabled,
    Reason::SuspiciousText,
    Reason::InvalidHost,
    Reason::InvalidPath,
    Reason::UnknownAnnotation,
    Reason::RefusedAnnotation,
    Reason::InvalidAnnotation,
    Reason::PathConflict,
];

/// What is said about an Ingress that somebody wants to store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why it is refused. None: it is allowed.
    pub faults: Vec<Diagnostic>,
    /// What its author should know in either case.
    pub warnings: Vec<Diagnostic>,
}

impl Verdict {
    /// Whether it may be stored.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.faults.is_empty()
    }

    /// Why it may not be stored, for its author: a line a fault. `None` when it may.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        if self.is_allowed() {
            return None;
        }
        let lines: Vec<_> = self.faults.iter().map(line).collect();
        Some(lines.join("\n"))
    }

    /// The warnings, for its author: a line each.
    pub fn warning_lines(&self) -> impl Iterator<Item = String> {
        self.warnings.iter().map(line)
    }

    fn weigh(&mut self, diagnostic: Diagnostic) {
        match weight(&diagnostic) {
            Weight::Fault => self.faults.push(diagnostic),
            Weight::Warning => self.warnings.push(diagnostic),
            Weight::Nothing => {}
        }
    }
}

/// Says whether an Ingress may be stored, given the objects that there are. An older version of it may be among them.
///
/// Its cost grows with the number of Ingresses; to look at the right ones only, give it an
/// [excerpt](AdmissionIndex::excerpt).
///
/// ```
/// use ingress_model::{Options, Snapshot, admit};
/// use k8s_openapi::api::networking::v1::Ingress;
///
/// // It names no class, so that it is another controller's.
/// let verdict = admit(&Ingress::default(), &Snapshot::default(), &Options::default());
/// assert!(verdict.is_allowed());
/// ```
#[must_use]
pub fn admit(candidate: &Ingress, snapshot: &Snapshot, options: &Options) -> Verdict {
    if candidate.metadata.deletion_timestamp.is_some() {
        return Verdict::default();
    }
    let name = name_of(candidate);
    let about = ObjectRef::new(ObjectKind::Ingress, name.clone());
    let excerpt = AdmissionIndex::default().excerpt(snapshot, candidate, options);
    let stored = without_references(&excerpt, options);
    let mut reviewed = stored.clone();
    reviewed.ingresses.insert(name.clone(), candidate.clone());
    // The verdict depends on no certificate, and so on no time.
    let mut merger = Merger::default();
    let outcome = merger.merge(&reviewed, options, Timestamp::UNIX_EPOCH);
    let said = outcome.diagnostics.into_iter();
    let said: Vec<_> = said.filter(|said| said.object == about).collect();
    if said.iter().any(is_foreign) {
        return Verdict::default();
    }

    let mut verdict = Verdict::default();
    verdict.faults.extend(check_uid(candidate, &about));
    for odd in odd_paths(candidate, snapshot, options) {
        if odd.severity == Severity::Error {
            verdict.faults.push(odd);
        } else {
            verdict.warnings.push(odd);
        }
    }
    let referring = Snapshot {
        ingresses: reviewed.ingresses,
        ..excerpt
    };
    let referring = merger.merge(&referring, options, Timestamp::UNIX_EPOCH);
    let of_references = referring.diagnostics.into_iter().filter(|told| {
        let is_new = is_of_reference(told.reason) || !said.contains(told);
        told.object == about && is_new && told.reason != Reason::CertificateExpiry
    });
    let of_references: Vec<_> = of_references.collect();
    for diagnostic in said {
        verdict.weigh(diagnostic);
    }
    verdict.warnings.extend(of_references);
    verdict
        .warnings
        .extend(former_names(candidate, &about, options));
    let overlaps = overlap::find(candidate, &name, &outcome.provenance);
    if !overlaps.is_empty() {
        // Who shares a path already may go on doing so: otherwise neither of the two could be edited any more.
        let before = merge(&stored, options, Timestamp::UNIX_EPOCH).provenance;
        for overlap in overlaps {
            if overlap.is_in(&before, &name) {
                let warning = overlap.diagnostic(&about, Severity::Warning);
                verdict.warnings.push(warning);
            } else {
                let fault = overlap.diagnostic(&about, Severity::Error);
                verdict.faults.push(fault);
            }
        }
    }
    let rank = |fault: &Diagnostic| ORDER.iter().position(|reason| *reason == fault.reason);
    verdict.faults.sort_by_key(rank);
    verdict
}

/// The paths of an Ingress that look like regular expressions although their type says that they are none.
///
/// They are served all the same; but as errors, with `strict-validate-path-type`, they keep a new version of the Ingress
/// from being stored, and are warnings without.
///
/// ```
/// use ingress_model::{Options, Severity, Snapshot, odd_paths};
/// use k8s_openapi::api::networking::v1::{
///     HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressRule, IngressSpec,
/// };
///
/// let path = HTTPIngressPath {
///     path: Some("/cart(/|$)(.*)".into()),
///     path_type: "Prefix".into(),
///     ..HTTPIngressPath::default()
/// };
/// let http = Some(HTTPIngressRuleValue { paths: vec![path] });
/// let rules = Some(vec![IngressRule { http, ..IngressRule::default() }]);
/// let spec = Some(IngressSpec { rules, ..IngressSpec::default() });
/// let ingress = Ingress { spec, ..Ingress::default() };
/// let odd = odd_paths(&ingress, &Snapshot::default(), &Options::default());
/// assert_eq!(odd.len(), 1);
/// assert_eq!(odd[0].severity, Severity::Error);
/// ```
#[must_use]
pub fn odd_paths(candidate: &Ingress, snapshot: &Snapshot, options: &Options) -> Vec<Diagnostic> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/".contains(&b);
    let is_odd = |written: &Written<'_>| {
        let path = written.path;
        let is_plain = path.starts_with('/') && path.bytes().all(plain);
        written.path_type != "ImplementationSpecific" && !path.is_empty() && !is_plain
    };
    let mut odd = paths(candidate).filter(is_odd).peekable();
    if odd.peek().is_none() {
        return Vec::new();
    }
    let config = options.config_map.as_ref();
    let config = config.and_then(|name| snapshot.config_maps.get(name));
    let config = config.map_or_else(GlobalConfig::default, |map| {
        GlobalConfig::parse(map, &mut Vec::new())
    });
    let severity = if config.policy.strict_validate_path_type {
        Severity::Error
    } else {
        Severity::Warning
    };
    let about = ObjectRef::new(ObjectKind::Ingress, name_of(candidate));
    let fault = |written: Written<'_>| {
        let message = format!(
            "path {:?} cannot be used with pathType {}: it takes / and then letters, digits, '.', '_', '-' and '/'; \
             regular expressions need pathType ImplementationSpecific",
            written.path, written.path_type
        );
        Diagnostic::new(about.clone(), severity, Reason::InvalidPath, message).with_key(written.key)
    };
    odd.map(fault).collect()
}

/// A snapshot in which nothing is to be found that Ingresses refer to.
fn without_references(snapshot: &Snapshot, options: &Options) -> Snapshot {
    let own = options.config_map.as_ref();
    let own = own.and_then(|name| Some((name.clone(), snapshot.config_maps.get(name)?.clone())));
    Snapshot {
        services: ObjectMap::default(),
        secrets: ObjectMap::default(),
        config_maps: own.into_iter().collect(),
        ..snapshot.clone()
    }
}

/// Annotations under a name that they had once.
fn former_names(candidate: &Ingress, about: &ObjectRef, options: &Options) -> Vec<Diagnostic> {
    let keys = candidate.metadata.annotations.iter().flatten();
    let former = keys.filter_map(|(key, _)| {
        let (prefix, written) = key.split_once('/')?;
        let info = annotation::find(written).filter(|info| info.name != written)?;
        let message = format!("is deprecated; write {prefix}/{}", info.name);
        let reason = Reason::UnknownAnnotation;
        let warning = Diagnostic::new(about.clone(), Severity::Warning, reason, message);
        (prefix == options.annotations_prefix).then(|| warning.with_key(key))
    });
    former.collect()
}

fn name_of(ingress: &Ingress) -> ObjectName {
    ObjectName::new(
        ingress.metadata.namespace.as_deref().unwrap_or_default(),
        ingress.metadata.name.as_deref().unwrap_or_default(),
    )
}

/// What a diagnostic of the merge means for a verdict.
enum Weight {
    Fault,
    Warning,
    Nothing,
}

fn weight(diagnostic: &Diagnostic) -> Weight {
    match diagnostic.reason {
        Reason::CatchAllDisabled
        | Reason::SuspiciousText
        | Reason::InvalidHost
        | Reason::InvalidPath
        | Reason::RefusedAnnotation => Weight::Fault,
        Reason::InvalidAnnotation => match diagnostic.severity {
            // The Ingress, or its locations, would not be served.
            Severity::Error => Weight::Fault,
            Severity::Warning => Weight::Warning,
            Severity::Info => Weight::Nothing,
        },
        Reason::UnknownAnnotation => match diagnostic.severity {
            // It has the usual prefix where another one is read, and was surely meant for us.
            Severity::Info => Weight::Fault,
            Severity::Warning | Severity::Error => Weight::Warning,
        },
        Reason::UnsupportedBackend
        | Reason::TlsConflict
        | Reason::ServerSettingConflict
        | Reason::OrphanCanary
        | Reason::CanaryConflict
        | Reason::SharedCanary => Weight::Warning,
        // Those who are not ours have been let pass; overlaps are found whoever wins.
        Reason::ForeignClass
        | Reason::MissingClass
        | Reason::ForeignNamespace
        | Reason::PathConflict
        // Objects that need not exist yet, which are looked at by themselves.
        | Reason::MissingService
        | Reason::MissingServicePort
        | Reason::InvalidService
        | Reason::MissingSecret
        | Reason::InvalidSecret
        | Reason::MissingConfigMap
        | Reason::CertificateMismatch
        | Reason::CertificateExpiry
        // Servers of other hosts, which are not looked at.
        | Reason::AliasConflict
        // Nothing about Ingresses.
        | Reason::InvalidConfigKey
        | Reason::UnknownConfigKey
        | Reason::UnsupportedConfigKey
        | Reason::InvalidStreamService
        // Said by those who render; the webhook does so itself.
        | Reason::RefusedByNginx
        | Reason::NotRendered => Weight::Nothing,
    }
}

/// Whether it is about an object that the Ingress refers to.
fn is_of_reference(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::MissingService
            | Reason::MissingServicePort
            | Reason::InvalidService
            | Reason::MissingSecret
            | Reason::InvalidSecret
            | Reason::MissingConfigMap
            | Reason::CertificateMismatch
    )
}

fn is_foreign(diagnostic: &Diagnostic) -> bool {
    matches!(
        diagnostic.reason,
        Reason::ForeignClass | Reason::MissingClass | Reason::ForeignNamespace
    )
}

/// The API server gives every object a UUID before it asks a webhook. What has no UID has not been stored yet, or never
/// will be: somebody tries it out.
fn check_uid(candidate: &Ingress, about: &ObjectRef) -> Option<Diagnostic> {
    let uid = candidate.metadata.uid.as_deref()?;
    let groups: Vec<_> = uid.split('-').collect();
    let lengths = groups.iter().map(|group| group.len());
    let is_hex = |group: &&str| group.bytes().all(|b| b.is_ascii_hexdigit());
    if lengths.eq([8, 4, 4, 4, 12]) && groups.iter().all(is_hex) {
        return None;
    }
    let message = "it is no UUID (groups of 8, 4, 4, 4 and 12 hexadecimal digits)";
    let reason = Reason::SuspiciousText;
    let fault = Diagnostic::new(about.clone(), Severity::Error, reason, message);
    Some(fault.with_key("metadata.uid"))
}

/// A path as it stands in an Ingress.
struct Written<'a> {
    /// The field.
    key: String,
    host: &'a str,
    path: &'a str,
    path_type: &'a str,
}

fn paths(ingress: &Ingress) -> impl Iterator<Item = Written<'_>> {
    let rules = ingress.spec.iter().flat_map(|spec| &spec.rules).flatten();
    rules.enumerate().flat_map(|(i, rule)| {
        let paths = rule.http.iter().flat_map(|http| &http.paths).enumerate();
        paths.map(move |(j, path)| Written {
            key: format!("spec.rules[{i}].http.paths[{j}].path"),
            host: rule.host.as_deref().unwrap_or_default(),
            path: path.path.as_deref().unwrap_or_default(),
            path_type: &path.path_type,
        })
    })
}

/// A diagnostic for somebody who knows which object it is about.
fn line(diagnostic: &Diagnostic) -> String {
    match &diagnostic.key {
        Some(key) => format!("{key}: {}", diagnostic.message),
        None => diagnostic.message.clone(),
    }
}
