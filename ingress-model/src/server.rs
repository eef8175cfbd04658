//! One host: from the Ingresses that define it to its NGINX server.

use std::sync::{Arc, LazyLock};

use crate::{
    annotation::ServerSettings,
    client_auth,
    context::Context,
    definition::{BackendUse, Definition, HostRule},
    diagnostic::{Diagnostic, Reason},
    host::Host,
    layout::{Location, LocationSettings, Owned, PathType, Server, UpstreamTls},
    live::UpstreamName,
    object::ObjectName,
    options::ConflictPolicy,
    passthrough,
    path::{self, Entry, Wishes},
    provenance::{Decision, Ledger, Loser, Subject},
    secrets::Secrets,
    text::Text,
    tls::{self, HostCertificate},
    upstream::{Names, Upstreams},
};

/// The path of the location that takes what no other one does.
static ROOT: LazyLock<Text> = LazyLock::new(|| "/".into());

/// An Ingress that has a say about a host.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) definition: Arc<Definition>,
    /// Which of its hosts; `None` when the Ingress is for every host that nobody defines.
    pub(crate) rule: Option<usize>,
}

impl Claim {
    fn rule(&self) -> Option<&HostRule> {
        self.rule.and_then(|rule| self.definition.hosts.get(rule))
    }

    /// Whether nothing that the Ingress says about the host is served.
    pub(crate) fn is_refused(&self) -> bool {
        self.definition.settings.is_refused || self.rule().is_some_and(|rule| rule.closed)
    }
}

/// A host's server, without further names, about which all hosts have to agree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) server: Arc<Server>,
    /// `server-alias`, and whose it is.
    pub(crate) aliases: Option<(Arc<Definition>, Vec<Host>)>,
    /// `from-to-www-redirect`.
    pub(crate) redirects: bool,
    pub(crate) certificate: Option<HostCertificate>,
    /// Where TLS goes as it is.
    pub(crate) passthrough: Option<UpstreamName>,
    pub(crate) decisions: Arc<Vec<Decision>>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Secrets that were looked for.
    pub(crate) secrets: Vec<ObjectName>,
}

impl Built {
    /// Whether there is more to it than the server and who decides about it.
    pub(crate) fn is_notable(&self) -> bool {
        self.certificate.is_some() || !self.secrets.is_empty() || !self.diagnostics.is_empty()
    }
}

/// Builds the server of a host from its claims, the one that holds first.
pub(crate) fn build(
    host: &Host,
    claims: &[Claim],
    context: &Context,
    upstreams: &Upstreams,
    secrets: &mut Secrets,
) -> Built {
    let policy = context.options.conflict_policy;
    let mut ledger = Ledger::new(host);
    let mut locations = locations(claims, context, upstreams, &mut ledger);
    for location in &mut locations {
        let policy = &context.config.policy;
        location.settings = policy.exempt(&location.settings, &location.ingress_path);
    }
    let rules = claims.iter().filter(|claim| claim.rule.is_some());
    let definitions: Vec<_> = rules.map(|claim| &claim.definition).collect();
    settle_app_root(&definitions, &mut locations, &mut ledger);
    let certificate = tls::choose(&definitions, policy, secrets, &mut ledger);
    let client_auth = client_auth::settle(&definitions, secrets, &mut ledger);
    if let Some(auth) = &client_auth {
        client_auth::close_unguarded(auth, &definitions, &mut locations, &mut ledger);
    }
    if let Some(auth) = &client_auth
        && certificate.is_none()
    {
        client_auth::report_plain(auth, &definitions, &locations, &mut ledger);
    }
    let aliases = settle(&definitions, "server-alias", &mut ledger, |settings| {
        Some(&settings.aliases).filter(|aliases| !aliases.is_empty())
    });
    let snippet = settle(&definitions, "server-snippet", &mut ledger, |settings| {
        settings.snippet.as_ref()
    });
    let ssl_ciphers = settle(&definitions, "ssl-ciphers", &mut ledger, |settings| {
        settings.ssl_ciphers.as_ref()
    });
    let prefer = "ssl-prefer-server-ciphers";
    let ssl_prefer_server_ciphers = settle(&definitions, prefer, &mut ledger, |settings| {
        settings.ssl_prefer_server_ciphers.as_ref()
    });
    let passthrough = passthrough::choose(&definitions, &locations, &mut ledger);
    if passthrough.is_some() {
        any(&definitions, "ssl-passthrough", &mut ledger, |settings| {
            settings.ssl_passthrough
        });
    }
    let redirects = any(
        &definitions,
        "from-to-www-redirect",
        &mut ledger,
        |settings| settings.from_to_www_redirect,
    );
    let server = Server {
        host: host.clone(),
        aliases: Vec::new(),
        redirected: None,
        tls: certificate.is_some(),
        client_auth,
        ssl_ciphers: ssl_ciphers.map(|(_, value)| value.clone()),
        ssl_prefer_server_ciphers: ssl_prefer_server_ciphers.map(|(_, value)| *value),
        upstream_tls: upstream_tls(&definitions, context),
        snippet: snippet.map(|(definition, value)| Owned {
            ingress: definition.name.clone(),
            value: value.clone(),
        }),
        locations,
    };
    Built {
        server: Arc::new(server),
        aliases: aliases.map(|(definition, aliases)| (Arc::clone(definition), aliases.clone())),
        redirects,
        certificate,
        passthrough,
        decisions: Arc::new(ledger.decisions),
        diagnostics: ledger.diagnostics,
        secrets: secrets_of(&definitions),
    }
}

fn secrets_of(definitions: &[&Arc<Definition>]) -> Vec<ObjectName> {
    let mut names = Vec::new();
    for definition in definitions {
        names.extend(
            definition
                .tls
                .iter()
                .filter_map(|entry| entry.secret.clone()),
        );
        let client_auth = definition.settings.server.client_auth.as_ref();
        names.extend(client_auth.and_then(|auth| auth.secret.clone().ok()));
    }
    names
}

/// The paths of all claims, and the location `/` if nobody defines it. Within one Ingress, the path that is written
/// last holds where the last definition does.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default()
///     .and_ingress("shop/a", &[], &["a.test/x first:80", "a.test/x second:80"])
///     .and_ingress("shop/b", &[], &["a.test/y web:80"])
///     .merge();
/// served.assert_request("a.test/x", "= /x shop/a shop-second-80");
/// served.assert_request("a.test/y", "= /y shop/b shop-web-80");
/// served.assert_request("a.test/z", "/ shop/b upstream-default-backend");
/// ```
fn locations(
    claims: &[Claim],
    context: &Context,
    upstreams: &Upstreams,
    ledger: &mut Ledger<'_>,
) -> Vec<Location> {
    let policy = context.options.conflict_policy;
    let paths = claims
        .iter()
        .filter_map(Claim::rule)
        .map(|rule| rule.paths.len());
    let count = paths.sum::<usize>();
    ledger.decisions.reserve_exact(count);
    let catch_alls = claims.iter().filter(|claim| claim.rule.is_none());
    let mut entries = Wishes::with_capacity(count + catch_alls.count() + 1);
    for claim in claims {
        let definition = claim.definition.as_ref();
        let names = upstreams.names(definition);
        let Some(rule) = claim.rule() else {
            let backend = definition.default_backend.as_ref();
            entries.extend(backend.map(|backend| {
                let settings = &definition.root_settings;
                default_entry(definition, Some(backend), settings, names)
            }));
            continue;
        };
        let paths = rule.paths.iter().map(|path| Entry {
            definition: Some(definition),
            path: &path.path,
            path_type: path.path_type,
            field: Some(path.field),
            service: Some(&path.backend.service),
            upstream: path.backend.upstream(names),
            settings: definition.settings_of(path),
        });
        match policy {
            ConflictPolicy::LastDefinitionWins => entries.extend(paths.rev()),
            ConflictPolicy::OldestWins => entries.extend(paths),
        }
    }
    if ledger.host.is_catch_all() {
        entries.push(Entry {
            definition: None,
            path: &ROOT,
            path_type: PathType::Prefix,
            field: None,
            service: None,
            upstream: UpstreamName::default_backend(),
            settings: &context.root_settings,
        });
        return path::locations(entries, ledger);
    }
    let owner = root_owner(claims, policy);
    entries.extend(owner.map(|owner| {
        let settings = &owner.location;
        let names = upstreams.names(owner);
        default_entry(owner, owner.default_backend.as_ref(), settings, names)
    }));
    let locations = path::locations(entries, ledger);
    if let Some(owner) = owner {
        record_root(claims, owner, ledger);
    }
    locations
}

/// Whose annotations and default backend the location `/` of a host has when nobody defines it. Without a default
/// backend it is the controller's.
///
/// Under [`ConflictPolicy::OldestWins`] it is the host's oldest Ingress, whether that has a default backend or not.
/// Under [`ConflictPolicy::LastDefinitionWins`] it is the last one that has one, else the last one.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop}, \
///             spec: {ingressClassName: nginx, defaultBackend: {service: {name: rest, port: {number: 80}}}, \
///                    rules: [{host: a.test}]}}";
/// let served = Fixture::from_yaml(text)?.and_ingress("shop/b", &[], &["a.test/x web:80"]).merge();
/// served.assert_request("a.test/", "/ shop/a shop-rest-80");
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn root_owner(claims: &[Claim], policy: ConflictPolicy) -> Option<&Definition> {
    let mut definitions = claims.iter().map(|claim| claim.definition.as_ref());
    let first = definitions.clone().next()?;
    let oldest = policy == ConflictPolicy::OldestWins;
    let owner = definitions.find(|one| oldest || one.default_backend.is_some());
    owner.or(Some(first))
}

fn record_root(claims: &[Claim], owner: &Definition, ledger: &mut Ledger<'_>) {
    let is_root = |claim: &Claim| {
        let rule = claim.rule();
        let mut paths = rule.iter().flat_map(|rule| &rule.paths);
        paths.any(|path| path.path == *ROOT && path.path_type == PathType::Prefix)
    };
    if claims.iter().any(is_root) {
        return;
    }
    let losers: Vec<Loser<'_>> = claims
        .iter()
        .map(|claim| claim.definition.as_ref())
        .filter(|loser| loser.default_backend.is_some() && loser.name != owner.name)
        .map(|loser| (loser, Some("spec.defaultBackend".to_owned())))
        .collect();
    if owner.default_backend.is_some() || !losers.is_empty() {
        let reason = Reason::ServerSettingConflict;
        ledger.decide(Subject::DefaultBackend, owner, losers, reason);
    }
}

fn default_entry<'a>(
    definition: &'a Definition,
    backend: Option<&'a BackendUse>,
    settings: &'a Arc<LocationSettings>,
    names: Names<'_>,
) -> Entry<'a> {
    Entry {
        definition: Some(definition),
        path: &ROOT,
        path_type: PathType::Prefix,
        field: None,
        service: backend.map(|backend| &backend.service),
        upstream: backend.map_or_else(UpstreamName::default_backend, |backend| {
            backend.upstream(names)
        }),
        settings,
    }
}

/// A setting of the whole server is held by the first definition that has it; the others are told unless they want the
/// same.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default()
///     .and_ingress("shop/a", &[("ssl-ciphers", "AES128-SHA")], &["a.test/ web:80"])
///     .and_ingress("shop/b", &[("ssl-ciphers", "AES256-SHA")], &["a.test/b web:80"])
///     .merge();
/// assert_eq!(served.server("a.test").unwrap().ssl_ciphers.as_ref().unwrap().as_str(), "AES256-SHA");
/// let said = &served.outcome().diagnostics;
/// assert!(said.iter().any(|said| said.to_string().starts_with("Ingress shop/a: ssl-ciphers: setting ssl-ciphers of host")));
/// ```
pub(crate) fn settle<'a, T: PartialEq + 'a>(
    definitions: &[&'a Arc<Definition>],
    name: &'static str,
    ledger: &mut Ledger<'_>,
    get: impl Fn(&ServerSettings) -> Option<&T>,
) -> Option<(&'a Arc<Definition>, &'a T)> {
    let mut wanted = definitions
        .iter()
        .filter_map(|definition| Some((*definition, get(&definition.settings.server)?)));
    let (winner, value) = wanted.next()?;
    let losers: Vec<Loser<'_>> = wanted
        .filter(|(_, other)| *other != value)
        .map(|(definition, _)| (&**definition, Some(name.to_owned())))
        .collect();
    ledger.decide(
        Subject::Setting(name),
        winner,
        losers,
        Reason::ServerSettingConflict,
    );
    Some((winner, value))
}

/// `/` of a host is redirected to one app root: that of the Ingress that holds it, among those with locations there.
/// The locations of the others lose theirs.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default()
///     .and_ingress("shop/a", &[("app-root", "/old")], &["a.test/old web:80"])
///     .and_ingress("shop/b", &[("app-root", "/new")], &["a.test/new web:80"])
///     .merge();
/// let locations = &served.server("a.test").unwrap().locations;
/// let roots = locations.iter().filter_map(|location| location.settings.app_root.as_ref());
/// assert!(roots.into_iter().all(|root| root.as_str() == "/new"));
/// let said = &served.outcome().diagnostics;
/// assert!(said.iter().any(|said| said.to_string().starts_with("Ingress shop/a: app-root: setting app-root of host")));
/// ```
fn settle_app_root(
    definitions: &[&Arc<Definition>],
    locations: &mut [Location],
    ledger: &mut Ledger<'_>,
) {
    let root = |definition: &Definition| definition.settings.location.app_root.clone();
    let is_of = |location: &Location, definition: &Definition| {
        location.ingress.as_ref() == Some(&definition.name)
    };
    let mut wanted = definitions.iter().filter(|definition| {
        definition.settings.location.app_root.is_some()
            && locations.iter().any(|location| is_of(location, definition))
    });
    let Some(winner) = wanted.next() else {
        return;
    };
    let losers: Vec<_> = wanted
        .filter(|definition| root(definition) != root(winner))
        .copied()
        .collect();
    for location in locations {
        if losers.iter().any(|loser| is_of(location, loser)) {
            Arc::make_mut(&mut location.settings).app_root = None;
        }
    }
    let key = || Some("app-root".to_owned());
    let losers = losers.iter().map(|loser| (&***loser, key())).collect();
    ledger.decide(
        Subject::Setting("app-root"),
        winner,
        losers,
        Reason::ServerSettingConflict,
    );
}

/// A switch of the whole server is on if any definition has it on; the first of them counts as the one that set it.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default()
///     .and_ingress("shop/a", &[("from-to-www-redirect", "true")], &["a.test/ web:80"])
///     .and_ingress("shop/b", &[("from-to-www-redirect", "false")], &["a.test/b web:80"])
///     .merge();
/// assert_eq!(served.server("a.test").unwrap().redirected.as_ref().unwrap().as_str(), "www.a.test");
/// ```
fn any(
    definitions: &[&Arc<Definition>],
    name: &'static str,
    ledger: &mut Ledger<'_>,
    get: impl Fn(&ServerSettings) -> bool,
) -> bool {
    let mut wanting = definitions
        .iter()
        .filter(|definition| get(&definition.settings.server));
    let Some(first) = wanting.next() else {
        return false;
    };
    let reason = Reason::ServerSettingConflict;
    ledger.decide(Subject::Setting(name), first, Vec::new(), reason);
    true
}

/// What the first definition says that says anything about TLS to its endpoints.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let secret = "{apiVersion: v1, kind: Secret, metadata: {name: ca, namespace: shop}, stringData: {}}";
/// let served = Fixture::from_yaml(secret)?
///     .and_ingress("shop/a", &[("proxy-ssl-secret", "shop/ca")], &["a.test/ web:80"])
///     .merge();
/// // What protects and cannot be used closes its own paths, and says nothing about others.
/// let server = served.server("a.test").unwrap();
/// assert!(server.upstream_tls.is_none() && server.locations[0].settings.denied.is_some());
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn upstream_tls(
    definitions: &[&Arc<Definition>],
    context: &Context,
) -> Option<Box<Owned<UpstreamTls>>> {
    if context.config.policy.proxy_ssl_location_only {
        return None;
    }
    let usable = |definition: &&&Arc<Definition>| definition.location.denied.is_none();
    definitions.iter().filter(usable).find_map(|definition| {
        Some(Box::new(Owned {
            ingress: definition.name.clone(),
            value: definition.location.upstream_tls.clone()?,
        }))
    })
}
