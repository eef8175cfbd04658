//! Renders the controller's model into NGINX configuration files.
//!
//! What goes in is a [`Layout`](ingress_model::Layout), what an NGINX can do ([`Capabilities`]), and where it runs
//! ([`Environment`]); what comes out is [`Rendered`]: the files, and a [`SourceMap`] that tells which line belongs to which
//! host, path and Ingress. Nothing here reads or writes a file, a socket or a clock.
//!
//! ```
//! use std::sync::Arc;
//! use ingress_model::{Host, Layout, Server};
//! use nginx_render::{Capabilities, Environment, Renderer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let capabilities = Capabilities::parse("configure arguments: --add-module=/src/lua-nginx-module", []);
//! let mut renderer = Renderer::new(capabilities, Environment::default());
//! let rendered = renderer.render(&Layout::default())?;
//! assert!(rendered.main.starts_with("# Configuration checksum: "));
//! # Ok(())
//! # }
//! ```
//!
//! Three things keep what users write from becoming configuration:
//!
//! * templates print typed values only: quoted texts, words, numbers. The functions that make them are in one module;
//! * everything else that a template prints goes through an escaper that refuses whatever is not a plain word;
//! * what cannot be written down closes its own location, with a [`Note`], and nothing else.
//!
//! Snippets are the one exception: they are meant to be configuration, and stand there as they were written.

mod capabilities;
pub mod endpoint_files;
mod environment;
mod escape;
mod pattern;
mod rendered;
mod renderer;
mod settings;
mod source_map;
mod statements;
pub mod syntax;
mod value;
mod view;

pub use capabilities::{Capabilities, Module};
pub use environment::{Environment, Metrics, ModSecurityRules, PassthroughPorts, Ports, User};
pub use rendered::{FileContent, RelativePath, Rendered};
pub use renderer::{RenderError, Renderer};
pub use source_map::{Note, Source, SourceMap};
pub use value::Unprintable;
pub use view::h2c::HTTP_SOCKETS;
