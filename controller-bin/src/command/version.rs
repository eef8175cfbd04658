//! `--version`: which build this is, and what the NGINX of this machine can do.

use std::env::consts::{ARCH, OS};

use nginx_render::{Capabilities, Module};

use super::NAME;
use crate::{args::Args, build, chain::chain, nginx::program};

/// What takes one of these modules.
const NEEDED_BY: &[(&[Module], &str)] = &[
    (&[Module::HttpV2], "use-http2"),
    (&[Module::HttpV3], "use-http3"),
    (&[Module::BrotliFilter], "enable-brotli"),
    (&[Module::GeoIp2], "use-geoip2"),
    (&[Module::ModSecurity], "enable-modsecurity"),
    (&[Module::OpenTelemetry], "enable-opentelemetry"),
    (&[Module::AuthDigest], "auth-type: digest"),
    (&[Module::Stream], "TCP and UDP services"),
    (
        &[Module::StreamJs, Module::StreamLua],
        "endpoints of TCP and UDP services without a reload",
    ),
    (&[Module::StreamSslPreread], "ssl-passthrough"),
];

impl Args {
    /// Says which build this is, which NGINX there is, and which of its modules are used where they are there.
    pub async fn describe(&self) -> String {
        let mut lines = vec![format!("{NAME} {}", build::RELEASE)];
        lines.push(format!("commit: {}", build::COMMIT.unwrap_or("not known")));
        lines.push(format!(
            "built: {ARCH}-{OS}, {}, {}",
            build::KIND,
            build::COMPILER.unwrap_or("by a compiler that is not known")
        ));
        let binary = program::find(self.nginx.nginx_binary.as_deref());
        match program::probe(&binary).await {
            Ok(nginx) => {
                lines.push(format!("nginx binary: {}", binary.display()));
                lines.extend(capabilities(&nginx));
            }
            Err(error) => lines.push(chain(&error)),
        }
        lines.join("\n") + "\n"
    }
}

fn capabilities(nginx: &Capabilities) -> Vec<String> {
    let (major, minor, patch) = nginx.version();
    let kind = if nginx.is_openresty() {
        "openresty"
    } else {
        "nginx"
    };
    let modules: Vec<_> = nginx
        .modules()
        .map(|module| format!("{module:?}"))
        .collect();
    let lacking = NEEDED_BY.iter().filter(|(modules, _)| {
        let mut modules = modules.iter();
        !modules.any(|module| nginx.has(*module))
    });
    let lacking: Vec<_> = lacking.map(|(_, what)| *what).collect();
    let mut lines = vec![
        format!("nginx version: {kind}/{major}.{minor}.{patch}"),
        format!("nginx modules: {}", modules.join(", ")),
    ];
    if !lacking.is_empty() {
        lines.push(format!("not with this nginx: {}", lacking.join(", ")));
    }
    lines
}
