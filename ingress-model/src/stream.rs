//! TCP and UDP services: ports of NGINX's stream module, which ConfigMaps list.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Reason, Severity},
    endpoints::{self, Protocol, Query},
    layout::StreamServer,
    live::{Backend, Endpoint, PortRef, UpstreamName},
    object::{ObjectKind, ObjectName, ObjectRef},
    services::Services,
    snapshot::Snapshot,
    specification::is_name,
};

/// The services of one protocol, by external port.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) servers: BTreeMap<u16, StreamServer>,
    pub(crate) backends: BTreeMap<u16, Arc<Backend>>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The Services that they are for.
    pub(crate) dependencies: BTreeSet<ObjectRef>,
}

/// One entry: `namespace/service:port[:PROXY[:PROXY]]`.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    service: ObjectName,
    port: PortRef,
    proxy_protocol_in: bool,
    proxy_protocol_out: bool,
}

/// Reads the ConfigMap of a protocol: the key is the external port, the value the Service's port, by number or name,
/// and for TCP whether a PROXY header is read and sent.
///
/// An entry that is malformed, or whose port the controller needs itself or another program has, is reported and left
/// out. A port whose Service is missing or has no endpoints stays open without peers, so that it takes no reload when
/// they come; one whose Service has no such port of the protocol is left out. Endpoints that are the controller's own
/// ports on this machine are left out too: those trust whoever reaches them.
///
/// ```
/// use ingress_model::{ObjectName, Options, testing::Fixture};
///
/// let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: tcp, namespace: shop}, data: {
///     '5432': 'shop/db:5432', '6379': 'shop/late:6379::PROXY', '9000': 'shop/db:80', '9001': 'shop/db', '80': 'shop/db:5432'}}";
/// let options = Options {
///     tcp_services: ObjectName::parse("shop/tcp"),
///     reserved_ports: vec![80],
///     ..Options::default()
/// };
/// let fixture = Fixture::from_yaml(text)?.and_service("shop/db", 5432, &["10.0.0.1"]);
/// let served = fixture.with_options(options).merge();
/// let (layout, live) = (&served.outcome().model.layout, &served.outcome().model.live);
/// assert_eq!(layout.tcp.keys().collect::<Vec<_>>(), [&5432, &6379]);
/// assert_eq!((live.tcp[&5432].endpoints.len(), live.tcp[&6379].endpoints.len()), (1, 0));
/// assert!(layout.tcp[&6379].proxy_protocol_out && !layout.tcp[&6379].proxy_protocol_in);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
pub(crate) fn read(
    protocol: Protocol,
    snapshot: &Snapshot,
    services: &Services,
    context: &Context,
    old: &Streams,
) -> Streams {
    let mut streams = Streams::default();
    let options = &context.options;
    let (name, taken) = match protocol {
        Protocol::Tcp => (&options.tcp_services, &options.taken_tcp_ports),
        Protocol::Udp => (&options.udp_services, &options.taken_udp_ports),
    };
    let Some(name) = name else {
        return streams;
    };
    let map = snapshot.config_maps.get(name);
    let mut targets: BTreeMap<UpstreamName, (ObjectName, PortRef)> = BTreeMap::new();
    for (key, value) in map.iter().filter_map(|map| map.data.as_ref()).flatten() {
        let object = ObjectRef::new(ObjectKind::ConfigMap, name.clone());
        let mut report = |reason, fault: String| {
            let diagnostic = Diagnostic::new(object.clone(), Severity::Warning, reason, fault);
            streams.diagnostics.push(diagnostic.with_key(key));
        };
        let port = match external_port(key, &options.reserved_ports, taken) {
            Ok(port) if !streams.servers.contains_key(&port) => port,
            Ok(port) => {
                report(
                    Reason::InvalidStreamService,
                    format!("port {port} is listed twice"),
                );
                continue;
            }
            Err(fault) => {
                report(Reason::InvalidStreamService, fault.into());
                continue;
            }
        };
        let entry = match entry(value, protocol) {
            Ok(entry) => entry,
            Err(fault) => {
                report(Reason::InvalidStreamService, fault.into());
                continue;
            }
        };
        let upstream = upstream(protocol, port, &entry, &mut targets);
        let mut backend = Backend::new(upstream.clone());
        backend.port = Some(entry.port.clone());
        let query = Query {
            port: &entry.port,
            protocol,
            disable_external_name: false,
            zone: context.zone.as_deref(),
            service_upstream: false,
        };
        let served = services.get(&entry.service);
        match served.and_then(|served| Some((served.service.as_ref()?, &served.slices))) {
            None => {
                let fault = format!("Service {} does not exist", entry.service);
                report(Reason::MissingService, fault);
            }
            Some((service, slices)) => {
                let peers = endpoints::find(service, slices, query);
                if let Some((reason, fault)) = peers.fault {
                    report(reason, format!("Service {}: {fault}", entry.service));
                    if reason == Reason::MissingServicePort {
                        let service = ObjectRef::new(ObjectKind::Service, entry.service);
                        streams.dependencies.insert(service);
                        continue;
                    }
                }
                let found = peers.endpoints.len();
                backend.endpoints = peers.endpoints;
                let reserved = &options.reserved_ports;
                backend
                    .endpoints
                    .retain(|endpoint| !is_own(endpoint, reserved));
                backend.external_name = peers.external_name;
                if backend.endpoints.len() < found {
                    let fault = "an endpoint is a port of the controller itself, and is left out";
                    let fault = format!("Service {}: {fault}", entry.service);
                    report(Reason::InvalidService, fault);
                }
            }
        }
        let known = old.backends.get(&port).filter(|old| ***old == backend);
        let backend = known.map_or_else(|| Arc::new(backend), Arc::clone);
        let server = StreamServer {
            upstream,
            proxy_protocol_in: entry.proxy_protocol_in,
            proxy_protocol_out: entry.proxy_protocol_out,
        };
        streams.servers.insert(port, server);
        streams.backends.insert(port, backend);
        let service = ObjectRef::new(ObjectKind::Service, entry.service);
        streams.dependencies.insert(service);
    }
    streams
}

fn external_port(key: &str, reserved: &[u16], taken: &BTreeSet<u16>) -> Result<u16, &'static str> {
    match key.trim().parse() {
        Ok(port) if taken.contains(&port) => Err("another program listens at this port"),
        Ok(port) if reserved.contains(&port) => Err("the controller needs this port itself"),
        Ok(port) if port > 0 => Ok(port),
        _ => Err("it is not a port between 1 and 65535"),
    }
}

/// Whether this is a port of the controller itself.
fn is_own(endpoint: &Endpoint, reserved: &[u16]) -> bool {
    let is_here = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    let address = endpoint.address.parse::<IpAddr>();
    let address = address.map(|address| address.to_canonical());
    reserved.contains(&endpoint.port) && address.is_ok_and(is_here)
}

fn entry(value: &str, protocol: Protocol) -> Result<Entry, &'static str> {
    let fields: Vec<_> = value.trim().split(':').map(str::trim).collect();
    let (service, port, flags) = match fields.as_slice() {
        [service, port, flags @ ..] if flags.len() <= 2 => (*service, *port, flags),
        _ => return Err("it is not of the form namespace/service:port[:PROXY[:PROXY]]"),
    };
    let service = ObjectName::parse(service)
        .filter(|name| is_name(name.namespace(), b"-._", 253) && is_name(name.name(), b"-._", 253))
        .ok_or("its Service is not of the form namespace/service")?;
    let port = match port.parse::<i32>() {
        Ok(number) if number > 0 && u16::try_from(number).is_ok() => PortRef::Number(number),
        Err(_) if is_name(port, b"-", 63) => PortRef::Name(port.to_owned()),
        _ => return Err("its Service's port is neither a number nor a name of a port"),
    };
    let is_set = |place: usize| {
        let flag = flags.get(place);
        protocol == Protocol::Tcp && flag.is_some_and(|flag| flag.eq_ignore_ascii_case("PROXY"))
    };
    Ok(Entry {
        service,
        port,
        proxy_protocol_in: is_set(0),
        proxy_protocol_out: is_set(1),
    })
}

/// `tcp-<namespace>-<service>-<port>`, with the external port behind it where another Service's port has that name.
///
/// ```
/// use ingress_model::{ObjectName, Options, testing::Fixture};
///
/// let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: udp, namespace: x}, data: {
///     '53': 'a-b/c:53', '54': 'a/b-c:53', '55': 'a-b/c:53'}}";
/// let options = Options { udp_services: ObjectName::parse("x/udp"), ..Options::default() };
/// let served = Fixture::from_yaml(text)?.with_options(options).merge();
/// let names = served.outcome().model.live.udp.values().map(|backend| backend.name.to_string());
/// assert_eq!(names.collect::<Vec<_>>(), ["udp-a-b-c-53", "udp-a-b-c-53@54", "udp-a-b-c-53"]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn upstream(
    protocol: Protocol,
    port: u16,
    entry: &Entry,
    targets: &mut BTreeMap<UpstreamName, (ObjectName, PortRef)>,
) -> UpstreamName {
    let (namespace, name) = (entry.service.namespace(), entry.service.name());
    let kind = match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
    };
    let base = format!("{kind}-{namespace}-{name}-{}", entry.port);
    let target = (entry.service.clone(), entry.port.clone());
    let upstream = UpstreamName::new(&base);
    if *targets
        .entry(upstream.clone())
        .or_insert_with(|| target.clone())
        == target
    {
        return upstream;
    }
    UpstreamName::new(&format!("{base}@{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_or_refused() {
        let read = |value: &str, protocol| {
            entry(value, protocol).ok().map(|entry| {
                let flags = (entry.proxy_protocol_in, entry.proxy_protocol_out);
                (format!("{}:{}", entry.service, entry.port), flags)
            })
        };
        for (value, want) in [
            ("ns/svc:80", Some(("ns/svc:80", (false, false)))),
            (" ns/svc:http ", Some(("ns/svc:http", (false, false)))),
            ("ns/svc:80:PROXY", Some(("ns/svc:80", (true, false)))),
            ("ns/svc:80:proxy:Proxy", Some(("ns/svc:80", (true, true)))),
            ("ns/svc:80::PROXY", Some(("ns/svc:80", (false, true)))),
            ("ns/svc:80:PROXY:PROXY:x", None),
            ("ns/svc", None),
            ("svc:80", None),
            ("ns/s v:80", None),
            ("ns/svc:0", None),
            ("ns/svc:70000", None),
            ("ns/svc:-1", None),
            ("ns/svc:a b", None),
            ("", None),
        ] {
            let want = want.map(|(target, flags)| (target.to_owned(), flags));
            assert_eq!(read(value, Protocol::Tcp), want, "{value:?}");
        }
        let udp = read("ns/svc:80:PROXY:PROXY", Protocol::Udp);
        assert_eq!(udp, Some(("ns/svc:80".to_owned(), (false, false))));
    }

    #[test]
    fn own_ports_are_told_in_every_spelling() {
        let is_own = |address: &str, port| {
            let address = address.to_owned();
            is_own(&Endpoint { address, port }, &[10246])
        };
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "::1",
            "::",
            "::ffff:127.0.0.1",
        ] {
            assert!(is_own(address, 10246), "{address}");
            assert!(!is_own(address, 5432), "{address}");
        }
        assert!(!is_own("10.0.0.1", 10246) && !is_own("status.test", 10246));
    }

    #[test]
    fn reserved_and_taken_ports_are_refused() {
        let taken = BTreeSet::from([8443]);
        assert_eq!(external_port(" 9000", &[80], &taken), Ok(9000));
        for key in ["80", "8443", "0", "65536", "-1", "http", ""] {
            assert!(external_port(key, &[80], &taken).is_err(), "{key:?}");
        }
    }
}
