//! Who should hold what, found out without the rules' own code.

use std::collections::{BTreeMap, BTreeSet};

use ingress_model::{
    ConflictPolicy, Host, ObjectName, Outcome, Snapshot,
    layout::{Modifier, PathType},
    provenance::{Rule, Subject},
};
use jiff::Timestamp;
use k8s_openapi::api::networking::v1::Ingress;

use crate::{Law, ensure};

/// The hosts of an Ingress's rules.
pub(crate) fn hosts(ingress: &Ingress) -> BTreeSet<Host> {
    let rules = ingress
        .spec
        .iter()
        .flat_map(|spec| spec.rules.iter().flatten());
    rules
        .filter_map(|rule| Host::parse(rule.host.as_deref().unwrap_or_default()).ok())
        .collect()
}

/// The paths that an Ingress defines.
pub(crate) fn paths(ingress: &Ingress) -> impl Iterator<Item = (Host, String, PathType)> {
    let rules = ingress
        .spec
        .iter()
        .flat_map(|spec| spec.rules.iter().flatten());
    rules.flat_map(|rule| {
        let host = Host::parse(rule.host.as_deref().unwrap_or_default()).ok();
        let paths = rule.http.iter().flat_map(|http| &http.paths);
        paths.filter_map(move |path| {
            let text = path
                .path
                .as_deref()
                .filter(|path| !path.is_empty())
                .unwrap_or("/");
            let kind = match path.path_type.as_str() {
                "Exact" => PathType::Exact,
                _ => PathType::Prefix,
            };
            let is_usable = text.starts_with('/') && path.backend.service.is_some();
            is_usable.then(|| Some((host.clone()?, text.to_owned(), kind)))?
        })
    })
}

fn annotation<'a>(ingress: &'a Ingress, name: &str) -> Option<&'a str> {
    let annotations = ingress.metadata.annotations.as_ref()?;
    let value = annotations.get(&format!("nginx.ingress.kubernetes.io/{name}"))?;
    Some(value.as_str())
}

fn created(ingress: &Ingress) -> Timestamp {
    let created = ingress.metadata.creation_timestamp.as_ref();
    created.map_or(Timestamp::MIN, |time| time.0)
}

/// Names all Ingresses that are refused, and hold what they define all the same, since they guard it.
fn guarding<'a>(snapshot: &'a Snapshot, outcome: &Outcome) -> Vec<(&'a ObjectName, &'a Ingress)> {
    let all = snapshot.ingresses.iter();
    let guarding = all.filter(|(name, ingress)| {
        outcome.last_good.get(name).is_none()
            && annotation(ingress, "canary") != Some("true")
            && annotation(ingress, "auth-tls-secret").is_some()
    });
    guarding
        .map(|(name, ingress)| (name, ingress.as_ref()))
        .collect()
}

/// Names all Ingresses that are served, and are no canaries.
fn served<'a>(snapshot: &'a Snapshot, outcome: &Outcome) -> Vec<(&'a ObjectName, &'a Ingress)> {
    let all = snapshot.ingresses.iter();
    let served = all.filter(|(name, ingress)| {
        outcome.last_good.get(name).is_some() && annotation(ingress, "canary") != Some("true")
    });
    served
        .map(|(name, ingress)| (name, ingress.as_ref()))
        .collect()
}

/// A cluster, and what the rules made of it.
pub(crate) struct Oracle<'a> {
    served: Vec<(&'a ObjectName, &'a Ingress)>,
    guarding: Vec<(&'a ObjectName, &'a Ingress)>,
    outcome: &'a Outcome,
    policy: ConflictPolicy,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        outcome: &'a Outcome,
        policy: ConflictPolicy,
    ) -> Self {
        Self {
            served: served(snapshot, outcome),
            guarding: guarding(snapshot, outcome),
            outcome,
            policy,
        }
    }

    /// The Ingress among several that holds what all of them define.
    fn holder(&self, mut among: impl FnMut(&Ingress) -> bool) -> Option<&'a ObjectName> {
        let holding = self.holding();
        let rivals = holding.filter(|(_, ingress)| among(ingress));
        let holder = rivals.max_by_key(|(name, ingress)| {
            let age = created(ingress).as_second();
            // Served and not a canary, but with a canary's weight: it is switched off.
            let is_ordinary = annotation(ingress, "canary-weight").is_none();
            match self.policy {
                ConflictPolicy::LastDefinitionWins => (is_ordinary, age, *name),
                ConflictPolicy::OldestWins => (is_ordinary, -age, *name),
            }
        });
        holder.map(|(name, _)| *name)
    }

    fn holding(&self) -> impl Iterator<Item = &(&'a ObjectName, &'a Ingress)> {
        self.served.iter().chain(&self.guarding)
    }

    fn decided(&self, host: &Host, subject: &Subject) -> Option<&'a ObjectName> {
        let mut decisions = self.outcome.provenance.of(host).iter();
        let decision = decisions.find(|decision| decision.subject == *subject);
        decision.map(|decision| &decision.winner)
    }

    pub(crate) fn check(&self) -> Law {
        let served = self.served.iter();
        let mut claimed: BTreeSet<_> = served.flat_map(|(_, ingress)| hosts(ingress)).collect();
        let guarded = self.guarding.iter();
        let guarded = guarded.flat_map(|(_, ingress)| hosts(ingress));
        let servers = &self.outcome.model.layout.servers;
        claimed.extend(guarded.filter(|host| servers.contains_key(host)));
        for host in &claimed {
            self.check_paths(host)?;
            self.check_tls(host)?;
            for name in [
                "server-alias",
                "ssl-ciphers",
                "ssl-prefer-server-ciphers",
                "auth-tls-secret",
            ] {
                let holder = self.holder(|one| {
                    let is_served = self
                        .served
                        .iter()
                        .any(|(_, served)| std::ptr::eq(*served, one));
                    let counts = is_served || ["auth-tls-secret", "server-alias"].contains(&name);
                    counts && defines(one, host) && annotation(one, name).is_some()
                });
                let decided = self.decided(host, &Subject::Setting(name));
                ensure!(
                    decided == holder,
                    "{name} of {host}: {decided:?}, not {holder:?}"
                );
            }
        }
        self.check_aliases(&claimed)
    }

    fn check_paths(&self, host: &Host) -> Law {
        let server = &self.outcome.model.layout.servers[host];
        let wanted: BTreeSet<_> = self
            .holding()
            .flat_map(|(_, ingress)| paths(ingress))
            .collect();
        for (_, path, kind) in wanted.iter().filter(|(on, ..)| on == host) {
            let holder = self.holder(|one| {
                paths(one).any(|other| (&other.0, &other.1, &other.2) == (host, path, kind))
            });
            let modifier = match kind {
                PathType::Exact => Modifier::Exact,
                PathType::Prefix => Modifier::Prefix,
            };
            let location = server.locations.iter().find(|location| {
                location.ingress_path == *path
                    && location.path_type == *kind
                    && location.modifier == modifier
            });
            let owner = location.and_then(|location| location.ingress.as_ref());
            ensure!(
                owner == holder,
                "{host}{path} {kind:?}: {owner:?}, not {holder:?}"
            );
        }
        Ok(())
    }

    fn check_tls(&self, host: &Host) -> Law {
        let has = |one: &Ingress| {
            let tls = one.spec.as_ref().and_then(|spec| spec.tls.as_ref());
            defines(one, host) && tls.is_some_and(|tls| !tls.is_empty())
        };
        let lists = |one: &Ingress| {
            let tls = one.spec.iter().flat_map(|spec| spec.tls.iter().flatten());
            let mut names = tls.flat_map(|entry| entry.hosts.iter().flatten());
            has(one) && names.any(|name| name.eq_ignore_ascii_case(host.as_str()))
        };
        let any = self.holder(has);
        let holder = match self.policy {
            ConflictPolicy::LastDefinitionWins => self.holder(lists).or(any),
            ConflictPolicy::OldestWins => any,
        };
        let decided = self.decided(host, &Subject::Tls);
        ensure!(
            decided == holder,
            "TLS of {host}: {decided:?}, not {holder:?}"
        );
        let is_tls = self.outcome.model.layout.servers[host].tls;
        ensure!(is_tls == decided.is_some(), "TLS of {host}: {is_tls}");
        Ok(())
    }

    /// Of the hosts whose holder of `server-alias` names an alias, the one with the holder that holds gets it.
    fn check_aliases(&self, hosts: &BTreeSet<Host>) -> Law {
        let mut wanted: BTreeMap<&str, BTreeSet<(&ObjectName, &Host)>> = BTreeMap::new();
        for host in hosts {
            if let Some(holder) = self.decided(host, &Subject::Setting("server-alias")) {
                let (_, ingress) = self.holding().find(|(name, _)| *name == holder).unwrap();
                let alias = annotation(ingress, "server-alias").unwrap_or_default();
                wanted.entry(alias).or_default().insert((holder, host));
            }
        }
        for (alias, wishes) in wanted {
            let names: BTreeSet<_> = wishes.iter().map(|(holder, _)| *holder).collect();
            let holder = self.holder(|one| {
                let name = ObjectName::new(
                    one.metadata.namespace.as_deref().unwrap_or_default(),
                    one.metadata.name.as_deref().unwrap_or_default(),
                );
                names.contains(&name)
            });
            let host = wishes
                .iter()
                .find(|(name, _)| Some(*name) == holder)
                .map(|(_, host)| *host);
            let mut servers = self.outcome.model.layout.servers.values();
            let has = servers.find(|server| server.aliases.iter().any(|one| one.as_str() == alias));
            let has = has.map(|server| &server.host);
            ensure!(has == host, "alias {alias}: {has:?}, not {host:?}");
        }
        Ok(())
    }
}

fn defines(ingress: &Ingress, host: &Host) -> bool {
    hosts(ingress).contains(host)
}

/// Every path that an Ingress defines is one that it holds, or one that it is listed as the loser of, by the rule that
/// ages and names say.
pub(crate) fn check_losers(snapshot: &Snapshot, outcome: &Outcome) -> Law {
    for (name, ingress) in served(snapshot, outcome) {
        for (host, path, kind) in paths(ingress) {
            let server = &outcome.model.layout.servers[&host];
            let regex = server
                .locations
                .iter()
                .any(|one| one.modifier == Modifier::Regex);
            let decisions = outcome.provenance.of(&host);
            let is_listed = decisions.iter().any(|decision| {
                let Subject::Path {
                    path: other,
                    path_type,
                } = &decision.subject
                else {
                    return false;
                };
                let is_same = if regex {
                    *other == path
                } else {
                    *path_type == kind && other.trim_end_matches('/') == path.trim_end_matches('/')
                };
                is_same && (decision.winner == *name || decision.losers.contains(name))
            });
            // A path whose Service has no usable port, or that could do harm, is not served at all.
            let is_served = outcome.diagnostics.iter().all(|one| {
                one.object.name != *name
                    || !one.key.as_ref().is_some_and(|key| key.contains(".paths["))
                    || one.message.contains("is held by")
            });
            ensure!(
                is_listed || !is_served,
                "{name} neither holds nor lost {host}{path} {kind:?}"
            );
        }
    }
    for decision in outcome
        .provenance
        .hosts
        .values()
        .flat_map(|decisions| decisions.iter())
    {
        let Some(loser) = decision.losers.first() else {
            ensure!(decision.rule == Rule::Sole, "{decision:?}");
            continue;
        };
        let age = |name: &ObjectName| {
            let served = outcome.last_good.get(name);
            created(served.or_else(|| snapshot.ingresses.get(name)).unwrap())
        };
        let is_dormant = |name: &ObjectName| {
            let served = outcome.last_good.get(name);
            let ingress = served.or_else(|| snapshot.ingresses.get(name)).unwrap();
            annotation(ingress, "canary-weight").is_some()
        };
        let rule = match age(&decision.winner).cmp(&age(loser)) {
            _ if decision.winner == *loser => Rule::SameIngress,
            _ if is_dormant(&decision.winner) != is_dormant(loser) => Rule::NoCanary,
            std::cmp::Ordering::Less => Rule::CreatedEarlier,
            std::cmp::Ordering::Equal => Rule::LargerName,
            std::cmp::Ordering::Greater => Rule::CreatedLater,
        };
        ensure!(decision.rule == rule, "{decision:?}, not {rule:?}");
    }
    Ok(())
}
