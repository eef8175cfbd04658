//! What NGINX would say about an Ingress, as far as that can be told without it.

use ingress_model::{
    Diagnostic, Layout, ObjectKind, ObjectName, ObjectRef, Server, Severity, Snapshot,
    diagnostic::Reason,
};
use k8s_openapi::api::networking::v1::Ingress;
use nginx_render::{
    Capabilities, Environment, Renderer,
    syntax::{self, Directives, Fault},
};

use crate::{guard::guard, variables};

/// Renders what an Ingress makes of the configuration, and reads it as NGINX would.
#[derive(Debug)]
pub struct Inspector {
    /// What NGINX can do.
    pub capabilities: Capabilities,
    /// Where it runs.
    pub environment: Environment,
    /// The directives and variables that it knows.
    pub directives: Directives,
}

/// What an inspection found.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) faults: Vec<Diagnostic>,
    /// How many bytes were read.
    pub(super) size: usize,
    /// How many Ingresses had a part in them.
    pub(super) ingresses: usize,
}

impl Inspector {
    /// Looks at the servers that an Ingress has a part in. What others do wrong there is not told. The snapshot is of all
    /// Ingresses: variables that one of them defines are known to all.
    pub(super) fn inspect(
        &self,
        layout: &Layout,
        ingress: &Ingress,
        name: &ObjectName,
        snapshot: &Snapshot,
    ) -> Findings {
        let layout = servers_of(layout, name);
        let mut owners: Vec<_> = layout
            .servers
            .values()
            .flat_map(|server| owners(server))
            .collect();
        owners.sort();
        owners.dedup();
        let mut findings = Findings {
            ingresses: owners.len(),
            ..Findings::default()
        };
        let mut renderer = Renderer::new(self.capabilities.clone(), self.environment.clone());
        // Whatever cannot be rendered is not the fault of one Ingress: those become notes.
        let Ok(Ok(rendered)) = guard("rendering", || renderer.render(&layout)) else {
            return findings;
        };
        findings.size = rendered.main.len();
        let faults = syntax::check(&rendered, &self.directives).into_iter();
        let own = faults.filter(|fault| fault.source.ingress.as_ref() == Some(name));
        findings.faults = own
            .filter_map(|fault| diagnostic(ingress, name, &fault, snapshot))
            .collect();
        findings
    }
}

/// The servers that an Ingress has a part in, and the one for all other hosts, which there has to be.
pub(super) fn servers_of(layout: &Layout, name: &ObjectName) -> Layout {
    let mut layout = layout.clone();
    layout
        .servers
        .retain(|host, server| host.is_catch_all() || has_part(server, name));
    layout
}

fn has_part(server: &Server, name: &ObjectName) -> bool {
    owners(server).any(|owner| owner == name)
}

fn owners(server: &Server) -> impl Iterator<Item = &ObjectName> {
    let locations = server.locations.iter();
    let locations = locations.filter_map(|location| location.ingress.as_ref());
    let snippet = server.snippet.iter().map(|snippet| &snippet.ingress);
    let auth = server.client_auth.iter().map(|auth| &auth.ingress);
    locations.chain(snippet).chain(auth)
}

/// What NGINX itself says against an Ingress.
pub(super) fn fault_of_nginx(name: &ObjectName, reason: &str) -> Diagnostic {
    let about = ObjectRef::new(ObjectKind::Ingress, name.clone());
    let message = format!("nginx refuses what it makes of the configuration: {reason}");
    Diagnostic::new(about, Severity::Error, Reason::InvalidAnnotation, message)
}

/// A fault for the Ingress's author; `None` when it may be none.
fn diagnostic(
    ingress: &Ingress,
    name: &ObjectName,
    fault: &Fault,
    snapshot: &Snapshot,
) -> Option<Diagnostic> {
    let about = ObjectRef::new(ObjectKind::Ingress, name.clone());
    let Fault {
        source,
        reason,
        variable,
    } = fault;
    if let Some(variable) = variable {
        let key = variables::annotation_with(ingress, variable)?;
        if variables::is_defined_by_any(snapshot, variable) {
            return None;
        }
        let kind = Reason::InvalidAnnotation;
        let fault = Diagnostic::new(about, Severity::Error, kind, reason.as_str());
        return Some(fault.with_key(key));
    }
    let is_snippet = source.what.ends_with("-snippet");
    let path = source.path.as_ref().filter(|_| !is_snippet);
    let message = match path {
        Some(path) => format!("path {path:?}: {reason}"),
        None => reason.clone(),
    };
    let kind = if path.is_some() {
        Reason::InvalidPath
    } else {
        Reason::InvalidAnnotation
    };
    let diagnostic = Diagnostic::new(about, Severity::Error, kind, message);
    Some(match annotation_of(ingress, source.what) {
        Some(key) => diagnostic.with_key(key),
        None => diagnostic,
    })
}

/// The annotation of that name as the Ingress has it, with its prefix.
fn annotation_of<'a>(ingress: &'a Ingress, name: &str) -> Option<&'a str> {
    let mut keys = ingress.metadata.annotations.iter().flatten();
    keys.find_map(|(key, _)| {
        let (_, written) = key.split_once('/')?;
        (written == name).then_some(key.as_str())
    })
}
