//! How the requests of each Ingress are balanced over a backend, and where the affinity's cookie may be set.

use hashbrown::HashMap;

use super::{Sources, peers_of};
use crate::{
    annotation::BackendSettings,
    definition::HostRule,
    host::Host,
    hosts::Hosts,
    live::{Backend, CookieAffinity, UpstreamName, Variant},
    upstream::User,
};

/// Annotations act on their own Ingress alone: those that want something else of a backend than its oldest user get a
/// variant of it, which those that want the same share.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default()
///     .and_ingress("shop/a", &[], &["a.test/ web:80"])
///     .and_ingress("shop/b", &[("upstream-hash-by", "$host")], &["b.test/ web:80"])
///     .and_ingress("shop/c", &[("upstream-hash-by", "$host")], &["c.test/ web:80"])
///     .merge();
/// let web = &served.outcome().model.live.backends["shop-web-80"];
/// assert_eq!(web.hash_by, None);
/// assert_eq!(web.variants[0].hash_by.as_ref().unwrap().key, "$host");
/// assert_eq!(web.variants[0].ingresses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["shop/b", "shop/c"]);
/// ```
pub(super) fn balance(backend: &mut Backend, group: &[User], sources: Sources<'_>) {
    let Some((first, others)) = group.split_first() else {
        return;
    };
    let canaries = sources.canaries.all_of(&backend.name);
    let settings = &first.definition.settings.backend;
    let agree = |user: &User| user.definition.settings.backend == *settings;
    if canaries.len() < 2 && others.iter().all(agree) {
        backend.affinity = affinity(group.iter(), sources.hosts).map(Box::new);
        backend.alternatives = canaries.to_vec();
        return;
    }
    let mut shares = shares(&backend.name, group, sources).into_iter();
    if let Some((alternatives, users)) = shares.next() {
        backend.affinity = affinity(users.iter().copied(), sources.hosts).map(Box::new);
        backend.alternatives = alternatives;
    }
    backend.variants = shares
        .filter_map(|(alternatives, users)| {
            let settings = &users.first()?.definition.settings.backend;
            let (_, peers) = peers_of(users.first()?, sources)?;
            let names = users.iter().map(|user| user.definition.name.clone());
            let mut ingresses: Vec<_> = names.collect();
            ingresses.sort_unstable();
            Some(Variant {
                ingresses,
                endpoints: (peers.endpoints != backend.endpoints).then_some(peers.endpoints),
                load_balance: settings.load_balance,
                hash_by: settings.hash_by.clone(),
                affinity: affinity(users.iter().copied(), sources.hosts).map(Box::new),
                alternatives,
            })
        })
        .collect();
}

/// Users with their canaries, those that agree about both together, in the order of their oldest.
type Shares<'a> = Vec<(Vec<UpstreamName>, Vec<&'a User>)>;

fn shares<'a>(name: &UpstreamName, group: &'a [User], sources: Sources<'_>) -> Shares<'a> {
    let mut places: HashMap<(Vec<UpstreamName>, &BackendSettings), usize> = HashMap::new();
    let mut shares: Shares<'a> = Vec::new();
    for user in group {
        let alternatives = sources.canaries.of(name, &user.definition.name);
        let key = (alternatives, &user.definition.settings.backend);
        let known = places.get(&key).and_then(|place| shares.get_mut(*place));
        if let Some((_, users)) = known {
            users.push(user);
        } else {
            places.insert(key.clone(), shares.len());
            shares.push((key.0, vec![user]));
        }
    }
    shares
}

/// A canary has the affinity of the paths that it takes a share of, so that a client which was sent to either backend
/// stays there, unless `affinity-canary-behavior` is `legacy`. Where these differ, it is that of the first path with
/// affinity, paths that the canary names coming before others.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let served = Fixture::default()
///     .and_ingress("shop/main", &[("affinity", "cookie")], &["a.test/ web:80"])
///     .and_ingress("shop/next", &[("canary", "true")], &["a.test/ next:80"])
///     .merge();
/// let backends = &served.outcome().model.live.backends;
/// assert!(backends["shop-web-80"].affinity.is_some());
/// assert_eq!(backends["shop-next-80"].affinity, backends["shop-web-80"].affinity);
/// ```
pub(super) fn canary_affinity(
    name: &UpstreamName,
    users: &[User],
    sources: Sources<'_>,
) -> Option<CookieAffinity> {
    let own = &users.first()?.definition.settings.backend;
    if own.affinity_canary_legacy {
        return affinity(users.iter(), sources.hosts);
    }
    let canaries = sources.canaries;
    let named = canaries.mains.get(name)?;
    let mut mains: Vec<_> = named.iter().map(|(main, _)| main).collect();
    mains.sort_unstable();
    mains.dedup();
    let served = mains.into_iter().flat_map(|main| {
        let users = sources.upstreams.group(main).into_iter().flatten();
        users
            .filter(move |user| canaries.first_of(main, Some(&user.definition.name)) == Some(name))
            .map(move |user| (main, user))
    });
    let is_named = |main: &UpstreamName, user: &User| {
        let mut named = named.iter();
        named.any(|(known, ingress)| known == main && *ingress == user.definition.name)
    };
    let with_affinity = served.clone().filter(|(_, user)| user.affinity().is_some());
    let (_, wanted) = with_affinity.min_by_key(|(main, user)| !is_named(main, user))?;
    let alike = served.filter(|(_, user)| user.affinity() == wanted.affinity());
    affinity(alike.map(|(_, user)| user), sources.hosts)
}

/// The cookie may be set at the paths, as the Ingresses write them, that go to the backend, on their hosts and those
/// hosts' aliases.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let annotations = [("affinity", "cookie"), ("server-alias", "old.test")];
/// let served = Fixture::default().and_ingress("shop/a", &annotations, &["a.test/x web:80"]).merge();
/// let affinity = served.outcome().model.live.backends["shop-web-80"].affinity.as_ref().unwrap();
/// let places: Vec<_> = affinity.locations.iter().map(|(host, paths)| format!("{host}{}", paths.join(" "))).collect();
/// assert_eq!(places, ["a.test/x", "old.test/x"]);
/// ```
fn affinity<'a>(
    users: impl Iterator<Item = &'a User> + Clone,
    hosts: &Hosts,
) -> Option<CookieAffinity> {
    let mut affinity = users.clone().next()?.affinity()?.clone();
    let everywhere = HostRule {
        host: Host::catch_all(),
        closed: false,
        paths: Vec::new(),
    };
    for user in users {
        let catch_all = user.definition.catch_all.then_some(&everywhere);
        for rule in user.definition.hosts.iter().chain(catch_all) {
            let server = hosts.entries.get(&rule.host).map(|entry| &entry.server);
            let aliases = server.map_or(&[][..], |server| &server.aliases);
            // The data plane looks locations up by name.
            let aliases = aliases.iter().filter(|alias| !alias.is_expression());
            for host in std::iter::once(&rule.host).chain(aliases) {
                for path in user.paths(rule) {
                    let paths = affinity.locations.entry(host.clone()).or_default();
                    if !paths.iter().any(|known| known == path) {
                        paths.push(path.to_owned());
                    }
                }
            }
        }
    }
    Some(affinity)
}
