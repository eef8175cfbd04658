//! `nginx-ingress-controller explain`: what the controller would do with objects, and why.
//!
//! It looks at the objects once, merges them as the controller does, and tells what an [`Explainer`] says. Nothing is
//! written, and no NGINX is needed.

mod source;
mod table;
mod text;
mod words;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use ingress_model::{
    Explainer,
    explain::{ConfigReport, Explanation, HostExplanation, Overview, PathError},
    live::{Certificate, CertificateId},
    merge,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    args::{ExplainArgs, Output},
    chain::chain,
    logging,
};

pub use self::source::ExplainError;
use self::source::Objects;

/// The subcommand.
pub(super) const NAME: &str = "explain";

/// What it is for.
pub(super) const ABOUT: &str =
    "Explains which server, location and endpoints a request gets and why, and what is not served";

/// The code with which the program ends when the input cannot be read.
const UNREADABLE: u8 = 2;

/// What is told.
#[derive(Debug, Serialize)]
struct Report {
    /// Manifests that are left out: file, line and reason.
    broken_manifests: Vec<String>,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Request(Box<Explanation>),
    Host(Box<HostExplanation>),
    Overview(Overview),
    Config(ConfigReport),
    BadRequest { request: String, reason: String },
}

impl Answer {
    /// Whether what was asked about is served.
    fn is_found(&self) -> bool {
        match self {
            Self::Request(explanation) => explanation.is_served(),
            Self::Host(explanation) => explanation.is_served(),
            Self::Overview(_) => true,
            Self::Config(report) => report.exists,
            Self::BadRequest { .. } => false,
        }
    }
}

impl ExplainArgs {
    /// Explains. The code is 0 when what was asked about is served, 1 when it is not, and 2 when the input cannot be read.
    #[must_use]
    pub fn run(self) -> ExitCode {
        if self.controller.logging.verbosity > 0 {
            logging::start(&self.controller.logging);
        }
        match self.tell(&mut io::stdout().lock()) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                // Where nobody reads our errors, the code has to do.
                let _written = writeln!(io::stderr(), "{}", chain(&error));
                ExitCode::from(UNREADABLE)
            }
        }
    }

    /// Writes the explanation, and answers whether what was asked about is served.
    ///
    /// # Errors
    ///
    /// When the objects cannot be read, or the explanation cannot be written.
    pub fn tell(&self, to: &mut impl Write) -> Result<bool, ExplainError> {
        let found = source::find(&self.controller)?;
        let report = self.report(&found)?;
        let text = match self.output {
            Output::Table => text::report(&report, self.defaults),
            Output::Json => {
                let json = serde_json::to_string_pretty(&report);
                json.map_err(|source| ExplainError::Write {
                    source: source.into(),
                })? + "\n"
            }
        };
        let written = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        match written {
            // Who stops reading has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(|source| ExplainError::Write { source })?,
        }
        Ok(report.answer.is_found())
    }

    fn report(&self, found: &Objects) -> Result<Report, ExplainError> {
        let mut options = self.controller.options();
        options.ingress_classes_readable = found.classes_readable;
        // A running controller makes one; here it only stands for it.
        options.generated_certificate = Some(Certificate {
            id: CertificateId::new(CertificateId::GENERATED),
            pem: "".into(),
        });
        let outcome = merge(&found.snapshot, &options, Timestamp::now());
        let own = [&self.controller.ports.health_check_path, "/nginx_status"];
        let explainer = Explainer::new(&found.snapshot, &options, &outcome)
            .with_own_paths(own.map(str::to_owned));
        let answer = match self.target.as_deref().map(request) {
            _ if self.config => {
                Answer::Config(explainer.config().ok_or(ExplainError::NoConfigMap)?)
            }
            None => Answer::Overview(explainer.overview()),
            Some((host, None)) => Answer::Host(Box::new(explainer.host(host))),
            Some((host, Some(path))) => match explainer.request(host, path) {
                Ok(explanation) => Answer::Request(Box::new(explanation)),
                Err(error) => bad_request(host, path, error),
            },
        };
        Ok(Report {
            broken_manifests: found.broken.iter().map(ToString::to_string).collect(),
            answer,
        })
    }
}

fn bad_request(host: &str, path: &str, error: PathError) -> Answer {
    Answer::BadRequest {
        request: format!("{host}{path}"),
        reason: error.to_string(),
    }
}

/// Host and path of `HOST[/PATH]`, in front of which a scheme may stand.
fn request(target: &str) -> (&str, Option<&str>) {
    let schemes = ["http://", "https://"];
    let rest = schemes
        .iter()
        .find_map(|scheme| target.strip_prefix(scheme))
        .unwrap_or(target);
    match rest.find('/') {
        Some(at) => {
            let (host, path) = rest.split_at(at);
            (host, Some(path))
        }
        None => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hosts_or_requests() {
        for (target, want) in [
            ("shop.test", ("shop.test", None)),
            ("shop.test/", ("shop.test", Some("/"))),
            (
                "https://shop.test:8443/a?b#c",
                ("shop.test:8443", Some("/a?b#c")),
            ),
            ("http://shop.test", ("shop.test", None)),
            ("/cart", ("", Some("/cart"))),
        ] {
            assert_eq!(request(target), want, "{target}");
        }
    }
}
