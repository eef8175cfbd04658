//! A location: what it is, and what differs from the levels above.

use std::{collections::BTreeSet, sync::Arc};

use ingress_model::{
    Location, Server,
    config::RenderConfig,
    layout::{BackendProtocol, LocationSettings, Modifier, Satisfy},
    live::UpstreamName,
    value::Template,
};

use crate::{
    pattern,
    source_map::{END, Mark, Source, Sources},
    value::{
        Printed, Unprintable, constant, joined, literal, plain, refers_to_group, switch, template,
        word,
    },
};

use super::{
    Context, SnippetView,
    directive::{Directive, directive},
    headers, proxy, sets_headers, snippet_names,
};

/// A location of a server.
pub(crate) struct LocationView {
    pub(crate) begin: Mark,
    pub(crate) end: Mark,
    /// Modifier and path.
    pub(crate) matcher: Printed,
    /// Variables that logs, metrics and the Lua side read.
    pub(crate) variables: Vec<Directive>,
    pub(crate) settings: Vec<Directive>,
    /// Where plain HTTP is redirected to.
    pub(crate) to_https: Option<Printed>,
    pub(crate) snippets: Vec<SnippetView>,
    /// What answers the request.
    pub(crate) handler: Vec<Directive>,
}

/// What a location has to know of its server.
pub(crate) struct ServerFacts<'a> {
    pub(crate) server: &'a Server,
    /// Whether the server redirects plain HTTP itself.
    pub(crate) redirects: bool,
    /// Whether a snippet above sets headers for endpoints.
    pub(crate) headers_are_lost: bool,
    /// Directives that snippets above have changed.
    pub(crate) changed: BTreeSet<&'a str>,
    /// Why every location is refused.
    pub(crate) denied: bool,
}

impl LocationView {
    /// The view of a location.
    ///
    /// # Errors
    /// When a text of it cannot stand in the configuration.
    pub(crate) fn new(
        location: &Location,
        facts: &ServerFacts<'_>,
        context: &Context<'_>,
        source: &Arc<Source>,
        sources: &mut Sources,
    ) -> Result<Self, Unprintable> {
        let settings = &*location.settings;
        let mut view = Self {
            begin: sources.begin(Arc::clone(source)),
            end: END,
            matcher: matcher(location)?,
            variables: variables(location)?,
            settings: Vec::new(),
            to_https: None,
            snippets: Vec::new(),
            handler: Vec::new(),
        };
        view.settings.extend(logging(settings));
        if facts.denied {
            view.handler.push(answer(403));
            return Ok(view);
        }
        if settings.denied.is_some() {
            view.handler.push(answer(503));
            return Ok(view);
        }
        let snippets = [
            settings.snippet.as_ref(),
            context.config.location_snippet.as_ref(),
        ];
        let own_names: BTreeSet<&str> = snippets.into_iter().flat_map(snippet_names).collect();
        if snippets
            .iter()
            .any(|snippet| mentions(*snippet, "proxy_host"))
        {
            // NGINX's own value would be the name of the Lua upstream.
            view.variables
                .push(set("$proxy_host", constant("$proxy_upstream_name".into())));
        }

        view.settings.extend(proxy::overrides(
            settings,
            protocol(location),
            context.config,
            &context.inherited,
            &facts.changed,
        )?);
        let headers_are_lost = facts.headers_are_lost || snippets.into_iter().any(sets_headers);
        view.add_headers(location, facts.server, context.config, headers_are_lost)?;
        view.settings.extend(settings.satisfy.map(satisfy));
        view.settings.retain(|directive| {
            !own_names.contains(directive.0.name) || directive.0.name.ends_with("_set_header")
        });

        view.snippets = ["configuration-snippet", "location-snippet"]
            .into_iter()
            .zip(snippets)
            .filter_map(|(what, snippet)| {
                let source = Arc::new(Source {
                    what,
                    ..(**source).clone()
                });
                snippet.map(|snippet| SnippetView::new(snippet, source, sources))
            })
            .collect();

        if let Some(redirect) = &settings.redirect {
            view.handler.push(directive(
                "return",
                [word(redirect.code), template(redirect.target.as_str())?],
            ));
            return Ok(view);
        }
        if !facts.redirects {
            view.to_https = to_https(location, facts.server, context);
        }
        if let Some(target) = active_rewrite(location) {
            let from = plain(&format!("(?i){}", location.path))?;
            view.handler.push(directive(
                "rewrite",
                [from, template(target.as_str())?, word("break")],
            ));
        }
        view.handler.push(pass(protocol(location)));
        view.handler.extend(
            proxy::redirect(settings, protocol(location), context.config, &facts.changed)?
                .filter(|_| !own_names.contains("proxy_redirect")),
        );
        Ok(view)
    }

    /// A location that answers 503, in place of one that cannot be rendered.
    ///
    /// # Errors
    /// When not even the path can stand in the configuration.
    pub(crate) fn closed(
        location: &Location,
        source: &Arc<Source>,
        sources: &mut Sources,
    ) -> Result<Self, Unprintable> {
        Ok(Self {
            matcher: matcher(location)?,
            begin: sources.begin(Arc::clone(source)),
            end: END,
            variables: Vec::new(),
            settings: Vec::new(),
            to_https: None,
            snippets: Vec::new(),
            handler: vec![answer(503)],
        })
    }

    fn add_headers(
        &mut self,
        location: &Location,
        server: &Server,
        config: &RenderConfig,
        are_lost: bool,
    ) -> Result<(), Unprintable> {
        let settings = &*location.settings;
        let prefix = active_rewrite(location).and(settings.forwarded_prefix.as_ref());
        let is_own = prefix.is_some()
            || settings.upstream_vhost.is_some()
            || settings.connection_header.is_some();
        if !is_own && !are_lost {
            return Ok(());
        }
        let own = headers::Own {
            host: self.header_value("$upstream_vhost", settings.upstream_vhost.as_ref())?,
            connection: settings
                .connection_header
                .as_ref()
                .map(|value| literal(value.as_str()))
                .transpose()?,
            prefix: self.header_value("$forwarded_prefix", prefix)?,
            client_auth: server
                .client_auth
                .as_ref()
                .map(|auth| &auth.value)
                .filter(|auth| auth.authority.is_some()),
            further: Vec::new(),
        };
        self.settings
            .extend(headers::all(config, protocol(location), own));
        Ok(())
    }

    /// A header's value. One that refers to groups of the path is taken down in `variable` before anything else can
    /// match a regular expression of its own.
    fn header_value(
        &mut self,
        variable: &'static str,
        value: Option<&Template>,
    ) -> Result<Option<Printed>, Unprintable> {
        let Some(value) = value else { return Ok(None) };
        let printed = template(value.as_str())?;
        if !refers_to_group(value) {
            return Ok(Some(printed));
        }
        self.variables.push(set(variable, printed));
        Ok(Some(constant(variable.into())))
    }
}

/// Whether requests to a location are redirected from HTTP to HTTPS, and where to.
pub(crate) fn to_https(
    location: &Location,
    server: &Server,
    context: &Context<'_>,
) -> Option<Printed> {
    let settings = &*location.settings;
    if !(settings.force_ssl_redirect || (settings.ssl_redirect && server.tls)) {
        return None;
    }
    let port = if settings.use_port_in_redirects {
        format!(":{}", context.environment.ports.https)
    } else {
        String::new()
    };
    let uri = if settings.preserve_trailing_slash {
        "$request_uri"
    } else {
        "$redirect_uri"
    };
    Some(constant(format!("https://$redirect_host{port}{uri}")))
}

/// The path's replacement, unless it is the path itself.
fn active_rewrite(location: &Location) -> Option<&Template> {
    let target = location.settings.rewrite_target.as_ref()?;
    (!target.as_str().is_empty() && target.as_str() != location.path).then_some(target)
}

fn matcher(location: &Location) -> Result<Printed, Unprintable> {
    let path = &location.path;
    match location.modifier {
        Modifier::Exact => Ok(joined("= ", &plain(path)?)),
        // Anything else in front would be a modifier.
        Modifier::Prefix if !path.starts_with('/') => Err(Unprintable::NoSlash),
        Modifier::Prefix => plain(path),
        Modifier::Regex => {
            pattern::check_groups(path)?;
            Ok(joined("~* ", &plain(&format!("^{path}"))?))
        }
    }
}

fn variables(location: &Location) -> Result<Vec<Directive>, Unprintable> {
    let mut variables = Vec::new();
    if let Some(ingress) = &location.ingress {
        variables.push(set("$namespace", literal(ingress.namespace())?));
        variables.push(set("$ingress_name", literal(ingress.name())?));
    }
    if let Some(service) = &location.service {
        variables.push(set("$service_name", literal(&service.name)?));
        variables.push(set("$service_port", literal(&service.port.to_string())?));
    }
    variables.push(set("$location_path", literal(&location.ingress_path)?));
    variables.push(set(
        "$proxy_upstream_name",
        literal(location.upstream.as_str())?,
    ));
    Ok(variables)
}

fn logging(settings: &LocationSettings) -> impl Iterator<Item = Directive> {
    let access_log =
        (settings.access_log == Some(false)).then(|| directive("access_log", [switch(false)]));
    let rewrite_log = settings
        .rewrite_log
        .then(|| directive("rewrite_log", [switch(true)]));
    access_log.into_iter().chain(rewrite_log)
}

fn satisfy(satisfy: Satisfy) -> Directive {
    let value = match satisfy {
        Satisfy::All => "all",
        Satisfy::Any => "any",
    };
    directive("satisfy", [word(value)])
}

/// The protocol that is spoken: the default backend is NGINX itself, or a Service that is asked by HTTP only.
pub(crate) fn protocol(location: &Location) -> BackendProtocol {
    if location.upstream.as_str() == UpstreamName::DEFAULT_BACKEND {
        BackendProtocol::Http
    } else {
        location.settings.backend_protocol
    }
}

fn pass(protocol: BackendProtocol) -> Directive {
    let (name, address) = match protocol {
        BackendProtocol::Http => ("proxy_pass", "http://upstream_balancer"),
        BackendProtocol::Https => ("proxy_pass", "https://upstream_balancer"),
        BackendProtocol::AutoHttp => ("proxy_pass", "$scheme://upstream_balancer"),
        BackendProtocol::Grpc => ("grpc_pass", "grpc://upstream_balancer"),
        BackendProtocol::Grpcs => ("grpc_pass", "grpcs://upstream_balancer"),
        BackendProtocol::Fcgi => ("fastcgi_pass", "upstream_balancer"),
    };
    directive(name, [constant(address.into())])
}

fn answer(status: u16) -> Directive {
    directive("return", [word(status)])
}

fn set(variable: &'static str, value: Printed) -> Directive {
    directive("set", [constant(variable.into()), value])
}

fn mentions(snippet: Option<&ingress_model::value::Snippet>, text: &str) -> bool {
    snippet.is_some_and(|snippet| snippet.as_str().contains(text))
}
