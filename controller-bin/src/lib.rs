//! The controller: keeps an NGINX doing what the Ingresses of a cluster, or of a directory of manifests, say.
//!
//! This crate finds out, starts, writes and tells; what Ingresses mean is in `ingress-model`, what NGINX's files look
//! like in `nginx-render`, and how a running NGINX is told of endpoints in `lua-sync-client`.
//!
//! ```text
//!  API server ──[watch]────▶┐
//!                           ├▶ [store] ──▶ [sync]: merge ──▶ [dataplane]: wanted ──tell──▶ Lua side, [stream_files]
//!  directory ──[manifests]─▶┘                                     │  ▲
//!                                                          behind │  │ written, loaded
//!                                                                 ▼  │
//!                            [quarantine] ◀── refused ── [load]: render, test, put in place, reload, confirm ──▶ [nginx]
//! ```
//!
//! [`Command`] tells what the program is asked to do: to run, or to look at something ([command]).
//! [`Args`] holds the flags, and `Args::run` puts the parts together: from there one can walk to every line that writes
//! a file. Endpoints and certificates go the short way, at once; files go the long way, as often as
//! `--sync-rate-limit` allows. The two ways have queues of their own, so that neither waits for the other.
//!
//! What there is to say of all this goes to an [observe::Observer], and from there to [metrics] and, where objects come
//! from an API server, by [publish] to Events and the status of Ingresses, and to the page of [ui].
//!
//! Nothing that objects, files, NGINX or the API server do ends the controller once it runs: what fails is logged, tried
//! again, and until then the last good configuration serves. Only a fault in the program itself does, a panic that is not
//! caught: it ends with NGINX and an exit code, so that it is started anew. Errors that keep it from starting are
//! [`Error`]s.
//!
//! [watch]: crate::watch
//! [store]: crate::store
//! [sync]: crate::sync
//! [dataplane]: crate::dataplane
//! [stream_files]: crate::stream_files
//! [manifests]: crate::manifests
//! [quarantine]: crate::quarantine
//! [load]: crate::load
//! [nginx]: crate::nginx

pub mod admission;
pub mod args;
mod build;
pub mod certificate;
mod chain;
pub mod cluster;
pub mod command;
mod culprit;
pub mod dataplane;
mod debug;
mod download;
mod geoip;
pub mod guard;
pub mod health;
mod issuers;
pub mod load;
pub mod logging;
pub mod manifests;
pub mod metrics;
mod near;
pub mod nginx;
pub mod observe;
pub mod planner;
pub mod preflight;
pub mod publish;
pub mod quarantine;
mod room;
mod run;
mod serving;
pub mod shutdown;
pub mod store;
pub mod stored;
pub mod stream_files;
mod stream_ports;
pub mod sync;
mod triggers;
pub mod ui;
mod variables;
mod view;
pub mod watch;

pub use args::Args;
pub use command::Command;
pub use run::Error;
