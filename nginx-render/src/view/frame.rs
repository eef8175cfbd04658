//! The main file without its servers.

use askama::Template as _;
use ingress_model::{Layout, config::RenderConfig};

use crate::{
    capabilities::Module,
    environment::Environment,
    source_map::{Mark, Note, SERVERS, Sources, Text},
    value::{Printed, Unprintable, argument, arguments, plain, switch, word},
};

use super::{
    Context, SnippetView,
    directive::{Directive, directive},
    extras::Shared,
    http::HttpView,
    logs::Logs,
    stream::StreamView,
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
    let logs = Logs::new(config, environment)?;
    let snippet =
        SnippetView::of_config(config.main_snippet.as_ref(), "main-snippet", &mut sources);
    let http = HttpView::new(layout, shared, context, &logs, &mut sources)?;
    let stream = StreamView::new(layout, context, &logs, &mut sources, notes)?;
    let view = FrameView {
        modules: modules(context, stream.as_ref())?,
        pid: plain(&environment.pid_path)?,
        user: user(environment)?,
        worker_processes: config
            .worker_processes
            .unwrap_or(environment.worker_processes)
            .max(1),
        settings: settings(context)?,
        error_log: &logs.error_log,
        snippet,
        events: events(config),
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
    let files = config
        .max_worker_open_files
        .unwrap_or(context.environment.open_files);
    settings.push(directive("worker_rlimit_nofile", [word(files)]));
    settings.push(directive(
        "worker_shutdown_timeout",
        [word(config.worker_shutdown_timeout)],
    ));
    Ok(settings)
}

fn user(environment: &Environment) -> Result<Option<Directive>, Unprintable> {
    let Some(user) = &environment.user else {
        return Ok(None);
    };
    let words = std::iter::once(&user.name).chain(&user.group);
    let words: Vec<Printed> = words.map(|word| argument(word)).collect::<Result<_, _>>()?;
    Ok(Some(directive("user", words)))
}

fn events(config: &RenderConfig) -> Vec<Directive> {
    let debug = config
        .debug_connections
        .iter()
        .map(|network| directive("debug_connection", [word(network)]));
    let events = [
        directive("multi_accept", [switch(config.enable_multi_accept)]),
        directive("worker_connections", [word(config.max_worker_connections)]),
        directive("use", [word("epoll")]),
    ];
    events.into_iter().chain(debug).collect()
}

/// The files of the modules that the configuration uses and NGINX has to load.
fn modules(
    context: &Context<'_>,
    stream: Option<&StreamView<'_>>,
) -> Result<Vec<Printed>, Unprintable> {
    let mut wanted = vec![Module::Ndk, Module::Lua, Module::HeadersMore];
    if context.config.enable_brotli {
        wanted.extend([Module::BrotliFilter, Module::BrotliStatic]);
    }
    if let Some(stream) = stream {
        wanted.push(Module::Stream);
        if stream.uses_js() {
            wanted.push(Module::StreamJs);
        }
    }
    let paths = wanted
        .into_iter()
        .filter_map(|module| context.capabilities.load_path(module));
    paths.map(plain).collect()
}
