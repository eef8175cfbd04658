//! All hosts: who claims each, and the server that results.

mod guarded;

use std::{collections::BTreeSet, sync::Arc};

use hashbrown::{HashMap, HashSet};
use k8s_openapi::api::core::v1::Secret;

use crate::{
    alias,
    changes::Change,
    context::Context,
    definition::Definition,
    diagnostic::Diagnostic,
    host::Host,
    layout::Server,
    options::ConflictPolicy,
    provenance::Decision,
    secrets::Secrets,
    server::{self, Built, Claim},
    shared_map::SharedMap,
    upstream::{Edits, Upstreams},
    www,
};

/// A host's claims, the one that holds first, and its server.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) claims: Vec<Claim>,
    pub(crate) built: Built,
    /// The server with its aliases, and with the name that is redirected to it.
    pub(crate) server: Arc<Server>,
}

/// Hosts with their servers. Once updated, the catch-all host is always there.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    pub(crate) entries: HashMap<Host, Box<Entry>>,
    /// The servers of all entries.
    pub(crate) servers: SharedMap<Host, Arc<Server>>,
    /// The decisions about those entries about which there are any.
    pub(crate) decisions: SharedMap<Host, Arc<Vec<Decision>>>,
    /// Hosts with more than servers and decisions: a certificate, Secrets or diagnostics. The catch-all host is one.
    pub(crate) noted: BTreeSet<Host>,
    /// What there is to say about further names of hosts.
    pub(crate) name_diagnostics: Vec<Diagnostic>,
    /// The claims to hosts that nobody serves: all of them are of [refused](crate::annotation::IngressSettings) Ingresses.
    unserved: HashMap<Host, Vec<Claim>>,
    /// Those of the entries whose claims are such only: without them, others would answer in their place.
    guarded: BTreeSet<Host>,
    /// Hosts that want aliases.
    aliased: BTreeSet<Host>,
    /// Hosts that want clients of another name redirected to them.
    redirecting: BTreeSet<Host>,
    /// Hosts whose TLS is passed through.
    pub(crate) passing: BTreeSet<Host>,
}

/// Why hosts have to be built again.
#[derive(Debug)]
pub(crate) struct Causes<'a> {
    pub(crate) edits: &'a Edits,
    /// Definitions of which an upstream has another name now.
    pub(crate) renamed: Vec<Arc<Definition>>,
    pub(crate) secrets: &'a [Change<'a, Secret>],
}

/// What servers are built from, and those that an update built.
struct Site<'a> {
    context: &'a Context,
    upstreams: &'a Upstreams,
    secrets: &'a mut Secrets,
    servers: Vec<(Host, Arc<Server>)>,
    decisions: Vec<(Host, Arc<Vec<Decision>>)>,
    /// Hosts that want no aliases any more.
    bereft: Vec<Host>,
}

/// What an update changed.
#[derive(Debug, Default)]
pub(crate) struct Rebuilt {
    /// Whether any host was built again or taken away.
    pub(crate) any: bool,
    /// Hosts with other aliases.
    pub(crate) aliases: Vec<Host>,
}

impl Hosts {
    /// Builds again what the causes concern.
    pub(crate) fn update(
        &mut self,
        causes: &Causes<'_>,
        context: &Context,
        upstreams: &Upstreams,
        secrets: &mut Secrets,
    ) -> Rebuilt {
        let touched = self.touched(causes);
        let removed = causes.edits.removed_names();
        let any = !touched.is_empty();
        let mut site = Site {
            context,
            upstreams,
            secrets,
            servers: Vec::with_capacity(touched.len()),
            decisions: Vec::with_capacity(touched.len()),
            bereft: Vec::new(),
        };
        self.entries.reserve(touched.len());
        let mut touched = touched.into_iter().peekable();
        while let Some((host, first)) = touched.next() {
            let old = self.entries.remove(&host);
            let (mut claims, old) = old.map_or_else(
                || {
                    let unserved = self.unserved.remove(&host);
                    // Most hosts have one.
                    (unserved.unwrap_or_else(|| Vec::with_capacity(1)), None)
                },
                |entry| (entry.claims, Some(entry.server)),
            );
            claims.retain(|claim: &Claim| !removed.contains(&claim.definition.name));
            claims.extend(first);
            while let Some((_, next)) = touched.next_if(|(next, _)| *next == host) {
                claims.extend(next);
            }
            sort(&mut claims, context.options.conflict_policy);
            self.forget(&host);
            let is_served = claims.iter().any(|claim| !claim.is_refused());
            if is_served || host.is_catch_all() {
                self.put_up(host, claims, old, &mut site);
            } else {
                self.servers.remove(&host);
                self.decisions.remove(&host);
                self.noted.remove(&host);
                if !claims.is_empty() {
                    self.unserved.insert(host, claims);
                }
            }
        }
        if any {
            self.settle_guards(&mut site);
        }
        self.servers.extend(site.servers);
        self.decisions.extend(site.decisions);
        let mut aliases = site.bereft;
        if any {
            aliases.extend(self.settle_aliases(context.options.conflict_policy));
            self.settle_redirects();
        }
        Rebuilt { any, aliases }
    }

    /// Forgets what a host wants beyond its server.
    fn forget(&mut self, host: &Host) {
        self.guarded.remove(host);
        self.aliased.remove(host);
        self.redirecting.remove(host);
        self.passing.remove(host);
    }

    /// Builds the server of a host.
    fn put_up(
        &mut self,
        host: Host,
        claims: Vec<Claim>,
        old: Option<Arc<Server>>,
        site: &mut Site<'_>,
    ) {
        let built = server::build(&host, &claims, site.context, site.upstreams, site.secrets);
        let mut aliases = old.as_ref().map_or(&[][..], |server| &server.aliases);
        if built.aliases.is_some() {
            self.aliased.insert(host.clone());
        } else if !aliases.is_empty() {
            site.bereft.push(host.clone());
            aliases = &[];
        }
        let redirected = old.as_ref().and_then(|server| server.redirected.as_ref());
        let redirected = redirected.filter(|_| built.redirects);
        if built.redirects {
            self.redirecting.insert(host.clone());
        }
        if built.passthrough.is_some() {
            self.passing.insert(host.clone());
        }
        let server = with_names(&built.server, aliases, redirected);
        let server = old.filter(|old| *old == server).unwrap_or(server);
        site.servers.push((host.clone(), Arc::clone(&server)));
        if built.decisions.is_empty() {
            self.decisions.remove(&host);
        } else {
            let decisions = Arc::clone(&built.decisions);
            site.decisions.push((host.clone(), decisions));
        }
        if host.is_catch_all() || built.is_notable() {
            self.noted.insert(host.clone());
        } else {
            self.noted.remove(&host);
        }
        let entry = Entry {
            claims,
            built,
            server,
        };
        self.entries.insert(host, Box::new(entry));
    }

    /// The hosts to build again, sorted and perhaps repeated, with the claims that they get.
    fn touched(&self, causes: &Causes<'_>) -> Vec<(Host, Option<Claim>)> {
        let mut touched = Vec::with_capacity(causes.edits.added.len() + 1);
        if self.entries.is_empty() {
            touched.push((Host::catch_all(), None));
        }
        let concerned = causes.edits.removed.iter().chain(&causes.renamed);
        for definition in concerned {
            touched.extend(claims(definition).map(|claim| (host_of(&claim), None)));
        }
        for definition in &causes.edits.added {
            touched.extend(claims(definition).map(|claim| (host_of(&claim), Some(claim))));
        }
        if !causes.secrets.is_empty() {
            let changed: HashSet<_> = causes.secrets.iter().map(|change| change.name).collect();
            for host in &self.noted {
                let secrets = self.entries.get(host).map(|entry| &entry.built.secrets);
                let mut secrets = secrets.into_iter().flatten();
                if secrets.any(|name| changed.contains(name)) {
                    touched.push((host.clone(), None));
                }
            }
        }
        touched.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        touched
    }

    /// Gives the servers the aliases that they may have; answers those for which they are other ones than before.
    fn settle_aliases(&mut self, policy: ConflictPolicy) -> Vec<Host> {
        let (aliases, diagnostics) = alias::settle(&self.entries, &self.aliased, policy);
        self.name_diagnostics = diagnostics;
        let mut changed = Vec::new();
        for (host, aliases) in aliases {
            let Some(entry) = self.entries.get_mut(&host) else {
                continue;
            };
            if entry.server.aliases != aliases {
                let redirected = entry.server.redirected.as_ref();
                entry.server = with_names(&entry.built.server, &aliases, redirected);
                self.servers.insert(host.clone(), Arc::clone(&entry.server));
                changed.push(host);
            }
        }
        changed
    }

    /// Has clients redirected to those hosts that want it and may have it. Aliases have to be settled.
    fn settle_redirects(&mut self) {
        let (settled, diagnostics) = www::settle(&self.entries, &self.servers, &self.redirecting);
        self.name_diagnostics.extend(diagnostics);
        for host in &self.redirecting {
            let Some(entry) = self.entries.get_mut(host) else {
                continue;
            };
            let redirected = settled.get(host);
            if entry.server.redirected.as_ref() != redirected {
                entry.server = with_names(&entry.built.server, &entry.server.aliases, redirected);
                self.servers.insert(host.clone(), Arc::clone(&entry.server));
            }
        }
    }
}

/// The hosts that a definition has a say about. A canary has none: it only takes a share of what others define.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default().and_ingress("shop/next", &[("canary", "true")], &["a.test/ next:80"]).merge();
/// served.assert_hosts([]);
/// ```
fn claims(definition: &Arc<Definition>) -> impl Iterator<Item = Claim> {
    let rules = (0..definition.hosts.len()).map(Some);
    let catch_all = definition.catch_all.then_some(None);
    let is_canary = definition.settings.canary.is_some();
    let claims = rules.chain(catch_all).filter(move |_| !is_canary);
    claims.map(|rule| Claim {
        definition: Arc::clone(definition),
        rule,
    })
}

fn host_of(claim: &Claim) -> Host {
    let rule = claim.rule.and_then(|rule| claim.definition.hosts.get(rule));
    rule.map_or_else(Host::catch_all, |rule| rule.host.clone())
}

/// The claim that holds comes first. Where the oldest definition wins, an Ingress without rules holds what nobody
/// defines before any rule without host does, as in ingress-nginx.
///
/// ```
/// use ingress_model::{ConflictPolicy, Options, testing::Fixture};
///
/// let rest = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: rest, namespace: shop}, \
///             spec: {ingressClassName: nginx, defaultBackend: {service: {name: rest, port: {number: 80}}}}}";
/// let fixture = Fixture::default().and_ingress("shop/a", &[], &["/ web:80"]).and_yaml(rest)?;
/// fixture.merge().assert_locations("", ["/ shop/rest shop-rest-80"]);
/// let fixture = fixture.and_ingress("shop/b", &[], &["/ web:80"]);
/// fixture.merge().assert_locations("", ["/ shop/b shop-web-80"]);
/// let options = Options { conflict_policy: ConflictPolicy::OldestWins, ..Options::default() };
/// fixture.with_options(options).merge().assert_locations("", ["/ shop/rest shop-rest-80"]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn sort(claims: &mut [Claim], policy: ConflictPolicy) {
    let has_rule = |claim: &Claim| policy == ConflictPolicy::OldestWins && claim.rule.is_some();
    claims.sort_by(|a, b| {
        let catch_all = has_rule(a).cmp(&has_rule(b));
        catch_all.then_with(|| policy.precedence(&a.definition, &b.definition))
    });
}

fn with_names(server: &Arc<Server>, aliases: &[Host], redirected: Option<&Host>) -> Arc<Server> {
    if server.aliases == aliases && server.redirected.as_ref() == redirected {
        return Arc::clone(server);
    }
    Arc::new(Server {
        aliases: aliases.to_vec(),
        redirected: redirected.cloned(),
        ..server.as_ref().clone()
    })
}
