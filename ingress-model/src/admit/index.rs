//! Ingresses by host, so that a review need not go through all of them.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use k8s_openapi::api::networking::v1::{Ingress, IngressSpec};

use crate::{
    changes::Changes,
    host::Host,
    object::{ObjectMap, ObjectName},
    options::Options,
    snapshot::Snapshot,
};

use super::name_of;

/// The longest name of an object with its namespace (Kubernetes docs, "Object Names and IDs").
const LONGEST_NAME: usize = 253 + 1 + 63;

/// Tells which Ingresses share a host. It follows the snapshots that it is shown.
///
/// ```
/// use ingress_model::{AdmissionIndex, Options, Snapshot, admit};
/// use k8s_openapi::api::networking::v1::Ingress;
///
/// let (snapshot, options) = (Snapshot::default(), Options::default());
/// let mut index = AdmissionIndex::default();
/// let candidate = Ingress::default();
/// let excerpt = index.excerpt(&snapshot, &candidate, &options);
/// let verdict = admit(&candidate, &excerpt, &options);
/// # assert!(verdict.is_allowed());
/// ```
#[derive(Debug, Default)]
pub struct AdmissionIndex {
    /// The Ingresses that the rest was made from; nothing else.
    seen: Snapshot,
    by_host: HashMap<Host, BTreeSet<ObjectName>>,
}

impl AdmissionIndex {
    /// Takes over what changed since the last snapshot: a comparison of pointers for each Ingress, none at all if
    /// nothing changed. Whoever shows it each change when it happens keeps that out of reviews.
    pub fn update(&mut self, ingresses: &ObjectMap<Ingress>) {
        if self.seen.ingresses.is_same(ingresses) {
            return;
        }
        let now = Snapshot {
            ingresses: ingresses.clone(),
            ..Snapshot::default()
        };
        let before = std::mem::replace(&mut self.seen, now.clone());
        for change in Changes::between(&before, &now).ingresses {
            for host in change.old.iter().flat_map(|old| hosts(old)) {
                if let Some(names) = self.by_host.get_mut(&host) {
                    names.remove(change.name);
                    if names.is_empty() {
                        self.by_host.remove(&host);
                    }
                }
            }
            for host in change.new.iter().flat_map(|new| hosts(new)) {
                let names = self.by_host.entry(host).or_default();
                names.insert(change.name.clone());
            }
        }
    }

    /// The part of a snapshot that the verdict about an Ingress depends on: the Ingresses that share a host with it, the
    /// version of itself that is stored, the objects that it names, and what tells whose Ingresses are ours.
    #[must_use]
    pub fn excerpt(
        &mut self,
        snapshot: &Snapshot,
        candidate: &Ingress,
        options: &Options,
    ) -> Snapshot {
        self.update(&snapshot.ingresses);
        let hosts = hosts(candidate);
        let sharing = hosts.iter().filter_map(|host| self.by_host.get(host));
        let mut names: BTreeSet<_> = sharing.flatten().cloned().collect();
        names.insert(name_of(candidate));
        let config_map = options.config_map.iter();
        let referred = referred(candidate);
        Snapshot {
            ingresses: pick(&snapshot.ingresses, names),
            ingress_classes: snapshot.ingress_classes.clone(),
            services: pick(&snapshot.services, referred.iter().cloned()),
            secrets: pick(&snapshot.secrets, referred.iter().cloned()),
            config_maps: pick(&snapshot.config_maps, config_map.chain(&referred).cloned()),
            namespaces: snapshot.namespaces.clone(),
            ..Snapshot::default()
        }
    }
}

/// The hosts that an Ingress has a say about.
fn hosts(ingress: &Ingress) -> BTreeSet<Host> {
    let rules = ingress.spec.iter().flat_map(|spec| &spec.rules).flatten();
    let mut hosts: BTreeSet<_> = rules
        .filter_map(|rule| Host::parse(rule.host.as_deref().unwrap_or_default()).ok())
        .collect();
    let for_all = |spec: &IngressSpec| {
        let no_rules = spec.rules.as_ref().is_none_or(Vec::is_empty);
        spec.default_backend.is_some() && no_rules
    };
    if ingress.spec.as_ref().is_some_and(for_all) {
        hosts.insert(Host::catch_all());
    }
    hosts
}

/// The names of objects that an Ingress may refer to, whatever their kinds: of back ends, of TLS, and all values of
/// annotations that may be names.
fn referred(ingress: &Ingress) -> BTreeSet<ObjectName> {
    let own = name_of(ingress);
    let spec = ingress.spec.iter();
    let rules = spec.clone().flat_map(|spec| &spec.rules).flatten();
    let paths = rules.flat_map(|rule| rule.http.iter().flat_map(|http| &http.paths));
    let backends = spec.clone().flat_map(|spec| &spec.default_backend);
    let backends = backends.chain(paths.map(|path| &path.backend));
    let services = backends.filter_map(|backend| Some(backend.service.as_ref()?.name.as_str()));
    let tls = spec.flat_map(|spec| &spec.tls).flatten();
    let secrets = tls.filter_map(|tls| tls.secret_name.as_deref());
    let annotations = ingress.metadata.annotations.iter().flatten();
    let values = annotations.map(|(_, value)| value.trim());
    let names = services.chain(secrets).chain(values);
    names
        .filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)
        .map(|name| ObjectName::parse(name).unwrap_or_else(|| own.sibling(name)))
        .collect()
}

fn pick<K>(map: &ObjectMap<K>, names: impl IntoIterator<Item = ObjectName>) -> ObjectMap<K> {
    let found = names.into_iter().filter_map(|name| {
        let object = map.get(&name)?.clone();
        Some((name, object))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        core::v1::{ConfigMap, Secret},
        networking::v1::{IngressBackend, IngressRule},
    };

    use super::*;

    fn ingress(name: &str, hosts: &[&str]) -> Ingress {
        let rules = hosts.iter().map(|host| IngressRule {
            host: Some((*host).to_owned()),
            http: None,
        });
        let mut ingress = Ingress {
            spec: Some(IngressSpec {
                rules: Some(rules.collect()),
                default_backend: hosts.is_empty().then(IngressBackend::default),
                ..IngressSpec::default()
            }),
            ..Ingress::default()
        };
        ingress.metadata.namespace = Some("shop".into());
        ingress.metadata.name = Some(name.into());
        ingress
    }

    fn store(snapshot: &mut Snapshot, ingress: Ingress) {
        snapshot.ingresses.insert(name_of(&ingress), ingress);
    }

    fn sharing(index: &mut AdmissionIndex, snapshot: &Snapshot, candidate: &Ingress) -> String {
        let excerpt = index.excerpt(snapshot, candidate, &Options::default());
        let names = excerpt.ingresses.iter().map(|(name, _)| name.name());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_index_follows_changes() {
        let mut index = AdmissionIndex::default();
        let mut snapshot = Snapshot::default();
        let a = ingress("new", &["A.test", "not a host"]);
        assert_eq!(sharing(&mut index, &snapshot, &a), "");
        store(&mut snapshot, ingress("one", &["a.test", "b.test"]));
        store(&mut snapshot, ingress("two", &["b.test"]));
        store(&mut snapshot, ingress("new", &["c.test"]));
        store(&mut snapshot, ingress("rest", &[]));
        assert_eq!(sharing(&mut index, &snapshot, &a), "new one");
        let b = ingress("newer", &["b.test"]);
        assert_eq!(sharing(&mut index, &snapshot, &b), "one two");
        assert_eq!(sharing(&mut index, &snapshot, &ingress("x", &[""])), "rest");

        store(&mut snapshot, ingress("one", &["a.test"]));
        snapshot.ingresses.remove(&ObjectName::new("shop", "rest"));
        assert_eq!(sharing(&mut index, &snapshot, &b), "two");
        assert_eq!(sharing(&mut index, &snapshot, &a), "new one");
        assert_eq!(sharing(&mut index, &snapshot, &ingress("x", &[])), "");
        assert_eq!(index.by_host.len(), 3, "{:?}", index.by_host);
    }

    #[test]
    fn nothing_else_is_taken_along() {
        let config_map = ObjectName::new("ingress", "config");
        let options = Options {
            config_map: Some(config_map.clone()),
            ..Options::default()
        };
        let mut snapshot = Snapshot::default();
        for name in [config_map.clone(), ObjectName::new("shop", "other")] {
            snapshot.config_maps.insert(name, ConfigMap::default());
        }
        let mut index = AdmissionIndex::default();
        let excerpt = index.excerpt(&snapshot, &ingress("x", &[]), &options);
        let maps: Vec<_> = excerpt.config_maps.iter().map(|(name, _)| name).collect();
        assert_eq!(maps, [&config_map]);
    }

    #[test]
    fn what_an_ingress_names_is_taken_along() {
        let mut candidate = ingress("x", &["a.test"]);
        let annotations = [
            ("a/auth-secret", " users "),
            ("a/x", "bank/headers"),
            ("a/y", "1m"),
        ];
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
        candidate.metadata.annotations = Some(annotations.into());
        let mut snapshot = Snapshot::default();
        let names = ["shop/users", "bank/headers", "shop/other", "bank/users"];
        for name in names.map(|name| ObjectName::parse(name).unwrap()) {
            snapshot
                .config_maps
                .insert(name.clone(), ConfigMap::default());
            snapshot.secrets.insert(name, Secret::default());
        }
        let mut index = AdmissionIndex::default();
        let excerpt = index.excerpt(&snapshot, &candidate, &Options::default());
        let maps = excerpt.config_maps.iter().map(|(name, _)| name.to_string());
        assert_eq!(maps.collect::<Vec<_>>(), ["bank/headers", "shop/users"]);
        assert_eq!(excerpt.secrets.len(), 2);
    }
}
