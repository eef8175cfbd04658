//! The half of the model that a running NGINX is told: endpoints, balancing, canaries and certificates. A change here
//! never reloads, since the renderer is never given it.

mod variant;

use std::{
    borrow::Borrow,
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock},
};

use serde::{Serialize, Serializer};

use crate::{
    changes::pairs,
    host::Host,
    object::ObjectName,
    shared_map::{Pair, SharedMap},
};

pub use self::variant::Variant;

/// The name by which a location finds its backend: `<namespace>-<service>-<port>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamName(Arc<str>);

impl UpstreamName {
    /// The backend of locations that nothing defines: answers 404.
    pub const DEFAULT_BACKEND: &'static str = "upstream-default-backend";

    /// How the names of [`UpstreamName::stand_in`] begin; no other one does.
    pub(crate) const STAND_IN: &'static str = "custom-default-backend-";

    /// A name as it stands.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The backend of a Service that an Ingress names as its default backend (`default-backend`):
    /// `custom-default-backend-<namespace>-<service>`. A namespace with `-` has `/` behind it instead, so that no two
    /// Services give one name.
    #[must_use]
    pub fn stand_in(service: &ObjectName) -> Self {
        let (namespace, name) = (service.namespace(), service.name());
        let joint = if namespace.contains('-') { '/' } else { '-' };
        Self::new(&format!("{}{namespace}{joint}{name}", Self::STAND_IN))
    }

    /// The backend of locations that nothing defines.
    #[must_use]
    pub fn default_backend() -> Self {
        static NAME: LazyLock<UpstreamName> =
            LazyLock::new(|| UpstreamName::new(UpstreamName::DEFAULT_BACKEND));
        NAME.clone()
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for UpstreamName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UpstreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for UpstreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for UpstreamName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A Service's port as an Ingress or ConfigMap refers to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum PortRef {
    /// By number.
    Number(i32),
    /// By name.
    Name(String),
}

impl fmt::Display for PortRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Where one peer of a backend listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Endpoint {
    /// An IP address without brackets, or the name of an ExternalName Service.
    pub address: String,
    /// The port; 0 when it is not known.
    pub port: u16,
}

/// How peers are picked (`load-balance`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum LoadBalance {
    /// One after the other.
    RoundRobin,
    /// By peak exponentially weighted moving average of the response time.
    Ewma,
}

/// Picking peers by the hash of a text (`upstream-hash-by`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct HashBy {
    /// What is hashed; NGINX variables are replaced.
    pub key: String,
    /// Whether the hash picks a set of peers rather than one (`upstream-hash-by-subset`).
    pub subset: bool,
    /// How many peers a set has (`upstream-hash-by-subset-size`).
    pub subset_size: u32,
}

/// Keeping a client on its peer by a cookie (`affinity: cookie`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct CookieAffinity {
    /// Whether a client stays on its peer when others are added (`affinity-mode: persistent`).
    pub persistent: bool,
    /// The cookie's name.
    pub name: String,
    /// `Expires`, in seconds.
    pub expires: Option<String>,
    /// `Max-Age`, in seconds.
    pub max_age: Option<String>,
    /// Host → paths at which the cookie may be set.
    pub locations: BTreeMap<Host, Vec<String>>,
    /// `Secure`; `None`: as the request came.
    pub secure: Option<bool>,
    /// `Path`; `None`: the location's path.
    pub path: Option<String>,
    /// `Domain`.
    pub domain: Option<String>,
    /// `SameSite`.
    pub same_site: Option<String>,
    /// Whether `SameSite=None` is left out for agents that misread it.
    pub conditional_same_site_none: bool,
    /// Whether a failing peer is given up (`session-cookie-change-on-failure`).
    pub change_on_failure: bool,
}

/// Which requests a canary gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct TrafficShaping {
    /// Share of the requests, out of [`TrafficShaping::weight_total`].
    pub weight: u32,
    /// What the weight is a share of; at least 1.
    pub weight_total: u32,
    /// Requests with this header.
    pub header: String,
    /// The value that the header has to have.
    pub header_value: String,
    /// The regular expression that the header has to match.
    pub header_pattern: String,
    /// Requests with this cookie.
    pub cookie: String,
}

/// A group of peers that requests are balanced over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Backend {
    /// Its name.
    pub name: UpstreamName,
    /// The Service's port that the Ingress names; `None` for the default backend.
    pub port: Option<PortRef>,
    /// Whether the endpoints' addresses are names to be resolved by NGINX (Service of type ExternalName).
    pub external_name: bool,
    /// The peers, sorted; none means that requests are answered 503.
    pub endpoints: Vec<Endpoint>,
    /// Whether TLS is passed through to the peers.
    pub ssl_passthrough: bool,
    /// How peers are picked; `None`: one after the other.
    pub load_balance: Option<LoadBalance>,
    /// Picking peers by hash.
    pub hash_by: Option<HashBy>,
    /// Keeping clients on their peers.
    pub affinity: Option<Box<CookieAffinity>>,
    /// Whether this is a canary's backend, which has no location of its own.
    pub canary: bool,
    /// Which requests this backend gets, if it is a canary's.
    pub traffic_shaping: Option<Box<TrafficShaping>>,
    /// Canary backends that take a part of this one's requests. Only the first one is considered.
    pub alternatives: Vec<UpstreamName>,
    /// What is different for Ingresses that want something else than the oldest one, each in the order of its oldest.
    pub variants: Vec<Variant>,
}

impl Backend {
    /// A backend without peers.
    #[must_use]
    pub fn new(name: UpstreamName) -> Self {
        Self {
            name,
            port: None,
            external_name: false,
            endpoints: Vec::new(),
            ssl_passthrough: false,
            load_balance: None,
            hash_by: None,
            affinity: None,
            canary: false,
            traffic_shaping: None,
            alternatives: Vec::new(),
            variants: Vec::new(),
        }
    }
}

/// Names a certificate: the UID of its Secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CertificateId(Arc<str>);

impl CertificateId {
    /// The certificate that the controller makes for hosts without one.
    pub const GENERATED: &'static str = "00000000-0000-0000-0000-000000000000";

    /// An identity as it stands.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CertificateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for CertificateId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// A certificate chain with its private key. Never printed: `Debug` shows its identity only.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Which Secret it comes from.
    pub id: CertificateId,
    /// The chain, leaf first, then the private key, all PEM.
    pub pem: Arc<str>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// What a running NGINX is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Backends by name.
    pub backends: SharedMap<UpstreamName, Arc<Backend>>,
    /// Certificates by identity.
    pub certificates: BTreeMap<CertificateId, Certificate>,
    /// Which certificate a host has; hosts without one show the catch-all's.
    pub servers: BTreeMap<Host, CertificateId>,
    /// Backends of TCP services, by external port.
    pub tcp: BTreeMap<u16, Arc<Backend>>,
    /// Backends of UDP services, by external port.
    pub udp: BTreeMap<u16, Arc<Backend>>,
    /// Hosts whose TLS goes to a backend as it is (`ssl-passthrough`). `None`: TLS of this host ends at NGINX, although
    /// that of the wildcard host above it does not.
    pub passthrough: BTreeMap<Host, Option<Arc<Backend>>>,
}

/// What turns one [`Live`] into another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveDelta {
    /// Backends that are new or changed.
    pub set_backends: Vec<Arc<Backend>>,
    /// Backends that are gone.
    pub remove_backends: Vec<UpstreamName>,
    /// Certificates that are new or changed.
    pub set_certificates: Vec<Certificate>,
    /// Certificates that are gone.
    pub remove_certificates: Vec<CertificateId>,
    /// Hosts whose certificate is new or another one.
    pub set_servers: Vec<(Host, CertificateId)>,
    /// Hosts that have no certificate any more.
    pub remove_servers: Vec<Host>,
    /// TCP services whose backend is new or changed.
    pub set_tcp: Vec<(u16, Arc<Backend>)>,
    /// TCP services that are gone.
    pub remove_tcp: Vec<u16>,
    /// UDP services whose backend is new or changed.
    pub set_udp: Vec<(u16, Arc<Backend>)>,
    /// UDP services that are gone.
    pub remove_udp: Vec<u16>,
    /// Hosts whose TLS takes another way now.
    pub set_passthrough: Vec<(Host, Option<Arc<Backend>>)>,
    /// Hosts whose TLS takes no way of its own any more.
    pub remove_passthrough: Vec<Host>,
}

impl LiveDelta {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Splits into what is added or changed and what goes away, for a change that reloads too: what new servers need
    /// has to be there before the reload, and what only old servers used may go after it.
    #[must_use]
    pub fn split(self) -> (Self, Self) {
        let removed = Self {
            remove_backends: self.remove_backends,
            remove_certificates: self.remove_certificates,
            remove_servers: self.remove_servers,
            remove_tcp: self.remove_tcp,
            remove_udp: self.remove_udp,
            remove_passthrough: self.remove_passthrough,
            ..Self::default()
        };
        let set = Self {
            set_backends: self.set_backends,
            set_certificates: self.set_certificates,
            set_servers: self.set_servers,
            set_tcp: self.set_tcp,
            set_udp: self.set_udp,
            set_passthrough: self.set_passthrough,
            ..Self::default()
        };
        (set, removed)
    }
}

impl Live {
    /// What has to be told to an NGINX that knows `self` so that it knows `newer`.
    #[must_use]
    pub fn diff(&self, newer: &Self) -> LiveDelta {
        let (set_backends, remove_backends) = changes(self.backends.differences(&newer.backends));
        let (set_certificates, remove_certificates) =
            changes(pairs(&self.certificates, &newer.certificates));
        let (set_servers, remove_servers) = changes(pairs(&self.servers, &newer.servers));
        let (set_tcp, remove_tcp) = changes(pairs(&self.tcp, &newer.tcp));
        let (set_udp, remove_udp) = changes(pairs(&self.udp, &newer.udp));
        let (set_passthrough, remove_passthrough) =
            changes(pairs(&self.passthrough, &newer.passthrough));
        LiveDelta {
            set_backends: set_backends
                .into_iter()
                .map(|(_, backend)| backend)
                .collect(),
            remove_backends,
            set_certificates: set_certificates
                .into_iter()
                .map(|(_, certificate)| certificate)
                .collect(),
            remove_certificates,
            set_servers,
            remove_servers,
            set_tcp,
            remove_tcp,
            set_udp,
            remove_udp,
            set_passthrough,
            remove_passthrough,
        }
    }

    /// Makes the changes of `delta`: `old.apply(&old.diff(&new))` makes `old` equal to `new`.
    pub fn apply(&mut self, delta: &LiveDelta) {
        for name in &delta.remove_backends {
            self.backends.remove(name);
        }
        for id in &delta.remove_certificates {
            self.certificates.remove(id);
        }
        for host in &delta.remove_servers {
            self.servers.remove(host);
        }
        for port in &delta.remove_tcp {
            self.tcp.remove(port);
        }
        for port in &delta.remove_udp {
            self.udp.remove(port);
        }
        for host in &delta.remove_passthrough {
            self.passthrough.remove(host);
        }
        self.backends.extend(
            delta
                .set_backends
                .iter()
                .map(|b| (b.name.clone(), Arc::clone(b))),
        );
        self.certificates.extend(
            delta
                .set_certificates
                .iter()
                .map(|c| (c.id.clone(), c.clone())),
        );
        self.servers.extend(delta.set_servers.iter().cloned());
        self.tcp.extend(delta.set_tcp.iter().cloned());
        self.udp.extend(delta.set_udp.iter().cloned());
        self.passthrough
            .extend(delta.set_passthrough.iter().cloned());
    }
}

/// Given the entries of two maps, those of the newer one that are new or other ones, and the keys that it lacks.
fn changes<'a, K: Clone + 'a, V: PartialEq + Clone + 'a>(
    pairs: impl Iterator<Item = (&'a K, Pair<'a, V>)>,
) -> (Vec<(K, V)>, Vec<K>) {
    let mut set = Vec::new();
    let mut removed = Vec::new();
    for (key, (old, new)) in pairs {
        match new {
            None => removed.push(key.clone()),
            Some(value) if old != Some(value) => set.push((key.clone(), value.clone())),
            Some(_) => {}
        }
    }
    (set, removed)
}
