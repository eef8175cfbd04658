//! `nginx-ingress-controller ingresses`: all Ingresses, and whether they are served.

use std::{collections::BTreeSet, io::Write};

use clap::Parser;
use ingress_model::{ObjectKind, ObjectName, ObjectRef, Outcome, diagnostic::Reason};
use k8s_openapi::api::networking::v1::Ingress;
use serde::Serialize;

use super::{
    CommandError, ListingArgs, RefusalArgs, Subcommand, Verdict, progress::Progress,
    refused::Judged, source, table::Table,
};
use crate::{args::Args, quarantine::Level};

/// Which Ingresses are listed.
#[derive(Clone, Debug, Parser)]
pub struct IngressesArgs {
    /// Only those that name this host
    #[arg(long, value_name = "HOST", help_heading = "Selection")]
    pub host: Option<String>,

    /// How it is found out what NGINX refuses.
    #[command(flatten)]
    pub refusal: RefusalArgs,

    /// What all lists have.
    #[command(flatten)]
    pub listing: ListingArgs,
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
    /// Whether it is served, be it not as it is written.
    served: bool,
    /// Why it is not served, or not as it is written since NGINX refuses that.
    reason: Option<String>,
}

impl Subcommand for IngressesArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.listing.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let progress = Progress::start("reading objects");
        let found = source::find(&self.listing.controller)?;
        progress.next("merging and rendering");
        let judged = self.refusal.judge(&found, &self.listing.controller)?;
        drop(progress);
        let ingresses = found.snapshot.ingresses.iter();
        let holders = holders(&judged.merged.outcome);
        let rows = ingresses.map(|(name, ingress)| row(name, ingress, &judged, &holders));
        let rows: Vec<_> = rows.filter(|row| self.wants(row)).collect();
        let output = self.listing.output.output;
        output.write(to, &rows, |rows| table(rows))?;
        Ok(Verdict::Fine)
    }
}

impl IngressesArgs {
    fn wants(&self, row: &Row) -> bool {
        let host = self.host.as_deref();
        let has_host = |host: &str| row.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        host.is_none_or(has_host) && self.listing.wants(Some(&row.namespace))
    }
}

/// Who holds a path.
fn holders(outcome: &Outcome) -> BTreeSet<&ObjectName> {
    let servers = outcome.model.layout.servers.values();
    let locations = servers.flat_map(|server| &server.locations);
    locations
        .filter_map(|location| location.ingress.as_ref())
        .collect()
}

fn row(
    name: &ObjectName,
    ingress: &Ingress,
    judged: &Judged,
    holders: &BTreeSet<&ObjectName>,
) -> Row {
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
    let outcome = &judged.merged.outcome;
    let level = judged.levels.get(name);
    let is_out = matches!(level, Some(Level::Denied | Level::Removed));
    let has_lost = !holders.contains(name) && said(name, outcome, LOST).is_some();
    let served = outcome.last_good.get(name).is_some() && !is_out && !has_lost;
    Row {
        namespace: name.namespace().to_owned(),
        name: name.name().to_owned(),
        class: class.or(annotated).cloned(),
        hosts,
        addresses: addresses.collect(),
        served,
        reason: match level {
            Some(_) => said(name, outcome, |reason| reason == Reason::RefusedByNginx),
            None if has_lost => said(name, outcome, LOST),
            None if served => None,
            None => said(name, outcome, |_| true),
        },
    }
}

/// That others hold a path of the Ingress.
const LOST: fn(Reason) -> bool = |reason| reason == Reason::PathConflict;

/// The first thing of that kind that is said of an Ingress.
fn said(name: &ObjectName, outcome: &Outcome, kind: impl Fn(Reason) -> bool) -> Option<String> {
    let about = ObjectRef::new(ObjectKind::Ingress, name.clone());
    let mut all = outcome.diagnostics.iter();
    let said = all.find(|said| said.object == about && kind(said.reason))?;
    Some(format!("{}: {}", said.reason, said.message))
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
        let served = if row.served { "yes" } else { "no" };
        let served = match &row.reason {
            Some(reason) => format!("{served}: {reason}"),
            None => served.to_owned(),
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
