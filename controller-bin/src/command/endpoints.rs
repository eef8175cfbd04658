//! `nginx-ingress-controller endpoints`: the endpoints that each Service which is served has.

use std::io::Write;

use clap::Parser;
use ingress_model::{
    Explainer, ObjectName,
    explain::{BackendRole, BackendSummary},
};

use super::{
    CommandError, ListingArgs, Subcommand, Verdict, progress::Progress, source, table::Table,
};
use crate::args::Args;

/// How many Ingresses of a backend are named; JSON has all of them. They are of the Service's namespace.
const MOST_INGRESSES: usize = 3;

/// Whose endpoints are listed.
#[derive(Clone, Debug, Parser)]
pub struct EndpointsArgs {
    /// Only those of this Service
    #[arg(value_name = "SERVICE")]
    pub service: Option<String>,

    /// What all lists have.
    #[command(flatten)]
    pub listing: ListingArgs,
}

impl Subcommand for EndpointsArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.listing.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let progress = Progress::start("reading objects");
        let controller = &self.listing.controller;
        let found = source::find(controller)?;
        let merged = found.merge(controller);
        let explainer = Explainer::new(&found.snapshot, &merged.options, &merged.outcome);
        let mut backends = explainer.backends();
        drop(progress);
        backends.retain(|backend| self.wants(backend));
        let output = self.listing.output.output;
        output.write(to, &backends, |backends| table(backends))?;
        Ok(Verdict::Fine)
    }
}

impl EndpointsArgs {
    fn wants(&self, backend: &BackendSummary) -> bool {
        let service = backend.service.as_ref();
        let name = service.map(ObjectName::name);
        let wanted = self.service.as_deref();
        wanted.is_none_or(|wanted| name == Some(wanted))
            && self.listing.wants(service.map(ObjectName::namespace))
    }
}

fn table(backends: &[BackendSummary]) -> String {
    let mut table = Table::new([
        "NAMESPACE",
        "SERVICE",
        "PORT",
        "BACKEND",
        "FOR",
        "INGRESSES",
        "ENDPOINTS",
    ]);
    for backend in backends {
        let service = backend.service.as_ref();
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let endpoints = if backend.endpoints.is_empty() {
            "none".to_owned()
        } else {
            backend.endpoints.join(" ")
        };
        table.row([
            or_none(service.map(|service| service.namespace().to_owned())),
            or_none(service.map(|service| service.name().to_owned())),
            or_none(backend.port.as_ref().map(ToString::to_string)),
            backend.name.to_string(),
            role(backend.role).to_owned(),
            ingresses(&backend.ingresses),
            endpoints,
        ]);
    }
    table.lines(true)
}

/// The first of them, and how many more there are.
fn ingresses(names: &[ObjectName]) -> String {
    let shown: Vec<_> = names.iter().take(MOST_INGRESSES).collect();
    let shown: Vec<_> = shown.iter().map(|name| name.name()).collect();
    match names.len().saturating_sub(MOST_INGRESSES) {
        0 if shown.is_empty() => "-".to_owned(),
        0 => shown.join(","),
        more => format!("{} and {more} more", shown.join(",")),
    }
}

fn role(role: BackendRole) -> &'static str {
    match role {
        BackendRole::Paths => "paths",
        BackendRole::Canary => "canary",
        BackendRole::StandIn => "default-backend",
        BackendRole::Default => "all else",
        BackendRole::Tcp => "TCP",
        BackendRole::Udp => "UDP",
    }
}
