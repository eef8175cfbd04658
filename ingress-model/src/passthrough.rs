//! Hosts whose TLS is passed through to a Service (`ssl-passthrough`).

use std::{collections::BTreeMap, net::IpAddr};

use k8s_openapi::api::core::v1::Service;
use serde::Serialize;

use crate::{
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    hosts::{Entry, Hosts},
    layout::{Location, PathType},
    live::PortRef,
    object::{ObjectKind, ObjectName, ObjectRef},
    services::Services,
};

/// Where connections go that name a host in their first TLS message: a Service's own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Passthrough {
    /// The cluster IP.
    pub address: IpAddr,
    /// The Service's port.
    pub port: u16,
}

/// Finds the Services of the hosts of which an Ingress asks for it: that of the path `/`. Only the host itself counts, not
/// its aliases; a wildcard is no host that a client could name. Why a host has no Service is told to the path's author.
pub(crate) fn find(
    hosts: &Hosts,
    services: &Services,
    diagnostics: &mut Vec<Diagnostic>,
) -> BTreeMap<Host, Passthrough> {
    let mut found = BTreeMap::new();
    for host in &hosts.noted {
        let entry = hosts.entries.get(host);
        let entry = entry.filter(|entry| entry.built.passes_through);
        if host.is_catch_all() || host.is_wildcard() {
            continue;
        }
        let Some((location, ingress)) = entry.and_then(|entry| root(entry)) else {
            continue;
        };
        match target(location, ingress, services) {
            Ok(target) => {
                found.insert(host.clone(), target);
            }
            Err((reason, fault)) => {
                let object = ObjectRef::new(ObjectKind::Ingress, ingress.clone());
                let message = format!("TLS of host {host} is not passed through: {fault}");
                let diagnostic = Diagnostic::new(object, Severity::Warning, reason, message);
                diagnostics.push(diagnostic.with_key("ssl-passthrough"));
            }
        }
    }
    found
}

/// The location for the path `/`, if it is an Ingress's: one with a Service first, and the one for everything below it.
fn root(entry: &Entry) -> Option<(&Location, &ObjectName)> {
    let locations = entry.server.locations.iter();
    let roots = locations.filter(|location| location.ingress_path == "/");
    let root = roots.min_by_key(|location| {
        let is_exact = location.path_type != PathType::Prefix;
        (location.service.is_none(), is_exact)
    })?;
    Some((root, root.ingress.as_ref()?))
}

/// A port that is given by number is taken as it is.
fn target(
    location: &Location,
    ingress: &ObjectName,
    services: &Services,
) -> Result<Passthrough, (Reason, String)> {
    let Some(used) = &location.service else {
        let fault = "the path / has no Service".to_owned();
        return Err((Reason::UnsupportedBackend, fault));
    };
    let name = ingress.sibling(&used.name);
    let served = services.get(&name);
    let Some(service) = served.and_then(|served| served.service.as_ref()) else {
        let fault = format!("Service {name} does not exist");
        return Err((Reason::MissingService, fault));
    };
    let spec = service.spec.as_ref();
    let address = spec.and_then(|spec| spec.cluster_ip.as_deref());
    let Some(address) = address.and_then(|address| address.parse().ok()) else {
        let fault = format!("Service {name} has no cluster IP");
        return Err((Reason::InvalidService, fault));
    };
    let Some(port) = number(service, &used.port) else {
        let fault = format!("Service {name} has no port {}", used.port);
        return Err((Reason::MissingServicePort, fault));
    };
    Ok(Passthrough { address, port })
}

fn number(service: &Service, port: &PortRef) -> Option<u16> {
    let number = match port {
        PortRef::Number(number) => *number,
        PortRef::Name(name) => {
            let ports = service.spec.as_ref()?.ports.as_ref()?;
            let port = ports.iter().find(|port| port.name.as_ref() == Some(name))?;
            port.port
        }
    };
    u16::try_from(number).ok().filter(|number| *number > 0)
}
