//! A service that decides about each request.

use std::{collections::BTreeMap, sync::Arc};

use ingress_model::{
    Location,
    layout::{AuthCache, AuthKeepalive, ExternalAuth, PathType, SignIn},
    value::{Literal, Snippet, Template},
};

use crate::{
    capabilities::Module,
    rendered::Fingerprint,
    source_map::{END, Source, Sources},
    value::{
        Printed, Unprintable, concatenated, constant, literal, plain, round_time, switch, template,
        time, word,
    },
};

use super::{
    Context, SnippetView,
    cors::CorsView,
    directive::{Directive, directive},
    errors,
    extras::Extras,
    forwarded,
    headers::{self, full_forwarded_for},
    internal::{self, InternalView},
    location::ServerFacts,
    proxy, telemetry,
};

/// What proxies say of a request, besides what a question has anyway. Services decide by it; nobody but a proxy that is
/// trusted may say it.
const FORWARDED: [&str; 7] = [
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Scheme",
    "X-Forwarded-Uri",
    "X-Forwarded-Method",
    "X-Forwarded-Prefix",
    "Forwarded",
];

/// What a location gets. The locations that go with it are [extras](Extras).
pub(crate) struct ExternalAuthView {
    pub(crate) settings: Vec<Directive>,
    /// Whether the Lua side asks, not NGINX: only it can ask without sharing the request's variables.
    pub(crate) asks_by_lua: bool,
    /// Headers of the service's answer, for the endpoints.
    pub(crate) headers: Vec<(Printed, Printed)>,
    /// Where clients that were refused are sent: the name of a location.
    pub(crate) signin: Option<Printed>,
}

/// A group of connections to a service, by its number.
#[derive(Clone, Debug)]
pub(crate) struct AuthUpstream {
    authority: Template,
    keepalive: AuthKeepalive,
    pub(crate) source: Arc<Source>,
}

/// Groups of connections by number.
pub(crate) type AuthUpstreams = BTreeMap<u64, AuthUpstream>;

/// What the http block says about such a group.
pub(crate) struct AuthUpstreamView {
    pub(crate) begin: crate::source_map::Mark,
    pub(crate) end: crate::source_map::Mark,
    pub(crate) name: Printed,
    pub(crate) settings: Vec<Directive>,
}

impl ExternalAuthView {
    /// # Errors
    /// When the service cannot be asked: the location must not be served then.
    pub(crate) fn new(
        auth: &ExternalAuth,
        location: &Location,
        facts: &ServerFacts<'_>,
        context: &Context<'_>,
        source: &Arc<Source>,
        extras: &mut Extras,
    ) -> Result<Self, Unprintable> {
        if !context.capabilities.has(Module::AuthRequest) {
            return Err(Unprintable::Missing(Module::AuthRequest));
        }
        let id = number(location, facts);
        let path = format!("_external-auth-{id:016x}");
        let cookie = || constant("$auth_cookie".into());
        let always = auth.always_set_cookie.then(|| word("always"));
        let asks_by_lua = kept(auth, context).is_some_and(|kept| !kept.share_variables);
        let mut settings = Vec::new();
        if asks_by_lua {
            let names: Vec<_> = auth.response_headers.iter().map(Literal::as_str).collect();
            settings.extend([
                set("$auth_cookie", plain("")?),
                set("$external_auth_path", plain(&path)?),
                set("$external_auth_headers", literal(&names.join(","))?),
            ]);
        } else {
            settings.push(directive("auth_request", [plain(&path)?]));
            let upstream = constant("$upstream_http_set_cookie".into());
            settings.push(directive("auth_request_set", [cookie(), upstream]));
        }
        settings.push(directive(
            "add_header",
            [word("Set-Cookie"), cookie()].into_iter().chain(always),
        ));
        let mut headers = Vec::new();
        for (index, header) in auth.response_headers.iter().enumerate() {
            let variable = || constant(format!("$auth_header_{index}"));
            let value = if asks_by_lua {
                directive("set", [variable(), plain("")?])
            } else {
                let upstream = headers::variable("$upstream_http_", header.as_str());
                directive("auth_request_set", [variable(), constant(upstream)])
            };
            settings.push(value);
            headers.push((plain(header.as_str())?, variable()));
        }
        let sent = auth.request_headers.iter().map(|(header, _)| header);
        let lengths = sent
            .chain(&auth.response_headers)
            .map(|header| header.as_str().len());
        let longest = &mut extras.shared.longest_header;
        *longest = lengths.fold(*longest, usize::max);
        let asked = Asked {
            auth,
            location,
            facts,
            context,
            source,
        };
        let question = asked.question(&path, extras)?;
        extras.add_internal(question);
        let signin = auth
            .signin
            .as_ref()
            .map(|signin| {
                let name = format!("signin_{id:016x}");
                let location = asked.sign_in(signin, &name, &mut extras.sources)?;
                extras.add_internal(location);
                Ok(internal::named(&name))
            })
            .transpose()?;
        extras.shared.caches_answers |= auth.cache.is_some();
        Ok(Self {
            settings,
            asks_by_lua,
            headers,
            signin,
        })
    }
}

impl AuthUpstreamView {
    pub(crate) fn new(
        id: u64,
        upstream: &AuthUpstream,
        sources: &mut Sources,
    ) -> Result<Self, Unprintable> {
        let authority = upstream.authority.as_str();
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        let address = if has_port {
            authority.to_owned()
        } else {
            format!("{authority}:80")
        };
        let keepalive = &upstream.keepalive;
        Ok(Self {
            begin: sources.begin(Arc::clone(&upstream.source)),
            end: END,
            name: word(upstream_name(id)),
            settings: vec![
                directive("server", [plain(&address)?]),
                directive("keepalive", [word(keepalive.connections)]),
                directive("keepalive_requests", [word(keepalive.requests)]),
                directive("keepalive_timeout", [time(keepalive.timeout)]),
            ],
        })
    }
}

/// What names the locations of a question: it depends on nothing but the location itself.
fn number(location: &Location, facts: &ServerFacts<'_>) -> u64 {
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(facts.server.host.as_str());
    fingerprint.add(location.path.as_str());
    fingerprint.add(match location.path_type {
        PathType::Exact => "exact",
        PathType::Prefix => "prefix",
    });
    fingerprint.add(&format!("{:?}", location.modifier));
    fingerprint.get()
}

/// A question, and everything that decides what it is.
#[derive(Clone, Copy)]
struct Asked<'a> {
    auth: &'a ExternalAuth,
    location: &'a Location,
    facts: &'a ServerFacts<'a>,
    context: &'a Context<'a>,
    source: &'a Arc<Source>,
}

impl Asked<'_> {
    /// The location that asks the service.
    fn question(self, path: &str, extras: &mut Extras) -> Result<InternalView, Unprintable> {
        let Self {
            auth,
            location,
            facts,
            context,
            source,
        } = self;
        let config = context.config;
        let begin = extras.sources.begin(Arc::clone(source));
        let mut settings = vec![directive("internal", [])];
        if !config.enable_auth_access_log {
            settings.push(directive("access_log", [switch(false)]));
        }
        settings.extend(
            auth.cache
                .as_ref()
                .map(|cache| caching(cache, auth, location, path))
                .transpose()?
                .into_iter()
                .flatten(),
        );
        settings.extend([
            directive("proxy_intercept_errors", [switch(false)]),
            // Whoever answers for a service that is out of order would let requests pass.
            errors::of_question(),
            // The question has no body, whatever the request may have.
            directive("proxy_pass_request_body", [switch(false)]),
            directive("client_max_body_size", [word(0)]),
            directive("proxy_ssl_server_name", [switch(true)]),
            directive("proxy_redirect", [switch(false)]),
        ]);
        let (url, keeps) = self.target(&mut extras.shared.auth_upstreams);
        settings.extend(self.reading(keeps)?);
        settings.extend(facts.upstream_tls.taken_back());
        settings.extend(telemetry::of_question(&location.settings.tracing, context));
        if let Some(method) = &auth.method {
            settings.push(directive("proxy_method", [plain(method.as_str())?]));
        }
        let header = |name, value: Printed| directive("proxy_set_header", [word(name), value]);
        let variable = |name: &str| constant(name.to_owned());
        settings.extend([
            header("Host", template(auth.host.as_str())?),
            header("Content-Length", plain("")?),
            header("X-Forwarded-Proto", plain("")?),
            header("X-Request-ID", variable("$req_id")),
            header(
                "X-Original-URL",
                variable("$scheme://$http_host$request_uri"),
            ),
            header("X-Original-Method", variable("$request_method")),
            header("X-Original-URI", variable("$request_uri")),
            header("X-Scheme", variable("$pass_access_scheme")),
            header("X-Sent-From", word("nginx-ingress-controller")),
            header("X-Real-IP", variable("$remote_addr")),
            header("X-Forwarded-For", variable(full_forwarded_for(config))),
            header(
                "X-Auth-Request-Redirect",
                auth.request_redirect.as_ref().map_or_else(
                    || Ok(variable("$request_uri")),
                    |redirect| template(redirect.as_str()),
                )?,
            ),
            header("Proxy", plain("")?),
        ]);
        if keeps {
            settings.push(header("Connection", plain("")?));
        }
        if let Some(own) = forwarded::own_header(context)? {
            settings.push(directive("proxy_set_header", [own, plain("")?]));
        }
        if !config.use_forwarded_headers {
            for name in FORWARDED {
                settings.push(header(name, plain("")?));
            }
        }
        settings.extend(facts.client_certificate_headers("proxy_set_header"));
        for (name, value) in &auth.request_headers {
            settings.push(directive(
                "proxy_set_header",
                [plain(name.as_str())?, template(value.as_str())?],
            ));
        }
        let snippet = auth.snippet.as_ref().map(|snippet| {
            let source = Source {
                what: "auth-snippet",
                ..(**source).clone()
            };
            SnippetView::new(snippet, Arc::new(source), &mut extras.sources)
        });
        Ok(InternalView {
            begin,
            end: END,
            matcher: internal::exact(path),
            settings,
            snippet,
            cors: None,
            escapes_uri: self.escapes_uri(),
            // By a variable, so that the service is looked up when it is asked, not when NGINX starts.
            handler: vec![
                directive("set", [variable("$auth_target"), template(&url)?]),
                directive("proxy_pass", [variable("$auth_target")]),
            ],
        })
    }

    /// How the answer is read. Answers are cached only if they are buffered, and connections kept only by HTTP/1.1.
    fn reading(self, keeps: bool) -> Result<Vec<Directive>, Unprintable> {
        let Self {
            auth,
            location,
            facts,
            context,
            ..
        } = self;
        let (inherited, changed) = (&context.inherited, &facts.changed);
        let mut directives =
            proxy::of_question(&location.settings, context.config, inherited, changed)?;
        let mut insist = |wanted: Directive| {
            let name = wanted.0.name;
            directives.retain(|directive| directive.0.name != name);
            let is_inherited = inherited.iter().any(|above| above.0 == wanted.0);
            if !is_inherited || changed.contains(name) {
                directives.push(wanted);
            }
        };
        if auth.cache.is_some() {
            insist(directive("proxy_buffering", [switch(true)]));
        }
        if keeps {
            insist(directive("proxy_http_version", [word("1.1")]));
        }
        Ok(directives)
    }

    /// Whether the question tells the request's URI as a parameter of a URL.
    fn escapes_uri(self) -> bool {
        let auth = self.auth;
        let headers = auth.request_headers.iter().map(|(_, value)| value.as_str());
        let redirect = auth.request_redirect.as_ref().map(Template::as_str);
        let snippet = auth.snippet.as_ref().map(Snippet::as_str);
        let mut texts = headers.chain(redirect).chain(snippet);
        let tells = |text: &str| text.contains("escaped_request_uri");
        tells(auth.url.as_str()) || texts.any(tells)
    }

    /// Where the service is asked, and whether connections to it are kept.
    fn target(self, upstreams: &mut AuthUpstreams) -> (String, bool) {
        let Self {
            auth,
            location,
            facts,
            context,
            source,
        } = self;
        let url = auth.url.as_str();
        let keepalive = kept(auth, context);
        let Some(keepalive) = keepalive else {
            return (url.into(), false);
        };
        let id = number(location, facts);
        upstreams.insert(
            id,
            AuthUpstream {
                authority: auth.authority.clone(),
                keepalive: keepalive.clone(),
                source: Arc::clone(source),
            },
        );
        (
            url.replacen(auth.authority.as_str(), &upstream_name(id), 1),
            true,
        )
    }

    /// The location that sends a client to sign in.
    fn sign_in(
        self,
        signin: &SignIn,
        name: &str,
        sources: &mut Sources,
    ) -> Result<InternalView, Unprintable> {
        let Self {
            location,
            context,
            source,
            ..
        } = self;
        let page = template(signin.url.as_str())?;
        let target = match &signin.back {
            Some(back) => {
                let back = literal(Literal::as_str(back))?;
                let here =
                    constant("\"$pass_access_scheme://$http_host$escaped_request_uri\"".into());
                concatenated(&[&page, &back, &here])
            }
            None => page,
        };
        let cors = location.settings.cors.as_ref();
        Ok(InternalView {
            begin: sources.begin(Arc::clone(source)),
            end: END,
            matcher: internal::named(name),
            settings: vec![directive(
                "add_header",
                [word("Set-Cookie"), constant("$auth_cookie".into())],
            )],
            snippet: None,
            cors: cors.map(|cors| CorsView::new(cors, context)).transpose()?,
            escapes_uri: true,
            handler: vec![directive("return", [word(302), target])],
        })
    }
}

/// The connections that are kept: NGINX looks up the members of a group when it starts, and HTTP/2 clients ask in
/// parallel anyway.
fn kept<'a>(auth: &'a ExternalAuth, context: &Context<'_>) -> Option<&'a AuthKeepalive> {
    let is_possible = !context.config.use_http2 && !auth.authority.as_str().contains('$');
    auth.keepalive.as_ref().filter(|_| is_possible)
}

fn set(variable: &str, value: Printed) -> Directive {
    directive("set", [constant(variable.into()), value])
}

fn upstream_name(id: u64) -> String {
    format!("auth_{id:016x}")
}

fn caching(
    cache: &AuthCache,
    auth: &ExternalAuth,
    location: &Location,
    path: &str,
) -> Result<Vec<Directive>, Unprintable> {
    // What a service said of one location says nothing about another one, nor about what another Ingress makes of it.
    let ingress = location.ingress.as_ref().map(ToString::to_string);
    let ingress = ingress.unwrap_or_default();
    let scope = literal(&format!("{path} {ingress} {} ", auth.url.as_str()))?;
    let key = concatenated(&[&scope, &template(cache.key.as_str())?]);
    let mut directives = vec![
        directive("proxy_cache", [word("auth_cache")]),
        directive("proxy_cache_key", [key]),
    ];
    directives.extend(cache.valid.iter().map(|valid| {
        let statuses = valid.statuses.iter().map(word);
        directive(
            "proxy_cache_valid",
            statuses.chain([round_time(valid.time)]),
        )
    }));
    Ok(directives)
}
