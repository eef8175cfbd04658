//! `nginx-ingress-controller endpoints`: the endpoints that each Service which is served has.

use std::{collections::BTreeMap, io::Write};

use clap::Parser;
use ingress_model::{Backend, ObjectName, live::UpstreamName};
use serde::Serialize;

use super::{
    CommandError, OutputArgs, Subcommand, Verdict,
    progress::Progress,
    source::{self, Merged},
    table::Table,
};
use crate::args::Args;

/// Whose endpoints are listed.
#[derive(Clone, Debug, Parser)]
pub struct EndpointsArgs {
    /// Only those of this Service
    #[arg(value_name = "SERVICE")]
    pub service: Option<String>,

    /// Only those of this namespace
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Endpoints")]
    pub namespace: Option<String>,

    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// How they look.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A backend.
#[derive(Debug, Serialize)]
struct Row {
    namespace: Option<String>,
    service: Option<String>,
    port: Option<String>,
    backend: String,
    /// Whether it takes a part of another one's requests.
    canary: bool,
    endpoints: Vec<String>,
}

impl Subcommand for EndpointsArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let progress = Progress::start("reading objects");
        let found = source::find(&self.controller)?;
        let merged = found.merge(&self.controller);
        drop(progress);
        let mut rows = rows(&merged);
        rows.retain(|row| self.wants(row));
        self.output.output.write(to, &rows, |rows| table(rows))?;
        Ok(Verdict::Fine)
    }
}

impl EndpointsArgs {
    fn wants(&self, row: &Row) -> bool {
        let is = |wanted: &Option<String>, own: &Option<String>| wanted.is_none() || wanted == own;
        is(&self.service, &row.service) && is(&self.namespace, &row.namespace)
    }
}

fn rows(merged: &Merged) -> Vec<Row> {
    let model = &merged.outcome.model;
    let services = services(merged);
    let backends = model.live.backends.values();
    let mut rows: Vec<_> = backends
        .map(|backend| {
            let service = services.get(&backend.name);
            Row {
                namespace: service.map(|service| service.namespace().to_owned()),
                service: service.map(|service| service.name().to_owned()),
                ..row(backend)
            }
        })
        .collect();
    let streams = model.live.tcp.values().chain(model.live.udp.values());
    rows.extend(streams.map(|backend| row(backend)));
    rows
}

/// The Services of backends, as locations name them.
fn services(merged: &Merged) -> BTreeMap<&UpstreamName, ObjectName> {
    let servers = merged.outcome.model.layout.servers.values();
    let locations = servers.flat_map(|server| &server.locations);
    let services = locations.filter_map(|location| {
        let ingress = location.ingress.as_ref()?;
        let service = location.service.as_ref()?;
        Some((&location.upstream, ingress.sibling(&service.name)))
    });
    services.collect()
}

fn row(backend: &Backend) -> Row {
    let endpoints = backend.endpoints.iter().map(|endpoint| {
        if endpoint.address.contains(':') {
            format!("[{}]:{}", endpoint.address, endpoint.port)
        } else {
            format!("{}:{}", endpoint.address, endpoint.port)
        }
    });
    Row {
        namespace: None,
        service: None,
        port: backend.port.as_ref().map(ToString::to_string),
        backend: backend.name.to_string(),
        canary: backend.canary,
        endpoints: endpoints.collect(),
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(["NAMESPACE", "SERVICE", "PORT", "BACKEND", "ENDPOINTS"]);
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    for row in rows {
        let endpoints = if row.endpoints.is_empty() {
            "none".to_owned()
        } else {
            row.endpoints.join(" ")
        };
        table.row([
            or_none(&row.namespace),
            or_none(&row.service),
            or_none(&row.port),
            row.backend.clone(),
            endpoints,
        ]);
    }
    table.lines(true)
}
