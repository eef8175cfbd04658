//! The main file without its servers.

use askama::Template as _;
use ingress_model::{
    Layout,
    layout::{AuthScheme, BasicAuth, LocationSettings},
};

use crate::{
    capabilities::Module,
    environment::Environment,
    source_map::{Mark, Note, SERVERS, Sources, Text},
    value::{Printed, Unprintable, argument, arguments, network, plain, switch, word},
};

use super::{
    Context, SnippetView,
    directive::{Directive, directive},
    extras::Shared,
    http::HttpView,
    logs::Logs,
    stream::StreamView,
    telemetry,
};

#[derive(askama::Template)]
#[template(path = "nginx.conf")]
struct FrameView<'a> {
    modules: Vec<Printed>,
    pid: Printed,
    user: Option<Directive>,
    worker_processes: u32,
    settings: Vec<Directive>,
    error_log: &'a Directive,
    snippet: Option<SnippetView>,
    events: Vec<Directive>,
    http: HttpView<'a>,
    servers: Mark,
    stream: Option<StreamView<'a>>,
}

/// Renders everything but the servers.
///
/// # Errors
/// When a setting cannot stand in the configuration.
pub(crate) fn render(
    layout: &Layout,
    shared: &Shared,
    context: &Context<'_>,
    notes: &mut Vec<Note>,
) -> Result<Text, FrameError> {
    let (config, environment) = (context.config, context.environment);
    let mut sources = Sources::default();
    let logs = Logs::new(context)?;
    let snippet =
        SnippetView::of_config(config.main_snippet.as_ref(), "main-snippet", &mut sources);
    let http = HttpView::new(layout, shared, context, &logs, &mut sources, notes)?;
    let stream = StreamView::new(layout, context, &logs, &mut sources, notes)?;
    let view = FrameView {
        modules: modules(layout, context, stream.as_ref())?,
        pid: plain(&environment.pid_path)?,
        user: user(environment)?,
        worker_processes: workers(context),
        settings: settings(context)?,
        error_log: &logs.main_error_log,
        snippet,
        events: events(layout, context),
        http,
        servers: SERVERS,
        stream,
    };
    Ok(Text::read(&view.render()?, &sources))
}

/// Why the main file cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error(transparent)]
    Text(#[from] Unprintable),
    #[error(transparent)]
    Template(#[from] askama::Error),
}

fn settings(context: &Context<'_>) -> Result<Vec<Directive>, Unprintable> {
    let config = context.config;
    let mut settings = Vec::new();
    if !config.worker_cpu_affinity.is_empty() {
        settings.push(directive(
            "worker_cpu_affinity",
            arguments(&config.worker_cpu_affinity)?,
        ));
    }
    settings.push(directive(
        "worker_rlimit_nofile",
        [word(open_files(context))],
    ));
    settings.push(directive(
        "worker_shutdown_timeout",
        [argument(config.worker_shutdown_timeout.as_str())?],
    ));
    Ok(settings)
}

fn open_files(context: &Context<'_>) -> u32 {
    let set = context.config.max_worker_open_files;
    set.unwrap_or(context.environment.open_files)
}

fn user(environment: &Environment) -> Result<Option<Directive>, Unprintable> {
    let Some(user) = &environment.user else {
        return Ok(None);
    };
    let words = std::iter::once(&user.name).chain(&user.group);
    let words: Vec<Printed> = words.map(|word| argument(word)).collect::<Result<_, _>>()?;
    Ok(Some(directive("user", words)))
}

fn workers(context: &Context<'_>) -> u32 {
    let set = context.config.worker_processes;
    set.unwrap_or(context.environment.worker_processes).max(1)
}

/// How many connections a worker needs for the sockets that it listens on, of which there may be one a worker: NGINX
/// does not start without.
fn fewest_connections(layout: &Layout, context: &Context<'_>) -> u32 {
    const SPARE: u32 = 16;
    let addresses = context.config.bind_address.len().max(2);
    let passing = context.passthrough().map_or(0, |_| 2);
    let ports = layout.tcp.len() + layout.udp.len() + passing + 5;
    let sockets = u32::try_from(addresses.saturating_mul(ports)).unwrap_or(u32::MAX);
    workers(context)
        .saturating_mul(sockets)
        .saturating_add(SPARE)
}

fn events(layout: &Layout, context: &Context<'_>) -> Vec<Directive> {
    let config = context.config;
    let connections = match config.max_worker_connections {
        0 => (open_files(context) / 4).saturating_mul(3),
        connections => connections,
    };
    let connections = connections.max(fewest_connections(layout, context));
    let debug = config
        .debug_connections
        .iter()
        .map(|clients| directive("debug_connection", [network(clients)]));
    let events = [
        directive("multi_accept", [switch(config.enable_multi_accept)]),
        directive("worker_connections", [word(connections)]),
        directive("use", [word("epoll")]),
    ];
    events.into_iter().chain(debug).collect()
}

/// The files of the modules that the configuration uses and NGINX has to load.
fn modules(
    layout: &Layout,
    context: &Context<'_>,
    stream: Option<&StreamView<'_>>,
) -> Result<Vec<Printed>, Unprintable> {
    let mut wanted = vec![Module::Ndk, Module::Lua, Module::HeadersMore];
    if context.config.enable_brotli {
        wanted.extend([Module::BrotliFilter, Module::BrotliStatic]);
    }
    let any = |uses: &dyn Fn(&LocationSettings) -> bool| {
        let mut servers = layout.servers.values();
        servers.any(|server| {
            let mut locations = server.locations.iter();
            locations.any(|location| uses(&location.settings))
        })
    };
    if context.config.enable_modsecurity
        || any(&|settings| settings.modsecurity.enable == Some(true))
    {
        wanted.push(Module::ModSecurity);
    }
    let is_digest = |auth: &BasicAuth| auth.scheme == AuthScheme::Digest;
    if any(&|settings| settings.basic_auth.as_ref().is_some_and(is_digest)) {
        wanted.push(Module::AuthDigest);
    }
    if telemetry::is_possible(context) && telemetry::is_wanted(layout) {
        wanted.push(Module::OpenTelemetry);
    }
    if context.config.use_geoip2 {
        wanted.push(Module::GeoIp2);
    }
    if let Some(stream) = stream {
        wanted.extend(stream.modules());
    }
    let paths = wanted
        .into_iter()
        .filter_map(|module| context.capabilities.load_path(module));
    paths.map(plain).collect()
}
