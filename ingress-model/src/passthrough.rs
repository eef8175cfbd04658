//! Hosts whose TLS goes to their Services as it is (`ssl-passthrough`).

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    backends::Backends,
    definition::Definition,
    diagnostic::{Reason, Severity},
    host::Host,
    hosts::Hosts,
    layout::Location,
    live::{Backend, UpstreamName},
    provenance::Ledger,
};

/// The annotation.
const ANNOTATION: &str = "ssl-passthrough";

/// The longest host that can be passed through, in bytes: it becomes the name of a file.
const LONGEST: usize = 240;

/// Where TLS of a host goes if any of its definitions wants it passed through: to the Service of its path `/`, since
/// what the client asks for cannot be seen. Where that cannot be, TLS ends at the controller, and who wanted it is told.
///
/// ```
/// use ingress_model::{Host, Options, testing::Fixture};
///
/// let wants = [("ssl-passthrough", "true")];
/// let served = Fixture::default()
///     .with_options(Options { ssl_passthrough: true, ..Options::default() })
///     .and_ingress("shop/a", &wants, &["a.test/ web:443"])
///     .and_ingress("shop/b", &wants, &["b.test/x web:443"])
///     .and_service("shop/web", 443, &["10.0.0.1"])
///     .merge();
/// let ways = &served.outcome().model.live.passthrough;
/// assert_eq!(ways.keys().map(Host::as_str).collect::<Vec<_>>(), ["a.test"]);
/// served.assert_diagnostics(["Ingress shop/b: ssl-passthrough: TLS of host b.test ends at the controller: no Service is \
///                             defined for the path / of the host (AnnotationParsingFailed)"]);
/// ```
pub(crate) fn choose(
    definitions: &[&Arc<Definition>],
    locations: &[Location],
    ledger: &mut Ledger<'_>,
) -> Option<UpstreamName> {
    let wants = |definition: &&&Arc<Definition>| definition.settings.server.ssl_passthrough;
    let mut wanting = definitions.iter().filter(wants).peekable();
    wanting.peek()?;
    let root = locations
        .iter()
        .find(|location| location.ingress_path == "/" && location.service.is_some());
    let fault = match root {
        _ if ledger.host.is_catch_all() => "the rule names no host, as the handshake would have to",
        _ if ledger.host.as_str().len() > LONGEST => "the host is longer than 240 bytes",
        None => "no Service is defined for the path / of the host",
        Some(root) => return Some(root.upstream.clone()),
    };
    for definition in wanting {
        let message = format!(
            "TLS of host {} ends at the controller: {fault}",
            ledger.host
        );
        let (severity, reason) = (Severity::Warning, Reason::InvalidAnnotation);
        let key = Some(ANNOTATION.to_owned());
        ledger.tell(definition, severity, reason, key, message);
    }
    None
}

/// Where TLS of hosts goes. Names below a wildcard host that have a server of their own do not share its way.
///
/// ```
/// use ingress_model::{Host, Options, testing::Fixture};
///
/// let served = Fixture::default()
///     .with_options(Options { ssl_passthrough: true, ..Options::default() })
///     .and_ingress("shop/all", &[("ssl-passthrough", "true")], &["*.a.test/ web:443"])
///     .and_ingress("shop/one", &[], &["one.a.test/ web:80"])
///     .merge();
/// let ways = &served.outcome().model.live.passthrough;
/// assert!(ways[&Host::parse("*.a.test")?].is_some());
/// assert_eq!(ways[&Host::parse("one.a.test")?], None);
/// # Ok::<_, ingress_model::HostError>(())
/// ```
pub(crate) fn ways(hosts: &Hosts, backends: &Backends) -> BTreeMap<Host, Option<Arc<Backend>>> {
    let mut ways = BTreeMap::new();
    for host in &hosts.passing {
        let entry = hosts.entries.get(host);
        let upstream = entry.and_then(|entry| entry.built.passthrough.as_ref());
        let backend = upstream.and_then(|upstream| backends.built.get(upstream));
        ways.insert(host.clone(), backend.cloned());
    }
    if hosts.passing.iter().any(Host::is_wildcard) {
        let names = hosts.servers.values().flat_map(|server| {
            let others = server.aliases.iter().chain(&server.redirected);
            std::iter::once(&server.host).chain(others)
        });
        for name in names.filter(|name| is_below(name, hosts)) {
            ways.entry(name.clone()).or_insert(None);
        }
    }
    ways
}

/// Whether a wildcard host that is passed through stands for the name.
fn is_below(name: &Host, hosts: &Hosts) -> bool {
    let name = name.as_str();
    let above = name.split_once('.').map(|(_, above)| format!("*.{above}"));
    let above = above.filter(|_| name.len() <= LONGEST && !name.starts_with("*."));
    let above = above.and_then(|above| Host::parse(&above).ok());
    above.is_some_and(|above| hosts.passing.contains(&above))
}
