//! `nginx-ingress-controller conf`: the configuration that NGINX runs with, or one of its servers.

pub(super) mod structure;

use std::{fs, io::Write};

use clap::Parser;
use regex::RegexBuilder;
use serde::Serialize;

use self::structure::ServerBlock;
use super::{CommandError, Output, OutputArgs, Subcommand, Verdict, output};
use crate::args::Args;

/// What is shown of the configuration in --nginx-dir.
#[derive(Clone, Debug, Parser)]
pub struct ConfArgs {
    /// Show only the server that answers for this host
    #[arg(long, value_name = "HOST", help_heading = "Configuration")]
    pub host: Option<String>,

    /// The flags of the controller.
    #[command(flatten)]
    pub controller: Args,

    /// How it looks.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is shown.
#[derive(Debug, Serialize)]
struct Report {
    /// The file.
    file: String,
    /// The names of the server, if one was asked for.
    server_names: Option<Vec<String>>,
    /// The text of the file or of the server.
    text: String,
}

impl Subcommand for ConfArgs {
    fn controller(&self) -> Option<&Args> {
        Some(&self.controller)
    }

    fn tell(&self, to: &mut dyn Write) -> Result<Verdict, CommandError> {
        let path = self.controller.nginx.nginx_dir.join("nginx.conf");
        let text = fs::read_to_string(&path).map_err(|source| CommandError::ReadFile {
            path: path.clone(),
            source,
        })?;
        let servers = structure::servers(&text);
        let server = match &self.host {
            None => None,
            Some(host) => {
                let found = server_for(&servers, host);
                Some(found.ok_or_else(|| CommandError::NotFound {
                    what: format!("server for host {host} in {}", path.display()),
                })?)
            }
        };
        let report = Report {
            file: path.display().to_string(),
            server_names: server.map(|server| server.names.clone()),
            text: server
                .map_or(text.as_str(), |server| server.text)
                .to_owned(),
        };
        match self.output.output {
            Output::Table => output::write_shown(to, &report.text)?,
            Output::Json => output::write(to, &output::json(&report)?)?,
        }
        Ok(Verdict::Fine)
    }
}

/// The server that NGINX takes for a host (NGINX docs: "Server names"): by its name, else by the longest wildcard, else by
/// the first regular expression that matches, else by the name `_`.
fn server_for<'a, 'b>(servers: &'a [ServerBlock<'b>], host: &str) -> Option<&'a ServerBlock<'b>> {
    let host = host.to_ascii_lowercase();
    let named = |name: &str| {
        let mut servers = servers.iter();
        servers.find(|server| server.names.iter().any(|other| other == name))
    };
    let levels = host.match_indices('.').map(|(at, _)| at);
    let wildcards = levels.map(|at| format!("*{}", host.get(at..).unwrap_or_default()));
    let mut names = [host.clone()].into_iter().chain(wildcards);
    let found = names.find_map(|name| named(&name));
    found
        .or_else(|| servers.iter().find(|server| matches(server, &host)))
        .or_else(|| named("_"))
}

/// Whether one of the server's regular expressions matches a host.
fn matches(server: &ServerBlock<'_>, host: &str) -> bool {
    let patterns = server
        .names
        .iter()
        .filter_map(|name| name.strip_prefix('~'));
    let patterns = patterns.map(|pattern| {
        let mut builder = RegexBuilder::new(pattern);
        builder.case_insensitive(true).build()
    });
    patterns
        .filter_map(Result::ok)
        .any(|pattern| pattern.is_match(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_name_counts() {
        let conf = "http {\nserver { server_name _; }\nserver { server_name \"*.a.test\"; }\n\
            server { server_name b.a.test c.test; }\nserver { server_name \"~^(?<one>[\\\\w-]+)\\\\.d\\\\.test$\"; }\n}";
        let servers = structure::servers(conf);
        for (host, want) in [
            ("B.a.test", "b.a.test"),
            ("c.test", "b.a.test"),
            ("x.a.test", "*.a.test"),
            ("x.y.a.test", "*.a.test"),
            ("a.test", "_"),
            ("X.d.test", "~^(?<one>[\\w-]+)\\.d\\.test$"),
            ("x.y.d.test", "_"),
        ] {
            let found = server_for(&servers, host).map(|server| server.names[0].as_str());
            assert_eq!(found, Some(want), "{host}");
        }
        assert!(server_for(&[], "a.test").is_none());
    }
}
