//! Files with endpoints of TCP and UDP services, which a running NGINX reads.
//!
//! Nothing that a layout shows depends on them, so that they change without a reload. There is one for each port, and njs
//! reads it for each connection: one `address:port` a line, of which it takes any. The first line names the [group](groups) of upstream servers with these very endpoints. An NGINX that has loaded that group chooses
//! among them itself, and tries another one where one cannot be reached; the others take one endpoint, until their next
//! load.

use std::fmt;

use ingress_model::live::Endpoint;

use crate::{
    capabilities::Capabilities,
    rendered::Checksum,
    view::stream::{Chooser, chooser},
};

/// The name of the file with all groups, beside the others.
pub const GROUPS: &str = "groups.conf";

/// What the first line of a file says before the name of the group.
const GROUP: &str = "group ";

/// A port of NGINX where connections are passed on; shown, it is the name of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamPort {
    /// A TCP port.
    Tcp(u16),
    /// A UDP port.
    Udp(u16),
}

impl fmt::Display for StreamPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(port) => write!(f, "tcp-{port}"),
            Self::Udp(port) => write!(f, "udp-{port}"),
        }
    }
}

/// Endpoints as njs reads them; none is an empty text.
///
/// ```
/// use ingress_model::live::Endpoint;
/// use nginx_render::endpoint_files::{StreamPort, endpoints};
///
/// let endpoint = |address: &str| Endpoint { address: address.into(), port: 53 };
/// let two = endpoints(StreamPort::Udp(53), &[endpoint("10.0.0.1"), endpoint("fd00::1")]);
/// assert!(two.starts_with("group udp-53-") && two.ends_with("\n10.0.0.1:53\n[fd00::1]:53\n"));
/// assert_eq!(endpoints(StreamPort::Tcp(53), &[endpoint("a.test")]), "a.test:53\n");
/// ```
#[must_use]
pub fn endpoints(port: StreamPort, endpoints: &[Endpoint]) -> String {
    let lines = addresses(endpoints);
    match group(port, endpoints, &lines) {
        Some(name) => format!("{GROUP}{name}\n{lines}"),
        None => lines,
    }
}

/// Endpoints, one `address:port` a line.
#[must_use]
pub fn addresses(endpoints: &[Endpoint]) -> String {
    let line = |endpoint: &Endpoint| format!("{}\n", Peer(endpoint));
    endpoints.iter().map(line).collect()
}

/// The groups of these ports, as NGINX's configuration: an upstream block each, and the variable `$endpoint_group` with the
/// name of the group of a connection's port.
#[must_use]
pub fn groups<'a>(ports: impl IntoIterator<Item = (StreamPort, &'a [Endpoint])>) -> String {
    let (names, blocks): (String, String) = ports
        .into_iter()
        .filter_map(|(port, endpoints)| {
            let name = group(port, endpoints, &addresses(endpoints))?;
            let servers = endpoints
                .iter()
                .map(|endpoint| format!("    server {};\n", Peer(endpoint)));
            let servers: String = servers.collect();
            let block = format!("upstream {name} {{\n{servers}}}\n");
            Some((format!("    {port} {name};\n"), block))
        })
        .unzip();
    format!(
        "map \"$protocol-$server_port\" $endpoint_group {{\n    default \"\";\n{names}}}\n{blocks}"
    )
}

/// Whether an NGINX of that kind has to load these files to know of endpoints: it can do nothing but choose among those of
/// the groups.
#[must_use]
pub fn have_to_be_loaded(capabilities: &Capabilities) -> bool {
    chooser(capabilities) == Chooser::Nginx
}

/// The name of the group of endpoints, which is another one for other endpoints. `None` where NGINX has nothing to choose
/// from, or would have to find out addresses as it starts.
fn group(port: StreamPort, endpoints: &[Endpoint], lines: &str) -> Option<String> {
    let is_plain = |endpoint: &Endpoint| {
        let address: Result<std::net::IpAddr, _> = endpoint.address.parse();
        address.is_ok() && endpoint.port > 0
    };
    if endpoints.is_empty() || !endpoints.iter().all(is_plain) {
        return None;
    }
    let mut checksum = Checksum::new();
    checksum.add(lines);
    Some(format!("{port}-{:016x}", checksum.get()))
}

/// `address:port`.
struct Peer<'a>(&'a Endpoint);

impl fmt::Display for Peer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { address, port } = self.0;
        if address.contains(':') {
            write!(f, "[{address}]:{port}")
        } else {
            write!(f, "{address}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: StreamPort = StreamPort::Tcp(5432);

    fn peers(addresses: &[&str]) -> Vec<Endpoint> {
        let peer = |address: &&str| Endpoint {
            address: (*address).to_owned(),
            port: 80,
        };
        addresses.iter().map(peer).collect()
    }

    #[test]
    fn a_group_is_known_by_its_endpoints() {
        let name = |addresses: &[&str]| {
            let text = endpoints(PORT, &peers(addresses));
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix(GROUP).map(str::to_owned)
        };
        let both = name(&["10.0.0.1", "10.0.0.2"]).unwrap();
        assert_eq!(name(&["10.0.0.1", "10.0.0.2"]).unwrap(), both);
        assert_ne!(name(&["10.0.0.1", "10.0.0.3"]).unwrap(), both);
        for others in [&[][..], &["a.test", "b.test"]] {
            assert_eq!(name(others), None, "{others:?}");
        }
        let two = peers(&["10.0.0.1", "10.0.0.2"]);
        let text = groups([(PORT, &*two), (StreamPort::Udp(53), &[])]);
        assert!(text.contains(&format!("    tcp-5432 {both};\n")), "{text}");
        assert!(text.contains(&format!("upstream {both} {{\n    server 10.0.0.1:80;\n")));
        assert_eq!(text.matches("upstream").count(), 1);
    }

    #[test]
    fn what_is_no_address_reaches_no_group() {
        let named = peers(&["10.0.0.1", "x; } http { "]);
        assert!(!groups([(PORT, &*named)]).contains("http"));
    }
}
