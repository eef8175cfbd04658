//! `nginx-ingress-controller backends`: the backends that the running NGINX was told.

use std::io::Write;

use clap::{Parser, ValueEnum};
use lua_sync_client::wire::{Backend, HashBy, PortRef, SessionAffinity, Variant};

use super::{CommandError, Output, OutputArgs, Subcommand, Verdict, local, output, table::Table};
use crate::args::Args;

/// Which backends are shown. The NGINX is the one of this machine whose status port is --status-port.
#[derive(Clone, Debug, Parser)]
pub struct BackendsArgs {
    /// A table of all backends, one of them by its name, or all of them as NGINX has them
    #[arg(value_enum, value_name = "WHAT", default_value = "list")]
    pub what: WhichBackends,

    /// The backend's name
    #[arg(value_name = "NAME", required_if_eq("what", "get"))]
    pub name: Option<String>,

    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// How they look.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which backends are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum WhichBackends {
    /// All, in a table.
    #[default]
    List,
    /// One.
    Get,
    /// All, as JSON.
    All,
}

impl Subcommand for BackendsArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let backends = local::backends(&self.controller)?;
        let text = match (self.what, self.output.output, self.name.as_deref()) {
            (WhichBackends::Get, output, name) => {
                let name = name.unwrap_or_default();
                let mut backends = backends.iter();
                let found = backends.find(|backend| backend.name == name);
                let backend = found.ok_or_else(|| CommandError::NotFound {
                    what: format!("backend {name}"),
                })?;
                match output {
                    Output::Table => one(backend),
                    Output::Json => output::json(backend)?,
                }
            }
            (WhichBackends::List, Output::Table, _) => all(&backends),
            (WhichBackends::List | WhichBackends::All, _, _) => output::json(&backends)?,
        };
        output::write(to, &text)?;
        Ok(Verdict::Fine)
    }
}

fn all(backends: &[Backend]) -> String {
    let mut table = Table::new(["NAME", "PORT", "ENDPOINTS", "PICKED BY", "CANARIES"]);
    for backend in backends {
        table.row([
            backend.name.clone(),
            port(backend),
            backend.endpoints.len().to_string(),
            picked_by(backend),
            or_none(backend.alternative_backends.join(" ")),
        ]);
    }
    table.lines(true)
}

fn one(backend: &Backend) -> String {
    let mut table = Table::plain();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("name", backend.name.clone());
    row("port", port(backend));
    row("picked by", picked_by(backend));
    let canary = &backend.traffic_shaping_policy;
    if backend.no_server {
        row(
            "canary",
            format!(
                "weight {} of {}, header {:?}, cookie {:?}",
                canary.weight, canary.weight_total, canary.header, canary.cookie
            ),
        );
    }
    row("canaries", or_none(backend.alternative_backends.join(" ")));
    for variant in &backend.variants {
        let canaries = or_none(variant.alternative_backends.join(" "));
        let how = format!(
            "picked by {}, canaries {canaries}",
            picked_by_variant(variant)
        );
        row(&format!("for {}", variant.ingresses.join(" ")), how);
    }
    if backend.endpoints.is_empty() {
        row("endpoints", "none".to_owned());
    }
    for (number, endpoint) in backend.endpoints.iter().enumerate() {
        let name = if number == 0 { "endpoints" } else { "" };
        row(name, shown(&endpoint.address, &endpoint.port));
    }
    table.lines(false)
}

/// An address with its port.
fn shown(address: &str, port: &str) -> String {
    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

fn port(backend: &Backend) -> String {
    match &backend.port {
        PortRef::Number(0) => "-".to_owned(),
        PortRef::Number(number) => number.to_string(),
        PortRef::Name(name) => name.clone(),
    }
}

/// How NGINX picks one of the endpoints.
fn picked_by(backend: &Backend) -> String {
    let affinity = &backend.session_affinity_config;
    picker(
        affinity,
        &backend.upstream_hash_by_config,
        &backend.load_balance,
    )
}

/// How it does for requests of some Ingresses.
fn picked_by_variant(variant: &Variant) -> String {
    let affinity = &variant.session_affinity_config;
    picker(
        affinity,
        &variant.upstream_hash_by_config,
        &variant.load_balance,
    )
}

fn picker(affinity: &SessionAffinity, hash: &HashBy, load_balance: &str) -> String {
    if affinity.name == "cookie" {
        format!("cookie {}", affinity.cookie_session_affinity.name)
    } else if !hash.key.is_empty() {
        format!("hash of {}", hash.key)
    } else if load_balance.is_empty() {
        "round_robin".to_owned()
    } else {
        load_balance.to_owned()
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}
