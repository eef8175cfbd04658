//! Why a request goes where it goes: the decisions of a merge, told for one host and path.
//!
//! An [`Explainer`] looks at what a merge was given and what it made of it. It decides nothing itself: who holds a path
//! is in the [`Provenance`](crate::Provenance), what is wrong with objects in the [`Diagnostic`]s, and which of the
//! locations NGINX takes is said by [`server_for`] and [`locations_for`]. What Secrets hold is in none of the answers.
//!
//! ```
//! use ingress_model::{Options, Snapshot, explain::{Answer, Explainer}, merge};
//!
//! let (snapshot, options) = (Snapshot::default(), Options::default());
//! let outcome = merge(&snapshot, &options, jiff::Timestamp::UNIX_EPOCH);
//! let explainer = Explainer::new(&snapshot, &options, &outcome);
//! let explanation = explainer.request("shop.test", "/cart")?;
//! assert_eq!(explanation.answer, Answer::NotFound);
//! # Ok::<_, ingress_model::explain::PathError>(())
//! ```

mod choice;
mod overview;
mod request;
mod settings;
mod tls;

use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;
use serde::Serialize;

use crate::{
    context::Context,
    diagnostic::Diagnostic,
    host::Host,
    layout::{BackendProtocol, Location, Modifier, PathType, Server, ServicePort},
    live::{Backend, LoadBalance, TrafficShaping, UpstreamName},
    object::{ObjectKind, ObjectName, ObjectRef},
    options::Options,
    outcome::Outcome,
    provenance::{Decision, Subject},
    secrets::Secrets,
    server,
    snapshot::Snapshot,
    upstream::Upstreams,
};

pub use self::{
    choice::{HostMatch, Matches, PathMatch, locations_for, server_for},
    overview::{
        ConfigReport, HostDecision, HostSummary, Ignored, Overview, PathSummary, StreamSummary,
    },
    request::{PathError, request_host, request_path},
    settings::{Setting, SettingSource},
    tls::{CertificateSource, TlsReason, TlsReport, certificate_for},
};

/// Explains what a merge made of a snapshot.
#[derive(Clone, Debug)]
pub struct Explainer<'a> {
    snapshot: &'a Snapshot,
    options: &'a Options,
    outcome: &'a Outcome,
    own_paths: Vec<String>,
}

/// What becomes of a request, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The host as NGINX compares it.
    pub host: String,
    /// The path as NGINX compares it; what is not UTF-8 is replaced.
    pub path: String,
    /// The server that answers.
    pub server: ServerChoice,
    /// The location that answers; `None` where none does, or the controller's own one.
    pub location: Option<LocationChoice>,
    /// Locations that match as well, the next in line first.
    pub others: Vec<LocationSummary>,
    /// Locations of which it is not known whether they match, and which would go before the one that is named here.
    pub unknown: Vec<LocationSummary>,
    /// What the request gets.
    pub answer: Answer,
    /// Whether plain HTTP is redirected to HTTPS.
    pub redirects_to_https: bool,
    /// Where the request is sent.
    pub upstream: Option<UpstreamSummary>,
    /// The certificate.
    pub tls: TlsReport,
    /// The settings.
    pub settings: Vec<Setting>,
    /// What several Ingresses define of the location and its server.
    pub conflicts: Vec<Decision>,
    /// Ingresses that name the host and are not served.
    pub ignored: Vec<Ignored>,
    /// What else there is to say about the Ingresses that name the host, and their objects.
    pub notices: Vec<Diagnostic>,
}

/// A host as a whole, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostExplanation {
    /// The host as NGINX compares it.
    pub host: String,
    /// The server that answers.
    pub server: ServerChoice,
    /// What it has.
    #[serde(flatten)]
    pub summary: HostSummary,
    /// The settings of the server.
    pub settings: Vec<Setting>,
    /// What several Ingresses define of it.
    pub conflicts: Vec<Decision>,
    /// Ingresses that name the host and are not served.
    pub ignored: Vec<Ignored>,
    /// What else there is to say about the Ingresses that name the host, and their objects.
    pub notices: Vec<Diagnostic>,
}

/// The server that answers, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerChoice {
    /// Its host.
    pub name: Host,
    /// Why it is that one.
    pub by: HostMatch,
}

/// A location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocationSummary {
    /// How NGINX matches it.
    pub modifier: Modifier,
    /// The path as NGINX has it.
    pub path: String,
    /// The path as the Ingress writes it.
    pub ingress_path: String,
    /// How the Ingress asks for it to be matched.
    pub path_type: PathType,
    /// Who defines it; `None` for the controller itself.
    pub ingress: Option<ObjectName>,
    /// Where its requests go.
    pub upstream: UpstreamName,
}

/// The location that answers, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocationChoice {
    /// Which one.
    #[serde(flatten)]
    pub location: LocationSummary,
    /// Why it is that one.
    pub by: PathMatch,
    /// What makes it be there.
    pub origin: Origin,
    /// Who holds it against whom, if an Ingress asks for it.
    pub decision: Option<Decision>,
}

/// What makes a location be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A path of a rule, or `spec.defaultBackend` of an Ingress without rules.
    Path,
    /// `spec.defaultBackend`, for paths of the host that nobody defines.
    DefaultBackend,
    /// The host: each has a location for what nobody defines.
    Host,
}

/// What a request gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    /// The answer of an endpoint.
    Endpoint {
        /// How many there are.
        endpoints: usize,
    },
    /// A redirect.
    Redirect {
        /// The status.
        status: u16,
        /// Where to, with NGINX's variables.
        target: String,
    },
    /// A refusal, since what protects the location cannot be used.
    Closed {
        /// The status.
        status: u16,
        /// Why.
        reason: String,
    },
    /// 503: its Service has no endpoints.
    NoEndpoints,
    /// What the controller itself answers there (health checks, NGINX's status).
    Controller,
    /// 404: nothing serves it.
    NotFound,
}

/// Where requests are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpstreamSummary {
    /// Its name.
    pub name: UpstreamName,
    /// The Service that the rule names.
    pub service: Option<ServicePort>,
    /// The Service's namespace.
    pub namespace: Option<String>,
    /// The protocol that endpoints are spoken to.
    pub protocol: BackendProtocol,
    /// Addresses with ports.
    pub endpoints: Vec<String>,
    /// Whether the addresses are names that NGINX resolves.
    pub external_name: bool,
    /// How endpoints are picked; `None`: one after the other.
    pub load_balance: Option<LoadBalance>,
    /// What is hashed to pick an endpoint.
    pub hash_by: Option<String>,
    /// The cookie that keeps a client on its endpoint.
    pub affinity_cookie: Option<String>,
    /// Canaries.
    pub canaries: Vec<CanarySummary>,
}

/// A canary of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CanarySummary {
    /// Its upstream.
    pub name: UpstreamName,
    /// Addresses with ports.
    pub endpoints: Vec<String>,
    /// Requests with this header.
    pub header: Option<String>,
    /// Requests with this cookie.
    pub cookie: Option<String>,
    /// Its share of the other requests, out of [`CanarySummary::weight_total`].
    pub weight: u32,
    /// What the weight is a share of.
    pub weight_total: u32,
}

impl<'a> Explainer<'a> {
    /// Explains what [`merge`](crate::merge()) made of these.
    #[must_use]
    pub fn new(snapshot: &'a Snapshot, options: &'a Options, outcome: &'a Outcome) -> Self {
        Self {
            snapshot,
            options,
            outcome,
            own_paths: Vec::new(),
        }
    }

    /// Paths that the controller itself adds to the catch-all server, as prefixes. The model does not know them.
    #[must_use]
    pub fn with_own_paths(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.own_paths.extend(paths);
        self
    }

    /// What becomes of a request with this host (a port and upper case do not matter) and path.
    ///
    /// # Errors
    /// When NGINX would answer 400 to the path, whatever is configured.
    pub fn request(&self, host: &str, path: &str) -> Result<Explanation, PathError> {
        let host = request_host(host);
        let path = request_path(path)?;
        let nowhere = nowhere();
        let layout = &self.outcome.model.layout;
        let (server, by) = server_for(layout, &host).unwrap_or((&nowhere, HostMatch::CatchAll));
        let Matches {
            mut chosen,
            others,
            unknown,
        } = locations_for(server, &path);
        let mut others: Vec<_> = others.into_iter().map(LocationSummary::of).collect();
        let is_own = self.is_own(server, &path, chosen);
        if is_own {
            others.splice(
                0..0,
                chosen
                    .take()
                    .map(|(location, _)| LocationSummary::of(location)),
            );
        }
        let location = chosen.map(|(location, _)| location);
        let answer = match location {
            _ if is_own => Answer::Controller,
            Some(location) => self.answer(server, location),
            None => Answer::NotFound,
        };
        let mut concerned = vec![&server.host];
        let own = Host::parse(&host).ok();
        concerned.extend(own.as_ref());
        Ok(Explanation {
            path: String::from_utf8_lossy(&path).into_owned(),
            redirects_to_https: location.is_some_and(|location| {
                let settings = &location.settings;
                settings.force_ssl_redirect || settings.ssl_redirect && server.tls
            }),
            location: chosen.map(|(location, by)| self.choice(server, location, by)),
            others,
            unknown: unknown.into_iter().map(LocationSummary::of).collect(),
            answer,
            upstream: location.map(|location| self.upstream(location)),
            tls: self.tls(server, &host),
            settings: self.settings(server, location),
            conflicts: self.conflicts(&server.host, location),
            ignored: self.ignored(|ingress| self.names(ingress, &concerned)),
            notices: self.notices(|object| self.concerns(object, &concerned, location)),
            server: ServerChoice {
                name: server.host.clone(),
                by,
            },
            host,
        })
    }

    /// A host as a whole.
    #[must_use]
    pub fn host(&self, host: &str) -> HostExplanation {
        let host = request_host(host);
        let nowhere = nowhere();
        let layout = &self.outcome.model.layout;
        let (server, by) = server_for(layout, &host).unwrap_or((&nowhere, HostMatch::CatchAll));
        let mut concerned = vec![&server.host];
        let own = Host::parse(&host).ok();
        concerned.extend(own.as_ref());
        let decisions = self.outcome.provenance.of(&server.host).iter();
        let contested = decisions.filter(|decision| !decision.losers.is_empty());
        let mut summary = self.host_summary(server);
        summary.tls = self.tls(server, &host);
        HostExplanation {
            summary,
            settings: self.settings(server, None),
            conflicts: contested.cloned().collect(),
            ignored: self.ignored(|ingress| self.names(ingress, &concerned)),
            notices: self.notices(|object| self.concerns(object, &concerned, None)),
            server: ServerChoice {
                name: server.host.clone(),
                by,
            },
            host,
        }
    }

    /// The version of an Ingress that is served.
    fn served(&self, name: &ObjectName) -> Option<&'a Ingress> {
        self.outcome.last_good.get(name).map(|ingress| &**ingress)
    }

    /// Whether a request is for the controller itself rather than for the location that was chosen.
    fn is_own(&self, server: &Server, path: &[u8], chosen: Option<(&Location, PathMatch)>) -> bool {
        let own = self
            .own_paths
            .iter()
            .filter(|own| path.starts_with(own.as_bytes()));
        let longest = own.map(String::len).max();
        server.host.is_catch_all()
            && match chosen {
                None => longest.is_some(),
                Some((location, PathMatch::LongestPrefix)) => longest > Some(location.path.len()),
                Some((_, PathMatch::Exact | PathMatch::FirstExpression)) => false,
            }
    }

    fn answer(&self, server: &Server, location: &Location) -> Answer {
        let client_auth = server.client_auth.as_ref().map(|auth| &auth.value);
        if let Some(reason) = client_auth.and_then(|auth| auth.denied.as_ref()) {
            return Answer::Closed {
                status: 403,
                reason: reason.clone(),
            };
        }
        if let Some(reason) = &location.settings.denied {
            return Answer::Closed {
                status: 503,
                reason: reason.clone(),
            };
        }
        if let Some(redirect) = &location.settings.redirect {
            return Answer::Redirect {
                status: redirect.code,
                target: redirect.target.as_str().to_owned(),
            };
        }
        let backend = self.backend(&location.upstream);
        let endpoints = backend.map_or(0, |backend| backend.endpoints.len());
        let is_default = location.upstream.as_str() == UpstreamName::DEFAULT_BACKEND;
        let is_own_server = backend.is_some_and(|backend| {
            let mut endpoints = backend.endpoints.iter();
            endpoints.any(|endpoint| endpoint.port == self.options.default_server_port)
        });
        match endpoints {
            _ if is_default && (is_own_server || endpoints == 0) => Answer::NotFound,
            0 => Answer::NoEndpoints,
            endpoints => Answer::Endpoint { endpoints },
        }
    }

    fn choice(&self, server: &Server, location: &Location, by: PathMatch) -> LocationChoice {
        let decisions = self.outcome.provenance.of(&server.host).iter();
        let decision = decisions
            .filter(|decision| holds(decision, location))
            .min_by_key(|decision| decision.subject == Subject::DefaultBackend)
            .cloned();
        let origin = match decision.as_ref().map(|decision| &decision.subject) {
            Some(Subject::DefaultBackend) => Origin::DefaultBackend,
            Some(_) => Origin::Path,
            None => Origin::Host,
        };
        LocationChoice {
            location: LocationSummary::of(location),
            by,
            origin,
            decision,
        }
    }

    /// Decisions about a location and its server that somebody lost.
    fn conflicts(&self, host: &Host, location: Option<&Location>) -> Vec<Decision> {
        let decisions = self.outcome.provenance.of(host).iter();
        let concerned = decisions.filter(|decision| {
            let is_elsewhere = match decision.subject {
                Subject::Path { .. } | Subject::DefaultBackend => {
                    !location.is_some_and(|location| holds(decision, location))
                }
                Subject::Tls | Subject::Setting(_) => false,
            };
            !decision.losers.is_empty() && !is_elsewhere
        });
        concerned.cloned().collect()
    }

    fn upstream(&self, location: &Location) -> UpstreamSummary {
        let backend = self.backend(&location.upstream);
        let ingress = location.ingress.as_ref();
        let canaries = backend
            .into_iter()
            .flat_map(|backend| &backend.alternatives);
        let canaries = canaries.filter_map(|name| self.backend(name));
        UpstreamSummary {
            name: location.upstream.clone(),
            service: location.service.clone(),
            namespace: ingress.map(|name| name.namespace().to_owned()),
            protocol: location.settings.backend_protocol,
            endpoints: backend.map_or_else(Vec::new, endpoints),
            external_name: backend.is_some_and(|backend| backend.external_name),
            load_balance: backend.and_then(|backend| backend.load_balance),
            hash_by: backend.and_then(|backend| Some(backend.hash_by.as_ref()?.key.clone())),
            affinity_cookie: backend
                .and_then(|backend| Some(backend.affinity.as_ref()?.name.clone())),
            canaries: canaries.map(canary).collect(),
        }
    }

    /// Whether an Ingress has a say about one of the hosts, or would have if it were served.
    fn names(&self, ingress: &ObjectName, hosts: &[&Host]) -> bool {
        let spec = self.snapshot.ingresses.get(ingress);
        let Some(spec) = spec.and_then(|ingress| ingress.spec.as_ref()) else {
            return false;
        };
        let rules = spec.rules.as_deref().unwrap_or_default();
        let of_rules = rules
            .iter()
            .filter_map(|rule| Host::parse(rule.host.as_deref().unwrap_or_default()).ok());
        let for_all = (rules.is_empty() && spec.default_backend.is_some()).then(Host::catch_all);
        of_rules.chain(for_all).any(|host| hosts.contains(&&host))
    }

    /// Whether an object has to do with hosts, or with a location of theirs.
    fn concerns(&self, object: &ObjectRef, hosts: &[&Host], location: Option<&Location>) -> bool {
        match object.kind {
            ObjectKind::Ingress => self.names(&object.name, hosts),
            ObjectKind::Service => {
                let service = location.and_then(|location| {
                    let service = location.service.as_ref()?;
                    Some(location.ingress.as_ref()?.sibling(&service.name))
                });
                service.as_ref() == Some(&object.name)
            }
            ObjectKind::Secret => {
                let ingresses = self.snapshot.ingresses.iter();
                let mut namers = ingresses.filter(|(name, _)| self.names(name, hosts));
                namers.any(|(name, ingress)| {
                    let entries = ingress.spec.iter().flat_map(|spec| &spec.tls).flatten();
                    let mut secrets = entries.filter_map(|entry| entry.secret_name.as_deref());
                    secrets.any(|secret| name.sibling(secret) == object.name)
                })
            }
            ObjectKind::IngressClass
            | ObjectKind::EndpointSlice
            | ObjectKind::ConfigMap
            | ObjectKind::Namespace
            | ObjectKind::Node
            | ObjectKind::Pod => false,
        }
    }
}

impl LocationSummary {
    /// A location of a server.
    #[must_use]
    pub fn of(location: &Location) -> Self {
        Self {
            modifier: location.modifier,
            path: location.path.clone(),
            ingress_path: location.ingress_path.clone(),
            path_type: location.path_type,
            ingress: location.ingress.clone(),
            upstream: location.upstream.clone(),
        }
    }
}

impl Explanation {
    /// Whether anything serves the request, be it with a refusal.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.answer != Answer::NotFound
    }
}

impl HostExplanation {
    /// Whether anything serves the host.
    #[must_use]
    pub fn is_served(&self) -> bool {
        let mut paths = self.summary.paths.iter();
        self.server.by != HostMatch::CatchAll || paths.any(|path| path.answer != Answer::NotFound)
    }
}

/// The server of a layout that has none: the one that a merge of nothing has.
fn nowhere() -> Arc<Server> {
    let (context, upstreams) = (Context::default(), Upstreams::default());
    let secrets = &mut Secrets::default();
    server::build(&Host::catch_all(), &[], &context, &upstreams, secrets).server
}

/// Whether a decision is about a location.
fn holds(decision: &Decision, location: &Location) -> bool {
    let is_subject = match &decision.subject {
        Subject::Path { path, path_type } => {
            *path == location.ingress_path && *path_type == location.path_type
        }
        Subject::DefaultBackend => {
            location.ingress_path == "/" && location.path_type == PathType::Prefix
        }
        Subject::Tls | Subject::Setting(_) => false,
    };
    is_subject && Some(&decision.winner) == location.ingress.as_ref()
}

fn endpoints(backend: &Backend) -> Vec<String> {
    let endpoints = backend.endpoints.iter();
    let shown = endpoints.map(|endpoint| match endpoint.address.contains(':') {
        true => format!("[{}]:{}", endpoint.address, endpoint.port),
        false => format!("{}:{}", endpoint.address, endpoint.port),
    });
    shown.collect()
}

fn canary(backend: &Backend) -> CanarySummary {
    let none = TrafficShaping::default();
    let shaping = backend.traffic_shaping.as_ref().unwrap_or(&none);
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    CanarySummary {
        name: backend.name.clone(),
        endpoints: endpoints(backend),
        header: given(&shaping.header),
        cookie: given(&shaping.cookie),
        weight: shaping.weight,
        weight_total: shaping.weight_total,
    }
}
