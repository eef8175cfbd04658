//! `--version`: which build this is, and what the NGINX of this machine can do.

use std::env::consts::{ARCH, OS};

use super::NAME;
use crate::{args::Args, chain::chain, nginx::program};

impl Args {
    /// Says which version this is, which NGINX there is, and which of its modules are used where they are there.
    pub async fn describe(&self) -> String {
        let build = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        let mut lines = vec![
            format!("{NAME} {}", env!("CARGO_PKG_VERSION")),
            format!("target: {ARCH}-{OS}, {build}"),
        ];
        let binary = program::find(self.nginx.nginx_binary.as_deref());
        match program::probe(&binary).await {
            Ok(nginx) => {
                let (major, minor, patch) = nginx.version();
                let kind = if nginx.is_openresty() {
                    "openresty"
                } else {
                    "nginx"
                };
                let modules = nginx.modules().map(|module| format!("{module:?}"));
                let modules: Vec<_> = modules.collect();
                lines.push(format!("nginx version: {kind}/{major}.{minor}.{patch}"));
                lines.push(format!("nginx binary: {}", binary.display()));
                lines.push(format!("nginx modules: {}", modules.join(", ")));
            }
            Err(error) => lines.push(chain(&error)),
        }
        lines.join("\n") + "\n"
    }
}
