//! Responses of the default backend in place of error responses.

use std::{collections::BTreeSet, sync::Arc};

use ingress_model::{config::RenderConfig, layout::LocationSettings, live::UpstreamName};

use crate::{
    source_map::{END, Source, Sources},
    value::{Printed, constant, literal, switch, word},
};

use super::{
    directive::{Directive, directive},
    internal::{self, InternalView},
};

/// `error_page` for the statuses that the default backend answers.
pub(crate) fn pages(statuses: &[u16]) -> Vec<Directive> {
    statuses
        .iter()
        .map(|status| {
            directive(
                "error_page",
                [word(status), word("="), internal::named(&name(*status))],
            )
        })
        .collect()
}

/// What the http block says.
pub(crate) fn inherited(config: &RenderConfig) -> Vec<Directive> {
    let mut directives = pages(&config.custom_http_errors);
    if !config.custom_http_errors.is_empty() && !config.disable_proxy_intercept_errors {
        directives.push(directive("proxy_intercept_errors", [switch(true)]));
    }
    directives
}

/// What a location says. `signin` is where a client that was refused with 401 is sent: NGINX inherits all `error_page`
/// directives or none.
pub(crate) fn of_location(
    settings: &LocationSettings,
    config: &RenderConfig,
    signin: Option<Printed>,
) -> Vec<Directive> {
    let own = settings.custom_http_errors.as_deref();
    let mut directives = match own {
        Some(statuses) => pages(statuses),
        None if signin.is_some() => pages(&config.custom_http_errors),
        None => Vec::new(),
    };
    if let Some(signin) = signin {
        directives.push(directive("error_page", [word(401), word("="), signin]));
    }
    let is_inherited =
        !config.custom_http_errors.is_empty() && !config.disable_proxy_intercept_errors;
    let intercepts = match own {
        _ if settings.disable_proxy_intercept_errors => false,
        Some(statuses) => !statuses.is_empty(),
        None => is_inherited,
    };
    if intercepts != is_inherited {
        directives.push(directive("proxy_intercept_errors", [switch(intercepts)]));
    }
    directives
}

/// The locations that ask the default backend, for the statuses that a server may need.
pub(crate) fn locations(
    statuses: &BTreeSet<u16>,
    source: &Arc<Source>,
    sources: &mut Sources,
) -> Vec<InternalView> {
    statuses
        .iter()
        .map(|status| location(*status, source, sources))
        .collect()
}

fn location(status: u16, source: &Arc<Source>, sources: &mut Sources) -> InternalView {
    let variable = |name: &str| constant(name.to_owned());
    let header = |name, value| directive("proxy_set_header", [word(name), value]);
    let upstream = literal(UpstreamName::DEFAULT_BACKEND).unwrap_or_else(|_| variable("\"\""));
    InternalView {
        begin: sources.begin(Arc::clone(source)),
        end: END,
        matcher: internal::named(&name(status)),
        settings: vec![
            directive("proxy_intercept_errors", [switch(false)]),
            header("X-Code", word(status)),
            header("X-Format", variable("$http_accept")),
            header("X-Original-URI", variable("$request_uri")),
            header("X-Namespace", variable("$namespace")),
            header("X-Ingress-Name", variable("$ingress_name")),
            header("X-Service-Name", variable("$service_name")),
            header("X-Service-Port", variable("$service_port")),
            header("X-Request-ID", variable("$req_id")),
            header("X-Forwarded-For", variable("$remote_addr")),
            header("Host", variable("$best_http_host")),
            header("Connection", variable("$connection_upgrade")),
        ],
        snippet: None,
        cors: None,
        escapes_uri: false,
        handler: vec![
            directive("set", [variable("$proxy_upstream_name"), upstream]),
            directive("rewrite", [variable("^"), variable("/"), word("break")]),
            directive("proxy_pass", [variable("http://upstream_balancer")]),
        ],
    }
}

fn name(status: u16) -> String {
    format!("custom_{}_{status}", UpstreamName::DEFAULT_BACKEND)
}
