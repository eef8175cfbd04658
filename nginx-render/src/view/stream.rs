//! TCP and UDP services.
//!
//! Their endpoints change without a reload where NGINX has njs: a few lines of it read a file for each port, in which the
//! controller keeps the endpoints ([`crate::endpoint_files`]), replaced as a whole by renaming. The file of a port is
//! `<nginx_dir>/stream/<tcp|udp>-<port>`. What njs chooses is one endpoint, so that there is no other one to try where it
//! cannot be reached. Therefore the endpoints as they were at the last load are upstream blocks, too, and njs names that
//! block as long as the file says that they are the same.
//!
//! Where NGINX has no njs, Lua reads the same files (OpenResty); where it has neither, there are only the upstream blocks.
//!
//! TLS of some hosts is passed through likewise; the file of a host is `<nginx_dir>/stream/tls/<host>`. NGINX sends the
//! PROXY header to all peers of a server or to none. Therefore the server at the HTTPS port sends it always: either to the
//! local port where TLS ends, or to that of a second server, which takes it off and goes on to the endpoint.

use std::{collections::BTreeMap, sync::Arc};

use ingress_model::{Layout, layout::StreamServer, value::Snippet};
use serde_json::json;

use crate::{
    capabilities::{Capabilities, Module},
    environment::PassthroughPorts,
    source_map::{Note, Source, Sources},
    value::{Printed, Unprintable, argument, constant, network, plain, switch, word},
};

use super::{
    Context, SnippetView, defaults,
    directive::{Directive, directive},
    h2c, listen,
    logs::Logs,
    note,
};

/// The directory of the files with endpoints, below NGINX's.
pub(crate) const ENDPOINTS: &str = "stream";

/// The upstream blocks; a pattern, since there need not be any.
const GROUPS: &str = "stream/groups.con[f]";

/// The file of the njs module that reads them.
pub(crate) const SCRIPT: &str = "njs/stream.js";

/// The file with the Lua code that reads them.
pub(crate) const LUA_SCRIPT: &str = "lua-stream/balancer.lua";

/// Who chooses endpoints of TCP and UDP services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chooser {
    /// njs, as files say at the moment.
    Njs,
    /// Lua, as files say at the moment.
    Lua,
    /// NGINX itself, among those of its last load.
    Nginx,
}

/// Who chooses endpoints in an NGINX of that kind.
pub(crate) fn chooser(capabilities: &Capabilities) -> Chooser {
    if capabilities.has(Module::StreamJs) {
        Chooser::Njs
    } else if capabilities.has(Module::StreamLua) {
        Chooser::Lua
    } else {
        Chooser::Nginx
    }
}

/// The scripts that a layout needs, each with its file.
pub(crate) fn scripts(layout: &Layout, context: &Context<'_>) -> Vec<(&'static str, String)> {
    if !context.capabilities.has(Module::Stream) {
        return Vec::new();
    }
    let has_services = !(layout.tcp.is_empty() && layout.udp.is_empty());
    let chooser = chooser(context.capabilities);
    let looks = context.passthrough().is_some() || context.split.is_some();
    let njs = looks || (has_services && chooser == Chooser::Njs);
    let njs = njs.then(|| (SCRIPT, script(context)));
    let lua = (has_services && chooser == Chooser::Lua).then(|| (LUA_SCRIPT, lua_script(context)));
    njs.into_iter().chain(lua).collect()
}

/// The Lua code, with the directory that it reads.
fn lua_script(context: &Context<'_>) -> String {
    let directory = format!("{}/{ENDPOINTS}", context.environment.nginx_dir);
    let directory = serde_json::Value::from(directory);
    let functions = include_str!("../../lua/stream.lua");
    format!("local DIRECTORY = {directory}\n\n{functions}")
}

/// The njs module, with the directory that it reads.
fn script(context: &Context<'_>) -> String {
    let directory = format!("{}/{ENDPOINTS}", context.environment.nginx_dir);
    let directory = serde_json::Value::from(directory);
    let ports = context.passthrough().map(|ports| {
        json!({
            "https": format!("127.0.0.1:{}", ports.https),
            "relay": format!("127.0.0.1:{}", ports.relay),
        })
    });
    let ports = ports.map_or_else(String::new, |ports| {
        format!("const PASSTHROUGH = {ports};\n")
    });
    let split = context.split.as_ref().map_or_else(String::new, |split| {
        let http2 = serde_json::Value::from(split.http2_name());
        format!("const HTTP2 = {http2};\n")
    });
    let functions = include_str!("../../njs/stream.js");
    format!("const DIRECTORY = {directory};\n{ports}{split}\n{functions}")
}

/// Protocol and port of each service with the name of its group of endpoints, for the variable `$proxy_upstream_name`;
/// `None` where neither the line of the log nor a snippet reads that.
fn upstream_names(layout: &Layout) -> Option<Vec<[Printed; 2]>> {
    let config = &layout.config;
    let own = layout.stream_snippets.iter().map(|owned| &owned.value);
    let snippets = own.chain(&config.stream_snippet).map(Snippet::as_str);
    let mut texts = snippets.chain([config.log_format_stream.as_str()]);
    if !texts.any(|text| text.contains("proxy_upstream_name")) {
        return None;
    }
    let names = |protocol, servers: &BTreeMap<u16, StreamServer>| {
        let names = servers.iter().map(|(port, server)| {
            let key = word(format_args!("{protocol}:{port}"));
            [key, word(&server.upstream)]
        });
        names.collect::<Vec<_>>()
    };
    let mut all = names("TCP", &layout.tcp);
    all.extend(names("UDP", &layout.udp));
    Some(all)
}

/// The stream block.
pub(crate) struct StreamView<'a> {
    pub(crate) logs: &'a Logs,
    pub(crate) resolver: Option<Directive>,
    pub(crate) settings: Vec<Directive>,
    pub(crate) upstream_names: Option<Vec<[Printed; 2]>>,
    /// The path of the njs module; `None` when no server needs it.
    pub(crate) script: Option<Printed>,
    /// The upstream blocks of TCP and UDP services.
    pub(crate) groups: Option<Printed>,
    /// The path of the Lua code; `None` when no server needs it.
    pub(crate) balancer: Option<Printed>,
    /// Whether TLS of some hosts is passed through.
    pub(crate) passes_tls: bool,
    /// The socket for HTTP/1.1, where connections of the HTTP port may also be HTTP/2.
    pub(crate) http1: Option<Printed>,
    pub(crate) servers: Vec<StreamServerView>,
    pub(crate) snippets: Vec<SnippetView>,
}

/// A server of the stream block.
pub(crate) struct StreamServerView {
    pub(crate) listen: Vec<Directive>,
    pub(crate) settings: Vec<Directive>,
    /// The peer, an upstream block or a variable that names either.
    pub(crate) peer: Printed,
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
        let passthrough = context.passthrough();
        if context.environment.ports.passthrough.is_some() && passthrough.is_none() {
            let text = "NGINX lacks stream with ssl_preread and njs, or realip: TLS is not passed through but ends at the \
                        controller";
            notes.push(note("ssl-passthrough", text.into()));
        }
        h2c::note_lack(layout, context, notes);
        if !context.capabilities.has(Module::Stream) {
            if has_services || has_snippets {
                let text = "NGINX has no stream module: TCP and UDP services are not served";
                notes.push(note("stream", text.into()));
            }
            return Ok(None);
        }
        let tcp = layout.tcp.iter().map(|(port, it)| (*port, it, false));
        let udp = layout.udp.iter().map(|(port, it)| (*port, it, true));
        let services = tcp.chain(udp);
        let split = context.split.as_ref();
        let chooser = chooser(context.capabilities);
        let uses = |wanted: &[Chooser]| has_services && wanted.contains(&chooser);
        let below = |path: &str| plain(&format!("{}/{path}", context.environment.nginx_dir));
        Ok(Some(Self {
            logs,
            resolver: defaults::resolver(context),
            settings: settings(layout, context)?,
            upstream_names: upstream_names(layout),
            script: (passthrough.is_some() || split.is_some() || uses(&[Chooser::Njs]))
                .then(|| below(SCRIPT))
                .transpose()?,
            groups: uses(&[Chooser::Njs, Chooser::Nginx])
                .then(|| below(GROUPS))
                .transpose()?,
            balancer: uses(&[Chooser::Lua])
                .then(|| below(LUA_SCRIPT))
                .transpose()?,
            passes_tls: passthrough.is_some(),
            http1: split.map(h2c::Split::http1),
            servers: services
                .map(|(port, server, udp)| StreamServerView::new(port, server, udp, context))
                .chain(
                    passthrough
                        .into_iter()
                        .flat_map(|ports| passing(ports, context)),
                )
                .chain(split.map(|_| h2c::server(context)))
                .collect(),
            snippets: snippets(layout, config.stream_snippet.as_ref(), sources),
        }))
    }

    /// The modules that the block needs.
    pub(crate) fn modules(&self) -> impl Iterator<Item = Module> {
        let njs = self.script.is_some().then_some(Module::StreamJs);
        let lua = self.balancer.is_some().then_some(Module::StreamLua);
        std::iter::once(Module::Stream).chain(njs).chain(lua)
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
        Self {
            listen,
            settings,
            peer: constant(
                match chooser(context.capabilities) {
                    Chooser::Njs => "$endpoint",
                    Chooser::Lua => "endpoint",
                    Chooser::Nginx => "$endpoint_group",
                }
                .into(),
            ),
        }
    }
}

/// The servers that pass TLS through: the one at the HTTPS port, and the one whence it goes to the endpoints.
fn passing(ports: PassthroughPorts, context: &Context<'_>) -> [StreamServerView; 2] {
    let config = context.config;
    // How long connections may be idle is said where they end; keep-alive finds out about peers that are gone.
    let common = || {
        vec![
            directive("ssl_preread", [switch(true)]),
            directive("proxy_timeout", [word("1d")]),
            directive("proxy_socket_keepalive", [switch(true)]),
        ]
    };
    let mut front = common();
    front.push(directive("proxy_protocol", [switch(true)]));
    front.push(directive("access_log", [word("off")]));
    let real_ip = context.capabilities.has(Module::StreamRealIp);
    if config.use_proxy_protocol {
        let timeout = config.proxy_protocol_header_timeout;
        front.push(directive("proxy_protocol_timeout", [word(timeout)]));
        let trusted = config.proxy_real_ip_cidr.iter().filter(|_| real_ip);
        front.extend(trusted.map(|trusted| directive("set_real_ip_from", [network(trusted)])));
    }
    let mut relay = common();
    relay.extend(real_ip.then(|| directive("set_real_ip_from", [word("127.0.0.1")])));
    let backlog = word(format_args!("backlog={}", context.environment.backlog));
    let local = [listen::local(ports.relay), word("proxy_protocol"), backlog];
    [
        StreamServerView {
            listen: listen::of_front(context, context.environment.ports.https),
            settings: front,
            peer: constant("$tls_way".into()),
        },
        StreamServerView {
            listen: vec![directive("listen", local)],
            settings: relay,
            peer: constant("$tls_endpoint".into()),
        },
    ]
}

/// What all servers of the block have.
fn settings(layout: &Layout, context: &Context<'_>) -> Result<Vec<Directive>, Unprintable> {
    let config = context.config;
    let mut settings = vec![
        directive(
            "proxy_timeout",
            [argument(config.proxy_stream_timeout.as_str())?],
        ),
        directive(
            "proxy_next_upstream",
            [switch(config.proxy_stream_next_upstream)],
        ),
        directive(
            "proxy_next_upstream_timeout",
            [argument(
                config.proxy_stream_next_upstream_timeout.as_str(),
            )?],
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
        settings.extend(trusted.map(|trusted| directive("set_real_ip_from", [network(trusted)])));
    }
    Ok(settings)
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
