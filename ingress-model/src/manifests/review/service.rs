//! Services and EndpointSlices (Kubernetes docs: "Service", "EndpointSlices").

use std::{collections::BTreeSet, net::IpAddr};

use k8s_openapi::{
    api::{
        core::v1::{Service, ServicePort},
        discovery::v1::EndpointSlice,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::names::{Values, label, port, port_name, subdomain};

/// The most addresses of an endpoint.
const ADDRESSES: usize = 100;

const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const TYPES: [&str; 4] = ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"];

/// What is refused of a Service.
pub(super) fn service(service: &Service, values: &mut Values) {
    let spec = service.spec.as_ref();
    let service_type = spec.and_then(|spec| spec.type_.as_deref());
    let service_type = service_type.unwrap_or("ClusterIP");
    if !TYPES.contains(&service_type) {
        let message = format!("{service_type:?} is none of {}", TYPES.join(", "));
        values.refuse("spec.type", message);
    }
    let ports = spec.and_then(|spec| spec.ports.as_deref());
    let ports = ports.unwrap_or_default();
    let is_external = service_type == "ExternalName";
    let is_headless = spec.and_then(|spec| spec.cluster_ip.as_deref()) == Some("None");
    if ports.is_empty() && !is_external && !is_headless {
        values.missing("spec.ports");
    }
    if is_external {
        let name = spec.and_then(|spec| spec.external_name.as_deref());
        match name.unwrap_or_default() {
            "" => values.missing("spec.externalName"),
            name => {
                let name = name.strip_suffix('.').unwrap_or(name);
                values.check("spec.externalName", subdomain(name));
            }
        }
    }
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (i, entry) in ports.iter().enumerate() {
        let field = format!("spec.ports[{i}]");
        match entry.name.as_deref().unwrap_or_default() {
            "" if ports.len() > 1 => values.refuse(
                format!("{field}.name"),
                "it is missing, and each of several ports has one",
            ),
            "" => {}
            name => {
                values.check(format!("{field}.name"), label(name));
                if !names.insert(name) {
                    let message = format!("another port is called {name:?} too");
                    values.refuse(format!("{field}.name"), message);
                }
            }
        }
        service_port(&field, entry, values);
        if !numbers.insert((entry.port, protocol_of(entry.protocol.as_deref()))) {
            let message = format!("another port has the number {} too", entry.port);
            values.refuse(format!("{field}.port"), message);
        }
    }
}

fn service_port(field: &str, entry: &ServicePort, values: &mut Values) {
    values.check(format!("{field}.port"), port(entry.port));
    protocol(field, entry.protocol.as_deref(), values);
    let at = format!("{field}.targetPort");
    match &entry.target_port {
        Some(IntOrString::Int(number)) => values.check(at, port(*number)),
        Some(IntOrString::String(name)) => values.check(at, port_name(name)),
        None => {}
    }
}

fn protocol_of(written: Option<&str>) -> &str {
    written.unwrap_or("TCP")
}

fn protocol(field: &str, written: Option<&str>, values: &mut Values) {
    let protocol = protocol_of(written);
    if !PROTOCOLS.contains(&protocol) {
        let message = format!("{protocol:?} is none of {}", PROTOCOLS.join(", "));
        values.refuse(format!("{field}.protocol"), message);
    }
}

/// What is refused of an EndpointSlice. Addresses of the machine itself are not told of, although an API server refuses
/// them too: whoever has them means to follow a directory.
pub(super) fn slice(slice: &EndpointSlice, values: &mut Values) {
    match slice.address_type.as_str() {
        "IPv4" | "IPv6" | "FQDN" => {}
        "" => values.missing("addressType"),
        other => values.refuse(
            "addressType",
            format!("{other:?} is none of IPv4, IPv6 and FQDN"),
        ),
    }
    for (i, endpoint) in slice.endpoints.iter().enumerate() {
        let field = format!("endpoints[{i}].addresses");
        if endpoint.addresses.is_empty() {
            values.missing(&*field);
        }
        if endpoint.addresses.len() > ADDRESSES {
            let (many, most) = (endpoint.addresses.len(), ADDRESSES);
            values.refuse(&*field, format!("there are {many}, and may be {most}"));
        }
        for (j, address) in endpoint.addresses.iter().enumerate() {
            let parsed = address.parse::<IpAddr>();
            let is_good = match slice.address_type.as_str() {
                "IPv4" => parsed.is_ok_and(|ip| ip.is_ipv4()),
                "IPv6" => parsed.is_ok_and(|ip| ip.is_ipv6()),
                "FQDN" => subdomain(address).is_ok(),
                _ => true,
            };
            if !is_good {
                let message = format!("{address:?} is no address of type {}", slice.address_type);
                values.refuse(format!("{field}[{j}]"), message);
            }
        }
    }
    let mut names = BTreeSet::new();
    for (i, entry) in slice.ports.iter().flatten().enumerate() {
        let field = format!("ports[{i}]");
        let name = entry.name.as_deref().unwrap_or_default();
        if !name.is_empty() {
            values.check(format!("{field}.name"), label(name));
        }
        if !names.insert(name) {
            let message = format!("another port is called {name:?} too");
            values.refuse(format!("{field}.name"), message);
        }
        if let Some(number) = entry.port {
            values.check(format!("{field}.port"), port(number));
        }
        protocol(&field, entry.protocol.as_deref(), values);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(values: Values) -> Vec<String> {
        values.refused.into_iter().map(|it| it.field).collect()
    }

    #[test]
    fn services_are_taken_or_not() {
        let ports = |ports: Value| json!({"ports": ports});
        for (spec, want) in [
            (ports(json!([{"port": 80}])), &[][..]),
            (
                ports(
                    json!([{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}]),
                ),
                &[],
            ),
            (json!({"clusterIP": "None"}), &[]),
            (
                json!({"type": "ExternalName", "externalName": "a.test."}),
                &[],
            ),
            (json!({"type": "ExternalName"}), &["spec.externalName"]),
            (
                json!({"type": "External", "ports": [{"port": 1}]}),
                &["spec.type"],
            ),
            (json!({}), &["spec.ports"]),
            (ports(json!([{"port": 0}])), &["spec.ports[0].port"]),
            (
                ports(json!([{"port": 1, "targetPort": "8080"}])),
                &["spec.ports[0].targetPort"],
            ),
            (
                ports(json!([{"port": 1, "protocol": "tcp"}])),
                &["spec.ports[0].protocol"],
            ),
            (
                ports(json!([{"name": "a", "port": 1}, {"port": 2}])),
                &["spec.ports[1].name"],
            ),
            (
                ports(json!([{"name": "a", "port": 1}, {"name": "a", "port": 1}])),
                &["spec.ports[1].name", "spec.ports[1].port"],
            ),
        ] {
            let service = serde_json::from_value(json!({"spec": spec})).unwrap();
            let mut values = Values::default();
            super::service(&service, &mut values);
            assert_eq!(fields(values), want, "{spec}");
        }
    }

    #[test]
    fn slices_are_taken_or_not() {
        let of = |kind: &str, address: &str| json!({"addressType": kind, "endpoints": [{"addresses": [address]}]});
        for (slice, want) in [
            (of("IPv4", "127.0.0.1"), &[][..]),
            (of("IPv6", "::1"), &[]),
            (of("FQDN", "a.test"), &[]),
            (of("IPv4", "::1"), &["endpoints[0].addresses[0]"]),
            (of("IPv4", "web"), &["endpoints[0].addresses[0]"]),
            (of("ipv4", "10.0.0.1"), &["addressType"]),
            (
                json!({"endpoints": [{"addresses": []}], "ports": [{"port": 70000}, {"port": 1}]}),
                &[
                    "addressType",
                    "endpoints[0].addresses",
                    "ports[0].port",
                    "ports[1].name",
                ],
            ),
        ] {
            let mut values = Values::default();
            super::slice(&serde_json::from_value(slice.clone()).unwrap(), &mut values);
            assert_eq!(fields(values), want, "{slice}");
        }
    }
}
