//! The last pass: everything that was found, put together into an outcome.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    backends::Backends,
    certificate::ServerCertificate,
    context::Context,
    definition::Age,
    diagnostic::{Diagnostic, Reason, Severity},
    host::Host,
    hosts::{Entry, Hosts},
    layout::{Layout, Owned},
    live::{Certificate, CertificateId, Live},
    object::{ObjectKind, ObjectRef},
    outcome::Model,
    passthrough,
    provenance::Provenance,
    secrets::Secrets,
    stream::Streams,
    tls::HostCertificate,
    value::Snippet,
};

/// What the passes found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) context: &'a Context,
    pub(crate) hosts: &'a Hosts,
    pub(crate) backends: &'a Backends,
    pub(crate) tcp: &'a Streams,
    pub(crate) udp: &'a Streams,
    pub(crate) stream_snippets: &'a BTreeMap<Age, Owned<Snippet>>,
    pub(crate) now: Timestamp,
}

/// The model and who defined it; what there is to say about hosts and certificates goes to `diagnostics`.
pub(crate) fn assemble(
    parts: Parts<'_>,
    secrets: &mut Secrets,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Model, Provenance) {
    let default = default_certificate(parts, secrets, diagnostics);
    let mut certificates = Certificates {
        default: default.as_ref(),
        now: parts.now,
        live: BTreeMap::new(),
        ending: BTreeSet::new(),
    };
    let mut certified = Vec::new();
    for host in &parts.hosts.noted {
        if let Some(entry) = parts.hosts.entries.get(host) {
            diagnostics.extend(entry.built.diagnostics.iter().cloned());
            certificates.serve(host, entry, &mut certified);
        }
    }
    diagnostics.extend(certificates.ending);
    let layout = Layout {
        config: Arc::clone(&parts.context.config.render),
        servers: parts.hosts.servers.clone(),
        tcp: parts.tcp.servers.clone(),
        udp: parts.udp.servers.clone(),
        stream_snippets: parts.stream_snippets.values().cloned().collect(),
    };
    let live = Live {
        backends: parts.backends.built.clone(),
        certificates: certificates.live,
        servers: certified.into_iter().collect(),
        tcp: parts.tcp.backends.clone(),
        udp: parts.udp.backends.clone(),
        passthrough: passthrough::ways(parts.hosts, parts.backends),
    };
    let provenance = Provenance {
        hosts: parts.hosts.decisions.clone(),
    };
    (Model { layout, live }, provenance)
}

/// A certificate for servers without their own.
enum Fallback {
    Secret(Arc<ServerCertificate>),
    Generated(Certificate),
}

impl Fallback {
    fn certificate(&self) -> &Certificate {
        match self {
            Self::Secret(read) => &read.certificate,
            Self::Generated(certificate) => certificate,
        }
    }
}

/// `--default-ssl-certificate`, or the generated one if that Secret is missing or cannot be used.
///
/// ```
/// use ingress_model::{ObjectName, Options, live::{Certificate, CertificateId}, testing::Fixture};
///
/// let generated = Certificate { id: CertificateId::new(CertificateId::GENERATED), pem: "made at the start".into() };
/// let options = Options {
///     default_ssl_certificate: ObjectName::parse("shop/gone"),
///     generated_certificate: Some(generated),
///     ..Options::default()
/// };
/// let served = Fixture::default().with_options(options).merge();
/// let live = &served.outcome().model.live;
/// assert_eq!(live.servers.values().map(CertificateId::as_str).collect::<Vec<_>>(), [CertificateId::GENERATED]);
/// ```
fn default_certificate(
    parts: Parts<'_>,
    secrets: &mut Secrets,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Fallback> {
    let options = &parts.context.options;
    if let Some(name) = &options.default_ssl_certificate {
        let mut kept = None;
        let (reason, fault) = match secrets.certificate(name) {
            Some(Ok(certificate)) => return Some(Fallback::Secret(certificate)),
            Some(Err(error)) => {
                kept = secrets.earlier_certificate(name).map(Fallback::Secret);
                let holds = if kept.is_some() {
                    "; the one that it held before goes on being served"
                } else {
                    ""
                };
                (
                    Reason::InvalidSecret,
                    format!("it cannot be used as default certificate: {error}{holds}"),
                )
            }
            None => (
                Reason::MissingSecret,
                "it does not exist, so that it cannot be the default certificate".to_owned(),
            ),
        };
        let object = ObjectRef::new(ObjectKind::Secret, name.clone());
        diagnostics.push(Diagnostic::new(object, Severity::Error, reason, fault));
        if kept.is_some() {
            return kept;
        }
    }
    options
        .generated_certificate
        .clone()
        .map(Fallback::Generated)
}

/// Which certificates are in use.
struct Certificates<'a> {
    default: Option<&'a Fallback>,
    now: Timestamp,
    live: BTreeMap<CertificateId, Certificate>,
    ending: BTreeSet<Diagnostic>,
}

impl Certificates<'_> {
    /// A host with a TLS section has its certificate, and so has each further name that the certificate is for. The catch-all
    /// host has the default one.
    fn serve(&mut self, host: &Host, entry: &Entry, served: &mut Vec<(Host, CertificateId)>) {
        let own = match &entry.built.certificate {
            Some(HostCertificate::Own(own)) => Some(own),
            Some(HostCertificate::Default) => None,
            None if host.is_catch_all() => None,
            None => return,
        };
        let (certificate, names) = match (own, self.default) {
            (Some(own), _) => (&own.certificate, Some(own)),
            (None, Some(Fallback::Secret(read))) => (&read.certificate, Some(read)),
            (None, Some(default)) => (default.certificate(), None),
            (None, None) => return,
        };
        let id = certificate.id.clone();
        served.push((host.clone(), id.clone()));
        if let Some(names) = names {
            let others = entry.server.aliases.iter().chain(&entry.server.redirected);
            let others = others.filter(|other| names.is_for(other.as_str()));
            served.extend(others.map(|other| (other.clone(), id.clone())));
            self.check_end(names);
        }
        self.live.entry(id).or_insert_with(|| certificate.clone());
    }

    fn check_end(&mut self, certificate: &ServerCertificate) {
        if let Some(message) = certificate.expiry(self.now) {
            let object = ObjectRef::new(ObjectKind::Secret, certificate.secret.clone());
            let reason = Reason::CertificateExpiry;
            self.ending
                .insert(Diagnostic::new(object, Severity::Warning, reason, message));
        }
    }
}
