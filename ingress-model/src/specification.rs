//! Reads what an Ingress specifies. What cannot be used is reported and left out, all else is taken.

use std::{
    fmt::{self, Write as _},
    sync::Arc,
};

use hashbrown::HashMap;
use k8s_openapi::api::networking::v1::{HTTPIngressPath, Ingress, IngressBackend, IngressRule};

use crate::{
    annotation::IngressSettings,
    definition::{
        Age, BackendUse, Definition, HostRule, PathField, PathRule, ServiceUse, TlsSection,
    },
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    layout::{LocationSettings, ServicePort},
    live::{PortRef, UpstreamName},
    object::{ObjectKind, ObjectName, ObjectRef},
    path,
};

/// How many uses are looked through rather than looked up.
const FEW: usize = 8;

impl Definition {
    /// Reads an Ingress's specification, given what its annotations say.
    pub(crate) fn read(
        name: &ObjectName,
        ingress: &Ingress,
        settings: Arc<IngressSettings>,
        location: Arc<LocationSettings>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut reader = Reader {
            name,
            diagnostics,
            uses: Vec::new(),
            further: HashMap::new(),
            base: String::new(),
        };
        let spec = ingress.spec.as_ref();
        let rules = spec
            .and_then(|spec| spec.rules.as_deref())
            .unwrap_or_default();
        let default_backend = spec
            .and_then(|spec| spec.default_backend.as_ref())
            .and_then(|backend| reader.backend(backend, &"spec.defaultBackend"));
        let hosts = reader.hosts(rules);
        let tls = spec
            .and_then(|spec| spec.tls.as_deref())
            .unwrap_or_default();
        let tls = tls.iter().map(|entry| TlsSection {
            hosts: entry.hosts.clone().unwrap_or_default(),
            secret: entry
                .secret_name
                .as_ref()
                .filter(|secret| !secret.is_empty())
                .map(|secret| name.sibling(secret)),
        });
        let catch_all = default_backend.is_some() && rules.is_empty();
        Self {
            name: name.clone(),
            age: Age::new(name, ingress),
            root_settings: root_settings(&location, catch_all),
            settings,
            location,
            closed: None,
            hosts,
            catch_all,
            default_backend,
            tls: tls.collect(),
            uses: reader.uses,
        }
    }
}

/// Annotations that [`root_settings`] leaves out.
pub(crate) const NOT_FOR_STRANGERS: [&str; 10] = [
    "permanent-redirect",
    "permanent-redirect-code",
    "temporal-redirect",
    "temporal-redirect-code",
    "rewrite-target",
    "use-regex",
    "app-root",
    "ssl-redirect",
    "force-ssl-redirect",
    "preserve-trailing-slash",
];

/// An Ingress for every host that nobody defines keeps its annotations except redirects and rewrites, which would send
/// the requests of strangers elsewhere.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop, annotations: {
///   nginx.ingress.kubernetes.io/rewrite-target: /x, nginx.ingress.kubernetes.io/proxy-body-size: 9m}},
///  spec: {ingressClassName: nginx, defaultBackend: {service: {name: web, port: {number: 80}}}}}";
/// let served = Fixture::from_yaml(text)?.merge();
/// let settings = &served.server("").unwrap().locations[0].settings;
/// assert!(settings.rewrite_target.is_none() && settings.body_size.is_some());
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
fn root_settings(settings: &Arc<LocationSettings>, catch_all: bool) -> Arc<LocationSettings> {
    if !catch_all {
        return Arc::clone(settings);
    }
    Arc::new(LocationSettings {
        redirect: None,
        rewrite_target: None,
        use_regex: false,
        app_root: None,
        ssl_redirect: false,
        force_ssl_redirect: false,
        preserve_trailing_slash: false,
        ..settings.as_ref().clone()
    })
}

/// Reads a specification and collects what it uses.
struct Reader<'a> {
    name: &'a ObjectName,
    diagnostics: &'a mut Vec<Diagnostic>,
    uses: Vec<ServiceUse>,
    /// Places in `uses` of all but the first few.
    further: HashMap<(&'a str, PortRef), usize>,
    /// Room to put a name together.
    base: String,
}

impl<'a> Reader<'a> {
    fn report(&mut self, key: &dyn fmt::Display, reason: Reason, message: String) {
        let object = ObjectRef::new(ObjectKind::Ingress, self.name.clone());
        let diagnostic = Diagnostic::new(object, Severity::Error, reason, message);
        self.diagnostics.push(diagnostic.with_key(key.to_string()));
    }

    /// A rule whose host is no host name is left out. Rules for one host are one.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let served = Fixture::default()
    ///     .and_ingress("shop/a", &[], &["A.test/x web:80", "a.test/y web:80", "a b/ web:80"])
    ///     .merge();
    /// served.assert_hosts(["a.test"]);
    /// served.assert_request("a.test/y", "= /y shop/a shop-web-80");
    /// ```
    fn hosts(&mut self, rules: &'a [IngressRule]) -> Vec<HostRule> {
        let mut hosts: Vec<HostRule> = Vec::with_capacity(rules.len());
        for (i, rule) in rules.iter().enumerate() {
            let host = match Host::parse(rule.host.as_deref().unwrap_or_default()) {
                Ok(host) => host,
                Err(error) => {
                    let key = format!("spec.rules[{i}].host");
                    let message = format!("{error}; the rule is not served");
                    self.report(&key, Reason::InvalidHost, message);
                    continue;
                }
            };
            let written = rule.http.as_ref().map_or(&[][..], |http| &http.paths);
            let mut paths = Vec::with_capacity(written.len());
            for (j, path) in written.iter().enumerate() {
                let field = PathField { rule: i, path: j };
                paths.extend(self.path(path, field));
            }
            hosts.push(HostRule {
                host,
                paths,
                closed: false,
            });
        }
        hosts.sort_by(|a, b| a.host.cmp(&b.host));
        hosts.dedup_by(|next, kept| {
            let is_same = next.host == kept.host;
            if is_same {
                kept.paths.append(&mut next.paths);
            }
            is_same
        });
        hosts
    }

    /// A path that NGINX cannot serve, of a type that does not exist, or without a usable Service is left out.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let served = Fixture::default().and_ingress("shop/a", &[], &["a.test/x web:80", "a.test/y we;b:80"]).merge();
    /// served.assert_locations(
    ///     "a.test",
    ///     ["/x/ shop/a shop-web-80", "= /x shop/a shop-web-80", "/ shop/a upstream-default-backend"],
    /// );
    /// ```
    fn path(&mut self, written: &'a HTTPIngressPath, field: PathField) -> Option<PathRule> {
        let path = match path::read(written.path.as_deref()) {
            Ok(path) => path,
            Err(fault) => {
                let path = excerpt(written.path.as_deref().unwrap_or_default());
                let message = format!("{path} {fault}; the path is not served");
                self.report(&format_args!("{field}.path"), Reason::InvalidPath, message);
                return None;
            }
        };
        let Some(path_type) = path::read_type(&written.path_type) else {
            let message = format!(
                "{} is none of Exact, Prefix and ImplementationSpecific; the path {} is not served",
                excerpt(&written.path_type),
                excerpt(&path),
            );
            self.report(
                &format_args!("{field}.pathType"),
                Reason::InvalidPath,
                message,
            );
            return None;
        };
        let backend = self.backend(&written.backend, &format_args!("{field}.backend"))?;
        Some(PathRule {
            path,
            path_type,
            backend,
            field,
            closed: false,
        })
    }

    /// A backend is a Service and a port of it, by number if that is positive, else by name. Resources of other kinds
    /// are not supported.
    ///
    /// ```
    /// use ingress_model::testing::Fixture;
    ///
    /// let served = Fixture::default().and_ingress("shop/a", &[], &["a.test/ web:http", "a.test/n web:80"]).merge();
    /// served.assert_request("a.test/", "/ shop/a shop-web-http");
    /// served.assert_request("a.test/n", "= /n shop/a shop-web-80");
    /// ```
    fn backend(
        &mut self,
        backend: &'a IngressBackend,
        key: &dyn fmt::Display,
    ) -> Option<BackendUse> {
        let Some(service) = &backend.service else {
            let message = "the backend is no Service; requests are answered 404".into();
            self.report(key, Reason::UnsupportedBackend, message);
            return None;
        };
        if !is_name(&service.name, b"-._", 253) {
            let message = "the Service's name is no object name; requests are answered 404".into();
            self.report(key, Reason::InvalidService, message);
            return None;
        }
        let port = service.port.as_ref();
        let number = port
            .and_then(|port| port.number)
            .filter(|number| *number > 0);
        let name = port
            .and_then(|port| port.name.as_deref())
            .unwrap_or_default();
        let port = match number {
            Some(number) if u16::try_from(number).is_ok() => PortRef::Number(number),
            None if is_name(name, b"-", 63) => PortRef::Name(name.to_owned()),
            _ => {
                let message = "the Service's port is neither a number nor a name of a port; \
                               requests are answered 404";
                self.report(key, Reason::MissingServicePort, message.into());
                return None;
            }
        };
        let index = self.use_of(&service.name, port);
        let service = self.uses.get(index).map(|used| Arc::clone(&used.port))?;
        Some(BackendUse { service, index })
    }

    fn use_of(&mut self, service: &'a str, port: PortRef) -> usize {
        let next = self.uses.len();
        let is_it = |used: &ServiceUse| used.port.name == service && used.port.port == port;
        let mut found = self.uses.iter().take(FEW).position(is_it);
        if found.is_none() && next > FEW {
            found = self.further.get(&(service, port.clone())).copied();
        }
        if let Some(index) = found {
            return index;
        }
        if next >= FEW {
            self.further.insert((service, port.clone()), next);
        }
        self.base.clear();
        let namespace = self.name.namespace();
        // The port mostly fits, too.
        self.base.reserve(namespace.len() + service.len() + 8);
        for part in [namespace, "-", service, "-"] {
            self.base.push_str(part);
        }
        // A String takes whatever is written to it.
        let _: fmt::Result = write!(self.base, "{port}");
        if self.uses.is_empty() {
            // Most Ingresses have one.
            self.uses.reserve_exact(1);
        }
        self.uses.push(ServiceUse {
            service: self.name.sibling(service),
            port: Arc::new(ServicePort {
                name: service.to_owned(),
                port,
            }),
            base: UpstreamName::new(&self.base),
        });
        next
    }
}

/// The beginning of a text, quoted, for a message.
fn excerpt(text: &str) -> String {
    const SHOWN: usize = 80;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or(text)),
        None => format!("{text:?}"),
    }
}

/// Whether a text could name an object or a port: letters, digits and a few other characters.
pub(crate) fn is_name(text: &str, others: &[u8], longest: usize) -> bool {
    let known = |b: u8| b.is_ascii_alphanumeric() || others.contains(&b);
    !text.is_empty() && text.len() <= longest && text.bytes().all(known)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        core::v1::TypedLocalObjectReference,
        networking::v1::{
            HTTPIngressRuleValue, IngressServiceBackend, IngressSpec, ServiceBackendPort,
        },
    };

    use super::*;

    fn service(name: &str, number: Option<i32>, port: Option<&str>) -> IngressBackend {
        IngressBackend {
            service: Some(IngressServiceBackend {
                name: name.into(),
                port: Some(ServiceBackendPort {
                    name: port.map(Into::into),
                    number,
                }),
            }),
            resource: None,
        }
    }

    fn rule(host: Option<&str>, paths: Option<Vec<(&str, IngressBackend)>>) -> IngressRule {
        let paths = paths.map(|paths| HTTPIngressRuleValue {
            paths: paths
                .into_iter()
                .map(|(path, backend)| HTTPIngressPath {
                    path: Some(path.into()),
                    path_type: "Prefix".into(),
                    backend,
                })
                .collect(),
        });
        IngressRule {
            host: host.map(Into::into),
            http: paths,
        }
    }

    fn read(spec: Option<IngressSpec>) -> (Definition, Vec<String>) {
        let ingress = Ingress {
            spec,
            ..Ingress::default()
        };
        let mut diagnostics = Vec::new();
        let name = ObjectName::new("shop", "web");
        let definition = Definition::read(
            &name,
            &ingress,
            Arc::default(),
            Arc::default(),
            &mut diagnostics,
        );
        let faults = diagnostics.iter().map(|diagnostic| {
            let key = diagnostic.key.clone().unwrap_or_default();
            format!("{key} {}", diagnostic.reason)
        });
        (definition, faults.collect())
    }

    #[test]
    fn nothing_but_usable_parts_is_taken() {
        let resource = IngressBackend {
            service: None,
            resource: Some(TypedLocalObjectReference::default()),
        };
        let (definition, faults) = read(Some(IngressSpec {
            default_backend: Some(resource.clone()),
            rules: Some(vec![
                rule(
                    Some("a b"),
                    Some(vec![("/", service("web", Some(80), None))]),
                ),
                rule(
                    Some("A.test"),
                    Some(vec![
                        ("/ok", service("web", Some(80), None)),
                        ("no-slash", service("web", Some(80), None)),
                        ("/resource", resource),
                        ("/nothing", IngressBackend::default()),
                        ("/port", service("web", Some(-1), None)),
                        ("/large", service("web", Some(65_536), None)),
                        ("/zero", service("web", Some(0), Some("http"))),
                        ("/name", service("we;b", Some(80), None)),
                    ]),
                ),
                rule(
                    Some("a.test"),
                    Some(vec![("/more", service("web", Some(80), None))]),
                ),
                rule(None, None),
            ]),
            ..IngressSpec::default()
        }));
        let hosts: Vec<_> = definition
            .hosts
            .iter()
            .map(|rule| {
                let paths = rule
                    .paths
                    .iter()
                    .map(|path| (path.path.as_str(), path.backend.index));
                (rule.host.as_str(), paths.collect::<Vec<_>>())
            })
            .collect();
        assert_eq!(
            hosts,
            [
                ("_", vec![]),
                ("a.test", vec![("/ok", 0), ("/zero", 1), ("/more", 0)])
            ]
        );
        let bases: Vec<_> = definition
            .uses
            .iter()
            .map(|used| used.base.as_str())
            .collect();
        assert_eq!(bases, ["shop-web-80", "shop-web-http"]);
        assert_eq!(
            faults,
            [
                "spec.defaultBackend UnsupportedBackend",
                "spec.rules[0].host InvalidHost",
                "spec.rules[1].http.paths[1].path InvalidPath",
                "spec.rules[1].http.paths[2].backend UnsupportedBackend",
                "spec.rules[1].http.paths[3].backend UnsupportedBackend",
                "spec.rules[1].http.paths[4].backend MissingServicePort",
                "spec.rules[1].http.paths[5].backend MissingServicePort",
                "spec.rules[1].http.paths[7].backend InvalidService",
            ]
        );
    }

    #[test]
    fn no_rules_and_a_default_backend_are_for_all_hosts() {
        let spec = |rules| {
            Some(IngressSpec {
                default_backend: Some(service("web", Some(80), None)),
                rules,
                ..IngressSpec::default()
            })
        };
        assert!(read(spec(None)).0.catch_all);
        assert!(read(spec(Some(Vec::new()))).0.catch_all);
        assert!(!read(spec(Some(vec![rule(Some("a b"), None)]))).0.catch_all);
        assert!(!read(None).0.catch_all);
    }
}
