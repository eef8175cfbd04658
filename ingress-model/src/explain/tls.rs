//! Which certificate a client is shown, and why.

use serde::Serialize;

use crate::{
    diagnostic::Reason,
    host::Host,
    layout::Server,
    live::{CertificateId, Live, UpstreamName},
    object::{ObjectKind, ObjectName},
    provenance::{Decision, Subject},
};

use super::Explainer;

/// The certificate of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsReport {
    /// Where the certificate comes from.
    pub certificate: CertificateSource,
    /// Why it is that one.
    pub reason: TlsReason,
    /// The upstream that TLS goes to as it is (`ssl-passthrough`): clients are then shown its endpoints' certificates.
    pub passthrough: Option<UpstreamName>,
}

/// Where a certificate comes from. What is in it is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum CertificateSource {
    /// A Secret that a TLS section names.
    Secret {
        /// The Secret.
        secret: ObjectName,
    },
    /// The Secret of `--default-ssl-certificate`.
    DefaultSecret {
        /// The Secret.
        secret: ObjectName,
    },
    /// The controller made it.
    Generated,
    /// There is none: handshakes fail.
    None,
}

/// Why a host has its certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum TlsReason {
    /// An entry of `spec.tls` lists the host and names the Secret.
    Listed {
        /// The Ingress.
        ingress: ObjectName,
        /// Which entry, from 0.
        entry: usize,
    },
    /// No entry of the Ingress's `spec.tls` lists the host, and the certificate of one of its Secrets is for it.
    NamedByCertificate {
        /// The Ingress.
        ingress: ObjectName,
    },
    /// An Ingress has a TLS section for the host, which yields no usable certificate.
    Unusable {
        /// The Ingress.
        ingress: ObjectName,
        /// What is wrong.
        faults: Vec<String>,
    },
    /// No Ingress of the host has a TLS section.
    NoSection,
    /// The certificate of the host is not for the alias, or for the name that is redirected to the host.
    NotForAlias,
    /// It is the server of all hosts without one of their own.
    CatchAll,
}

/// Which certificate a client is shown that asks for a name: the one of the name, else that of `*.` and the name without
/// its first label, else that of the catch-all host.
///
/// ```
/// use ingress_model::{Host, explain::certificate_for, live::{CertificateId, Live}};
///
/// let servers = [("_", "default"), ("*.shop.test", "shop")];
/// let servers = servers.map(|(host, id)| (Host::parse(host).unwrap(), CertificateId::new(id)));
/// let live = Live { servers: servers.into(), ..Live::default() };
/// assert_eq!(certificate_for(&live, "a.shop.test").unwrap().as_str(), "shop");
/// assert_eq!(certificate_for(&live, "a.b.shop.test").unwrap().as_str(), "default");
/// ```
#[must_use]
pub fn certificate_for<'a>(live: &'a Live, name: &str) -> Option<&'a CertificateId> {
    let of = |name: &str| {
        let host = Host::parse(name).ok()?;
        live.servers.get(&host)
    };
    let wildcard = || {
        let (_, parent) = name.split_once('.')?;
        of(&format!("*.{parent}"))
    };
    of(name).or_else(wildcard).or_else(|| of(Host::CATCH_ALL))
}

impl Explainer<'_> {
    /// The certificate for a name that a server answers for.
    pub(super) fn tls(&self, server: &Server, name: &str) -> TlsReport {
        let live = &self.outcome.model.live;
        let id = certificate_for(live, name);
        let default = live.servers.get(&Host::catch_all());
        let is_default = id == default;
        let certificate = id.map_or(CertificateSource::None, |id| self.source(id, is_default));
        TlsReport {
            certificate,
            reason: self.tls_reason(server, name, is_default),
            passthrough: self.passthrough(server, name),
        }
    }

    /// Where TLS for a name that a server answers for goes as it is.
    pub(super) fn passthrough(&self, server: &Server, name: &str) -> Option<UpstreamName> {
        let ways = &self.outcome.model.live.passthrough;
        let own = Host::parse(name).ok();
        let way = own.and_then(|own| ways.get(&own));
        let way = way.or_else(|| ways.get(&server.host).filter(|_| server.host.is_wildcard()));
        Some(way?.as_ref()?.name.clone())
    }

    fn source(&self, id: &CertificateId, is_default: bool) -> CertificateSource {
        if id.as_str() == CertificateId::GENERATED {
            return CertificateSource::Generated;
        }
        let mut secrets = self.snapshot.secrets.iter();
        let secret = secrets.find(|(name, secret)| {
            let uid = secret.metadata.uid.as_deref().filter(|uid| !uid.is_empty());
            uid == Some(id.as_str()) || uid.is_none() && name.to_string() == id.as_str()
        });
        match secret.map(|(name, _)| name.clone()) {
            Some(secret) if is_default => CertificateSource::DefaultSecret { secret },
            Some(secret) => CertificateSource::Secret { secret },
            None => CertificateSource::None,
        }
    }

    fn tls_reason(&self, server: &Server, name: &str, is_default: bool) -> TlsReason {
        if server.host.is_catch_all() {
            return TlsReason::CatchAll;
        }
        let Some(decision) = self.tls_decision(&server.host) else {
            return TlsReason::NoSection;
        };
        let ingress = decision.winner.clone();
        let mut others = server.aliases.iter().chain(&server.redirected);
        let is_alias = others.any(|other| other.as_str() == name);
        if is_alias && is_default {
            return TlsReason::NotForAlias;
        }
        if is_default {
            return TlsReason::Unusable {
                faults: self.tls_faults(&ingress, &server.host),
                ingress,
            };
        }
        match self.listed(&ingress, &server.host) {
            Some(entry) => TlsReason::Listed { ingress, entry },
            None => TlsReason::NamedByCertificate { ingress },
        }
    }

    fn tls_decision(&self, host: &Host) -> Option<&Decision> {
        let mut decisions = self.outcome.provenance.of(host).iter();
        decisions.find(|decision| decision.subject == Subject::Tls)
    }

    /// The first entry of an Ingress's TLS section that lists the host.
    fn listed(&self, ingress: &ObjectName, host: &Host) -> Option<usize> {
        let spec = self.served(ingress)?.spec.as_ref()?;
        spec.tls.as_ref()?.iter().position(|entry| {
            let mut hosts = entry.hosts.iter().flatten();
            hosts.any(|listed| listed.eq_ignore_ascii_case(host.as_str()))
        })
    }

    fn tls_faults(&self, ingress: &ObjectName, host: &Host) -> Vec<String> {
        let said = self.outcome.diagnostics.iter().filter(|said| {
            let is_about_certificates = matches!(
                said.reason,
                Reason::MissingSecret | Reason::InvalidSecret | Reason::CertificateMismatch
            );
            said.object.kind == ObjectKind::Ingress
                && said.object.name == *ingress
                && said.key.as_deref() == Some("spec.tls")
                && is_about_certificates
                && said.message.contains(host.as_str())
        });
        let mut faults: Vec<_> = said.map(|said| said.message.clone()).collect();
        if faults.is_empty() {
            faults.push(match self.listed(ingress, host) {
                Some(entry) => format!("spec.tls[{entry}] names no Secret"),
                None => "no entry of spec.tls lists the host, and no certificate of its Secrets is for it".to_owned(),
            });
        }
        faults
    }
}
