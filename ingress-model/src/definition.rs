//! One Ingress as the rules see it: checked, and with its annotations read.

use std::{
    cmp::{Ordering, Reverse},
    fmt,
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::networking::v1::Ingress;

use crate::{
    annotation::IngressSettings,
    host::Host,
    layout::{LocationSettings, PathType, ServicePort},
    live::UpstreamName,
    object::{ObjectKind, ObjectName, ObjectRef},
    options::ConflictPolicy,
    text::Text,
    upstream::Names,
};

/// An Ingress that is served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: ObjectName,
    pub(crate) age: Age,
    pub(crate) settings: Arc<IngressSettings>,
    /// Settings of its locations, with what Secrets and ConfigMaps hold filled in.
    pub(crate) location: Arc<LocationSettings>,
    /// Settings of those paths that are closed, all else being served.
    pub(crate) closed: Option<Arc<LocationSettings>>,
    /// The hosts of its rules, each once, sorted.
    pub(crate) hosts: Vec<HostRule>,
    pub(crate) default_backend: Option<BackendUse>,
    /// It has a default backend and no rules, so that it is for every host that nobody defines.
    pub(crate) catch_all: bool,
    /// Settings of the location that it then has.
    pub(crate) root_settings: Arc<LocationSettings>,
    pub(crate) tls: Vec<TlsSection>,
    /// The Services' ports that it sends requests to, each once.
    pub(crate) uses: Vec<ServiceUse>,
}

/// Everything that an Ingress says about one host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostRule {
    pub(crate) host: Host,
    pub(crate) paths: Vec<PathRule>,
    /// Whether all of its paths are [closed](PathRule::closed), and it is no host of the version that is served.
    pub(crate) closed: bool,
}

/// One path of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathRule {
    pub(crate) path: Text,
    pub(crate) path_type: PathType,
    pub(crate) backend: BackendUse,
    pub(crate) field: PathField,
    /// Whether only a refused version of the Ingress has it.
    pub(crate) closed: bool,
}

/// Where a path stands in its Ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathField {
    pub(crate) rule: usize,
    pub(crate) path: usize,
}

impl fmt::Display for PathField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spec.rules[{}].http.paths[{}]", self.rule, self.path)
    }
}

/// A backend of an Ingress that is a Service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BackendUse {
    pub(crate) service: Arc<ServicePort>,
    /// Which of [`Definition::uses`] it is.
    pub(crate) index: usize,
}

impl BackendUse {
    /// Its name, given the names of all uses.
    pub(crate) fn upstream(&self, names: Names<'_>) -> UpstreamName {
        let name = names.of(self.index).cloned();
        name.unwrap_or_else(UpstreamName::default_backend)
    }
}

/// A Service's port that an Ingress uses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServiceUse {
    pub(crate) service: ObjectName,
    pub(crate) port: Arc<ServicePort>,
    /// `<namespace>-<service>-<port>`, the upstream's name unless another one has it.
    pub(crate) base: UpstreamName,
}

/// An entry of `spec.tls`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TlsSection {
    pub(crate) hosts: Vec<String>,
    pub(crate) secret: Option<ObjectName>,
}

impl TlsSection {
    /// Whether the entry names the host, without regard to case.
    pub(crate) fn lists(&self, host: &Host) -> bool {
        self.hosts
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host.as_str()))
    }
}

/// Orders Ingresses by creation time, oldest first; among equal times the larger `namespace/name` comes first. One
/// without creation time (no API server has seen it) counts as the oldest.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// // Without dates, what is read later counts as created later.
/// let older = Fixture::default().and_ingress("shop/z", &[], &["a.test/ old:80"]);
/// older.and_ingress("shop/a", &[], &["a.test/ new:80"]).merge().assert_locations("a.test", ["/ shop/a shop-new-80"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) created: Timestamp,
    name: Reverse<ObjectName>,
}

impl Age {
    pub(crate) fn new(name: &ObjectName, ingress: &Ingress) -> Self {
        let created = ingress.metadata.creation_timestamp.as_ref();
        Self {
            created: created.map_or(Timestamp::MIN, |time| time.0),
            name: Reverse(name.clone()),
        }
    }
}

impl ConflictPolicy {
    /// Orders definitions, the one that holds what both define first: the newest or the oldest as the policy says, and
    /// among equal creation times the one with the larger `namespace/name` under either policy. Those that
    /// [yield](IngressSettings::yields) come last.
    ///
    /// ```
    /// use ingress_model::{ConflictPolicy, Options, testing::Fixture};
    ///
    /// let two = ["a", "b"].map(|name| format!(
    ///     "{{apiVersion: networking.k8s.io/v1, kind: Ingress,
    ///       metadata: {{name: {name}, namespace: shop, creationTimestamp: \"2026-01-01T00:00:00Z\"}},
    ///       spec: {{ingressClassName: nginx, rules: [{{host: a.test, http: {{paths: [
    ///         {{path: /, pathType: Prefix, backend: {{service: {{name: {name}, port: {{number: 80}}}}}}}}]}}}}]}}}}"
    /// ));
    /// let fixture = Fixture::from_yaml(&two.join("\n---\n"))?;
    /// for conflict_policy in [ConflictPolicy::LastDefinitionWins, ConflictPolicy::OldestWins] {
    ///     let options = Options { conflict_policy, ..Options::default() };
    ///     fixture.clone().with_options(options).merge().assert_locations("a.test", ["/ shop/b shop-b-80"]);
    /// }
    /// # Ok::<_, ingress_model::testing::FixtureError>(())
    /// ```
    pub(crate) fn precedence(self, a: &Definition, b: &Definition) -> Ordering {
        let yields = a.settings.yields.cmp(&b.settings.yields);
        let created = match self {
            Self::LastDefinitionWins => b.age.created.cmp(&a.age.created),
            Self::OldestWins => a.age.created.cmp(&b.age.created),
        };
        yields.then(created).then_with(|| b.name.cmp(&a.name))
    }
}

impl Definition {
    /// The objects that it refers to.
    pub(crate) fn dependencies(&self) -> impl Iterator<Item = ObjectRef> {
        let services = self.uses.iter().map(|used| &used.service);
        let services = services.chain(&self.settings.default_backend);
        let client_auth = self.settings.server.client_auth.as_ref();
        let authority = client_auth.and_then(|auth| auth.secret.as_ref().ok());
        let secrets = self.tls.iter().filter_map(|entry| entry.secret.as_ref());
        services
            .map(|name| ObjectRef::new(ObjectKind::Service, name.clone()))
            .chain(
                secrets
                    .chain(authority)
                    .map(|name| ObjectRef::new(ObjectKind::Secret, name.clone())),
            )
            .chain(self.references())
    }

    /// The objects that settings of its locations are taken from.
    pub(crate) fn references(&self) -> impl Iterator<Item = ObjectRef> {
        let settings = &self.settings.location;
        let references = &self.settings.references;
        let users = settings.basic_auth.as_ref().map(|auth| &auth.secret);
        let tls = settings.upstream_tls.as_ref().map(|tls| &tls.secret);
        let maps = [
            &references.request_headers,
            &references.response_headers,
            &references.fastcgi_params,
        ];
        let secrets = users.into_iter().chain(tls);
        let secrets = secrets.map(|name| ObjectRef::new(ObjectKind::Secret, name.clone()));
        let maps = maps.into_iter().flatten();
        secrets.chain(maps.map(|name| ObjectRef::new(ObjectKind::ConfigMap, name.clone())))
    }

    /// Settings of a path's location.
    pub(crate) fn settings_of(&self, path: &PathRule) -> &Arc<LocationSettings> {
        let closed = self.closed.as_ref().filter(|_| path.closed);
        closed.unwrap_or(&self.location)
    }

    /// Whether it answers for what nobody defines wherever a guard would, and has NGINX find paths in the same way. A
    /// canary answers for nothing.
    pub(crate) fn answers_wherever(&self, guard: &Self) -> bool {
        // A further name might go to a host that the guard has not.
        let is_host = |rule: &HostRule| guard.hosts.iter().any(|it| it.host == rule.host);
        let names = &guard.settings.server.aliases;
        self.settings.canary.is_none()
            && (names.is_empty() || self.hosts.iter().all(is_host))
            && self.matches_by_expression() == guard.matches_by_expression()
            && (self.catch_all || !guard.catch_all)
            && (self.default_backend.is_some() || guard.default_backend.is_none())
    }

    /// Whether it makes the paths of its hosts regular expressions, by `use-regex` or a rewrite.
    fn matches_by_expression(&self) -> bool {
        let rewrite = self.location.rewrite_target.as_ref();
        self.location.use_regex || rewrite.is_some_and(|to| !to.as_str().is_empty())
    }

    /// Takes over the hosts and paths of a guard that it lacks, as closed ones. Answers whether there are any.
    pub(crate) fn close_further(&mut self, guard: Self) -> bool {
        let mut further = false;
        for mut rule in guard.hosts {
            for path in &mut rule.paths {
                path.closed = true;
                // It is not one of the Services that this version uses.
                path.backend.index = usize::MAX;
            }
            let mut hosts = self.hosts.iter_mut();
            if let Some(known) = hosts.find(|known| known.host == rule.host) {
                let served = known.paths.len();
                let is_known = |path: &PathRule, known: &HostRule| {
                    let mut paths = known.paths.iter().take(served);
                    paths.any(|it| it.path == path.path && it.path_type == path.path_type)
                };
                rule.paths.retain(|path| !is_known(path, known));
                further |= !rule.paths.is_empty();
                known.paths.append(&mut rule.paths);
            } else {
                further = true;
                rule.closed = true;
                self.hosts.push(rule);
            }
        }
        if self.tls.is_empty() {
            self.tls = guard.tls;
        }
        if further {
            self.hosts.sort_by(|a, b| a.host.cmp(&b.host));
            self.closed = Some(guard.location);
        }
        further
    }

    /// As the object of a diagnostic.
    pub(crate) fn reference(&self) -> ObjectRef {
        ObjectRef::new(ObjectKind::Ingress, self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn created(created: Option<i64>, name: &str) -> Definition {
        let mut ingress = Ingress::default();
        let created = created.map(|seconds| Time(Timestamp::from_second(seconds).unwrap()));
        ingress.metadata.creation_timestamp = created;
        let name = ObjectName::new("shop", name);
        let settings = Arc::new(IngressSettings::default());
        Definition::read(&name, &ingress, settings, Arc::default(), &mut Vec::new())
    }

    #[test]
    fn precedence_is_by_time_then_by_larger_name() {
        let (old, new) = (created(Some(1), "z"), created(Some(2), "a"));
        let same = created(Some(2), "b");
        let timeless = created(None, "z");
        let last = ConflictPolicy::LastDefinitionWins;
        let oldest = ConflictPolicy::OldestWins;
        assert_eq!(last.precedence(&new, &old), Ordering::Less);
        assert_eq!(oldest.precedence(&new, &old), Ordering::Greater);
        assert_eq!(last.precedence(&same, &new), Ordering::Less);
        assert_eq!(oldest.precedence(&same, &new), Ordering::Less);
        assert_eq!(oldest.precedence(&timeless, &old), Ordering::Less);
        assert!(old.age < new.age && same.age < new.age);
        let mut dormant = created(Some(3), "z");
        Arc::make_mut(&mut dormant.settings).yields = true;
        assert_eq!(last.precedence(&dormant, &old), Ordering::Greater);
        assert_eq!(oldest.precedence(&new, &dormant), Ordering::Less);
    }
}
