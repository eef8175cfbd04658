//! Responses of default backends in place of error responses.

use std::{collections::BTreeSet, sync::Arc};

use ingress_model::{config::RenderConfig, layout::LocationSettings, live::UpstreamName};

use crate::{
    source_map::{END, Source, Sources},
    value::{Printed, Unprintable, constant, literal, switch, word},
};

use super::{
    directive::{Directive, directive},
    internal::{self, InternalView},
};

/// A status that a default backend answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ErrorPage {
    backend: UpstreamName,
    status: u16,
}

impl ErrorPage {
    /// The pages of the controller's default backend.
    pub(crate) fn common(statuses: &[u16]) -> impl Iterator<Item = Self> {
        let backend = UpstreamName::default_backend();
        statuses.iter().map(move |status| Self {
            backend: backend.clone(),
            status: *status,
        })
    }

    /// The pages that a location asks for itself.
    pub(crate) fn of_location(settings: &LocationSettings) -> impl Iterator<Item = Self> {
        let backend = settings.default_backend.clone();
        let backend = backend.unwrap_or_else(UpstreamName::default_backend);
        let statuses = settings.custom_http_errors.iter().flatten();
        statuses.map(move |status| Self {
            backend: backend.clone(),
            status: *status,
        })
    }

    /// Each name is one of objects, and so has no character that would end the word.
    fn name(&self) -> String {
        format!("custom_{}_{}", self.backend, self.status)
    }

    fn directive(&self) -> Directive {
        let arguments = [word(self.status), word("="), internal::named(&self.name())];
        directive("error_page", arguments)
    }
}

/// What the http block says.
pub(crate) fn inherited(config: &RenderConfig) -> Vec<Directive> {
    let pages = ErrorPage::common(&config.custom_http_errors);
    let mut directives: Vec<_> = pages.map(|page| page.directive()).collect();
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
    let pages: Vec<ErrorPage> = match own {
        Some(_) => ErrorPage::of_location(settings).collect(),
        None if signin.is_some() => ErrorPage::common(&config.custom_http_errors).collect(),
        None => Vec::new(),
    };
    let mut directives: Vec<_> = pages.iter().map(ErrorPage::directive).collect();
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

/// What a location says that refuses every request: its status stays, whatever the default backend answers.
pub(crate) fn of_refusal(status: u16, config: &RenderConfig) -> Option<Directive> {
    let page = ErrorPage::common(&config.custom_http_errors).find(|page| page.status == status)?;
    let arguments = [word(status), internal::named(&page.name())];
    Some(directive("error_page", arguments))
}

/// What a location says that only NGINX itself asks: none of the pages above stand in for its errors. NGINX inherits
/// all of them or none, so it has one of its own, for a status that never occurs.
pub(crate) fn of_question() -> Directive {
    directive("error_page", [word(599), word("/")])
}

/// The locations that ask default backends.
pub(crate) fn locations(
    pages: &BTreeSet<ErrorPage>,
    source: &Arc<Source>,
    sources: &mut Sources,
) -> Vec<InternalView> {
    pages
        .iter()
        .filter_map(|page| location(page, source, sources).ok())
        .collect()
}

fn location(
    page: &ErrorPage,
    source: &Arc<Source>,
    sources: &mut Sources,
) -> Result<InternalView, Unprintable> {
    let variable = |name: &str| constant(name.to_owned());
    let header = |name, value| directive("proxy_set_header", [word(name), value]);
    let set = |name, value| directive("set", [variable(name), value]);
    let mut handler = vec![set("$proxy_upstream_name", literal(page.backend.as_str())?)];
    if page.backend.as_str() != UpstreamName::DEFAULT_BACKEND {
        // As long as the Service has no endpoints, its author is no worse off than without it.
        let common = literal(UpstreamName::DEFAULT_BACKEND)?;
        handler.push(set("$default_backend", common));
    }
    handler.extend([
        directive("rewrite", [variable("^"), variable("/"), word("break")]),
        directive("proxy_pass", [variable("http://upstream_balancer")]),
    ]);
    Ok(InternalView {
        begin: sources.begin(Arc::clone(source)),
        end: END,
        matcher: internal::named(&page.name()),
        settings: vec![
            directive("proxy_intercept_errors", [switch(false)]),
            header("X-Code", word(page.status)),
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
        handler,
    })
}
