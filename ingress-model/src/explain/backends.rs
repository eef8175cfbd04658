//! The backends that NGINX is told of, and the Services and Ingresses that they are for.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::networking::v1::{Ingress, IngressBackend};
use serde::Serialize;

use crate::{
    live::{Backend, PortRef, UpstreamName},
    object::ObjectName,
    scalar,
};

use super::{
    Explainer,
    explanation::{addresses, endpoints},
};

/// A backend at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendSummary {
    /// Its name.
    pub name: UpstreamName,
    /// What it is for.
    pub role: BackendRole,
    /// The Service that its endpoints are of; `None` for what the controller itself answers.
    pub service: Option<ObjectName>,
    /// The Service's port, as it is named.
    pub port: Option<PortRef>,
    /// The Ingresses whose requests it gets; none for what is not for paths.
    pub ingresses: Vec<ObjectName>,
    /// Addresses with ports.
    pub endpoints: Vec<String>,
}

/// What a backend is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendRole {
    /// Paths of Ingresses.
    Paths,
    /// A share of another backend's requests (`canary`).
    Canary,
    /// Requests whose own Service has no endpoints (`default-backend`).
    StandIn,
    /// Requests for what nobody defines.
    Default,
    /// A TCP port.
    Tcp,
    /// A UDP port.
    Udp,
}

/// Who is behind backends, by the names that Ingresses give them.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    services: BTreeMap<UpstreamName, ObjectName>,
    /// The first canary Ingress.
    canaries: BTreeMap<UpstreamName, ObjectName>,
}

impl Users {
    fn add(&mut self, name: &ObjectName, ingress: &Ingress, prefix: &str) {
        let annotation = |annotation: &str| {
            let all = ingress.metadata.annotations.as_ref()?;
            all.get(&format!("{prefix}/{annotation}"))
        };
        let is_canary = annotation("canary").is_some_and(|text| scalar::boolean(text) == Ok(true));
        let spec = ingress.spec.iter();
        let rules = spec.clone().flat_map(|spec| &spec.rules).flatten();
        let paths = rules
            .filter_map(|rule| rule.http.as_ref())
            .flat_map(|http| &http.paths);
        let backends = paths.map(|path| &path.backend);
        let backends = backends.chain(spec.flat_map(|spec| &spec.default_backend));
        for (service, upstream) in backends.filter_map(|backend| target(name, backend)) {
            if is_canary {
                self.canaries
                    .entry(upstream.clone())
                    .or_insert_with(|| name.clone());
            }
            self.services.insert(upstream, service);
        }
        if let Some(service) = annotation("default-backend") {
            let service = name.sibling(service.trim());
            self.services
                .insert(UpstreamName::stand_in(&service), service);
        }
    }
}

/// The Service that a backend of an Ingress names, and what a backend of NGINX for it is called.
fn target(ingress: &ObjectName, backend: &IngressBackend) -> Option<(ObjectName, UpstreamName)> {
    let service = backend.service.as_ref()?;
    let port = service.port.as_ref()?;
    let name = port.name.clone().filter(|name| !name.is_empty());
    let port = name.or_else(|| port.number.map(|number| number.to_string()))?;
    let upstream = format!("{}-{}-{port}", ingress.namespace(), service.name);
    Some((ingress.sibling(&service.name), UpstreamName::new(&upstream)))
}

/// The name without what tells groups of one Service's port apart, and that.
fn parts(name: &UpstreamName) -> (&str, Option<&str>) {
    match name.as_str().split_once('@') {
        Some((base, group)) => (base, Some(group)),
        None => (name.as_str(), None),
    }
}

impl Explainer<'_> {
    /// All backends: those of paths with their canaries and stand-ins, then those of TCP and UDP ports. One that Ingresses
    /// share with other endpoints each (`service-upstream`) is there once for each set of them.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let fixture = Fixture::from_yaml("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop},
    ///  spec: {clusterIP: 10.1.2.3, ports: [{port: 80}]}}")?
    ///     .and_ingress("shop/a", &[], &["a.test/ web:80"])
    ///     .and_ingress("shop/b", &[("service-upstream", "true")], &["b.test/ web:80"]);
    /// let backends = fixture.merge().explainer().backends();
    /// let of_b = backends.iter().find(|backend| backend.ingresses.iter().any(|name| name.name() == "b"));
    /// assert_eq!(of_b.unwrap().endpoints, ["10.1.2.3:80"]);
    /// # Ok::<_, ingress_model::testing::FixtureError>(())
    /// ```
    #[must_use]
    pub fn backends(&self) -> Vec<BackendSummary> {
        let live = &self.outcome.model.live;
        let http = live.backends.values();
        let ingresses = self.ingresses_by_upstream();
        let none = BTreeSet::new();
        let http = http.flat_map(|backend| {
            let users = ingresses.get(&backend.name).unwrap_or(&none);
            self.backend_summaries(backend, users)
        });
        let (tcp_services, udp_services) = (&self.options.tcp_services, &self.options.udp_services);
        let streams = [
            (BackendRole::Tcp, tcp_services, &live.tcp),
            (BackendRole::Udp, udp_services, &live.udp),
        ];
        let streams = streams.into_iter().flat_map(|(role, services, backends)| {
            let services = self.stream_services(services.as_ref());
            let backends = backends.iter();
            backends.map(move |(port, backend)| BackendSummary {
                service: services.get(port).cloned(),
                ..summary(backend, role)
            })
        });
        http.chain(streams).collect()
    }

    /// The Ingresses of the paths that are sent to each backend.
    fn ingresses_by_upstream(&self) -> BTreeMap<&UpstreamName, BTreeSet<&ObjectName>> {
        let mut ingresses: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let servers = self.outcome.model.layout.servers.values();
        for location in servers.flat_map(|server| &server.locations) {
            let known = ingresses.entry(&location.upstream).or_default();
            known.extend(&location.ingress);
        }
        ingresses
    }

    /// A backend for each set of endpoints that it has.
    fn backend_summaries(
        &self,
        backend: &Backend,
        users: &BTreeSet<&ObjectName>,
    ) -> Vec<BackendSummary> {
        let base = self.backend_summary(backend);
        let mut others: BTreeMap<Vec<String>, Vec<ObjectName>> = BTreeMap::new();
        for variant in &backend.variants {
            if let Some(peers) = &variant.endpoints {
                let known = others.entry(addresses(peers)).or_default();
                known.extend(variant.ingresses.iter().cloned());
            }
        }
        let mut own: Vec<_> = users.iter().map(|name| (*name).clone()).collect();
        own.retain(|name| !others.values().any(|others| others.contains(name)));
        if base.role == BackendRole::Canary {
            own.extend(self.canary_ingress(&backend.name));
        }
        let others = others.into_iter().map(|(endpoints, ingresses)| {
            let ingresses = ingresses.into_iter();
            BackendSummary {
                ingresses: ingresses.filter(|name| users.contains(name)).collect(),
                endpoints,
                ..base.clone()
            }
        });
        let others: Vec<_> = others.collect();
        let first = BackendSummary {
            ingresses: own,
            ..base
        };
        [vec![first], others].concat()
    }

    fn backend_summary(&self, backend: &Backend) -> BackendSummary {
        let name = &backend.name;
        if name.as_str() == UpstreamName::DEFAULT_BACKEND {
            let service = self.options.default_backend_service.clone();
            let is_there = |service: &ObjectName| self.snapshot.services.contains(service);
            return BackendSummary {
                service: service.filter(is_there),
                ..summary(backend, BackendRole::Default)
            };
        }
        let role = match backend.canary {
            true => BackendRole::Canary,
            false if name.as_str().starts_with(UpstreamName::STAND_IN) => BackendRole::StandIn,
            false => BackendRole::Paths,
        };
        BackendSummary {
            service: self.users().services.get(parts(name).0).cloned(),
            ..summary(backend, role)
        }
    }

    /// The Ingress that asks for a canary.
    pub(super) fn canary_ingress(&self, name: &UpstreamName) -> Option<ObjectName> {
        match parts(name) {
            (_, Some(owner)) => ObjectName::parse(owner),
            (base, None) => self.users().canaries.get(base).cloned(),
        }
    }

    fn users(&self) -> &Users {
        self.users.get_or_init(|| {
            let mut users = Users::default();
            for (name, ingress) in self.outcome.last_good.objects().iter() {
                users.add(name, ingress, &self.options.annotations_prefix);
            }
            users
        })
    }

    /// The Services of ports, as the ConfigMap of a protocol lists them.
    fn stream_services(&self, config_map: Option<&ObjectName>) -> BTreeMap<u16, ObjectName> {
        let map = config_map.and_then(|name| self.snapshot.config_maps.get(name));
        let entries = map.iter().filter_map(|map| map.data.as_ref()).flatten();
        let services = entries.filter_map(|(port, value)| {
            let service = value.trim().split(':').next()?;
            Some((
                port.trim().parse().ok()?,
                ObjectName::parse(service.trim())?,
            ))
        });
        services.collect()
    }
}

fn summary(backend: &Backend, role: BackendRole) -> BackendSummary {
    BackendSummary {
        name: backend.name.clone(),
        role,
        service: None,
        port: backend.port.clone(),
        ingresses: Vec::new(),
        endpoints: endpoints(backend),
    }
}
