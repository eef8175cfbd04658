//! Ports of TCP and UDP services at which another program listens: NGINX would fail to load everything over one of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
};

use ingress_model::{Layout, Options};

/// Tries whether one can listen at an address.
type Probe = fn(SocketAddr) -> io::Result<()>;

/// The ports at which NGINX listens or could do so when it was looked.
#[derive(Debug, Default)]
pub(crate) struct StreamPorts {
    tcp: BTreeSet<u16>,
    udp: BTreeSet<u16>,
}

impl StreamPorts {
    /// Lets go of ports that are free again.
    pub(crate) fn release(options: &mut Options, layout: Option<&Layout>) {
        let addresses = addresses(layout);
        let is_taken = |port: &u16, probe| is_taken(&addresses, *port, probe);
        options.taken_tcp_ports.retain(|port| is_taken(port, tcp));
        options.taken_udp_ports.retain(|port| is_taken(port, udp));
    }

    /// Looks at the ports that a layout has services at and the one that NGINX runs with has not. Notes in `options`
    /// those that another program has, and answers whether there are any.
    pub(crate) fn review(
        &mut self,
        layout: &Layout,
        running: Option<&Layout>,
        options: &mut Options,
    ) -> bool {
        let addresses = addresses(Some(layout));
        let tcp = review(
            &mut self.tcp,
            &layout.tcp,
            running.map(|running| &running.tcp),
            |port| is_taken(&addresses, port, tcp),
        );
        let udp = review(
            &mut self.udp,
            &layout.udp,
            running.map(|running| &running.udp),
            |port| is_taken(&addresses, port, udp),
        );
        let any = !tcp.is_empty() || !udp.is_empty();
        options.taken_tcp_ports.extend(tcp);
        options.taken_udp_ports.extend(udp);
        any
    }
}

/// The ports that are new and taken; the others are NGINX's from now on.
fn review<S>(
    ours: &mut BTreeSet<u16>,
    wanted: &BTreeMap<u16, S>,
    running: Option<&BTreeMap<u16, S>>,
    is_taken: impl Fn(u16) -> bool,
) -> Vec<u16> {
    ours.retain(|port| wanted.contains_key(port));
    let is_running = |port: &u16| running.is_some_and(|running| running.contains_key(port));
    let (free, taken): (Vec<_>, Vec<_>) = wanted
        .keys()
        .filter(|port| !ours.contains(*port))
        .partition(|port| is_running(port) || !is_taken(**port));
    ours.extend(free);
    taken
}

/// The addresses at which NGINX listens for services (`bind-address`).
fn addresses(layout: Option<&Layout>) -> Vec<IpAddr> {
    let chosen = layout.map(|layout| layout.config.bind_address.clone());
    let all = || vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    chosen
        .filter(|chosen| !chosen.is_empty())
        .unwrap_or_else(all)
}

/// Whether somebody else listens. Other faults are NGINX's to find: it may have rights that we have not.
fn is_taken(addresses: &[IpAddr], port: u16, probe: Probe) -> bool {
    let mut probed = addresses
        .iter()
        .map(|address| probe((*address, port).into()));
    probed.any(|probed| probed.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse))
}

fn tcp(address: SocketAddr) -> io::Result<()> {
    TcpListener::bind(address).map(drop)
}

fn udp(address: SocketAddr) -> io::Result<()> {
    UdpSocket::bind(address).map(drop)
}

#[cfg(test)]
mod tests {
    use ingress_model::{ObjectName, Snapshot, merge};
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn layout(port: u16) -> Layout {
        let name = ObjectName::new("a", "tcp");
        let services = ConfigMap {
            data: Some([(port.to_string(), "a/b:80".to_owned())].into()),
            ..ConfigMap::default()
        };
        let mut snapshot = Snapshot::default();
        snapshot.config_maps.insert(name.clone(), services);
        let options = Options {
            tcp_services: Some(name),
            ..Options::default()
        };
        merge(&snapshot, &options, Timestamp::UNIX_EPOCH)
            .model
            .layout
    }

    #[test]
    fn a_port_that_another_program_has_is_left_to_it_until_it_is_free() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = other.local_addr().unwrap().port();
        let layout = layout(port);
        assert!(layout.tcp.contains_key(&port));
        let mut options = Options::default();
        let mut ports = StreamPorts::default();
        assert!(ports.review(&layout, None, &mut options));
        assert_eq!(options.taken_tcp_ports, BTreeSet::from([port]));
        StreamPorts::release(&mut options, None);
        assert_eq!(options.taken_tcp_ports, BTreeSet::from([port]));
        drop(other);
        StreamPorts::release(&mut options, None);
        assert!(options.taken_tcp_ports.is_empty());
        assert!(!ports.review(&layout, None, &mut options));
    }

    #[test]
    fn a_port_that_nginx_listens_at_is_not_taken() {
        let nginx = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let layout = layout(nginx.local_addr().unwrap().port());
        let mut options = Options::default();
        let mut ports = StreamPorts::default();
        assert!(!ports.review(&layout, Some(&layout), &mut options));
        // It was free when it was looked, and NGINX is about to run with it.
        assert!(!ports.review(&layout, None, &mut options));
    }
}
