//! `nginx-ingress-controller ingresses`: all Ingresses, and whether they are served.
//!
//! A list that could be made is a success, whatever it says, as lists of `kubectl` are; with `--exit-code` it is not where
//! an Ingress that is ours is not served, or not as it is written. The gate for CI is `lint`.

use std::{collections::BTreeSet, io::Write};

use clap::Parser;
use ingress_model::{Diagnostic, ObjectKind, ObjectName, ObjectRef, Outcome, diagnostic::Reason};
use k8s_openapi::api::networking::v1::Ingress;
use serde::Serialize;

use super::{
    CommandError, ListingArgs, RefusalArgs, Subcommand, Verdict, progress::Progress,
    refused::Judged, source, table::Table,
};
use crate::{
    args::{Args, switch},
    quarantine::Level,
};

/// Which Ingresses are listed.
#[derive(Clone, Debug, Parser)]
pub struct IngressesArgs {
    /// Only those that name this host
    #[arg(long, value_name = "HOST", help_heading = "Selection")]
    pub host: Option<String>,

    /// Let the exit code be 1 when one of those that are listed and ours is not served, or not as it is written
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = switch, help_heading = "Output")]
    pub exit_code: bool,

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
    /// Whether it is for another controller.
    foreign: bool,
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
        let is_fine = rows.iter().all(|row| row.foreign || row.reason.is_none());
        Ok(Verdict::fine_if(is_fine || !self.exit_code))
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
    let reason = match level {
        Some(_) => said(name, outcome, |reason| reason == Reason::RefusedByNginx),
        None if has_lost => said(name, outcome, LOST),
        None if served => None,
        None => said(name, outcome, |_| true),
    };
    Row {
        namespace: name.namespace().to_owned(),
        name: name.name().to_owned(),
        class: class.or(annotated).cloned(),
        hosts,
        addresses: addresses.collect(),
        served,
        foreign: reason.is_some_and(|said| FOREIGN.contains(&said.reason)),
        reason: reason.map(|said| format!("{}: {}", said.reason, said.message)),
    }
}

/// That others hold a path of the Ingress.
const LOST: fn(Reason) -> bool = |reason| reason == Reason::PathConflict;

/// That an Ingress is none of ours.
const FOREIGN: [Reason; 2] = [Reason::ForeignClass, Reason::ForeignNamespace];

/// The first thing of that kind that is said of an Ingress.
fn said<'a>(
    name: &ObjectName,
    outcome: &'a Outcome,
    kind: impl Fn(Reason) -> bool,
) -> Option<&'a Diagnostic> {
    let about = ObjectRef::new(ObjectKind::Ingress, name.clone());
    let mut all = outcome.diagnostics.iter();
    all.find(|said| said.object == about && kind(said.reason))
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
    let mut text = table.lines(true);
    if !text.is_empty() {
        text.push('\n');
    }
    text + &sum(rows)
}

/// How many there are, and how many of them want looking at.
fn sum(rows: &[Row]) -> String {
    let count = |which: fn(&Row) -> bool| rows.iter().filter(|row| which(row)).count();
    let ingresses = match rows.len() {
        1 => "1 Ingress".to_owned(),
        many => format!("{many} Ingresses"),
    };
    let parts = [
        (
            count(|row| row.served && row.reason.is_none()),
            "served as written",
        ),
        (
            count(|row| row.served && row.reason.is_some()),
            "served otherwise than written",
        ),
        (count(|row| !row.served && !row.foreign), "not served"),
        (count(|row| row.foreign), "for other controllers"),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = parts
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    if parts.is_empty() {
        return format!("{ingresses}\n");
    }
    format!("{ingresses}: {}\n", parts.join(", "))
}
