//! `nginx-ingress-controller certs`: the certificate that the running NGINX shows for a host. Never its key.

use std::io::Write;

use clap::{Parser, ValueEnum};
use ingress_model::Host;
use jiff::Timestamp;
use serde::Serialize;
use x509_parser::{
    certificate::X509Certificate, extensions::GeneralName, pem::Pem, time::ASN1Time,
};

use super::{CommandError, Output, OutputArgs, Subcommand, Verdict, local, output, table::Table};
use crate::args::{Args, switch};

/// Whose certificate is shown. The NGINX is the one of this machine whose status port is --status-port.
#[derive(Clone, Debug, Parser)]
pub struct CertsArgs {
    /// What to do
    #[arg(value_enum, value_name = "WHAT")]
    pub what: WhatOfCertificates,

    /// The host
    #[arg(value_name = "HOST")]
    pub host: String,

    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// Show the certificates themselves, as PEM
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = switch, help_heading = "Output")]
    pub pem: bool,

    /// How the certificate looks.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What can be done with certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhatOfCertificates {
    /// Show one.
    Get,
}

/// What is shown.
#[derive(Debug, Serialize)]
struct Report {
    /// The host that was asked for.
    host: String,
    /// The name that NGINX has the certificate for: the host, its wildcard, or `_`.
    name: String,
    /// Leaf first.
    chain: Vec<Certificate>,
    /// The same, as PEM.
    pem: String,
}

#[derive(Debug, Serialize)]
struct Certificate {
    subject: String,
    issuer: String,
    serial: String,
    /// DNS names and IP addresses that it is for.
    names: Vec<String>,
    not_before: String,
    not_after: String,
    expired: bool,
}

impl Subcommand for CertsArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let WhatOfCertificates::Get = self.what;
        let report = self.report()?;
        let text = match self.output.output {
            Output::Json => output::json(&report)?,
            Output::Table if self.pem => report.pem,
            Output::Table => table(&report),
        };
        output::write(to, &text)?;
        Ok(Verdict::Fine)
    }
}

impl CertsArgs {
    /// Asks for the host's name, its wildcard, and what is shown to all others, as a handshake does.
    fn report(&self) -> Result<Report, CommandError> {
        let host = self.host.to_ascii_lowercase();
        let wildcard = host
            .split_once('.')
            .map(|(_, parent)| format!("*.{parent}"));
        let names = [
            Some(host.clone()),
            wildcard,
            Some(Host::CATCH_ALL.to_owned()),
        ];
        for name in names.into_iter().flatten() {
            if let Some(pem) = local::certificates(&self.controller, &name)? {
                let now = Timestamp::now();
                return Ok(Report {
                    host,
                    name,
                    chain: chain(&pem, now),
                    pem,
                });
            }
        }
        Err(CommandError::NotFound {
            what: format!("certificate for host {host}"),
        })
    }
}

/// The certificates of a PEM text. What is none is left out.
fn chain(pem: &str, now: Timestamp) -> Vec<Certificate> {
    let blocks = Pem::iter_from_buffer(pem.as_bytes());
    let blocks = blocks.filter_map(Result::ok);
    let certificates = blocks.filter_map(|block| {
        let certificate = block.parse_x509().ok()?;
        Some(summary(&certificate, now))
    });
    certificates.collect()
}

fn summary(certificate: &X509Certificate<'_>, now: Timestamp) -> Certificate {
    let validity = certificate.validity();
    let extension = certificate.subject_alternative_name().ok().flatten();
    let names = extension
        .iter()
        .flat_map(|names| &names.value.general_names);
    Certificate {
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        serial: certificate.raw_serial_as_string(),
        names: names.filter_map(name).collect(),
        not_before: time(validity.not_before),
        not_after: time(validity.not_after),
        expired: validity.not_after.timestamp() < now.as_second(),
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress([a, b, c, d]) => Some(format!("{a}.{b}.{c}.{d}")),
        GeneralName::IPAddress(bytes) => {
            let bytes = <[u8; 16]>::try_from(*bytes).ok()?;
            Some(std::net::Ipv6Addr::from(bytes).to_string())
        }
        GeneralName::OtherName(..)
        | GeneralName::RFC822Name(_)
        | GeneralName::X400Address(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EDIPartyName(_)
        | GeneralName::URI(_)
        | GeneralName::RegisteredID(_)
        | GeneralName::Invalid(..) => None,
    }
}

fn time(time: ASN1Time) -> String {
    let time = Timestamp::from_second(time.timestamp());
    time.map_or_else(|_| "-".to_owned(), |time| time.to_string())
}

fn table(report: &Report) -> String {
    let mut text = String::new();
    for (number, certificate) in report.chain.iter().enumerate() {
        let mut table = Table::plain();
        let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
        if number == 0 {
            row("host", report.host.clone());
            row("found as", report.name.clone());
        } else {
            text.push('\n');
        }
        row("subject", certificate.subject.clone());
        row("issuer", certificate.issuer.clone());
        row("names", certificate.names.join(" "));
        row("not before", certificate.not_before.clone());
        let expired = if certificate.expired {
            " (expired)"
        } else {
            ""
        };
        row("not after", format!("{}{expired}", certificate.not_after));
        row("serial", certificate.serial.clone());
        text += &table.lines(false);
    }
    text
}
