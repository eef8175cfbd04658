//! Redirects between a host and `www.` in front of it (`from-to-www-redirect`), about which all hosts have to agree.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hashbrown::HashMap;

use crate::{
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    hosts::Entry,
    layout::Server,
    shared_map::SharedMap,
};

/// The name from which clients are redirected, for those hosts that want it and may have it, and what the authors of the
/// others are told.
///
/// A name that is served, as a host or as an alias, is not redirected. Of two hosts that want one name (`shop.test` and
/// `www.www.shop.test`), the shorter one gets it.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let redirect = [("from-to-www-redirect", "true")];
/// let served = Fixture::default().and_ingress("shop/a", &redirect, &["a.test/ web:80"]);
/// let redirected = |fixture: &Fixture| fixture.merge().server("a.test").unwrap().redirected.clone();
/// assert_eq!(redirected(&served).unwrap().as_str(), "www.a.test");
/// assert_eq!(redirected(&served.and_ingress("shop/b", &[], &["www.a.test/ web:80"])), None);
/// ```
pub(crate) fn settle(
    entries: &HashMap<Host, Box<Entry>>,
    servers: &SharedMap<Host, Arc<Server>>,
    hosts: &BTreeSet<Host>,
) -> (BTreeMap<Host, Host>, Vec<Diagnostic>) {
    let mut settled = BTreeMap::new();
    let mut diagnostics = Vec::new();
    if hosts.is_empty() {
        return (settled, diagnostics);
    }
    let aliases: BTreeSet<&Host> = servers
        .values()
        .flat_map(|server| &server.aliases)
        .collect();
    let mut sorted: Vec<&Host> = hosts.iter().collect();
    sorted.sort_by_key(|host| host.as_str().len());
    let mut others = BTreeSet::new();
    for host in sorted {
        let Some(other) = other(host) else { continue };
        if entries.contains_key(&other) || aliases.contains(&other) || !others.insert(other.clone())
        {
            diagnostics.extend(conflict(host, &other, entries));
        } else {
            settled.insert(host.clone(), other);
        }
    }
    (settled, diagnostics)
}

/// The host without `www.` in front of it, or with it.
fn other(host: &Host) -> Option<Host> {
    if host.is_catch_all() || host.is_wildcard() {
        return None;
    }
    let name = host.as_str();
    let other = name.strip_prefix("www.").map(str::to_owned);
    let other = other.unwrap_or_else(|| format!("www.{name}"));
    // A name that would be too long is none.
    Host::parse(&other).ok()
}

fn conflict<'a>(
    host: &'a Host,
    other: &'a Host,
    entries: &'a HashMap<Host, Box<Entry>>,
) -> impl Iterator<Item = Diagnostic> + 'a {
    let claims = entries
        .get(host)
        .into_iter()
        .flat_map(|entry| &entry.claims);
    let wishes = claims
        .map(|claim| &claim.definition)
        .filter(|definition| definition.settings.server.from_to_www_redirect);
    wishes.map(move |definition| {
        let message =
            format!("{other} is not redirected to {host}: it is served or redirected already");
        let object = definition.reference();
        Diagnostic::new(object, Severity::Warning, Reason::AliasConflict, message)
            .with_key("from-to-www-redirect")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_name() {
        let label = "a".repeat(60);
        let long = [label.as_str(); 4].join(".") + ".long.test";
        for (host, want) in [
            ("shop.test", Some("www.shop.test")),
            ("www.shop.test", Some("shop.test")),
            ("", None),
            ("*.shop.test", None),
            (long.as_str(), None),
        ] {
            let other = other(&Host::parse(host).unwrap());
            assert_eq!(other.as_ref().map(Host::as_str), want, "{host}");
        }
    }
}
