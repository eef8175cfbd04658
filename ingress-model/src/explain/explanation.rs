//! What is told about a request or a host.

use serde::Serialize;

use crate::{
    diagnostic::Diagnostic,
    host::Host,
    layout::{BackendProtocol, Location, Modifier, PathType, ServicePort},
    live::{Backend, Endpoint, LoadBalance, TrafficShaping, UpstreamName},
    object::ObjectName,
    outcome::Outcome,
    path,
    provenance::Decision,
};

use super::{HostMatch, HostSummary, Ignored, PathMatch, Setting, TlsReport};

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
    /// Locations that match as well, or may match, the next in line first.
    pub others: Vec<NextInLine>,
    /// Locations of which it is not known whether they match, and which would go before the one that is named here.
    pub unknown: Vec<LocationSummary>,
    /// What the request gets.
    pub answer: Answer,
    /// What the request gets if it comes by plain HTTP.
    pub plain_http: PlainHttp,
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
    pub path_type: WrittenType,
    /// Who defines it; `None` for the controller itself.
    pub ingress: Option<ObjectName>,
    /// Where its requests go.
    pub upstream: UpstreamName,
}

/// How an Ingress asks a path to be matched, as it writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WrittenType {
    /// The path and nothing else.
    Exact,
    /// The path and what lies below it.
    Prefix,
    /// As the controller likes: it counts as [`WrittenType::Prefix`].
    ImplementationSpecific,
}

impl WrittenType {
    /// How the Ingress of a host's location writes its type.
    #[must_use]
    pub fn of(outcome: &Outcome, host: &Host, location: &Location) -> Self {
        let ingress = location.ingress.as_ref();
        let ingress = ingress.and_then(|name| outcome.last_good.get(name));
        let rules = ingress.and_then(|ingress| ingress.spec.as_ref()?.rules.as_ref());
        let rules = rules.into_iter().flatten().filter(|rule| {
            let written = rule.host.as_deref().unwrap_or_default();
            Host::parse(written).is_ok_and(|written| written == *host)
        });
        let mut paths = rules
            .filter_map(|rule| rule.http.as_ref())
            .flat_map(|http| &http.paths);
        let written = paths.find(|written| {
            path::read(written.path.as_deref()).is_ok_and(|path| path == location.ingress_path)
                && path::read_type(&written.path_type) == Some(location.path_type)
        });
        match written.map(|written| written.path_type.as_str()) {
            Some("ImplementationSpecific" | "") => Self::ImplementationSpecific,
            _ => location.path_type.into(),
        }
    }
}

impl From<PathType> for WrittenType {
    fn from(path_type: PathType) -> Self {
        match path_type {
            PathType::Exact => Self::Exact,
            PathType::Prefix => Self::Prefix,
        }
    }
}

/// A location that would answer if those before it were not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextInLine {
    /// Which one.
    #[serde(flatten)]
    pub location: LocationSummary,
    /// Whether it matches for certain. Otherwise only NGINX knows.
    pub matches: bool,
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
    /// The answer of another Service, since the location's own has no endpoints (`default-backend`).
    StandIn {
        /// Its upstream.
        upstream: UpstreamName,
        /// How many endpoints there are.
        endpoints: usize,
    },
    /// 503: its Service has no endpoints.
    NoEndpoints,
    /// What the controller itself answers there (health checks, NGINX's status).
    Controller,
    /// 404: nothing serves it.
    NotFound,
}

/// What a request gets that comes by plain HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlainHttp {
    /// What it gets by HTTPS.
    Served,
    /// A redirect to HTTPS.
    Redirected,
    /// 403: it brings no client certificate, of whose subject `auth-tls-match-cn` asks for something.
    NoCertificate,
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
    /// The canary that takes a share of the requests: of several, no other one is considered.
    pub canaries: Vec<CanarySummary>,
}

/// The canary of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CanarySummary {
    /// Its upstream.
    pub name: UpstreamName,
    /// The Ingress that asks for it.
    pub ingress: Option<ObjectName>,
    /// Addresses with ports.
    pub endpoints: Vec<String>,
    /// Requests with this header: where neither a value nor a pattern is given, with the value `always`.
    pub header: Option<String>,
    /// The value that the header has to have.
    pub header_value: Option<String>,
    /// The regular expression that the header has to match; a value counts more.
    pub header_pattern: Option<String>,
    /// Requests with this cookie, with the value `always`.
    pub cookie: Option<String>,
    /// Its share of the other requests, out of [`CanarySummary::weight_total`].
    pub weight: u32,
    /// What the weight is a share of.
    pub weight_total: u32,
}

impl LocationSummary {
    /// A location of a server. Which of two names for one path type the Ingress writes is not known here.
    #[must_use]
    pub fn of(location: &Location) -> Self {
        Self {
            modifier: location.modifier,
            path: location.path.to_string(),
            ingress_path: location.ingress_path.to_string(),
            path_type: location.path_type.into(),
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

pub(super) fn endpoints(backend: &Backend) -> Vec<String> {
    addresses(&backend.endpoints)
}

/// Addresses with ports.
pub(super) fn addresses(endpoints: &[Endpoint]) -> Vec<String> {
    let endpoints = endpoints.iter();
    let shown = endpoints.map(|endpoint| {
        if endpoint.address.contains(':') {
            format!("[{}]:{}", endpoint.address, endpoint.port)
        } else {
            format!("{}:{}", endpoint.address, endpoint.port)
        }
    });
    shown.collect()
}

pub(super) fn canary(backend: &Backend, ingress: Option<ObjectName>) -> CanarySummary {
    let none = TrafficShaping::default();
    let shaping = backend.traffic_shaping.as_deref().unwrap_or(&none);
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    CanarySummary {
        name: backend.name.clone(),
        ingress,
        endpoints: endpoints(backend),
        header: given(&shaping.header),
        header_value: given(&shaping.header_value),
        header_pattern: given(&shaping.header_pattern),
        cookie: given(&shaping.cookie),
        weight: shaping.weight,
        weight_total: shaping.weight_total,
    }
}
