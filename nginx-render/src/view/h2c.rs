//! HTTP/2 without TLS beside HTTP/1.1, for gRPC.
//!
//! Before 1.25.1 an address of NGINX without TLS speaks the one or the other. Where an Ingress serves gRPC without TLS,
//! the server at the HTTP port is therefore one of the stream module: njs looks whether a connection begins as HTTP/2 does,
//! and passes it on to one of two sockets, with a PROXY header that keeps the client's address. Newer releases tell the
//! two apart themselves.

use ingress_model::{Layout, config::RenderConfig, layout::BackendProtocol};

use crate::{
    capabilities::{Capabilities, Module},
    environment::Environment,
    source_map::Note,
    value::{Printed, Unprintable, constant, copy, network, plain, switch, word},
};

use super::{
    Context,
    directive::{Directive, directive},
    listen, note,
    routing::{self, protocol},
    stream::StreamServerView,
};

/// The sockets of the http block, below NGINX's directory: one for HTTP/1.1 and one for HTTP/2.
///
/// NGINX removes them when it ends in peace; those of one that was killed have to be removed before the next one starts.
pub const HTTP_SOCKETS: [&str; 2] = ["run/http1.sock", "run/http2.sock"];

/// The longest path of a unix socket, in bytes (unix(7)).
const LONGEST_PATH: usize = 107;

/// Where connections of the HTTP port go on.
pub(crate) struct Split {
    http1: Printed,
    http2: Printed,
    /// The second one as njs names it.
    http2_name: String,
}

impl Split {
    /// `None` where all connections of the HTTP port may be taken for HTTP/1.1, and where NGINX can do no better.
    pub(crate) fn new(
        layout: &Layout,
        capabilities: &Capabilities,
        environment: &Environment,
        has_servers_of_others: bool,
    ) -> Result<Option<Self>, Unprintable> {
        let config = &*layout.config;
        if !is_wanted(layout, capabilities) || has_servers_of_others {
            return Ok(None);
        }
        let needed = [Module::Stream, Module::StreamJs, Module::RealIp];
        let behind_proxy = config.use_proxy_protocol.then_some(Module::StreamRealIp);
        let mut needed = needed.into_iter().chain(behind_proxy);
        let paths = HTTP_SOCKETS.map(|path| format!("{}/{path}", environment.nginx_dir));
        let fits = paths.iter().all(|path| path.len() <= LONGEST_PATH);
        if !fits || !needed.all(|module| capabilities.has(module)) {
            return Ok(None);
        }
        let [http1, http2_name] = paths.map(|path| format!("unix:{path}"));
        Ok(Some(Self {
            http1: plain(&http1)?,
            http2: plain(&http2_name)?,
            http2_name,
        }))
    }

    /// The `listen` directives of a server of the http block.
    pub(crate) fn listen(&self, context: &Context<'_>, is_default: bool) -> [Directive; 2] {
        let of_socket = |socket: &Printed, http2: bool| {
            let mut arguments = vec![copy(socket), word("proxy_protocol")];
            arguments.extend(http2.then(|| word("http2")));
            if is_default {
                let backlog = format_args!("backlog={}", context.environment.backlog);
                arguments.extend([word("default_server"), word(backlog)]);
            }
            directive("listen", arguments)
        };
        [of_socket(&self.http1, false), of_socket(&self.http2, true)]
    }

    /// The socket for HTTP/2, as njs names it.
    pub(crate) fn http2_name(&self) -> &str {
        &self.http2_name
    }

    /// The socket for HTTP/1.1.
    pub(crate) fn http1(&self) -> Printed {
        copy(&self.http1)
    }
}

/// The server at the HTTP port, where connections go on to one of two sockets.
pub(crate) fn server(context: &Context<'_>) -> StreamServerView {
    let config = context.config;
    let mut settings = vec![
        directive("js_preread", [word("endpoints.preread")]),
        directive("preread_timeout", [word(config.client_header_timeout)]),
        // How long connections may be idle is said where they end.
        directive("proxy_timeout", [word("1d")]),
        directive("access_log", [word("off")]),
    ];
    if config.use_proxy_protocol {
        let timeout = config.proxy_protocol_header_timeout;
        settings.push(directive("proxy_protocol_timeout", [word(timeout)]));
        let trusted = config.proxy_real_ip_cidr.iter();
        settings.extend(trusted.map(|trusted| directive("set_real_ip_from", [network(trusted)])));
        // NGINX's own header would not have the port that the client's connection came to.
        settings.push(directive("js_filter", [word("endpoints.header")]));
    } else {
        settings.push(directive("proxy_protocol", [switch(true)]));
    }
    StreamServerView {
        listen: listen::of_front(context, context.environment.ports.http),
        settings,
        peer: constant("$http_way".into()),
    }
}

/// Whether an Ingress serves gRPC at an address where NGINX speaks HTTP/1.1 only.
pub(crate) fn is_wanted(layout: &Layout, capabilities: &Capabilities) -> bool {
    let config = &*layout.config;
    let could =
        config.use_http2 && capabilities.has(Module::HttpV2) && !capabilities.has_http2_directive();
    could && serves_grpc(layout, config)
}

/// Says that gRPC works with TLS only, where it is so.
pub(crate) fn note_lack(layout: &Layout, context: &Context<'_>, notes: &mut Vec<Note>) {
    if context.split.is_none() && is_wanted(layout, context.capabilities) {
        let text = "gRPC works with TLS only: for HTTP/2 without TLS beside HTTP/1.1, NGINX before 1.25.1 needs its stream \
                    module with njs, realip, an http-snippet without servers, and a directory with a short path";
        notes.push(note("backend-protocol", text.into()));
    }
}

/// Whether any location takes gRPC without TLS. A PROXY header may tell that TLS has ended in front, so that any might.
///
/// A header may tell so as well (`use-forwarded-headers`), but a location that redirects does not count for that. Which of
/// a PROXY header and `X-Forwarded-For` is to be believed is found out in the rewrite phase, so that `if` in snippets,
/// ModSecurity and log lines of redirects would see NGINX's own socket in place of clients, at all hosts and for the sake
/// of calls that hardly anybody makes.
fn serves_grpc(layout: &Layout, config: &RenderConfig) -> bool {
    layout.servers.values().any(|server| {
        server.locations.iter().any(|location| {
            let grpc = matches!(
                protocol(location),
                BackendProtocol::Grpc | BackendProtocol::Grpcs
            );
            grpc && (config.use_proxy_protocol || !routing::redirects(location, server))
        })
    })
}
