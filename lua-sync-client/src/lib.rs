//! Tells a running NGINX about endpoints, balancing, canaries and certificates, without a reload.
//!
//! What goes in is the [`Live`](ingress_model::Live) half of the model; what comes out are HTTP requests to the Lua
//! modules inside NGINX, which this crate also carries ([`lua_modules`]). Each half of the state (backends, and servers
//! with their certificates) has a [`Revision`]. A change is sent as what changed since a revision; NGINX refuses it when
//! it has another one, and is then told everything. So neither a lost answer nor a restart of NGINX leaves it with a
//! state that nobody knows of.
//!
//! ```text
//!  Live ──diff──▶ LiveDelta ──PATCH base, revision──▶ 200: told
//!    ▲                                       └──────▶ 409: POST everything
//!    └── Synchronizer remembers what was told ◀── GET /configuration/revision (verify)
//! ```
//!
//! [`Synchronizer`] is what a controller wants; [`LuaSyncClient`] makes single requests; [`wire`] has the payloads.
//! Backends of TCP and UDP services are not sent from here: they belong to NGINX's stream side.
//!
//! The crate reads no cluster objects and decides nothing about them. It never puts a private key in an error or a log.
//!
//! # Example
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use ingress_model::live::{Backend, Endpoint as Peer, Live, UpstreamName};
//! use lua_sync_client::{Endpoint, LuaSyncClient, Settings, Synchronizer};
//!
//! # async fn example() -> Result<(), lua_sync_client::Error> {
//! let address = ([127, 0, 0, 1], 10246).into();
//! let client = LuaSyncClient::new(Endpoint::Tcp(address), Settings::default());
//! let mut nginx = Synchronizer::new(client);
//!
//! let mut shop = Backend::new(UpstreamName::new("default-shop-80"));
//! shop.endpoints = vec![Peer { address: "10.0.0.7".to_owned(), port: 8080 }];
//! let mut live = Live::default();
//! live.backends.insert(shop.name.clone(), Arc::new(shop));
//!
//! // The first call tells everything, later ones only what changed.
//! let applied = nginx.apply(&live).await?;
//! assert!(applied.full);
//! # Ok(())
//! # }
//! ```

pub mod client;
mod connection;
pub mod error;
mod fit;
mod half;
pub mod lua_modules;
pub mod retry;
pub mod revision;
mod room;
pub mod synchronizer;
pub mod wire;

pub use client::{Endpoint, LuaSyncClient, Settings};
pub use error::{Call, Error};
pub use retry::Retry;
pub use revision::{Revision, RevisionSource, Revisions};
pub use room::Room;
pub use synchronizer::{Applied, Standing, Synchronizer};

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
