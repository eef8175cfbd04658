//! What is known of the NGINX that runs: its files, and the backends that it was told.

use std::{collections::BTreeMap, fs, path::Path};

use lua_sync_client::wire::{self, Backend};

use super::{
    Change, Reason, Told,
    side::{File, Files, Side, without_checksum},
};
use crate::{
    args::Args,
    command::{CommandError, conf::structure, local, output},
};

/// What this side is called.
pub(super) const NAME: &str = "running";

const MAIN: &str = "nginx.conf";

/// The NGINX that runs.
#[derive(Debug)]
pub(super) struct Running {
    /// Those of its files that the other side has too and that are not kept from us.
    pub(super) files: Files,
    /// Its backends as JSON.
    pub(super) backends: String,
    told: Vec<Backend>,
}

impl Running {
    /// Reads its files and asks it for its backends.
    pub(super) fn ask(args: &Args, other: &Side) -> Result<Self, CommandError> {
        let directory = &args.nginx.nginx_dir;
        let main = read(&directory.join(MAIN))?;
        let mut files = Files::from([(MAIN.to_owned(), main)]);
        for (path, file) in &other.files {
            let path_there = directory.join(path);
            if file.text().is_some() && path != MAIN && path_there.exists() {
                files.insert(path.clone(), read(&path_there)?);
            }
        }
        let told = local::backends(args)?;
        Ok(Self {
            files,
            backends: output::json(&told)?,
            told,
        })
    }

    /// Why it would have to reload, as far as its main file tells.
    pub(super) fn reasons(&self, new: &Side) -> Vec<Reason> {
        let text = |files: &Files| {
            let main = files.get(MAIN).and_then(File::text);
            main.unwrap_or_default().to_owned()
        };
        let (old, new_text) = (text(&self.files), text(&new.files));
        let (before, after) = (servers(&old), servers(&new_text));
        let mut hosts: Vec<_> = before.keys().chain(after.keys()).collect();
        hosts.sort();
        hosts.dedup();
        let reasons = hosts.into_iter().filter_map(|host| {
            let (reason, what) = match (before.get(host), after.get(host)) {
                (None, _) => ("host_added", "added"),
                (_, None) => ("host_removed", "removed"),
                (old, new) if old != new => ("server_changed", "changed"),
                _ => return None,
            };
            Some(Reason {
                reason,
                text: format!("host {host} {what}"),
            })
        });
        let mut reasons: Vec<_> = reasons.collect();
        if structure::frame(&old) != structure::frame(&new_text) {
            reasons.push(Reason {
                reason: "config_changed",
                text: "settings outside of servers changed".to_owned(),
            });
        }
        let others = self.files.iter().filter(|(path, _)| *path != MAIN);
        let changed = others.filter(|(path, file)| new.files.get(*path) != Some(file));
        reasons.extend(changed.map(|(path, _)| Reason {
            reason: "config_changed",
            text: format!("file {path} changed"),
        }));
        reasons
    }

    /// What it would be told.
    pub(super) fn told(&self, new: &Side) -> Vec<Told> {
        let wanted = wire::backends(&new.live);
        let before: BTreeMap<_, _> = self.told.iter().map(|old| (&old.name, old)).collect();
        let after: BTreeMap<_, _> = wanted.iter().map(|new| (&new.name, new)).collect();
        let mut names: Vec<_> = before.keys().chain(after.keys()).copied().collect();
        names.sort();
        names.dedup();
        let told = names.into_iter().filter_map(|name| {
            let change = match (before.get(name), after.get(name)) {
                (_, None) => Change::Removed,
                (old, new) if old != new => Change::Set,
                _ => return None,
            };
            Some(Told {
                kind: "backend",
                name: name.clone(),
                change,
            })
        });
        told.collect()
    }
}

/// The text of the servers by their hosts. Those of one host, such as a redirect from it, are taken together.
fn servers(conf: &str) -> BTreeMap<String, String> {
    let mut servers: BTreeMap<String, String> = BTreeMap::new();
    for server in structure::servers(conf) {
        *servers.entry(server.host()).or_default() += server.text;
    }
    servers
}

fn read(path: &Path) -> Result<File, CommandError> {
    let text = fs::read_to_string(path).map_err(|source| CommandError::ReadFile {
        path: path.to_owned(),
        source,
    })?;
    Ok(File::Shown(without_checksum(&text)))
}
