//! Which certificate a host has.

use std::sync::Arc;

use crate::{
    certificate::ServerCertificate,
    definition::{Definition, TlsSection},
    diagnostic::{Reason, Severity},
    host::Host,
    object::ObjectName,
    options::ConflictPolicy,
    provenance::{Ledger, Subject},
    secrets::Secrets,
};

/// The certificate of a host that has a TLS section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostCertificate {
    /// Its own.
    Own(Arc<ServerCertificate>),
    /// The one for hosts without their own.
    Default,
}

/// Chooses among the definitions of a host, the one that holds first.
///
/// One Ingress with `spec.tls` decides, and every host of its rules is served by TLS, listed there or not. Under
/// [`ConflictPolicy::OldestWins`] it is the oldest of them, whatever it lists. Under
/// [`ConflictPolicy::LastDefinitionWins`] it is the last one that lists the host, else the last one.
///
/// * Its first entry that lists the host names the Secret.
/// * If none lists the host, it is the first Secret whose certificate is for the host.
/// * A Secret whose content cannot be used any more counts with the certificate that it held before.
/// * If that yields no usable certificate for the host, the default certificate is served; another Ingress does not
///   help out.
///
/// The catch-all server always has the default certificate.
///
/// ```
/// use ingress_model::testing::Fixture;
///
/// let text = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop}, \
///             spec: {ingressClassName: nginx, tls: [{hosts: [a.test], secretName: gone}], \
///                    rules: [{host: a.test}, {host: b.test}]}}";
/// let served = Fixture::from_yaml(text)?.merge();
/// // Both are served by TLS, and so redirected to HTTPS.
/// assert!(served.server("a.test").unwrap().tls && served.server("b.test").unwrap().tls);
/// served.assert_diagnostics(["Ingress shop/a: spec.tls: Secret shop/gone does not exist; host a.test is served with the \
///                             default certificate (MissingSecret)"]);
/// # Ok::<_, ingress_model::testing::FixtureError>(())
/// ```
pub(crate) fn choose(
    definitions: &[&Arc<Definition>],
    policy: ConflictPolicy,
    secrets: &mut Secrets,
    ledger: &mut Ledger<'_>,
) -> Option<HostCertificate> {
    let host = ledger.host;
    if host.is_catch_all() {
        return None;
    }
    let sections: Vec<_> = definitions
        .iter()
        .filter(|definition| !definition.tls.is_empty())
        .collect();
    let lists = |definition: &Definition| listed(definition, host).is_some();
    let secret_of = |definition| listed(definition, host).and_then(|entry| entry.secret.as_ref());
    let oldest = policy == ConflictPolicy::OldestWins;
    let winner = sections
        .iter()
        .find(|definition| oldest || lists(definition))
        .or_else(|| sections.first())?;
    let losers = sections
        .iter()
        .filter(|definition| definition.name != winner.name && lists(definition))
        .filter(|definition| secret_of(definition) != secret_of(winner))
        .map(|definition| (&****definition, Some("spec.tls".to_owned())))
        .collect();
    ledger.decide(Subject::Tls, winner, losers, Reason::TlsConflict);
    let own = match listed(winner, host) {
        Some(entry) => from_entry(winner, entry.secret.as_ref(), secrets, ledger),
        None => by_name(winner, secrets, ledger),
    };
    Some(own.map_or(HostCertificate::Default, HostCertificate::Own))
}

/// The first entry that lists the host.
fn listed<'a>(definition: &'a Definition, host: &Host) -> Option<&'a TlsSection> {
    definition.tls.iter().find(|entry| entry.lists(host))
}

fn from_entry(
    definition: &Definition,
    secret: Option<&ObjectName>,
    secrets: &mut Secrets,
    ledger: &mut Ledger<'_>,
) -> Option<Arc<ServerCertificate>> {
    let name = secret?;
    let host = ledger.host;
    let mut kept = None;
    let (reason, fault) = match secrets.certificate(name) {
        Some(Ok(certificate)) if certificate.is_for(host.as_str()) => return Some(certificate),
        Some(Ok(_)) => (
            Reason::CertificateMismatch,
            format!("the certificate in Secret {name} is not for host {host}"),
        ),
        Some(Err(error)) => {
            let earlier = secrets.earlier_certificate(name);
            kept = earlier.filter(|certificate| certificate.is_for(host.as_str()));
            (
                Reason::InvalidSecret,
                format!("Secret {name} cannot be used: {error}"),
            )
        }
        None => (
            Reason::MissingSecret,
            format!("Secret {name} does not exist"),
        ),
    };
    let served = if kept.is_some() {
        "goes on being served with the certificate that it held before"
    } else {
        "is served with the default certificate"
    };
    let message = format!("{fault}; host {host} {served}");
    let key = Some("spec.tls".to_owned());
    ledger.tell(definition, Severity::Warning, reason, key, message);
    kept
}

fn by_name(
    definition: &Definition,
    secrets: &mut Secrets,
    ledger: &Ledger<'_>,
) -> Option<Arc<ServerCertificate>> {
    let host = ledger.host.as_str();
    let names = definition
        .tls
        .iter()
        .filter_map(|entry| entry.secret.as_ref());
    names
        .filter_map(|name| {
            let current = secrets.certificate(name)?.ok();
            current.or_else(|| secrets.earlier_certificate(name))
        })
        .find(|certificate| certificate.names_host(host))
}
