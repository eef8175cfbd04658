//! Backends: peers, balancing, affinity and canaries of each upstream.

mod balance;

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc};

use hashbrown::HashSet;

use crate::{
    canary::Canaries,
    context::Context,
    diagnostic::{Diagnostic, Reason, Severity},
    endpoints::{self, Peers, Protocol, Query},
    hosts::Hosts,
    live::{Backend, Endpoint, PortRef, UpstreamName},
    object::{ObjectKind, ObjectName, ObjectRef},
    services::Services,
    shared_map::SharedMap,
    stand_in::StandIns,
    upstream::{Upstreams, User},
};

/// What backends are built from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) context: &'a Context,
    pub(crate) services: &'a Services,
    pub(crate) hosts: &'a Hosts,
    pub(crate) upstreams: &'a Upstreams,
    pub(crate) canaries: &'a Canaries,
    pub(crate) stand_ins: &'a StandIns,
}

/// All backends but those of TCP and UDP services.
#[derive(Debug, Default)]
pub(crate) struct Backends {
    pub(crate) built: SharedMap<UpstreamName, Arc<Backend>>,
    /// What there is to say about a backend to those who use it.
    pub(crate) diagnostics: BTreeMap<UpstreamName, Vec<Diagnostic>>,
}

impl Backends {
    /// Builds the named backends again, and those of their canaries, which share their affinity.
    pub(crate) fn update(&mut self, mut names: Vec<UpstreamName>, sources: Sources<'_>) {
        let canaries = names.iter();
        let canaries = canaries.flat_map(|name| sources.canaries.all_of(name));
        let canaries: Vec<_> = canaries.cloned().collect();
        names.extend(canaries);
        names.push(UpstreamName::default_backend());
        names.sort_unstable();
        names.dedup();
        let mut built = Vec::with_capacity(names.len());
        for name in names {
            let mut diagnostics = Vec::new();
            let backend = if name.as_str() == UpstreamName::DEFAULT_BACKEND {
                Some(default_backend(sources, &mut diagnostics))
            } else if name.as_str().starts_with(UpstreamName::STAND_IN)
                && !name.as_str().contains('@')
            {
                stand_in(&name, sources, &mut diagnostics)
            } else {
                build(&name, sources, &mut diagnostics)
            };
            if diagnostics.is_empty() {
                self.diagnostics.remove(&name);
            } else {
                self.diagnostics.insert(name.clone(), diagnostics);
            }
            match backend {
                None => {
                    self.built.remove(&name);
                }
                Some(backend) if self.built.get(&name).is_some_and(|old| **old == backend) => {}
                Some(backend) => built.push((name, Arc::new(backend))),
            }
        }
        self.built.extend(built);
    }
}

/// The backend of a group; none for a canary that belongs to nothing.
fn build(
    name: &UpstreamName,
    sources: Sources<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Backend> {
    let group = sources.upstreams.group(name)?;
    let first = group.first()?;
    if first.is_canary() && !sources.canaries.mains.contains_key(name) {
        return None;
    }
    let (port, peers) = peers_of(first, sources)?;
    if let Some((reason, fault)) = &peers.fault {
        let service = &first.target()?.service;
        let fault = format!("Service {service}: {fault}");
        let is_empty = peers.endpoints.is_empty();
        tell(group, *reason, &fault, is_empty, diagnostics);
    }
    let settings = &first.definition.settings;
    let mut backend = Backend {
        port: Some(port.clone()),
        external_name: peers.external_name,
        endpoints: peers.endpoints,
        load_balance: settings.backend.load_balance,
        hash_by: settings.backend.hash_by.clone(),
        canary: first.is_canary(),
        traffic_shaping: settings.canary.clone().map(Box::new),
        ..Backend::new(name.clone())
    };
    if first.is_canary() {
        backend.affinity = balance::canary_affinity(name, group, sources).map(Box::new);
    } else {
        balance::balance(&mut backend, group, sources);
    }
    Some(backend)
}

/// The peers that a user of a Service's port wants.
fn peers_of<'a>(user: &'a User, sources: Sources<'_>) -> Option<(&'a PortRef, Peers)> {
    let target = user.target()?;
    let query = Query {
        port: &target.port.port,
        protocol: Protocol::Tcp,
        disable_external_name: sources.context.options.disable_external_name,
        zone: sources.context.zone.as_deref(),
        service_upstream: user.definition.settings.backend.service_upstream,
    };
    Some((&target.port.port, peers(&target.service, sources, query)))
}

/// A Service that does not exist has no peers: requests are answered 503.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default().and_ingress("shop/a", &[], &["a.test/ web:80"]).merge();
/// assert_eq!(served.explainer().request("a.test", "/")?.answer, ingress_model::explain::Answer::NoEndpoints);
/// served.assert_diagnostics(["Ingress shop/a: spec.rules[0].http.paths[0].backend: Service shop/web: it does not exist; \
///                             requests for a.test/ are answered 503 (MissingService)"]);
/// # Ok::<_, ingress_model::explain::PathError>(())
/// ```
fn peers(service: &ObjectName, sources: Sources<'_>, query: Query<'_>) -> Peers {
    let served = sources.services.get(service);
    match served.and_then(|served| Some((served.service.as_ref()?, &served.slices))) {
        Some((service, slices)) => endpoints::find(service, slices, query),
        None => Peers {
            fault: Some((Reason::MissingService, "it does not exist".into())),
            ..Peers::default()
        },
    }
}

/// Tells those who use a backend what is wrong with its Service, and what becomes of their requests if it has no peers.
fn tell(
    users: &[User],
    reason: Reason,
    fault: &str,
    is_empty: bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut told = HashSet::new();
    for user in users {
        if !told.insert(&user.definition.name) {
            continue;
        }
        let message = if is_empty {
            format!("{fault}; {}", without_peers(user))
        } else {
            fault.to_owned()
        };
        let object = user.definition.reference();
        let diagnostic = Diagnostic::new(object, Severity::Warning, reason, message);
        diagnostics.push(match user.field() {
            Some(field) => diagnostic.with_key(field),
            None => diagnostic,
        });
    }
}

/// What becomes of the requests that an Ingress sends to a backend without peers.
fn without_peers(user: &User) -> String {
    const SHOWN: usize = 3;
    if user.is_canary() {
        return "the canary gets no requests".to_owned();
    }
    let mut paths = Vec::new();
    for rule in &user.definition.hosts {
        paths.extend(
            user.written_paths(rule)
                .map(|path| format!("{}{path}", rule.host)),
        );
    }
    let mut requests = match paths.get(..SHOWN) {
        _ if paths.is_empty() => "what nobody else defines".to_owned(),
        Some(shown) if paths.len() > SHOWN => {
            format!("{} and {} more", shown.join(", "), paths.len() - SHOWN)
        }
        _ => paths.join(", "),
    };
    requests.insert_str(0, "requests for ");
    match &user.definition.settings.default_backend {
        Some(other) => {
            format!("{requests} go to Service {other} (default-backend), or are answered 503")
        }
        None => format!("{requests} are answered 503"),
    }
}

/// The backend of a Service that an Ingress names as its default backend.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default()
///     .and_ingress("shop/a", &[("default-backend", "sorry")], &["a.test/ web:80"])
///     .and_service("shop/sorry", 80, &["10.0.0.9"])
///     .merge();
/// let answer = served.explainer().request("a.test", "/")?.answer;
/// assert!(matches!(answer, ingress_model::explain::Answer::StandIn { endpoints: 1, .. }));
/// # Ok::<_, ingress_model::explain::PathError>(())
/// ```
fn stand_in(
    name: &UpstreamName,
    sources: Sources<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Backend> {
    let known = sources.stand_ins.get(name)?;
    let (backend, fault) = of_first_port(name.clone(), &known.service, sources);
    if let Some((reason, fault)) = fault {
        diagnostics.extend(known.ingresses.iter().map(|ingress| {
            let object = ObjectRef::new(ObjectKind::Ingress, ingress.clone());
            let message = format!("Service {}: {fault}", known.service);
            Diagnostic::new(object, Severity::Warning, reason, message).with_key("default-backend")
        }));
    }
    Some(backend)
}

/// The backend of what nobody defines: the first port of `--default-backend-service`, or if that has no endpoints
/// the controller's own server, which answers 404.
///
/// ```
/// use ingress_model::{ObjectName, Options, testing::Fixture};
///
/// let options = Options { default_backend_service: ObjectName::parse("shop/rest"), ..Options::default() };
/// let fixture = Fixture::default().with_options(options);
/// fixture.merge().assert_endpoints("a.test/", ["127.0.0.1:8181"]);
/// fixture.and_service("shop/rest", 80, &["10.0.0.9"]).merge().assert_endpoints("a.test/", ["10.0.0.9:80"]);
/// ```
fn default_backend(sources: Sources<'_>, diagnostics: &mut Vec<Diagnostic>) -> Backend {
    let options = &sources.context.options;
    let name = UpstreamName::default_backend();
    let mut backend = match &options.default_backend_service {
        None => Backend::new(name),
        Some(service) => {
            let (backend, fault) = of_first_port(name, service, sources);
            if let Some((reason, fault)) = fault {
                let object = ObjectRef::new(ObjectKind::Service, service.clone());
                let message = format!("as default backend: {fault}");
                diagnostics.push(Diagnostic::new(object, Severity::Warning, reason, message));
            }
            backend
        }
    };
    if backend.endpoints.is_empty() {
        backend.external_name = false;
        backend.endpoints.push(Endpoint {
            address: Ipv4Addr::LOCALHOST.to_string(),
            port: options.default_server_port,
        });
    }
    backend
}

/// The backend of a Service's first port, and what is wrong with the Service.
fn of_first_port(
    name: UpstreamName,
    service: &ObjectName,
    sources: Sources<'_>,
) -> (Backend, Option<(Reason, String)>) {
    let served = sources.services.get(service);
    let object = served.and_then(|served| served.service.as_ref());
    let ports = object.and_then(|object| object.spec.as_ref()?.ports.as_ref());
    let port = ports.and_then(|ports| ports.first());
    let port = port.map_or(PortRef::Number(0), |port| PortRef::Number(port.port));
    let query = Query {
        port: &port,
        protocol: Protocol::Tcp,
        disable_external_name: sources.context.options.disable_external_name,
        zone: sources.context.zone.as_deref(),
        service_upstream: false,
    };
    let peers = peers(service, sources, query);
    let mut backend = Backend::new(name);
    backend.external_name = peers.external_name;
    backend.endpoints = peers.endpoints;
    backend.endpoints.retain(|endpoint| endpoint.port > 0);
    (backend, peers.fault)
}
