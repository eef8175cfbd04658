//! All hosts and paths at a glance, and what is not served.

use std::{borrow::Cow, collections::BTreeSet};

use serde::Serialize;

use crate::{
    config::{KeyUse, key_uses},
    diagnostic::{Diagnostic, Reason},
    host::Host,
    layout::{Location, Modifier, Server},
    live::{Backend, UpstreamName},
    object::{ObjectKind, ObjectName, ObjectRef},
    provenance::Decision,
};

use super::{Answer, CanarySummary, Explainer, WrittenType, tls::TlsReport};

/// Everything that is served, and what is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// Servers by host.
    pub hosts: Vec<HostSummary>,
    /// TCP and UDP services.
    pub streams: Vec<StreamSummary>,
    /// What several Ingresses define.
    pub conflicts: Vec<HostDecision>,
    /// Ingresses that are not served.
    pub ignored: Vec<Ignored>,
    /// Whatever else there is to say about objects.
    pub notices: Vec<Diagnostic>,
}

/// A server at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostSummary {
    /// The host.
    pub host: Host,
    /// Its further names.
    pub aliases: Vec<Host>,
    /// Its certificate.
    pub tls: TlsReport,
    /// Its paths, in the order in which NGINX has them.
    pub paths: Vec<PathSummary>,
}

/// A path at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathSummary {
    /// As the Ingress writes it.
    pub path: String,
    /// How it asks for it to be matched.
    pub path_type: WrittenType,
    /// Whether NGINX matches it as a regular expression.
    pub is_expression: bool,
    /// Who defines it; `None` for the controller itself.
    pub ingress: Option<ObjectName>,
    /// Where its requests go.
    pub upstream: UpstreamName,
    /// The canary that takes a share of its requests.
    pub canary: Option<CanarySummary>,
    /// What its requests get.
    pub answer: Answer,
}

/// A TCP or UDP service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamSummary {
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// The port that NGINX listens on.
    pub port: u16,
    /// Where connections go.
    pub upstream: UpstreamName,
    /// How many endpoints there are.
    pub endpoints: usize,
}

/// A decision about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostDecision {
    /// The host.
    pub host: Host,
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
}

/// An Ingress that is not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// Which one.
    pub ingress: ObjectName,
    /// Why.
    pub reasons: Vec<Diagnostic>,
}

/// The controller's ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigReport {
    /// Its name.
    pub config_map: ObjectName,
    /// Whether it is there; without it, defaults hold.
    pub exists: bool,
    /// Its keys.
    pub keys: Vec<KeyUse>,
}

impl Explainer<'_> {
    /// Everything that is served, and what is not.
    #[must_use]
    pub fn overview(&self) -> Overview {
        let servers = self.outcome.model.layout.servers.values();
        let provenance = &self.outcome.provenance;
        let conflicts = provenance.hosts.iter().flat_map(|(host, decisions)| {
            let decisions = decisions.iter();
            let contested = decisions.filter(|decision| !decision.losers.is_empty());
            contested.map(|decision| HostDecision {
                host: host.clone(),
                decision: decision.clone(),
            })
        });
        Overview {
            hosts: servers.map(|server| self.host_summary(server)).collect(),
            streams: self.streams(),
            conflicts: conflicts.collect(),
            ignored: self.ignored(|_| true),
            notices: self.notices(|_| true),
        }
    }

    /// What becomes of the keys of the controller's ConfigMap; `None` without `--configmap`.
    #[must_use]
    pub fn config(&self) -> Option<ConfigReport> {
        let name = self.options.config_map.as_ref()?;
        let map = self.snapshot.config_maps.get(name);
        Some(ConfigReport {
            config_map: name.clone(),
            exists: map.is_some(),
            keys: map.map_or_else(Vec::new, |map| key_uses(map)),
        })
    }

    pub(super) fn host_summary(&self, server: &Server) -> HostSummary {
        HostSummary {
            host: server.host.clone(),
            aliases: server.aliases.clone(),
            tls: self.tls(server, server.host.as_str()),
            paths: self.paths(server),
        }
    }

    /// The paths of a server. The two locations of a Prefix path are one.
    fn paths(&self, server: &Server) -> Vec<PathSummary> {
        let mut known = BTreeSet::new();
        let locations = server.locations.iter().filter(|location| {
            let path = (location.ingress_path.as_str(), location.path_type);
            known.insert((path, location.ingress.as_ref()))
        });
        locations
            .map(|location| self.path_summary(server, location))
            .collect()
    }

    fn path_summary(&self, server: &Server, location: &Location) -> PathSummary {
        PathSummary {
            path: location.ingress_path.to_string(),
            path_type: WrittenType::of(self.outcome, &server.host, location),
            is_expression: location.modifier == Modifier::Regex,
            ingress: location.ingress.clone(),
            upstream: location.upstream.clone(),
            canary: self.canary(location),
            answer: self.answer(server, location),
        }
    }

    fn streams(&self) -> Vec<StreamSummary> {
        let model = &self.outcome.model;
        let (layout, live) = (&model.layout, &model.live);
        let services = [
            ("tcp", &layout.tcp, &live.tcp),
            ("udp", &layout.udp, &live.udp),
        ];
        let summaries = services
            .into_iter()
            .flat_map(|(protocol, servers, backends)| {
                servers.iter().map(move |(port, server)| StreamSummary {
                    protocol,
                    port: *port,
                    upstream: server.upstream.clone(),
                    endpoints: backends
                        .get(port)
                        .map_or(0, |backend| backend.endpoints.len()),
                })
            });
        summaries.collect()
    }

    /// Ingresses that are not served, and why: of another class or namespace, or refused.
    pub(super) fn ignored(&self, concerns: impl Fn(&ObjectName) -> bool) -> Vec<Ignored> {
        let ingresses = self.snapshot.ingresses.iter().map(|(name, _)| name);
        let ignored = ingresses.filter(|name| self.is_ignored(name) && concerns(name));
        ignored
            .map(|name| {
                let about = ObjectRef::new(ObjectKind::Ingress, name.clone());
                let said = self.outcome.diagnostics.iter();
                Ignored {
                    ingress: name.clone(),
                    reasons: said.filter(|said| said.object == about).cloned().collect(),
                }
            })
            .collect()
    }

    /// What there is to say about objects that are served, conflicts aside.
    pub(super) fn notices(&self, concerns: impl Fn(&ObjectRef) -> bool) -> Vec<Diagnostic> {
        let said = self.outcome.diagnostics.iter().filter(|said| {
            let is_conflict = matches!(
                said.reason,
                Reason::PathConflict | Reason::TlsConflict | Reason::ServerSettingConflict
            );
            let is_ignored =
                said.object.kind == ObjectKind::Ingress && self.is_ignored(&said.object.name);
            !is_conflict && !is_ignored && concerns(&said.object)
        });
        said.cloned().collect()
    }

    fn is_ignored(&self, ingress: &ObjectName) -> bool {
        self.outcome.last_good.get(ingress).is_none()
    }

    pub(super) fn backend(&self, name: &UpstreamName) -> Option<&Backend> {
        let backend = self.outcome.model.live.backends.get(name);
        backend.map(|backend| &**backend)
    }

    /// The backend of a location, as requests for it are balanced.
    pub(super) fn backend_of(&self, location: &Location) -> Option<Cow<'_, Backend>> {
        let live = &self.outcome.model.live;
        live.backend(&location.upstream, location.ingress.as_ref())
    }
}
