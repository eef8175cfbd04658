//! The rules that turn Kubernetes Ingress objects into NGINX servers, locations and upstreams.
//!
//! What goes in is a [`Snapshot`] of cluster objects, the [`Options`] of the controller and the current time; what
//! comes out is an [`Outcome`]: a [`Model`] and the [`Diagnostic`]s that explain it. Nothing here reads a file, a
//! socket, a clock or a random number, nothing fails and nothing panics: the same input gives the same output, in
//! whatever order the objects arrived.
//!
//! ```text
//!  Ingress ──rule──▶ host ──▶ Server ──path──▶ Location ──upstream──▶ Backend ◀──endpoints── EndpointSlice
//!     │                         │ (layout)       │ (layout)             (live) ◀──ports────── Service
//!     ├──annotations──▶ IngressSettings ─────────┘
//!     └──tls──▶ Secret ──▶ Certificate (live)
//! ```
//!
//! The model has two halves. The [`Layout`] is what NGINX's configuration files show: changing it needs a reload. The
//! [`Live`] half (endpoints, balancing, canaries, certificates) is told to a running NGINX, which never reloads for it.
//! [`plan()`] says which of the two a change touches, and why.
//!
//! A [`Merger`] reads again only what has changed, and the versions of the model share the rest ([`SharedMap`]), so that
//! a small change costs little to find, to compare and to tell, however large the cluster.
//!
//! Ingresses are taken in the order of their creation. Where two define the same thing, [`ConflictPolicy`] decides:
//! by default the last definition wins.
//!
//! # The rules
//!
//! Each rule is stated once, with an example that runs, where it is applied:
//!
//! | question | rule |
//! |---|---|
//! | which Ingresses are served? | `class.rs`: `Filter::new`, `check_namespace`, `check_class`, `check_catch_all`; `inspect.rs`: `inspect`; [`annotation::parse`] |
//! | and when the current version cannot be? | `ingresses.rs`: `fall_back` |
//! | which comes first? | `definition.rs`: `Age`, `precedence` |
//! | what counts as host, path, path type, backend? | [`Host::parse`], `path.rs`: `read`, `read_type`; `specification.rs`: `hosts`, `path`, `backend` |
//! | who has a say about a host? | `hosts.rs`: `claims`, `sort` |
//! | who holds a path, and how does NGINX match it? | `path.rs`: `locations` |
//! | where does go what nobody defines? | `server.rs`: `root_owner`; `specification.rs`: `root_settings`; `backends.rs`: `default_backend` |
//! | who holds a setting of a whole host? | `server.rs`: `settle`, `any`, `upstream_tls`; `client_auth.rs` |
//! | which further names does a host have? | `alias.rs`: `settle`; `www.rs`: `settle` |
//! | which certificate? | `tls.rs`: `choose`; `certificate.rs`: `covers`; `assemble.rs`: `default_certificate` |
//! | whose TLS is passed through? | `passthrough.rs`: `choose`, `ways` |
//! | what is an upstream called, and who shares it? | `upstream.rs`: `regroup` |
//! | where are its peers? | `endpoints.rs`: `find`, `find_port`, `add`, `add_peers`, `external`; `topology.rs`: `zone`; `services.rs`: `service_of` |
//! | and when there are none? | `backends.rs`: `peers`, `stand_in` |
//! | how are the requests of each Ingress balanced? | `backends/balance.rs`: `balance` |
//! | where may the affinity's cookie be set? | `backends/balance.rs`: `affinity`, `canary_affinity` |
//! | which requests does a canary get? | `canary.rs`: `merge`, `Canaries::of` |
//! | which TCP and UDP ports are open? | `stream.rs`: `read` |
//! | what needs a reload? | [`plan()`] |
//!
//! The types of objects are those of `k8s-openapi`, built without a choice of Kubernetes' version: the program that is
//! built makes it, with `k8s-openapi = { version = "0.29", default-features = false, features = ["v1_33"] }` or another
//! version in its `Cargo.toml`.

mod admit;
mod alias;
pub mod annotation;
mod assemble;
mod backends;
mod canary;
mod certificate;
mod changes;
mod class;
mod client_auth;
pub mod config;
mod context;
mod definition;
pub mod dependencies;
pub mod diagnostic;
mod endpoints;
pub mod explain;
mod expression;
pub mod host;
mod hosts;
mod ingresses;
mod inspect;
mod key_pair;
pub mod layout;
pub mod live;
#[cfg(feature = "manifests")]
pub mod manifests;
pub mod merge;
pub mod object;
pub mod options;
pub mod outcome;
mod passthrough;
mod path;
pub mod plan;
pub mod provenance;
mod scalar;
mod secrets;
pub mod selector;
mod server;
mod services;
pub mod shared_map;
pub mod snapshot;
mod specification;
pub mod spelling;
mod stand_in;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
mod tls;
mod topology;
mod upstream;
pub mod value;
mod www;

pub use admit::{AdmissionIndex, Verdict, admit, odd_paths};
pub use config::GlobalConfig;
pub use dependencies::Dependencies;
pub use diagnostic::{Diagnostic, Reason, Severity};
pub use explain::Explainer;
pub use host::{Host, HostError};
pub use layout::{Layout, Location, Server};
pub use live::{Backend, Live};
pub use merge::{Merger, merge};
pub use object::{ObjectKind, ObjectMap, ObjectName, ObjectRef};
pub use options::{ConflictPolicy, Options};
pub use outcome::{Model, Outcome};
pub use plan::{ReloadReason, plan};
pub use provenance::Provenance;
pub use shared_map::SharedMap;
pub use snapshot::Snapshot;
