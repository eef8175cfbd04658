//! Hosts that only refused Ingresses define: they are servers as soon as others would answer for them otherwise, who do
//! not ask what the refused ones ask.

use crate::{context::Context, host::Host, server::Claim};

use super::{Hosts, Site};

impl Hosts {
    /// Puts up the servers of those unserved hosts that would be answered otherwise, and takes down the others.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let refused = [("auth-url", "http://auth.test/"), ("limit-rps", "many")];
    /// let guarded = Fixture::default().and_ingress("shop/a", &refused, &["a.test/x web:80"]);
    /// guarded.merge().assert_hosts([]);
    /// let wild = guarded.clone().and_ingress("shop/b", &[], &["*.test/ web:80"]).merge();
    /// wild.assert_request("a.test/x", "= /x shop/a upstream-default-backend");
    /// assert!(wild.server("a.test").unwrap().locations.iter().all(|location| location.settings.denied.is_some()));
    /// let alias = guarded.and_ingress("shop/b", &[("server-alias", "a.test")], &["b.test/ web:80"]).merge();
    /// alias.assert_hosts(["a.test", "b.test"]);
    /// ```
    pub(super) fn settle_guards(&mut self, site: &mut Site<'_>) {
        if self.unserved.is_empty() && self.guarded.is_empty() {
            return;
        }
        let guarded = self.guarded.iter();
        let alone = guarded.filter(|host| {
            let claims = self.entries.get(*host).map(|entry| &entry.claims);
            !claims.is_some_and(|claims| self.is_answered(host, claims, site.context))
        });
        for host in alone.cloned().collect::<Vec<_>>() {
            self.forget(&host);
            self.servers.remove(&host);
            self.decisions.remove(&host);
            self.noted.remove(&host);
            if let Some(entry) = self.entries.remove(&host) {
                self.unserved.insert(host, entry.claims);
            }
        }
        let unserved = self.unserved.iter();
        let answered =
            unserved.filter(|(host, claims)| self.is_answered(host, claims, site.context));
        let answered = answered.map(|(host, _)| host.clone());
        for host in answered.collect::<Vec<_>>() {
            if let Some(claims) = self.unserved.remove(&host) {
                self.guarded.insert(host.clone());
                self.put_up(host, claims, None, site);
            }
        }
    }

    /// Whether requests for a host, or for a further name that its Ingresses give it, would find another server than
    /// the controller's own.
    fn is_answered(&self, host: &Host, claims: &[Claim], context: &Context) -> bool {
        let rest = self.entries.get(&Host::catch_all());
        let mut rest = rest.into_iter().flat_map(|entry| &entry.claims);
        let is_rest_served = rest.any(|claim| !claim.is_refused());
        if is_rest_served || context.options.default_backend_service.is_some() {
            return true;
        }
        let names = claims
            .iter()
            .flat_map(|claim| &claim.definition.settings.server.aliases);
        names.chain([host]).any(|name| self.is_named(name, host))
    }

    /// Whether a served host with a wildcard or an alias may stand for a name of a host.
    fn is_named(&self, name: &Host, host: &Host) -> bool {
        if name != host && (name.is_wildcard() || name.is_expression()) {
            // Which names it shares with others can hardly be told.
            return true;
        }
        let is_served =
            |host: &Host| self.entries.contains_key(host) && !self.guarded.contains(host);
        if wildcard_over(name).is_some_and(|wildcard| is_served(&wildcard)) {
            return true;
        }
        let aliasing = self.aliased.iter().filter(|host| is_served(host));
        let mut aliases = aliasing
            .filter_map(|host| self.entries.get(host)?.built.aliases.as_ref())
            .flat_map(|(_, aliases)| aliases);
        aliases.any(|alias| may_meet(alias, name))
    }
}

/// The host `*.name` that a name belongs to.
fn wildcard_over(name: &Host) -> Option<Host> {
    let (_, parent) = name.as_str().split_once('.')?;
    Host::parse(&format!("*.{parent}"))
        .ok()
        .filter(|wildcard| wildcard != name)
}

/// Whether an alias may stand for a name that is no expression.
fn may_meet(alias: &Host, name: &Host) -> bool {
    let below = |name: &Host, suffix: &str| {
        let labels = name.as_str().strip_suffix(suffix);
        labels.is_some_and(|labels| labels.ends_with('.'))
    };
    let is_below = |name: &Host, of: &Host| of.wildcard_suffix().is_some_and(|it| below(name, it));
    if alias.is_expression() {
        return name.is_wildcard() || alias.expression_matches(name.as_str());
    }
    alias == name || is_below(name, alias) || is_below(alias, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_meet_names() {
        for (alias, name, want) in [
            ("a.test", "a.test", true),
            ("a.test", "b.test", false),
            ("*.test", "a.test", true),
            ("*.test", "a.b.test", true),
            ("*.b.test", "a.test", false),
            ("*.test", "btest", false),
            ("a.test", "*.test", true),
            ("*.b.test", "*.test", true),
            ("~^a", "a.test", true),
            ("~^b", "a.test", false),
            ("~^b", "*.test", true),
        ] {
            let alias = Host::parse_alias(alias).unwrap();
            let name = Host::parse(name).unwrap();
            assert_eq!(may_meet(&alias, &name), want, "{alias:?} {name:?}");
        }
    }

    #[test]
    fn names_have_one_wildcard_over_them() {
        let over = |name: &str| wildcard_over(&Host::parse(name).unwrap());
        assert_eq!(over("a.b.test").unwrap().as_str(), "*.b.test");
        assert_eq!(over("*.b.test"), None);
        assert_eq!(over("test"), None);
    }
}
