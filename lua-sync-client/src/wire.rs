//! The JSON that NGINX's configuration server takes and gives.
//!
//! `POST` payloads are those of ingress-nginx, member for member, so that tools written for it go on working; the
//! `PATCH` ones are this project's. What a type leaves out when it is empty is as important as its names: Lua takes a
//! missing member for its own default.

mod backend;
mod update;
mod variant;

pub use backend::{
    Backend, CookieAffinity, Endpoint, HashBy, PortRef, Service, ServiceSpec, SessionAffinity,
    TrafficShaping,
};
pub use update::{BackendsPatch, NO_CERTIFICATE, Pem, Servers, ServersPatch, Status, backends};
pub use variant::Variant;

pub(crate) use update::{FullDictionary, RevisionAnswer};
