//! TCP and UDP services.
//!
//! Their endpoints change without a reload where NGINX has njs: a few lines of it read a file for each port, in which the
//! controller keeps the endpoints, one `address:port` a line (IPv6 addresses in brackets), replaced as a whole by
//! renaming. The file of a port is `<nginx_dir>/stream/<tcp|udp>-<port>`.

use std::sync::Arc;

use ingress_model::{Layout, layout::StreamServer, value::Snippet};

use crate::{
    capabilities::Module,
    source_map::{Note, Source, Sources},
    value::{Printed, Unprintable, plain, switch, word},
};

use super::{
    Context, SnippetView, defaults,
    directive::{Directive, directive},
    listen,
    logs::Logs,
    note,
};

/// The directory of the files with endpoints, below NGINX's.
pub(crate) const ENDPOINTS: &str = "stream";

/// The file of the njs module that reads them.
pub(crate) const SCRIPT: &str = "njs/stream.js";

/// The njs module, with the directory that it reads.
pub(crate) fn script(context: &Context<'_>) -> String {
    let directory = format!("{}/{ENDPOINTS}", context.environment.nginx_dir);
    let directory = serde_json::Value::from(directory);
    format!(
        "const DIRECTORY = {directory};\n\n{}",
        include_str!("../../njs/stream.js")
    )
}

/// The stream block.
pub(crate) struct StreamView<'a> {
    pub(crate) logs: &'a Logs,
    pub(crate) resolver: Option<Directive>,
    pub(crate) settings: Vec<Directive>,
    /// The path of the njs module; `None` when no server needs it.
    pub(crate) script: Option<Printed>,
    pub(crate) servers: Vec<StreamServerView>,
    pub(crate) snippets: Vec<SnippetView>,
}

/// A server of the stream block.
pub(crate) struct StreamServerView {
    pub(crate) listen: Vec<Directive>,
    pub(crate) settings: Vec<Directive>,
}

impl<'a> StreamView<'a> {
    /// The stream block; `None` when nothing asks for one, or NGINX has none.
    pub(crate) fn new(
        layout: &Layout,
        context: &Context<'_>,
        logs: &'a Logs,
        sources: &mut Sources,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Self>, Unprintable> {
        let config = context.config;
        let has_services = !(layout.tcp.is_empty() && layout.udp.is_empty());
        let has_snippets = !layout.stream_snippets.is_empty() || config.stream_snippet.is_some();
        if !context.capabilities.has(Module::Stream) {
            if has_services || has_snippets {
                let text = "NGINX has no stream module: TCP and UDP services are not served";
                notes.push(note("stream", text.into()));
            }
            return Ok(None);
        }
        let can_serve = context.capabilities.has(Module::StreamJs);
        if has_services && !can_serve {
            let text = "NGINX has no njs for stream: TCP and UDP services are not served";
            notes.push(note("stream", text.into()));
        }
        let servers = || {
            let tcp = layout
                .tcp
                .iter()
                .map(|(port, server)| (*port, server, false));
            let udp = layout
                .udp
                .iter()
                .map(|(port, server)| (*port, server, true));
            tcp.chain(udp).filter(|_| can_serve)
        };
        Ok(Some(Self {
            logs,
            resolver: defaults::resolver(context),
            settings: settings(layout, context),
            script: servers()
                .next()
                .map(|_| plain(&format!("{}/{SCRIPT}", context.environment.nginx_dir)))
                .transpose()?,
            servers: servers()
                .map(|(port, server, udp)| StreamServerView::new(port, server, udp, context))
                .collect(),
            snippets: snippets(layout, config.stream_snippet.as_ref(), sources),
        }))
    }

    pub(crate) fn uses_js(&self) -> bool {
        self.script.is_some()
    }
}

impl StreamServerView {
    fn new(port: u16, server: &StreamServer, udp: bool, context: &Context<'_>) -> Self {
        let config = context.config;
        let parameters = || {
            let udp_parameters = udp.then(|| word("udp"));
            let reuse = (udp && config.reuse_port).then(|| word("reuseport"));
            let proxy_protocol = (server.proxy_protocol_in && !udp).then(|| word("proxy_protocol"));
            udp_parameters
                .into_iter()
                .chain(reuse)
                .chain(proxy_protocol)
        };
        let listen = listen::of_stream(context, port)
            .into_iter()
            .map(|socket| directive("listen", std::iter::once(socket).chain(parameters())))
            .collect();
        let mut settings = Vec::new();
        if udp {
            settings.push(directive(
                "proxy_responses",
                [word(config.proxy_stream_responses)],
            ));
        } else if server.proxy_protocol_out {
            settings.push(directive("proxy_protocol", [switch(true)]));
        }
        Self { listen, settings }
    }
}

/// What all servers of the block have.
fn settings(layout: &Layout, context: &Context<'_>) -> Vec<Directive> {
    let config = context.config;
    let mut settings = vec![
        directive("proxy_timeout", [word(config.proxy_stream_timeout)]),
        directive(
            "proxy_next_upstream",
            [switch(config.proxy_stream_next_upstream)],
        ),
        directive(
            "proxy_next_upstream_timeout",
            [word(config.proxy_stream_next_upstream_timeout)],
        ),
        directive(
            "proxy_next_upstream_tries",
            [word(config.proxy_stream_next_upstream_tries)],
        ),
    ];
    settings.extend(read_header(layout).then(|| {
        directive(
            "proxy_protocol_timeout",
            [word(config.proxy_protocol_header_timeout)],
        )
    }));
    if config.enable_real_ip && context.capabilities.has(Module::StreamRealIp) {
        let trusted = config.proxy_real_ip_cidr.iter();
        settings.extend(trusted.map(|network| directive("set_real_ip_from", [word(network)])));
    }
    settings
}

/// Whether any clients send a PROXY header.
fn read_header(layout: &Layout) -> bool {
    layout.tcp.values().any(|server| server.proxy_protocol_in)
}

fn snippets(
    layout: &Layout,
    of_config: Option<&Snippet>,
    sources: &mut Sources,
) -> Vec<SnippetView> {
    let mut snippets: Vec<_> = layout
        .stream_snippets
        .iter()
        .map(|owned| {
            let source = Source {
                host: None,
                path: None,
                ingress: Some(owned.ingress.clone()),
                what: "stream-snippet",
            };
            SnippetView::new(&owned.value, Arc::new(source), sources)
        })
        .collect();
    snippets.extend(SnippetView::of_config(of_config, "stream-snippet", sources));
    snippets
}
