//! Where the peers of a Service's port are.

use std::{net::IpAddr, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{Service, ServicePort},
        discovery::v1::EndpointSlice,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use crate::{
    diagnostic::Reason,
    live::{Endpoint, PortRef},
    topology,
};

/// Protocol of a Service's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }

    /// A protocol that is not given is TCP (Kubernetes API reference: ServicePort).
    fn is(self, protocol: Option<&str>) -> bool {
        protocol.unwrap_or("TCP") == self.as_str()
    }
}

/// What peers depend on, apart from the objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) port: &'a PortRef,
    pub(crate) protocol: Protocol,
    /// `--disable-svc-external-name`.
    pub(crate) disable_external_name: bool,
    /// The controller's zone, if endpoints are chosen by it.
    pub(crate) zone: Option<&'a str>,
    /// `service-upstream`: the Service's own address is the only peer.
    pub(crate) service_upstream: bool,
}

/// The peers, and what is wrong with their Service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Peers {
    /// Sorted, each once.
    pub(crate) endpoints: Vec<Endpoint>,
    /// Whether the addresses are names.
    pub(crate) external_name: bool,
    pub(crate) fault: Option<(Reason, String)>,
}

impl Peers {
    fn none(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            fault: Some((reason, message.into())),
            ..Self::default()
        }
    }
}

/// Finds the peers of a Service's port: for type ExternalName its name, with `service-upstream` its cluster IP, else
/// the endpoints of its slices.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default()
///     .and_ingress("shop/a", &[], &["a.test/ web:80"])
///     .and_ingress("shop/b", &[("service-upstream", "true")], &["b.test/ web:80"])
///     .and_service("shop/web", 80, &["10.0.0.2", "10.0.0.1", "10.0.0.2"])
///     .merge();
/// served.assert_endpoints("a.test/", ["10.0.0.1:80", "10.0.0.2:80"]);
/// served.assert_endpoints("b.test/", ["10.96.0.1:80"]);
/// ```
pub(crate) fn find(
    service: &Service,
    slices: &[(crate::object::ObjectName, Arc<EndpointSlice>)],
    query: Query<'_>,
) -> Peers {
    let spec = service.spec.as_ref();
    let kind = spec.and_then(|spec| spec.type_.as_deref());
    if kind == Some("ExternalName") {
        return external(service, query);
    }
    let Some(port) = find_port(service, query.port, query.protocol) else {
        let message = format!("it has no {} port {}", query.protocol.as_str(), query.port);
        return Peers::none(Reason::MissingServicePort, message);
    };
    let mut peers = Peers::default();
    if query.service_upstream {
        if let Some(endpoint) = own_address(service, port) {
            peers.endpoints.push(endpoint);
            return peers;
        }
        let message = "it has no cluster IP for service-upstream; its endpoints are used";
        peers.fault = Some((Reason::InvalidService, message.into()));
    }
    for (_, slice) in slices {
        let zone = topology::zone(service, slice, query.zone);
        add(&mut peers.endpoints, slice, zone, port, query.protocol);
    }
    peers.endpoints.sort_unstable();
    peers.endpoints.dedup();
    peers
}

/// The Service's port that is meant: the one of this number, else of this name, else the one whose target port reads
/// like that. The last form is no Kubernetes rule, but manifests rely on it.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "
/// {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{name: a, port: 81, targetPort: 80}, {name: b, port: 80, targetPort: 8080}]}}
/// ---
/// {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
///  metadata: {name: any, namespace: shop, labels: {kubernetes.io/service-name: web}},
///  ports: [{name: a, port: 80}, {name: b, port: 8080}], endpoints: [{addresses: [10.0.0.1]}]}";
/// let served = Fixture::from_yaml(text)?.and_ingress("shop/a", &[], &["a.test/ web:80", "a.test/t web:8080"]).merge();
/// served.assert_endpoints("a.test/", ["10.0.0.1:8080"]);
/// served.assert_endpoints("a.test/t", ["10.0.0.1:8080"]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
pub(crate) fn find_port<'a>(
    service: &'a Service,
    port: &PortRef,
    protocol: Protocol,
) -> Option<&'a ServicePort> {
    let number = match port {
        PortRef::Number(number) => Some(*number),
        PortRef::Name(name) => name.parse().ok(),
    };
    let name = match port {
        PortRef::Number(_) => None,
        PortRef::Name(name) => Some(name.as_str()),
    };
    let ports = || {
        let ports = service.spec.iter().filter_map(|spec| spec.ports.as_ref());
        let ports = ports.flatten();
        ports.filter(move |port| protocol.is(port.protocol.as_deref()))
    };
    let has_target = |port: &&ServicePort| match &port.target_port {
        None => false,
        Some(IntOrString::Int(target)) => Some(*target) == number,
        Some(IntOrString::String(target)) => {
            name == Some(target) || number.is_some() && target.parse().ok() == number
        }
    };
    ports()
        .find(|port| Some(port.port) == number)
        .or_else(|| ports().find(|port| name.is_some() && port.name.as_deref() == name))
        .or_else(|| ports().find(has_target))
}

/// The target port where it is a number. One that is not given is the port itself (Kubernetes API reference:
/// ServicePort).
fn target_number(port: &ServicePort) -> Option<u16> {
    match &port.target_port {
        None => valid_port(port.port),
        Some(IntOrString::Int(number)) => valid_port(*number),
        Some(IntOrString::String(name)) => name.parse().ok().and_then(valid_port),
    }
}

fn valid_port(number: i32) -> Option<u16> {
    u16::try_from(number).ok().filter(|port| *port > 0)
}

fn own_address(service: &Service, port: &ServicePort) -> Option<Endpoint> {
    let address = service.spec.as_ref()?.cluster_ip.as_ref()?;
    let address: IpAddr = address.parse().ok()?;
    Some(Endpoint {
        address: address.to_string(),
        port: valid_port(port.port)?,
    })
}

/// Adds the peers of one slice at the ports that are the Service's port: those of its protocol and name, or all of its
/// protocol if the Service's port has no name. A numeric target port stands in where the slice has no ports at all, or
/// none of that name.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "
/// {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{name: a, port: 80, targetPort: 8080}]}}
/// ---
/// {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
///  metadata: {name: any, namespace: shop, labels: {kubernetes.io/service-name: web}},
///  ports: [{name: a, port: 9090}, {name: a, port: 53, protocol: UDP}, {name: b, port: 1}], endpoints: [{addresses: [10.0.0.1]}]}";
/// let served = Fixture::from_yaml(text)?.and_ingress("shop/a", &[], &["a.test/ web:80"]).merge();
/// served.assert_endpoints("a.test/", ["10.0.0.1:9090"]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn add(
    endpoints: &mut Vec<Endpoint>,
    slice: &EndpointSlice,
    zone: Option<&str>,
    port: &ServicePort,
    protocol: Protocol,
) {
    let target = target_number(port);
    let name = port.name.as_deref().unwrap_or_default();
    let ports = slice.ports.as_deref().unwrap_or_default();
    let ours = || {
        ports
            .iter()
            .filter(|port| protocol.is(port.protocol.as_deref()))
    };
    let named =
        ours().filter(|port| name.is_empty() || port.name.as_deref().unwrap_or_default() == name);
    let mut is_served = false;
    for number in named.filter_map(|port| port.port.and_then(valid_port).or(target)) {
        is_served = true;
        add_peers(endpoints, slice, zone, number);
    }
    let may_stand_in = ports.is_empty() || ours().next().is_some();
    if let Some(number) = target
        && !is_served
        && may_stand_in
    {
        add_peers(endpoints, slice, zone, number);
    }
}

/// Adds every address of every endpoint that is ready (or does not say). Whether it serves or terminates does not
/// count. Addresses have to be IP addresses.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "
/// {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}
/// ---
/// {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
///  metadata: {name: any, namespace: shop, labels: {kubernetes.io/service-name: web}},
///  ports: [{port: 80}], endpoints: [{addresses: [10.0.0.1], conditions: {ready: false, serving: true}},
///    {addresses: [10.0.0.2], conditions: {ready: true, terminating: true}}, {addresses: [10.0.0.3]}]}";
/// let served = Fixture::from_yaml(text)?.and_ingress("shop/a", &[], &["a.test/ web:80"]).merge();
/// served.assert_endpoints("a.test/", ["10.0.0.2:80", "10.0.0.3:80"]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn add_peers(endpoints: &mut Vec<Endpoint>, slice: &EndpointSlice, zone: Option<&str>, port: u16) {
    if endpoints.is_empty() {
        // Most Services have one slice.
        endpoints.reserve_exact(slice.endpoints.len());
    }
    for peer in &slice.endpoints {
        let conditions = peer.conditions.as_ref();
        let is_ready = conditions.and_then(|conditions| conditions.ready) != Some(false);
        if is_ready && zone.is_none_or(|zone| topology::is_near(peer, zone)) {
            let addresses = peer.addresses.iter().filter_map(|text| address(text));
            endpoints.extend(addresses.map(|address| Endpoint { address, port }));
        }
    }
}

/// An IP address in its usual form. IPv4 addresses have but one.
fn address(text: &str) -> Option<String> {
    match text.parse().ok()? {
        IpAddr::V4(_) => Some(text.to_owned()),
        IpAddr::V6(address) => Some(address.to_string()),
    }
}

/// A Service of type ExternalName has one peer, its name, unless `--disable-svc-external-name` is set. The name may be
/// an IP address or a DNS name, but not one of this machine. The port is the numeric target port of the Service's port;
/// if the Service lists no such port it is the number that the Ingress gives. A port name that is unknown has no number.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "{apiVersion: v1, kind: Service, metadata: {name: far, namespace: shop}, \
///             spec: {type: ExternalName, externalName: far.test, ports: [{port: 80, targetPort: 8080}]}}";
/// let fixture = Fixture::from_yaml(text)?.and_ingress("shop/a", &[], &["a.test/ far:80", "a.test/x far:81"]);
/// let served = fixture.merge();
/// served.assert_endpoints("a.test/", ["far.test:8080"]);
/// served.assert_endpoints("a.test/x", ["far.test:81"]);
/// let options = ingress_model::Options { disable_external_name: true, ..Default::default() };
/// fixture.with_options(options).merge().assert_endpoints("a.test/", [] as [&str; 0]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn external(service: &Service, query: Query<'_>) -> Peers {
    if query.disable_external_name {
        let message = "its type ExternalName is not allowed (flag --disable-svc-external-name)";
        return Peers::none(Reason::InvalidService, message);
    }
    let spec = service.spec.as_ref();
    let name = spec.and_then(|spec| spec.external_name.as_deref());
    let address = match external_address(name.unwrap_or_default()) {
        Ok(address) => address,
        Err(fault) => return Peers::none(Reason::InvalidService, fault),
    };
    let number = match (find_port(service, query.port, query.protocol), query.port) {
        (Some(port), _) => target_number(port),
        (None, PortRef::Number(number)) => valid_port(*number),
        (None, PortRef::Name(_)) => None,
    };
    let fault = number.is_none().then(|| {
        let message = format!("the number of its port {} is not known", query.port);
        (Reason::MissingServicePort, message)
    });
    Peers {
        endpoints: vec![Endpoint {
            address,
            port: number.unwrap_or_default(),
        }],
        external_name: true,
        fault,
    }
}

fn external_address(name: &str) -> Result<String, &'static str> {
    const LOCAL: &str = "its external name is this machine";
    if let Ok(address) = name.parse::<IpAddr>() {
        let address = address.to_canonical();
        if address.is_loopback() || address.is_unspecified() {
            return Err(LOCAL);
        }
        return Ok(address.to_string());
    }
    let bare = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let known = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let is_label = |label: &str| {
        let dashed = label.starts_with('-') || label.ends_with('-');
        (1..=63).contains(&label.len()) && label.bytes().all(known) && !dashed
    };
    let last = bare.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit());
    if bare.len() > 253 || !bare.split('.').all(is_label) || numeric {
        return Err("its external name is neither an IP address nor a DNS name");
    }
    if last == "localhost" {
        return Err(LOCAL);
    }
    Ok(if name.ends_with('.') {
        bare + "."
    } else {
        bare
    })
}
