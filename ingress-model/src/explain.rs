//! Why a request goes where it goes: the decisions of a merge, told for one host and path.
//!
//! An [`Explainer`] looks at what a merge was given and what it made of it. It decides nothing itself: who holds a path
//! is in the [`Provenance`](crate::Provenance), what is wrong with objects in the
//! [`Diagnostic`](crate::Diagnostic)s, and which of the locations NGINX takes is said by [`server_for`] and
//! [`locations_for`]. What Secrets hold is in none of the answers.
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

mod backends;
mod choice;
mod explanation;
mod overview;
mod request;
mod settings;
mod tls;

use std::sync::{Arc, OnceLock};

use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    context::Context,
    host::Host,
    layout::{Location, PathType, Server},
    live::UpstreamName,
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
    backends::{BackendRole, BackendSummary},
    choice::{HostMatch, Matches, PathMatch, locations_for, server_for},
    explanation::{
        Answer, CanarySummary, Explanation, HostExplanation, LocationChoice, LocationSummary,
        NextInLine, Origin, PlainHttp, ServerChoice, UpstreamSummary, WrittenType,
    },
    overview::{
        ConfigReport, HostDecision, HostSummary, Ignored, Overview, PathSummary, StreamSummary,
    },
    request::{PathError, request_host, request_path},
    settings::{Setting, SettingSource},
    tls::{CertificateSource, TlsReason, TlsReport, certificate_for},
};

use self::{backends::Users, explanation::endpoints};

/// Explains what a merge made of a snapshot.
#[derive(Clone, Debug)]
pub struct Explainer<'a> {
    snapshot: &'a Snapshot,
    options: &'a Options,
    outcome: &'a Outcome,
    own_paths: Vec<String>,
    /// Found out when it is first asked for.
    users: OnceLock<Users>,
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
            users: OnceLock::new(),
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
        let is_redirected = by == HostMatch::Redirected;
        let Matches {
            mut chosen,
            others,
            unknown,
        } = if is_redirected {
            Matches::default()
        } else {
            locations_for(server, &path)
        };
        let is_own = self.is_own(server, &path, chosen);
        let behind_own = if is_own { chosen.take() } else { None };
        let behind_own = behind_own.map(|(location, _)| (location, true));
        let others = behind_own.into_iter().chain(others);
        let location = chosen.map(|(location, _)| location);
        let to_app_root = Some(server).filter(|_| path == b"/").and_then(app_root);
        let answer = match (to_app_root, location) {
            _ if is_redirected => Answer::Redirect {
                status: layout.config.http_redirect_code,
                target: format!("$scheme://{}$request_uri", server.host),
            },
            (Some(redirect), _) => redirect,
            (None, _) if is_own => Answer::Controller,
            (None, Some(location)) => self.answer(server, location),
            (None, None) => Answer::NotFound,
        };
        let mut concerned = vec![&server.host];
        let own = Host::parse(&host).ok();
        concerned.extend(own.as_ref());
        Ok(Explanation {
            path: String::from_utf8_lossy(&path).into_owned(),
            plain_http: if is_redirected || is_own {
                PlainHttp::Served
            } else {
                plain_http(server, location, &answer)
            },
            location: chosen.map(|(location, by)| self.choice(server, location, by)),
            others: others
                .map(|(location, matches)| NextInLine {
                    location: self.summary(&server.host, location),
                    matches,
                })
                .collect(),
            unknown: unknown
                .into_iter()
                .map(|location| self.summary(&server.host, location))
                .collect(),
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
        let backend = self.backend_of(location);
        let backend = backend.as_deref();
        let endpoints = backend.map_or(0, |backend| backend.endpoints.len());
        let is_default = location.upstream.as_str() == UpstreamName::DEFAULT_BACKEND;
        let is_own_server = backend.is_some_and(|backend| {
            let mut endpoints = backend.endpoints.iter();
            endpoints.any(|endpoint| endpoint.port == self.options.default_server_port)
        });
        let stand_in = location.settings.default_backend.as_ref();
        let stand_in = stand_in.and_then(|name| self.backend(name));
        match (endpoints, stand_in) {
            (0, Some(other)) if !other.endpoints.is_empty() => Answer::StandIn {
                upstream: other.name.clone(),
                endpoints: other.endpoints.len(),
            },
            _ if is_default && (is_own_server || endpoints == 0) => Answer::NotFound,
            (0, _) => Answer::NoEndpoints,
            (endpoints, _) => Answer::Endpoint { endpoints },
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
            location: self.summary(&server.host, location),
            by,
            origin,
            decision,
        }
    }

    fn summary(&self, host: &Host, location: &Location) -> LocationSummary {
        LocationSummary {
            path_type: WrittenType::of(self.outcome, host, location),
            ..LocationSummary::of(location)
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
        let backend = self.backend_of(location);
        let backend = backend.as_deref();
        let ingress = location.ingress.as_ref();
        UpstreamSummary {
            name: location.upstream.clone(),
            service: location.service.as_deref().cloned(),
            namespace: ingress.map(|name| name.namespace().to_owned()),
            protocol: location.settings.backend_protocol,
            endpoints: backend.map_or_else(Vec::new, endpoints),
            external_name: backend.is_some_and(|backend| backend.external_name),
            load_balance: backend.and_then(|backend| backend.load_balance),
            hash_by: backend.and_then(|backend| Some(backend.hash_by.as_ref()?.key.clone())),
            affinity_cookie: backend
                .and_then(|backend| Some(backend.affinity.as_ref()?.name.clone())),
            canaries: self.canary(location).into_iter().collect(),
        }
    }

    /// The canary of a location. No other one is considered; who has such a one is told.
    fn canary(&self, location: &Location) -> Option<CanarySummary> {
        let backend = self.backend_of(location)?;
        let canary = backend.alternatives.first()?;
        let ingress = self.canary_ingress(canary);
        Some(explanation::canary(self.backend(canary)?, ingress))
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

/// Where `/` of a host is redirected to, whatever location it has: the first `app-root` of the server's locations counts.
fn app_root(server: &Server) -> Option<Answer> {
    let auth = server.client_auth.as_ref().map(|auth| &auth.value);
    if auth.is_some_and(|auth| auth.denied.is_some()) {
        return None;
    }
    let mut roots = server.locations.iter();
    let root = roots.find_map(|location| location.settings.app_root.as_ref())?;
    Some(Answer::Redirect {
        status: 302,
        target: format!("$scheme://$http_host{}", root.as_str()),
    })
}

/// What plain HTTP gets where HTTPS gets this answer. Whatever refuses or redirects all requests comes before the redirect
/// to HTTPS.
fn plain_http(server: &Server, location: Option<&Location>, answer: &Answer) -> PlainHttp {
    let auth = server.client_auth.as_ref().map(|auth| &auth.value);
    if auth.is_some_and(|auth| auth.denied.is_none() && auth.match_cn.is_some()) {
        return PlainHttp::NoCertificate;
    }
    let redirects = location.is_some_and(|location| {
        let settings = &location.settings;
        settings.force_ssl_redirect || settings.ssl_redirect && server.tls
    });
    if redirects && !matches!(answer, Answer::Redirect { .. } | Answer::Closed { .. }) {
        return PlainHttp::Redirected;
    }
    PlainHttp::Served
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
