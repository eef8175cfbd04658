//! A location: what it is, and what differs from the levels above.

use std::{collections::BTreeSet, sync::Arc};

use ingress_model::{
    Location, Server,
    config::RenderConfig,
    layout::{BackendProtocol, ClientAuth, LocationSettings, Satisfy},
    value::Template,
};

use crate::{
    source_map::{END, Mark, Source, Sources},
    value::{
        Printed, Unprintable, constant, literal, plain, refers_to_group, switch, template, word,
    },
};

use super::{
    Context, PROXY_HOST, SnippetView, access,
    cors::{self, CorsView},
    directive::{Directive, directive},
    errors::{self, ErrorPage},
    external_auth::ExternalAuthView,
    extras::Extras,
    fastcgi, headers, mirror, modsecurity,
    pool::{Inherited, Pool},
    proxy,
    routing::{active_rewrite, matcher, protocol, to_https},
    sets_headers, snippet_names, telemetry, upstream_tls,
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
    /// Whether the Lua side asks a service about each request.
    pub(crate) asks_by_lua: bool,
    /// Where plain HTTP is redirected to.
    pub(crate) to_https: Option<Printed>,
    pub(crate) cors: Option<CorsView>,
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
    /// What is said about TLS to endpoints.
    pub(crate) upstream_tls: Inherited<'a>,
    /// Why every location is refused.
    pub(crate) denied: bool,
}

impl ServerFacts<'_> {
    /// What the server asks of clients, if they have certificates to show.
    fn client_auth(&self) -> Option<&ClientAuth> {
        let auth = self.server.client_auth.as_ref().map(|auth| &auth.value);
        auth.filter(|auth| auth.authority.is_some())
    }

    /// Headers with facts about the client's certificate.
    pub(crate) fn client_certificate_headers(&self, name: &'static str) -> Vec<Directive> {
        let facts = self
            .client_auth()
            .into_iter()
            .flat_map(headers::of_certificate);
        facts
            .map(|(header, value)| directive(name, [word(header), constant(value.into())]))
            .collect()
    }
}

impl LocationView {
    /// The view of a location.
    ///
    /// # Errors
    /// When it cannot be written down as it was asked for.
    pub(crate) fn new(
        location: &Location,
        facts: &ServerFacts<'_>,
        context: &Context<'_>,
        source: &Arc<Source>,
        extras: &mut Extras,
    ) -> Result<Self, Unprintable> {
        let settings = &*location.settings;
        let mut view = Self {
            begin: extras.sources.begin(Arc::clone(source)),
            end: END,
            matcher: matcher(location)?,
            variables: variables(location)?,
            settings: logging(settings).collect(),
            asks_by_lua: false,
            to_https: None,
            cors: None,
            snippets: Vec::new(),
            handler: Vec::new(),
        };
        if facts.denied || settings.denied.is_some() {
            let status = if facts.denied { 403 } else { 503 };
            view.handler.extend(refuse(status, context.config));
            return Ok(view);
        }
        let snippets = [
            settings.snippet.as_ref(),
            context.config.location_snippet.as_ref(),
        ];
        let own_server = facts.server.snippet.as_ref();
        let mut own = settings
            .snippet
            .iter()
            .chain(own_server.map(|it| &it.value));
        if context.reads_proxy_host || own.any(|it| it.as_str().contains(PROXY_HOST)) {
            // NGINX's own value would be the name of the Lua upstream.
            view.variables
                .push(set("$proxy_host", constant("$proxy_upstream_name".into())));
        }
        let mut further_headers = view.add_protection(location, facts, context, source, extras)?;
        let overrides = proxy::overrides(
            settings,
            protocol(location),
            context.config,
            &context.inherited,
            &facts.changed,
        )?;
        view.settings.extend(overrides);
        view.settings.extend(access::rates(settings, context));
        further_headers.extend(authorization(settings)?);
        let headers_are_lost = facts.headers_are_lost || snippets.into_iter().any(sets_headers);
        view.add_headers(location, facts, context, headers_are_lost, further_headers)?;
        view.add_features(location, facts, context, source, extras)?;

        let own_names: BTreeSet<&str> = snippets.into_iter().flat_map(snippet_names).collect();
        view.settings.retain(|directive| {
            !REPLACEABLE.contains(&directive.0.name) || !own_names.contains(directive.0.name)
        });
        let own = Source {
            what: "configuration-snippet",
            ..(**source).clone()
        };
        let of_config = Source {
            host: None,
            path: None,
            ingress: None,
            what: "location-snippet",
        };
        view.snippets = [own, of_config]
            .into_iter()
            .zip(snippets)
            .filter_map(|(source, snippet)| {
                snippet.map(|it| SnippetView::new(it, Arc::new(source), &mut extras.sources))
            })
            .collect();

        if let Some(redirect) = &settings.redirect {
            let target = template(redirect.target.as_str())?;
            view.handler
                .push(directive("return", [word(redirect.code), target]));
            return Ok(view);
        }
        if !facts.redirects {
            view.to_https = to_https(location, facts.server, context);
        }
        if let Some(target) = active_rewrite(location) {
            let from = plain(&format!("(?i){}", location.path))?;
            let arguments = [from, template(target.as_str())?, word("break")];
            view.handler.push(directive("rewrite", arguments));
        }
        let pool = Pool::new(
            protocol(location),
            &view.settings,
            snippets.into_iter().flatten(),
            &facts.upstream_tls,
        );
        view.handler.extend(pool.pass(&mut extras.shared.pools));
        view.handler.extend(
            proxy::redirect(settings, protocol(location), context.config, &facts.changed)?
                .filter(|_| !own_names.contains("proxy_redirect")),
        );
        Ok(view)
    }

    /// Who is let in. Returns headers for the endpoints that come with it.
    fn add_protection(
        &mut self,
        location: &Location,
        facts: &ServerFacts<'_>,
        context: &Context<'_>,
        source: &Arc<Source>,
        extras: &mut Extras,
    ) -> Result<Vec<(Printed, Printed)>, Unprintable> {
        let settings = &*location.settings;
        let mut headers = Vec::new();
        let modsecurity =
            modsecurity::directives(&settings.modsecurity, location, context, source, extras)?;
        self.settings.extend(modsecurity);
        self.settings.extend(access::addresses(settings));
        if let Some(auth) = &settings.basic_auth {
            let (question, path, file) = access::password(auth, location, context)?;
            self.settings.extend(question);
            extras.add_file(path, file, source);
        }
        let mut signin = None;
        if let Some(auth) = &settings.external_auth {
            let auth_view = ExternalAuthView::new(auth, location, facts, context, source, extras)?;
            self.settings.extend(auth_view.settings);
            self.asks_by_lua = auth_view.asks_by_lua;
            headers.extend(auth_view.headers);
            signin = auth_view.signin;
        }
        self.settings.extend(settings.satisfy.map(satisfy));
        if let Some(limits) = &settings.limits {
            let zones = &mut extras.shared.zones;
            self.settings.extend(access::limits(
                limits,
                location.ingress.as_ref(),
                context,
                zones,
            ));
        }
        self.settings
            .extend(errors::of_location(settings, context.config, signin));
        extras.error_pages.extend(ErrorPage::of_location(settings));
        Ok(headers)
    }

    /// What does not decide who is let in.
    fn add_features(
        &mut self,
        location: &Location,
        facts: &ServerFacts<'_>,
        context: &Context<'_>,
        source: &Arc<Source>,
        extras: &mut Extras,
    ) -> Result<(), Unprintable> {
        let settings = &*location.settings;
        if let Some(cors) = &settings.cors {
            self.cors = Some(CorsView::new(cors, context)?);
        }
        for (name, value) in &settings.response_headers {
            let value = literal(value.as_str())?;
            self.settings
                .push(cors::response_header(context, name.as_str(), &value)?);
        }
        if settings.use_port_in_redirects {
            self.settings
                .push(directive("port_in_redirect", [switch(true)]));
        }
        let relative = settings
            .relative_redirects
            .filter(|relative| *relative != context.config.relative_redirects);
        self.settings
            .extend(relative.map(|relative| directive("absolute_redirect", [switch(!relative)])));
        self.settings.extend(telemetry::of_location(
            &settings.tracing,
            context,
            source,
            extras,
        )?);
        if settings.http2_push_preload && context.capabilities.has_http2_push() {
            self.settings
                .push(directive("http2_push_preload", [switch(true)]));
        }
        if let Some(mirror) = &settings.mirror {
            let sources = &mut extras.sources;
            let (own, internal) =
                mirror::mirror(mirror, location, facts, context, source, sources)?;
            self.settings.extend(own);
            extras.add_internal(internal);
        }
        if let Some(tls) = &settings.upstream_tls {
            let (own, files) = upstream_tls::directives(tls, protocol(location), context)?;
            self.settings.extend(own);
            for (path, file) in files {
                extras.add_file(path, file, source);
            }
        }
        if protocol(location) == BackendProtocol::Fcgi {
            self.settings.extend(fastcgi::own(&settings.fastcgi)?);
        }
        Ok(())
    }

    /// A location that answers 503, in place of one that cannot be rendered.
    ///
    /// # Errors
    /// When not even the path can stand in the configuration.
    pub(crate) fn closed(
        location: &Location,
        config: &RenderConfig,
        source: &Arc<Source>,
        sources: &mut Sources,
    ) -> Result<Self, Unprintable> {
        Ok(Self {
            matcher: matcher(location)?,
            begin: sources.begin(Arc::clone(source)),
            end: END,
            variables: Vec::new(),
            settings: Vec::new(),
            asks_by_lua: false,
            to_https: None,
            cors: None,
            snippets: Vec::new(),
            handler: refuse(503, config).collect(),
        })
    }

    fn add_headers(
        &mut self,
        location: &Location,
        facts: &ServerFacts<'_>,
        context: &Context<'_>,
        are_lost: bool,
        further: Vec<(Printed, Printed)>,
    ) -> Result<(), Unprintable> {
        let settings = &*location.settings;
        let prefix = active_rewrite(location).and(settings.forwarded_prefix.as_ref());
        let is_own = prefix.is_some()
            || settings.upstream_vhost.is_some()
            || settings.connection_header.is_some()
            || !further.is_empty();
        if !is_own && !are_lost {
            return Ok(());
        }
        let connection = settings.connection_header.as_ref();
        let own = headers::Own {
            host: self.header_value("$upstream_vhost", settings.upstream_vhost.as_ref())?,
            connection: connection
                .map(|value| literal(value.as_str()))
                .transpose()?,
            prefix: self.header_value("$forwarded_prefix", prefix)?,
            client_auth: facts.client_auth(),
            further,
            ..headers::Own::default()
        };
        self.settings
            .extend(headers::all(context, protocol(location), own)?);
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

/// Directives that a snippet may say in place of us. All others may stand there several times, or are NGINX's to refuse.
const REPLACEABLE: &[&str] = &[
    "client_body_buffer_size",
    "client_max_body_size",
    "grpc_connect_timeout",
    "grpc_read_timeout",
    "grpc_send_timeout",
    "proxy_buffer_size",
    "proxy_buffering",
    "proxy_buffers",
    "proxy_busy_buffers_size",
    "proxy_connect_timeout",
    "proxy_cookie_domain",
    "proxy_cookie_path",
    "proxy_http_version",
    "proxy_max_temp_file_size",
    "proxy_next_upstream",
    "proxy_next_upstream_timeout",
    "proxy_next_upstream_tries",
    "proxy_read_timeout",
    "proxy_request_buffering",
    "proxy_send_timeout",
];

/// The password is not meant for the endpoints.
fn authorization(settings: &LocationSettings) -> Result<Option<(Printed, Printed)>, Unprintable> {
    settings
        .basic_auth
        .as_ref()
        .map(|_| access::no_authorization())
        .transpose()
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
    if let Some(backend) = &location.settings.default_backend {
        variables.push(set("$default_backend", literal(backend.as_str())?));
    }
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

/// Answers every request with a status.
fn refuse(status: u16, config: &RenderConfig) -> impl Iterator<Item = Directive> {
    let answer = directive("return", [word(status)]);
    errors::of_refusal(status, config)
        .into_iter()
        .chain([answer])
}

fn set(variable: &'static str, value: Printed) -> Directive {
    directive("set", [constant(variable.into()), value])
}
