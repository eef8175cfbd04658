//! `nginx-ingress-controller ingresses`: all Ingresses, and whether they are served.

use std::io::Write;

use clap::Parser;
use ingress_model::{ObjectKind, ObjectName, ObjectRef};
use k8s_openapi::api::networking::v1::Ingress;
use serde::Serialize;

use super::{
    CommandError, OutputArgs, Subcommand, Verdict,
    progress::Progress,
    source::{self, Merged},
    table::Table,
};
use crate::args::Args;

/// Which Ingresses are listed.
#[derive(Clone, Debug, Parser)]
pub struct IngressesArgs {
    /// Only those that name this host
    #[arg(long, value_name = "HOST", help_heading = "Ingresses")]
    pub host: Option<String>,

    /// Only those of this namespace
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Ingresses")]
    pub namespace: Option<String>,

    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// How they look.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// An Ingress.
#[derive(Debug, Serialize)]
struct Row {
    namespace: String,
    name: String,
    /// What it says of its class.
    class: Option<String>,
    /// Hosts of its rules; `*` for a rule without host or a default backend.
    hosts: Vec<String>,
    /// Addresses of its status.
    addresses: Vec<String>,
    served: bool,
    /// Why it is not served.
    reason: Option<String>,
}

impl Subcommand for IngressesArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let progress = Progress::start("reading objects");
        let found = source::find(&self.controller)?;
        let merged = found.merge(&self.controller);
        drop(progress);
        let ingresses = found.snapshot.ingresses.iter();
        let rows = ingresses.map(|(name, ingress)| row(name, ingress, &merged));
        let rows: Vec<_> = rows.filter(|row| self.wants(row)).collect();
        self.output.output.write(to, &rows, |rows| table(rows))?;
        Ok(Verdict::Fine)
    }
}

impl IngressesArgs {
    fn wants(&self, row: &Row) -> bool {
        let host = self.host.as_deref();
        let has_host = |host: &str| row.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        let namespace = self.namespace.as_deref();
        host.is_none_or(has_host) && namespace.is_none_or(|name| row.namespace == name)
    }
}

fn row(name: &ObjectName, ingress: &Ingress, merged: &Merged) -> Row {
    let spec = ingress.spec.as_ref();
    let rules = spec.iter().flat_map(|spec| &spec.rules).flatten();
    let mut hosts: Vec<_> = rules
        .map(|rule| rule.host.clone().filter(|host| !host.is_empty()))
        .map(|host| host.unwrap_or_else(|| "*".to_owned()))
        .collect();
    if hosts.is_empty() && spec.is_some_and(|spec| spec.default_backend.is_some()) {
        hosts.push("*".to_owned());
    }
    hosts.dedup();
    let annotations = ingress.metadata.annotations.as_ref();
    let annotated = annotations.and_then(|all| all.get("kubernetes.io/ingress.class"));
    let class = spec.and_then(|spec| spec.ingress_class_name.as_ref());
    let status = ingress.status.as_ref();
    let balancers = status.iter().flat_map(|status| &status.load_balancer);
    let addresses = balancers.flat_map(|balancer| &balancer.ingress).flatten();
    let addresses =
        addresses.filter_map(|address| address.ip.as_ref().or(address.hostname.as_ref()).cloned());
    let served = merged.outcome.last_good.get(name).is_some();
    let about = ObjectRef::new(ObjectKind::Ingress, name.clone());
    let mut said = merged.outcome.diagnostics.iter();
    let said = said.find(|said| said.object == about);
    Row {
        namespace: name.namespace().to_owned(),
        name: name.name().to_owned(),
        class: class.or(annotated).cloned(),
        hosts,
        addresses: addresses.collect(),
        served,
        reason: said
            .filter(|_| !served)
            .map(|said| format!("{}: {}", said.reason, said.message)),
    }
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(["NAMESPACE", "NAME", "CLASS", "HOSTS", "ADDRESSES", "SERVED"]);
    let list = |items: &[String]| {
        if items.is_empty() {
            "-".to_owned()
        } else {
            items.join(",")
        }
    };
    for row in rows {
        let served = match &row.reason {
            _ if row.served => "yes".to_owned(),
            Some(reason) => format!("no: {reason}"),
            None => "no".to_owned(),
        };
        table.row([
            row.namespace.clone(),
            row.name.clone(),
            row.class.clone().unwrap_or_else(|| "-".to_owned()),
            list(&row.hosts),
            list(&row.addresses),
            served,
        ]);
    }
    table.lines(true)
}
