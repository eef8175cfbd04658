//! Paths that an Ingress shares with another one, whichever of the two is served.

use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    layout::PathType,
    object::{ObjectName, ObjectRef},
    provenance::{Decision, Provenance, Subject},
};

use super::paths;

/// A path of a host that two Ingresses define.
#[derive(Debug)]
pub(super) struct Overlap {
    host: Host,
    /// As the Ingress under review writes it, and where.
    path: String,
    key: String,
    path_type: PathType,
    other: ObjectName,
}

/// The paths of an Ingress that others define too, by the decisions of a merge. A canary has none: it only takes a
/// share of what others define. Nor has a default backend.
pub(super) fn find(ingress: &Ingress, name: &ObjectName, provenance: &Provenance) -> Vec<Overlap> {
    let decisions = provenance.hosts.iter();
    let decisions = decisions.flat_map(|(host, all)| all.iter().map(move |one| (host, one)));
    let overlaps = decisions.filter_map(|(host, decision)| {
        let (path, path_type) = shared(decision, name)?;
        let other = claimants(decision).find(|other| *other != name)?;
        let (key, path) = field_of(ingress, host, path)?;
        Some(Overlap {
            host: host.clone(),
            path,
            key,
            path_type,
            other: other.clone(),
        })
    });
    overlaps.collect()
}

impl Overlap {
    /// Whether the two Ingresses shared the path already in another merge.
    pub(super) fn is_in(&self, provenance: &Provenance, name: &ObjectName) -> bool {
        let decisions = provenance.of(&self.host).iter();
        decisions
            .filter(|decision| claimants(decision).any(|claimant| *claimant == self.other))
            .filter_map(|decision| shared(decision, name))
            .any(|(path, path_type)| path_type == self.path_type && is_alike(path, &self.path))
    }

    pub(super) fn diagnostic(&self, about: &ObjectRef, severity: Severity) -> Diagnostic {
        let message = format!(
            "host {:?} and path {:?} is already defined in ingress {}",
            self.host.as_str(),
            self.path,
            self.other
        );
        Diagnostic::new(about.clone(), severity, Reason::PathConflict, message)
            .with_key(self.key.clone())
    }
}

/// The Ingresses that define something, the one that holds it first.
fn claimants(decision: &Decision) -> impl Iterator<Item = &ObjectName> {
    std::iter::once(&decision.winner).chain(&decision.losers)
}

/// The path that was decided about, if the Ingress defines it.
fn shared<'a>(decision: &'a Decision, name: &ObjectName) -> Option<(&'a str, PathType)> {
    match &decision.subject {
        Subject::Path { path, path_type }
            if claimants(decision).any(|claimant| claimant == name) =>
        {
            Some((path, *path_type))
        }
        Subject::Path { .. } | Subject::DefaultBackend | Subject::Tls | Subject::Setting(_) => None,
    }
}

/// Where the Ingress writes the path, and how: of the paths that are alike, exactly like that if it can be.
fn field_of(ingress: &Ingress, host: &Host, path: &str) -> Option<(String, String)> {
    let written = paths(ingress).filter_map(|written| {
        let is_host = Host::parse(written.host).is_ok_and(|parsed| parsed == *host);
        let text = Some(written.path).filter(|text| !text.is_empty());
        let text = text.unwrap_or("/");
        (is_host && is_alike(text, path)).then(|| (written.key, text.to_owned()))
    });
    written.min_by_key(|(_, text)| text != path)
}

/// A final slash may make a difference or not, by what else the host has.
fn is_alike(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}
