//! Aliases of servers (`server-alias`), about which all hosts have to agree.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use crate::{
    definition::Definition,
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    hosts::Entry,
    options::ConflictPolicy,
    server::Claim,
};

/// A host that wants an alias, and the definition that says so.
type Wish<'a> = (&'a Host, &'a Definition);

/// Which aliases the hosts get that want some, sorted, and what their authors are told.
///
/// A name that has a server of its own is nobody's alias. Of several hosts that want one alias, the one whose
/// definition holds by the policy gets it; NGINX would let the order of the file decide.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let alias = [("server-alias", "old.test,b.test")];
/// let served = Fixture::default()
///     .and_ingress("shop/a", &alias, &["a.test/ web:80"])
///     .and_ingress("shop/b", &[], &["b.test/ web:80"])
///     .merge();
/// assert_eq!(served.server("a.test").unwrap().aliases[0].as_str(), "old.test");
/// served.assert_request("b.test/", "/ shop/b shop-web-80");
/// ```
pub(crate) fn settle(
    entries: &HashMap<Host, Box<Entry>>,
    hosts: &BTreeSet<Host>,
    policy: ConflictPolicy,
) -> (BTreeMap<Host, Vec<Host>>, Vec<Diagnostic>) {
    let mut wishes: BTreeMap<&Host, Vec<Wish<'_>>> = BTreeMap::new();
    let mut settled: BTreeMap<Host, Vec<Host>> = BTreeMap::new();
    for host in hosts {
        settled.insert(host.clone(), Vec::new());
        let built = entries.get(host).map(|entry| &entry.built);
        let Some((definition, wanted)) = built.and_then(|built| built.aliases.as_ref()) else {
            continue;
        };
        let wanted: BTreeSet<&Host> = wanted.iter().filter(|alias| *alias != host).collect();
        for alias in wanted {
            wishes.entry(alias).or_default().push((host, definition));
        }
    }
    let mut diagnostics = Vec::new();
    for (alias, mut rivals) in wishes {
        rivals.sort_by(|a, b| policy.precedence(a.1, b.1).then_with(|| a.0.cmp(b.0)));
        let holder = match entries.get(alias) {
            Some(_) => None,
            None => rivals.first().copied(),
        };
        let is_guarded = |entry: &Entry| entry.claims.iter().all(Claim::is_refused);
        let is_guarded = entries.get(alias).is_some_and(|entry| is_guarded(entry));
        if let Some((host, _)) = holder {
            settled.entry(host.clone()).or_default().push(alias.clone());
        }
        for (host, definition) in rivals.iter().skip(usize::from(holder.is_some())) {
            diagnostics.push(conflict(alias, host, definition, holder, is_guarded));
        }
    }
    (settled, diagnostics)
}

fn conflict(
    alias: &Host,
    host: &Host,
    definition: &Definition,
    holder: Option<Wish<'_>>,
    is_guarded: bool,
) -> Diagnostic {
    let fault = match holder {
        Some((holder, by)) => format!("is one of host {holder}, as Ingress {} has it", by.name),
        None if is_guarded => "is guarded by an Ingress that is refused".to_owned(),
        None => "has a server of its own".to_owned(),
    };
    let message = format!("{alias} is no alias of host {host}: it {fault}");
    let object = definition.reference();
    Diagnostic::new(object, Severity::Warning, Reason::AliasConflict, message)
        .with_key("server-alias")
}
