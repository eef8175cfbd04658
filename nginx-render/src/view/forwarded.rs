//! Who the client is, and what it asked for: headers of proxies in front of NGINX, if they are trusted.

use crate::{
    capabilities::Module,
    value::{Printed, Unprintable, argument, constant, plain, switch, word},
};

use super::{
    Context,
    directive::{Directive, directive},
    headers::header_variable,
};

/// What the maps of the http block depend on.
pub(crate) struct ForwardedView {
    /// Whether `X-Forwarded-*` headers are trusted.
    pub(crate) trusts_headers: bool,
    pub(crate) proxy_protocol: bool,
    /// The variable with the port that the client connected to.
    pub(crate) arrival_port: Printed,
    pub(crate) https_port: u16,
    /// The variable with the address that connected to NGINX.
    pub(crate) last_hop: Printed,
    pub(crate) real_ip: Vec<Directive>,
    /// Present when both a PROXY header and `X-Forwarded-For` may tell the client's address.
    pub(crate) both: Option<BothView>,
}

/// The header that carries the better of two addresses to the real IP module, which reads one header only.
pub(crate) struct BothView {
    pub(crate) trusted: Vec<Printed>,
    /// The variable of the header that trusted proxies send.
    pub(crate) forwarded_for: Printed,
    /// Name and value of the header that is made.
    pub(crate) header: Printed,
}

impl ForwardedView {
    pub(crate) fn new(context: &Context<'_>) -> Result<Self, Unprintable> {
        let (config, capabilities) = (context.config, context.capabilities);
        let has_real_ip = capabilities.has(Module::RealIp);
        let (forwarded, proxy_protocol) = (config.use_forwarded_headers, config.use_proxy_protocol);
        let networks = || config.proxy_real_ip_cidr.iter().map(word);
        let both =
            forwarded && proxy_protocol && has_real_ip && capabilities.has(Module::HeadersMore);
        let both_header = config.forwarded_for_proxy_protocol_header.as_str();
        let source = match (forwarded, proxy_protocol) {
            _ if !has_real_ip => None,
            _ if both => Some(argument(both_header)?),
            (_, true) => Some(word("proxy_protocol")),
            (true, false) => Some(argument(config.forwarded_for_header.as_str())?),
            (false, false) if config.enable_real_ip => {
                Some(argument(config.forwarded_for_header.as_str())?)
            }
            (false, false) => None,
        };
        let real_ip = source.map(|source| {
            let header = [
                directive("real_ip_header", [source]),
                directive("real_ip_recursive", [switch(true)]),
            ];
            let trusted = networks().map(|network| directive("set_real_ip_from", [network]));
            header.into_iter().chain(trusted).collect()
        });
        let variable = |name: &str| constant(name.to_owned());
        Ok(Self {
            trusts_headers: forwarded,
            proxy_protocol,
            arrival_port: variable(if proxy_protocol {
                "$proxy_protocol_server_port"
            } else {
                "$server_port"
            }),
            https_port: context.environment.ports.https,
            last_hop: variable(match (proxy_protocol, has_real_ip) {
                (true, _) => "$proxy_protocol_addr",
                (false, true) => "$realip_remote_addr",
                (false, false) => "$remote_addr",
            }),
            real_ip: real_ip.unwrap_or_default(),
            both: both
                .then(|| {
                    let name: String = both_header
                        .chars()
                        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
                        .collect();
                    Ok(BothView {
                        trusted: networks().collect(),
                        forwarded_for: constant(header_variable(
                            config.forwarded_for_header.as_str(),
                        )),
                        header: plain(&format!("{name}: $forwarded_for_proxy_protocol"))?,
                    })
                })
                .transpose()?,
        })
    }
}
