//! What an Ingress gets here and does not get from ingress-nginx, on purpose: the rows of the README's table that show in
//! a merge, found in what the merge made of the objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use ingress_model::{
    Host, Location, ObjectName, Server,
    annotation::find,
    layout::{BackendProtocol, Modifier, PathType},
    provenance::{Decision, Subject},
};
use k8s_openapi::api::networking::v1::Ingress;
use serde::Serialize;

use crate::command::source::{Merged, Objects};

/// One difference that an Ingress notices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Difference {
    pub(super) topic: Topic,
    pub(super) text: String,
}

/// What a difference is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Topic {
    /// Who holds what several Ingresses define.
    Conflict,
    /// Protection that cannot be set up.
    Protection,
    CanaryTotal,
    WwwRedirect,
    Passthrough,
    ExternalAddress,
    SliceName,
    HostCase,
    KeptConnections,
    FinalSlash,
}

/// What is known of either controller.
pub(super) struct Comparison<'a> {
    pub(super) found: &'a Objects,
    /// What the rules make of the objects here.
    pub(super) here: &'a Merged,
    /// The same by ingress-nginx's rule about conflicts.
    pub(super) there: &'a Merged,
}

/// EndpointSlices by the Service that they are of.
type SlicesByService<'a> = BTreeMap<ObjectName, Vec<&'a ObjectName>>;

/// The differences by Ingress.
pub(super) type Differences = BTreeMap<ObjectName, BTreeSet<Difference>>;

impl Comparison<'_> {
    /// All differences that Ingresses notice.
    pub(super) fn differences(&self) -> Differences {
        let mut all = Differences::new();
        let mut add = |ingress: &ObjectName, topic, text| {
            let differences = all.entry(ingress.clone()).or_default();
            differences.insert(Difference { topic, text });
        };
        self.conflicts(&mut add);
        let oddly_named = self.oddly_named_slices();
        for server in self.here.outcome.model.layout.servers.values() {
            self.of_server(server, &mut add);
            for location in &server.locations {
                if let Some(ingress) = &location.ingress {
                    self.of_location(server, location, ingress, &oddly_named, &mut add);
                }
            }
        }
        self.of_annotations(&mut add);
        self.host_case(&mut add);
        all
    }

    /// EndpointSlices whose name does not begin with the Service's, which ingress-nginx leaves out.
    fn oddly_named_slices(&self) -> SlicesByService<'_> {
        let mut slices = SlicesByService::new();
        for (name, slice) in self.found.snapshot.endpoint_slices.iter() {
            let labels = slice.metadata.labels.as_ref();
            let of = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
            if let Some(of) = of.filter(|of| !name.name().starts_with(of.as_str())) {
                slices.entry(name.sibling(of)).or_default().push(name);
            }
        }
        slices
    }

    /// Who holds a part of a host under one rule, and not under the other one.
    fn conflicts(&self, add: &mut impl FnMut(&ObjectName, Topic, String)) {
        for (host, decisions) in &self.here.outcome.provenance.hosts {
            let there = self.there.outcome.provenance.of(host);
            for here in decisions.iter() {
                let same = there.iter().find(|other| key(other) == key(here));
                let Some(there) = same.filter(|other| other.winner != here.winner) else {
                    continue;
                };
                let subject = format!("{} of host {host}", here.subject);
                let (winner, loser) = (&here.winner, &there.winner);
                add(
                    winner,
                    Topic::Conflict,
                    format!("it holds {subject}; with ingress-nginx Ingress {loser} does"),
                );
                add(
                    loser,
                    Topic::Conflict,
                    format!("Ingress {winner} holds {subject}; with ingress-nginx this one does"),
                );
            }
        }
    }

    fn of_server(&self, server: &Server, add: &mut impl FnMut(&ObjectName, Topic, String)) {
        let host = &server.host;
        if let Some(auth) = &server.client_auth
            && let Some(reason) = &auth.value.denied
        {
            add(
                &auth.ingress,
                Topic::Protection,
                format!("host {host} answers 403 until this is mended: {reason}"),
            );
        }
        let passes_tls = self.here.outcome.model.live.passthrough.get(host);
        for ingress in owners(server) {
            if let Some(from) = &server.redirected
                && self.has(ingress, "from-to-www-redirect")
            {
                add(
                    ingress,
                    Topic::WwwRedirect,
                    format!(
                        "the redirect from {from} names a port only if the client does; ingress-nginx always names one"
                    ),
                );
            }
            if passes_tls.is_some_and(Option::is_some) && self.has(ingress, "ssl-passthrough") {
                add(
                    ingress,
                    Topic::Passthrough,
                    format!(
                        "TLS of {host} goes to the endpoints themselves; ingress-nginx takes the cluster IP of the Service"
                    ),
                );
            }
        }
    }

    fn of_location(
        &self,
        server: &Server,
        location: &Location,
        ingress: &ObjectName,
        oddly_named: &SlicesByService<'_>,
        add: &mut impl FnMut(&ObjectName, Topic, String),
    ) {
        let path = &location.ingress_path;
        if let Some(reason) = &location.settings.denied {
            add(
                ingress,
                Topic::Protection,
                format!(
                    "path {path} of host {} answers 503 until this is mended, and ingress-nginx may leave it open: {reason}",
                    server.host
                ),
            );
        }
        // The location that a Prefix path has for itself, besides the one for what is below it.
        let is_itself =
            location.modifier == Modifier::Exact && location.path_type == PathType::Prefix;
        if is_itself && path.ends_with('/') {
            add(
                ingress,
                Topic::FinalSlash,
                format!(
                    "path {path} of host {} answers requests for {} too; ingress-nginx redirects them to {path}",
                    server.host, location.path
                ),
            );
        }
        let protocol = location.settings.backend_protocol;
        let is_tls = matches!(protocol, BackendProtocol::Https | BackendProtocol::Grpcs);
        if is_tls && location.settings.upstream_tls.is_some() {
            add(
                ingress,
                Topic::KeptConnections,
                "kept connections to endpoints are shared only with paths that have the same TLS settings".to_owned(),
            );
        }
        if let Some(service) = &location.service {
            let service = ingress.sibling(&service.name);
            self.of_service(&service, ingress, oddly_named, add);
        }
    }

    fn of_service(
        &self,
        service: &ObjectName,
        ingress: &ObjectName,
        oddly_named: &SlicesByService<'_>,
        add: &mut impl FnMut(&ObjectName, Topic, String),
    ) {
        let snapshot = &self.found.snapshot;
        let spec = snapshot.services.get(service);
        let spec = spec.and_then(|service| service.spec.as_ref());
        let external = spec.and_then(|spec| spec.external_name.as_deref());
        // An address of this machine has no endpoints here either, of which a diagnostic tells.
        let address = external.and_then(|name| name.parse::<IpAddr>().ok());
        let address = address.map(|address| address.to_canonical());
        if address.is_some_and(|address| !address.is_loopback() && !address.is_unspecified()) {
            add(
                ingress,
                Topic::ExternalAddress,
                format!(
                    "Service {service} is served although its external name is an IP address; ingress-nginx answers 503"
                ),
            );
        }
        for slice in oddly_named.get(service).into_iter().flatten() {
            add(
                ingress,
                Topic::SliceName,
                format!(
                    "endpoints of EndpointSlice {slice} are used; ingress-nginx leaves them out for the slice's name"
                ),
            );
        }
    }

    fn of_annotations(&self, add: &mut impl FnMut(&ObjectName, Topic, String)) {
        for (name, ingress) in self.served() {
            let total = self.annotation(ingress, "canary-weight-total");
            let total = total.and_then(|total| total.trim().parse::<u32>().ok());
            if let Some(total) = total.filter(|total| (1..100).contains(total)) {
                add(
                    name,
                    Topic::CanaryTotal,
                    format!("canary-weight is out of {total}; ingress-nginx takes 100"),
                );
            }
        }
    }

    /// Hosts that are written in several ways.
    fn host_case(&self, add: &mut impl FnMut(&ObjectName, Topic, String)) {
        let mut spellings: BTreeMap<Host, BTreeSet<&str>> = BTreeMap::new();
        let mut namers: BTreeMap<Host, BTreeSet<&ObjectName>> = BTreeMap::new();
        for (name, ingress) in self.served() {
            let rules = ingress.spec.iter().flat_map(|spec| &spec.rules).flatten();
            for written in rules.filter_map(|rule| rule.host.as_deref()) {
                let Ok(host) = Host::parse(written) else {
                    continue;
                };
                spellings.entry(host.clone()).or_default().insert(written);
                namers.entry(host).or_default().insert(name);
            }
        }
        for (host, spellings) in spellings.iter().filter(|(_, all)| all.len() > 1) {
            let written: Vec<_> = spellings.iter().copied().collect();
            for name in namers.get(host).into_iter().flatten() {
                add(
                    name,
                    Topic::HostCase,
                    format!(
                        "hosts {} are one; ingress-nginx makes several servers, of which NGINX ignores all but one",
                        written.join(" and ")
                    ),
                );
            }
        }
    }

    /// The Ingresses that are served, in the versions that are.
    fn served(&self) -> impl Iterator<Item = (&ObjectName, &Ingress)> {
        let names = self.found.snapshot.ingresses.iter().map(|(name, _)| name);
        names.filter_map(|name| Some((name, &**self.here.outcome.last_good.get(name)?)))
    }

    fn has(&self, ingress: &ObjectName, annotation: &str) -> bool {
        let ingress = self.here.outcome.last_good.get(ingress);
        ingress.is_some_and(|ingress| self.annotation(ingress, annotation).is_some())
    }

    /// What an Ingress says under the name of an annotation, or under a former one.
    fn annotation<'i>(&self, ingress: &'i Ingress, name: &str) -> Option<&'i str> {
        let info = find(name)?;
        let prefix = &self.here.options.annotations_prefix;
        let all = ingress.metadata.annotations.as_ref()?;
        let mut names = std::iter::once(&info.name).chain(info.aliases);
        names.find_map(|name| all.get(&format!("{prefix}/{name}")).map(String::as_str))
    }
}

/// The Ingresses that have locations of a server.
fn owners(server: &Server) -> BTreeSet<&ObjectName> {
    let locations = server.locations.iter();
    locations
        .filter_map(|location| location.ingress.as_ref())
        .collect()
}

/// What tells decisions about a host apart. Winners may write one path in two ways.
fn key(decision: &Decision) -> (Subject, Option<&str>) {
    match &decision.subject {
        Subject::Path { path, path_type } => {
            let subject = Subject::Path {
                path: "".into(),
                path_type: *path_type,
            };
            (subject, Some(path.trim_end_matches('/')))
        }
        Subject::DefaultBackend | Subject::Tls | Subject::Setting(_) => {
            (decision.subject.clone(), None)
        }
    }
}
