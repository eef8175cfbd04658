//! A server: everything of one host.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use askama::Template as _;
use ingress_model::{
    Location, Server,
    layout::{BackendProtocol, Modifier},
};

use crate::{
    capabilities::Module,
    source_map::{END, Mark, Note, Source, Text},
    value::{
        Printed, Unprintable, argument, concatenated, constant, literal, network, plain, switch,
        template, word,
    },
};

use super::{
    Context, SnippetView,
    client_auth::{self, ClientAuthView, OwnedFile},
    directive::{Directive, directive},
    errors::{self, ErrorPage},
    extras::{Extras, Shared},
    forwarded,
    internal::InternalView,
    listen,
    location::{LocationView, ServerFacts},
    modsecurity,
    pool::Inherited,
    routing::{protocol, to_https},
    sets_headers, snippet_names, upstream_tls,
};

/// The text of one server, with everything that has to go with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fragment {
    pub(crate) text: Text,
    pub(crate) files: Vec<OwnedFile>,
    pub(crate) notes: Vec<Note>,
    pub(crate) shared: Shared,
}

/// Where `/` of a host is redirected to, with marks around it.
struct AppRootView {
    begin: Mark,
    target: Printed,
    end: Mark,
}

#[derive(askama::Template)]
#[template(path = "server.conf")]
struct ServerView {
    begin: Mark,
    end: Mark,
    host: Printed,
    names: Vec<Printed>,
    listen: Vec<Directive>,
    settings: Vec<Directive>,
    hooks_certificates: bool,
    refuses_forged: bool,
    blocks_agents: bool,
    blocks_referers: bool,
    client_auth: Option<ClientAuthView>,
    snippet: Option<SnippetView>,
    config_snippet: Option<SnippetView>,
    app_root: Option<AppRootView>,
    redirect_code: u16,
    to_https: Option<Printed>,
    locations: Vec<LocationView>,
    internal: Vec<InternalView>,
    /// Where health checks are answered.
    health_path: Option<Printed>,
    /// Who may see NGINX's own figures.
    status_clients: Option<Vec<Directive>>,
    /// From where clients are redirected to the host.
    redirected: Option<Redirected>,
}

/// A name from which clients are redirected to a host.
struct Redirected {
    name: Printed,
    target: Printed,
}

/// Renders a server.
///
/// # Errors
/// When the template fails, which it does for texts that got past their types.
pub(crate) fn render(server: &Server, context: &Context<'_>) -> Result<Fragment, askama::Error> {
    let mut builder = Builder {
        server,
        context,
        extras: Extras::default(),
        notes: Vec::new(),
    };
    let view = builder.view();
    let Builder {
        mut extras,
        mut notes,
        ..
    } = builder;
    notes.extend(extras.notes);
    let text = view.render()?;
    extras.shared.reads_request_id = reads_request_id(&text);
    let text = Text::read(&text, &extras.sources);
    Ok(Fragment {
        text,
        files: extras.files,
        notes,
        shared: extras.shared,
    })
}

/// Whether a text refers to the identifier of a request, except to tell endpoints.
fn reads_request_id(text: &str) -> bool {
    let is_header = |at: usize| {
        text.get(..at)
            .is_some_and(|it| it.ends_with("X-Request-ID $"))
    };
    text.contains("request_id") || text.match_indices("req_id").any(|(at, _)| !is_header(at))
}

/// Collects what goes with a server while its view is made.
struct Builder<'a> {
    server: &'a Server,
    context: &'a Context<'a>,
    extras: Extras,
    notes: Vec<Note>,
}

impl Builder<'_> {
    fn view(&mut self) -> ServerView {
        let (server, context) = (self.server, self.context);
        let config = context.config;
        let begin = self.extras.sources.begin(Arc::new(self.source()));
        let (client_auth, denied) = self.client_auth();
        let own_snippet = server.snippet.as_ref().filter(|_| !denied);

        let snippets = [
            own_snippet.map(|owned| &owned.value),
            config.server_snippet.as_ref(),
        ];
        let mut changed: BTreeSet<&str> = snippets.into_iter().flat_map(snippet_names).collect();
        changed.extend(&context.http_names);
        let headers_are_lost = snippets.into_iter().any(sets_headers) || context.headers_are_lost;
        let to_https = if denied {
            None
        } else {
            common_redirect(server, context)
        };
        let upstream_tls = self.upstream_tls();
        let above = std::iter::once(config.http_snippet.as_ref()).chain(snippets);
        let facts = ServerFacts {
            server,
            redirects: to_https.is_some(),
            headers_are_lost,
            changed,
            upstream_tls: Inherited::new(&upstream_tls, above.flatten()),
            denied,
        };
        let mut settings = self.settings();
        settings.extend(upstream_tls);
        if client_auth.is_some() && !headers_are_lost {
            let auth = server.client_auth.as_ref();
            let headers = auth.map(|auth| client_auth::headers(server, &auth.value, context));
            match headers.transpose() {
                Ok(headers) => settings.extend(headers.into_iter().flatten()),
                Err(error) => {
                    let source = Arc::new(Source {
                        what: "proxy-set-headers",
                        ..self.source()
                    });
                    self.note(source, format!("left out since {error}"));
                }
            }
        }
        let app_root = if denied { None } else { self.app_root() };
        let snippet = own_snippet.map(|owned| {
            let source = Source {
                ingress: Some(owned.ingress.clone()),
                what: "server-snippet",
                ..self.source()
            };
            SnippetView::new(&owned.value, Arc::new(source), &mut self.extras.sources)
        });
        let config_snippet = config.server_snippet.as_ref().map(|snippet| {
            let source = Source {
                host: None,
                what: "server-snippet",
                ..self.source()
            };
            SnippetView::new(snippet, Arc::new(source), &mut self.extras.sources)
        });
        let locations = self.locations(&facts);
        let internal = self.internal();
        ServerView {
            begin,
            end: END,
            host: word(&server.host),
            names: names(server),
            listen: listen::of_server(context, server.host.is_catch_all()),
            settings,
            hooks_certificates: context.hooks_certificates_by_server,
            refuses_forged: forwarded::refuses_forged(context),
            blocks_agents: !config.block_user_agents.is_empty(),
            blocks_referers: !config.block_referers.is_empty(),
            client_auth,
            snippet,
            config_snippet,
            app_root,
            redirect_code: config.http_redirect_code,
            to_https,
            locations,
            internal,
            health_path: self.own_location(&context.environment.health_path),
            status_clients: self
                .own_location("/nginx_status")
                .filter(|_| context.capabilities.has(Module::StubStatus))
                .map(|_| status_clients(context)),
            redirected: server.redirected.as_ref().and_then(|name| {
                Some(Redirected {
                    name: plain(name.as_str()).ok()?,
                    target: redirect_target(server)?,
                })
            }),
        }
    }

    /// The source of the server as a whole.
    fn source(&self) -> Source {
        Source {
            host: Some(self.server.host.clone()),
            path: None,
            ingress: None,
            what: "server",
        }
    }

    fn note(&mut self, source: Arc<Source>, text: String) {
        self.notes.push(Note { source, text });
    }

    fn settings(&mut self) -> Vec<Directive> {
        let (server, context) = (self.server, self.context);
        let mut settings = Vec::new();
        if server.host.is_catch_all() {
            settings.push(directive(
                "ssl_reject_handshake",
                [switch(context.config.ssl_reject_handshake)],
            ));
            settings.extend(context.default_certificate());
        }
        if let Some(ciphers) = &server.ssl_ciphers {
            match argument(ciphers.as_str()) {
                Ok(ciphers) => settings.push(directive("ssl_ciphers", [ciphers])),
                Err(error) => {
                    let source = Source {
                        what: "ssl-ciphers",
                        ..self.source()
                    };
                    self.note(Arc::new(source), format!("left out since {error}"));
                }
            }
        }
        let prefer = server.ssl_prefer_server_ciphers;
        settings
            .extend(prefer.map(|prefer| directive("ssl_prefer_server_ciphers", [switch(prefer)])));
        settings
    }

    /// TLS to endpoints, for locations that say nothing else.
    fn upstream_tls(&mut self) -> Vec<Directive> {
        let Some(tls) = &self.server.upstream_tls else {
            return Vec::new();
        };
        let source = Arc::new(Source {
            ingress: Some(tls.ingress.clone()),
            what: "proxy-ssl-secret",
            ..self.source()
        });
        let mut directives = Vec::new();
        for of in [BackendProtocol::Https, BackendProtocol::Grpcs] {
            let mut locations = self.server.locations.iter();
            if !locations.any(|location| protocol(location) == of) {
                continue;
            }
            match upstream_tls::directives(&tls.value, of, self.context) {
                Ok((own, files)) => {
                    directives.extend(own);
                    for (path, file) in files {
                        self.extras.add_file(path, file, &source);
                    }
                }
                Err(error) => {
                    let text = format!("not said for the whole host since {error}");
                    self.note(Arc::clone(&source), text);
                }
            }
        }
        directives
    }

    /// What is asked of clients, and whether all of them are refused since it cannot be asked.
    fn client_auth(&mut self) -> (Option<ClientAuthView>, bool) {
        let Some(auth) = &self.server.client_auth else {
            return (None, false);
        };
        if auth.value.denied.is_some() {
            return (None, true);
        }
        let source = Arc::new(Source {
            ingress: Some(auth.ingress.clone()),
            what: "auth-tls-secret",
            ..self.source()
        });
        let host = &self.server.host;
        let sources = &mut self.extras.sources;
        match ClientAuthView::new(host, auth, &source, self.context, sources) {
            Ok(Some((view, files))) => {
                self.extras.files.extend(files);
                (Some(view), false)
            }
            Ok(None) => (None, false),
            Err(error) => {
                self.note(source, format!("the host answers 403 since {error}"));
                (None, true)
            }
        }
    }

    /// Where `/` of the host is redirected to; the first location that says it counts.
    fn app_root(&mut self) -> Option<AppRootView> {
        let location = self
            .server
            .locations
            .iter()
            .find(|location| location.settings.app_root.is_some())?;
        let root = location.settings.app_root.as_ref()?;
        let source = Arc::new(Source {
            ingress: location.ingress.clone(),
            what: "app-root",
            ..self.source()
        });
        match template(&format!("$scheme://$http_host{}", root.as_str())) {
            Ok(target) => Some(AppRootView {
                begin: self.extras.sources.begin(source),
                target,
                end: END,
            }),
            Err(error) => {
                self.note(source, format!("left out since {error}"));
                None
            }
        }
    }

    fn locations(&mut self, facts: &ServerFacts<'_>) -> Vec<LocationView> {
        let mut views = Vec::with_capacity(self.server.locations.len());
        let mut seen = HashSet::new();
        for location in &self.server.locations {
            let source = Arc::new(Source {
                path: Some(location.path.to_string()),
                ingress: location.ingress.clone(),
                what: "location",
                ..self.source()
            });
            // NGINX refuses the whole configuration for a path that is there twice.
            let is_new = location.modifier == Modifier::Regex
                || seen.insert((location.modifier, &location.path));
            if !is_new {
                self.note(source, "left out since the path is there already".into());
                continue;
            }
            let view = LocationView::new(location, facts, self.context, &source, &mut self.extras);
            let view = view.or_else(|error| {
                let sources = &mut self.extras.sources;
                let closed = LocationView::closed(location, self.context.config, &source, sources);
                let done = if closed.is_ok() {
                    "answers 503"
                } else {
                    "left out"
                };
                self.note(source, format!("{done} since {error}"));
                closed
            });
            views.extend(view);
        }
        views
    }

    /// The locations that only NGINX itself asks.
    fn internal(&mut self) -> Vec<InternalView> {
        let mut pages = std::mem::take(&mut self.extras.error_pages);
        pages.extend(ErrorPage::common(&self.context.config.custom_http_errors));
        let source = Arc::new(self.source());
        let errors = errors::locations(&pages, &source, &mut self.extras.sources);
        std::mem::take(&mut self.extras.internal)
            .into_values()
            .chain(errors)
            .map(|mut internal| {
                let off = modsecurity::is_on(self.context)
                    .then(|| directive("modsecurity", [switch(false)]));
                internal.settings.extend(off);
                internal
            })
            .collect()
    }

    /// The path of a location that the controller adds to the server of all other hosts, unless an Ingress has it.
    fn own_location(&self, path: &str) -> Option<Printed> {
        let is_taken = self
            .server
            .locations
            .iter()
            .any(|location| location.modifier == Modifier::Prefix && location.path == path);
        if is_taken || !self.server.host.is_catch_all() {
            return None;
        }
        plain(path).ok()
    }
}

/// `server_name`: a host in front of which any one label may stand is a regular expression, since NGINX's own
/// wildcards match several labels.
fn names(server: &Server) -> Vec<Printed> {
    let own: Result<Printed, Unprintable> = match server.host.wildcard_suffix() {
        Some(suffix) => plain(&format!(
            r"~^(?<subdomain>[\w-]+)\.{}$",
            suffix.replace('.', r"\.")
        )),
        None => plain(server.host.as_str()),
    };
    let aliases = server.aliases.iter().map(|alias| plain(alias.as_str()));
    std::iter::once(own).chain(aliases).flatten().collect()
}

/// Where the server sends plain HTTP, if all of its locations would send it there.
fn common_redirect(server: &Server, context: &Context<'_>) -> Option<Printed> {
    // Figures about requests name the Ingress, which only its locations know. A snippet may bring locations that are
    // not meant to redirect.
    let is_possible = context.environment.metrics.is_none()
        && !server.host.is_catch_all()
        && server.snippet.is_none()
        && context.config.server_snippet.is_none();
    let answers = |location: &Location| {
        let settings = &location.settings;
        settings.denied.is_some() || settings.redirect.is_some() || settings.cors.is_some()
    };
    if !is_possible || server.locations.iter().any(answers) {
        return None;
    }
    let mut targets = server
        .locations
        .iter()
        .map(|location| to_https(location, server, context));
    let first = targets.next()??;
    targets
        .all(|target| target.is_some_and(|target| target.0 == first.0))
        .then_some(first)
}

/// The host, with the port that the client asked for, and the path without a final `/`.
fn redirect_target(server: &Server) -> Option<Printed> {
    let scheme = constant("\"$pass_access_scheme://\"".into());
    let rest = constant("\"$redirect_port$redirect_uri\"".into());
    let host = literal(server.host.as_str()).ok()?;
    Some(concatenated(&[&scheme, &host, &rest]))
}

fn status_clients(context: &Context<'_>) -> Vec<Directive> {
    let config = context.config;
    let v6 = config
        .nginx_status_ipv6_whitelist
        .iter()
        .filter(|_| context.has_ipv6());
    let allowed = config.nginx_status_ipv4_whitelist.iter().chain(v6);
    let allow = allowed.map(|allowed| directive("allow", [network(allowed)]));
    allow.chain([directive("deny", [word("all")])]).collect()
}
