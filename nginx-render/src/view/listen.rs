//! Where servers listen.

use std::net::{IpAddr, Ipv4Addr};

use ingress_model::config::RenderConfig;

use crate::{
    capabilities::Module,
    value::{Printed, word},
};

use super::{
    Context,
    directive::{Directive, directive},
    http3,
};

/// This host only.
const LOCAL: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));

/// The `listen` directives of a server; `is_default` for the one of all other hosts, which also has the options that
/// an address can be given only once.
pub(crate) fn of_server(context: &Context<'_>, is_default: bool) -> Vec<Directive> {
    let Context {
        config,
        environment,
        ..
    } = context;
    let of_port = |addresses: Vec<Option<IpAddr>>, port: u16, parameters: &[&str]| {
        let directives = addresses.into_iter().map(|address| {
            let mut arguments = vec![socket(address, port)];
            arguments.extend(parameters.iter().map(word));
            if is_default {
                arguments.extend(once(config, environment.backlog));
            }
            directive("listen", arguments)
        });
        directives.collect::<Vec<_>>()
    };
    let all = || addresses(config, environment.ipv6);
    let header: &[&str] = if config.use_proxy_protocol {
        &["proxy_protocol"]
    } else {
        &[]
    };
    let mut directives = match &context.split {
        Some(split) => split.listen(context, is_default).into(),
        None => of_port(all(), environment.ports.http, header),
    };
    let by_parameter = config.use_http2
        && context.capabilities.has(Module::HttpV2)
        && !context.capabilities.has_http2_directive();
    let tls: &[&str] = if by_parameter {
        &["ssl", "http2"]
    } else {
        &["ssl"]
    };
    directives.extend(match context.passthrough() {
        Some(ports) => of_port(
            vec![LOCAL],
            ports.https,
            &[&["proxy_protocol"], tls].concat(),
        ),
        None => of_port(all(), environment.ports.https, &[header, tls].concat()),
    });
    if http3::is_spoken(context) {
        let addresses = all().into_iter();
        directives.extend(addresses.map(|address| {
            // Packets of a connection have to come to the same worker.
            let reuse = is_default.then(|| word("reuseport"));
            let arguments = [socket(address, environment.ports.https), word("quic")];
            directive("listen", arguments.into_iter().chain(reuse))
        }));
    }
    directives
}

/// The `listen` directives of a server that has a port for itself on all addresses.
pub(crate) fn of_port(context: &Context<'_>, port: u16) -> Vec<Directive> {
    wildcards(context.config, context.environment.ipv6)
        .into_iter()
        .map(|address| {
            let options = once(context.config, context.environment.backlog);
            directive(
                "listen",
                std::iter::once(socket(address, port)).chain(options),
            )
        })
        .collect()
}

/// The `listen` directives of a server that looks at each connection of a port before it is passed on.
pub(crate) fn of_front(context: &Context<'_>, port: u16) -> Vec<Directive> {
    let config = context.config;
    let options = || {
        let header = config.use_proxy_protocol.then(|| word("proxy_protocol"));
        let reuse = config.reuse_port.then(|| word("reuseport"));
        let backlog = word(format_args!("backlog={}", context.environment.backlog));
        let options = header.into_iter().chain(reuse);
        options.chain([backlog, word("so_keepalive=on")])
    };
    of_stream(context, port)
        .into_iter()
        .map(|socket| directive("listen", std::iter::once(socket).chain(options())))
        .collect()
}

/// A port on this host.
pub(crate) fn local(port: u16) -> Printed {
    socket(LOCAL, port)
}

/// The addresses to listen on for TCP and UDP services, each with the port.
pub(crate) fn of_stream(context: &Context<'_>, port: u16) -> Vec<Printed> {
    addresses(context.config, context.environment.ipv6)
        .into_iter()
        .map(|address| socket(address, port))
        .collect()
}

/// Options of an address, which only one server may give.
fn once(config: &RenderConfig, backlog: u32) -> Vec<Printed> {
    let mut options = vec![word("default_server")];
    if config.reuse_port {
        options.push(word("reuseport"));
    }
    options.push(word(format_args!("backlog={backlog}")));
    options
}

/// `None` for all addresses of IPv4, which needs no address in front of the port. All of them where none of those that are
/// wished for is there: NGINX does not start without.
fn addresses(config: &RenderConfig, ipv6: bool) -> Vec<Option<IpAddr>> {
    let usable = |address: &&IpAddr| address.is_ipv4() || (ipv6 && !config.disable_ipv6);
    let wished = config.bind_address.iter().filter(usable);
    let addresses: Vec<_> = wished.map(|address| Some(*address)).collect();
    if addresses.is_empty() {
        return wildcards(config, ipv6);
    }
    addresses
}

fn wildcards(config: &RenderConfig, ipv6: bool) -> Vec<Option<IpAddr>> {
    let all_v6 =
        (ipv6 && !config.disable_ipv6).then_some(Some(IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)));
    std::iter::once(None).chain(all_v6).collect()
}

fn socket(address: Option<IpAddr>, port: u16) -> Printed {
    match address {
        None => word(port),
        Some(IpAddr::V4(address)) => word(format_args!("{address}:{port}")),
        Some(IpAddr::V6(address)) => word(format_args!("[{address}]:{port}")),
    }
}
