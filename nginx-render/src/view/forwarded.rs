//! Who the client is, and what it asked for: headers of proxies in front of NGINX, if they are trusted.

use ingress_model::value::Snippet;

use crate::{
    capabilities::Module,
    value::{Printed, Unprintable, argument, constant, network, plain, switch, word},
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
    /// Whether only some connections begin with a PROXY header: those of a port where NGINX looks at each connection
    /// before it passes it on.
    pub(crate) mixes: bool,
    /// The name of the variable with the port that the client connected to.
    pub(crate) arrival_port: &'static str,
    /// The name of the variable with the port that the client asked for: that of a header, or the one above. A map costs
    /// a request as much as two headers do, so none stands between two variables that are always the same.
    pub(crate) passed_port: &'static str,
    /// The name of the variable with the scheme that the client asked for, likewise.
    pub(crate) client_scheme: &'static str,
    pub(crate) https_port: u16,
    /// The variable with the address that connected to NGINX.
    pub(crate) last_hop: Printed,
    pub(crate) real_ip: Vec<Directive>,
    /// Present when both a PROXY header and `X-Forwarded-For` may tell the client's address.
    pub(crate) both: Option<BothView>,
}

/// The header that carries the better of two addresses to the real IP module, which reads one header only. The module
/// believes that header whoever sends it, so that clients must not where NGINX itself is the last hop.
pub(crate) struct BothView {
    pub(crate) trusted: Vec<Printed>,
    /// Whether all addresses of a family are trusted: NGINX would warn of a default beside them.
    pub(crate) trusts_family: bool,
    /// The variable of the header as a client sends it, where that is refused.
    pub(crate) forged: Option<Printed>,
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
        let networks = || config.proxy_real_ip_cidr.iter().map(network);
        let mixes = mixes(context);
        let both = has_both(context);
        let both_header = config.forwarded_for_proxy_protocol_header.as_str();
        let source = match (forwarded, proxy_protocol) {
            _ if !has_real_ip => None,
            _ if both => Some(argument(both_header)?),
            (_, true) => Some(word("proxy_protocol")),
            _ if mixes => Some(word("proxy_protocol")),
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
            // NGINX's own server in front of this one.
            let passing = context.passthrough().map(|_| word("127.0.0.1"));
            let split = context.split.as_ref().map(|_| word("unix:"));
            let own = passing.into_iter().chain(split);
            let trusted = networks()
                .filter(|_| both || !mixes)
                .chain(own)
                .map(|network| directive("set_real_ip_from", [network]));
            header.into_iter().chain(trusted).collect()
        });
        let variable = |name: &str| constant(name.to_owned());
        let arrival_port = match (proxy_protocol, mixes) {
            (true, _) => "proxy_protocol_server_port",
            (false, true) => "arrival_port",
            (false, false) => "server_port",
        };
        let (passed_port, client_scheme) = if forwarded {
            ("pass_server_port", "client_scheme")
        } else {
            (arrival_port, "scheme")
        };
        Ok(Self {
            trusts_headers: forwarded,
            proxy_protocol,
            mixes,
            arrival_port,
            passed_port,
            client_scheme,
            https_port: context.environment.ports.https,
            last_hop: variable(match (proxy_protocol, has_real_ip) {
                (false, _) if mixes => "$last_hop",
                (true, _) => "$proxy_protocol_addr",
                (false, true) => "$realip_remote_addr",
                (false, false) => "$remote_addr",
            }),
            real_ip: real_ip.unwrap_or_default(),
            both: both
                .then(|| {
                    let name = name_of(both_header);
                    Ok(BothView {
                        trusted: networks().collect(),
                        trusts_family: config
                            .proxy_real_ip_cidr
                            .iter()
                            .any(|network| network.prefix_len() == 0),
                        forged: mixes.then(|| constant(header_variable(both_header))),
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

impl ForwardedView {
    /// The name of the variable with the same value as `$pass_port`, if there is one.
    pub(crate) fn same_as_port(&self) -> Option<&'static str> {
        (self.https_port == 443).then_some(self.passed_port)
    }

    /// The name of the variable with the same value as `$pass_access_scheme`, if there is one.
    pub(crate) fn same_as_scheme(&self) -> Option<&'static str> {
        (!self.proxy_protocol).then_some(self.client_scheme)
    }
}

/// Whether a snippet names the variables for the port and the scheme that the client asked for, and so may set them.
pub(crate) fn names_variables(snippet: &Snippet) -> bool {
    ["pass_access_scheme", "pass_port", "include"]
        .into_iter()
        .any(|name| snippet.as_str().contains(name))
}

/// Whether only some connections begin with a PROXY header.
fn mixes(context: &Context<'_>) -> bool {
    let looks = context.passthrough().is_some() || context.split.is_some();
    looks && !context.config.use_proxy_protocol
}

/// Whether both a PROXY header and `X-Forwarded-For` may tell the client's address.
fn has_both(context: &Context<'_>) -> bool {
    let (config, capabilities) = (context.config, context.capabilities);
    let can = capabilities.has(Module::RealIp) && capabilities.has(Module::HeadersMore);
    let by_header = config.use_forwarded_headers || (mixes(context) && config.enable_real_ip);
    can && by_header && (config.use_proxy_protocol || mixes(context))
}

/// Whether requests with the header that only NGINX itself may set are refused.
pub(crate) fn refuses_forged(context: &Context<'_>) -> bool {
    mixes(context) && has_both(context)
}

/// The name of that header. Endpoints, services that are asked who the client is, and mirrors are not sent it: they may be
/// NGINX itself, by another host's name, or send it on to NGINX, which would refuse that.
///
/// # Errors
/// When the name cannot stand in the configuration.
pub(crate) fn own_header(context: &Context<'_>) -> Result<Option<Printed>, Unprintable> {
    let name = name_of(context.config.forwarded_for_proxy_protocol_header.as_str());
    refuses_forged(context).then(|| plain(&name)).transpose()
}

/// What of a header's name can be one.
fn name_of(header: &str) -> String {
    let letters = header.chars();
    letters
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .collect()
}
