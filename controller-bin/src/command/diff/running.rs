//! What is known of the controller and the NGINX that run: the model that is in force, the files, and the backends that NGINX
//! was told.

use std::{collections::BTreeMap, fs, path::Path};

use lua_sync_client::wire::{self, Backend};
use serde_json::{Map, Value};

use super::{
    Change, FlagDifference, Reason, Told,
    reasons::{Models, live},
    side::{self, File, Files, Side, without_checksum},
};
use crate::{
    args::Args,
    command::{CommandError, local, nginx::STAND_IN_CERTIFICATE},
};

/// What this side is called.
pub(super) const NAME: &str = "running";

const MAIN: &str = "nginx.conf";

/// The controller and its NGINX.
#[derive(Debug)]
pub(super) struct Running {
    /// The model as JSON.
    pub(super) model: String,
    /// Those of NGINX's files that the other side has too, as far as we may read them.
    pub(super) files: Files,
    told: Vec<Backend>,
    /// The values of the controller's flags.
    flags: BTreeMap<String, String>,
}

/// What is different on the other side.
#[derive(Debug)]
pub(super) struct Differences {
    /// Why NGINX would have to reload.
    pub(super) reasons: Vec<Reason>,
    /// What it would be told.
    pub(super) told: Vec<Told>,
    /// Files that differ and that only NGINX may read.
    pub(super) hidden_files: Vec<String>,
}

impl Running {
    /// Asks both, and reads the files.
    pub(super) fn ask(args: &Args, other: &Side) -> Result<Self, CommandError> {
        let model = local::model(args)?;
        let directory = &args.nginx.nginx_dir;
        let main = read(&directory.join(MAIN))?;
        let mut files = Files::from([(MAIN.to_owned(), main)]);
        for (path, file) in &other.files {
            let there = directory.join(path);
            match file {
                File::Shown(_) if path != MAIN && there.exists() => {
                    files.insert(path.clone(), read(&there)?);
                }
                File::Shown(_) => {}
                // Each controller makes a certificate of its own, and some files only NGINX may read.
                File::Hidden(bytes) => {
                    let is_made = bytes == STAND_IN_CERTIFICATE.as_bytes();
                    let known = if is_made {
                        Some(bytes.clone())
                    } else {
                        fs::read(&there).ok()
                    };
                    files.extend(known.map(|bytes| (path.clone(), File::Hidden(bytes))));
                }
            }
        }
        Ok(Self {
            model,
            files,
            told: local::backends(args)?,
            flags: local::flags(args)?,
        })
    }

    /// The flags that are others here.
    pub(super) fn flags(&self, here: &BTreeMap<String, String>) -> Vec<FlagDifference> {
        let both = self.flags.iter().filter_map(|(flag, running)| {
            let here = here.get(flag).filter(|here| *here != running)?;
            Some(FlagDifference {
                flag: flag.clone(),
                running: running.clone(),
                here: here.clone(),
            })
        });
        both.collect()
    }

    /// What is different on the other side, where these flags are others.
    pub(super) fn differences(
        &self,
        new: &Side,
        flags: &[FlagDifference],
    ) -> Result<Differences, CommandError> {
        let parse = |text: &str| {
            serde_json::from_str::<Value>(text).map_err(|source| CommandError::Model { source })
        };
        let (before, after) = (parse(&self.model)?, parse(&new.model)?);
        let mut reasons = Models {
            old: &before,
            new: &after,
        }
        .reasons();
        let mut hidden_files = side::hidden(&self.files, &new.files);
        // What cannot be read is not known to differ.
        hidden_files.retain(|path| self.files.contains_key(path));
        let shown = self.files.iter().filter(|(path, file)| {
            let other = new.files.get(*path);
            file.text().is_some() && other != Some(file) && **path != *MAIN
        });
        let files = shown.map(|(path, _)| path).chain(&hidden_files);
        reasons.extend(files.map(|path| Reason {
            reason: "config_changed",
            text: self.file_changed(path, new),
        }));
        if reasons.is_empty() && self.files.get(MAIN) != new.files.get(MAIN) {
            reasons.push(Reason {
                reason: "config_changed",
                text: if flags.is_empty() {
                    "the same objects give other files: the release or NGINX differs".to_owned()
                } else {
                    let flags: Vec<_> = flags.iter().map(|it| it.flag.as_str()).collect();
                    format!(
                        "the same objects give other files, since flags differ: {}",
                        flags.join(", ")
                    )
                },
            });
        }
        let mut told = self.backends(new);
        told.extend(live(&before, &after));
        told.sort();
        Ok(Differences {
            reasons,
            told,
            hidden_files,
        })
    }

    /// That a file is another one; of JSON, what in it.
    fn file_changed(&self, path: &str, new: &Side) -> String {
        let parse = |files: &Files| {
            let text = files.get(path).and_then(File::text)?;
            serde_json::from_str::<Value>(text).ok()
        };
        let both = parse(&self.files).zip(parse(&new.files));
        let fields = both.map(|(old, new)| {
            let fields = [&old, &new].map(|side| side.as_object().map(Map::keys));
            let mut fields: Vec<_> = fields.into_iter().flatten().flatten().collect();
            fields.sort();
            fields.dedup();
            fields.retain(|field| old.get(*field) != new.get(*field));
            fields.into_iter().cloned().collect::<Vec<_>>()
        });
        match fields {
            Some(fields) if !fields.is_empty() => {
                format!("file {path} changed: {}", fields.join(", "))
            }
            Some(_) | None => format!("file {path} changed"),
        }
    }

    /// The backends that NGINX would be told.
    fn backends(&self, new: &Side) -> Vec<Told> {
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

fn read(path: &Path) -> Result<File, CommandError> {
    let text = fs::read_to_string(path).map_err(|source| CommandError::ReadFile {
        path: path.to_owned(),
        source,
    })?;
    Ok(File::Shown(without_checksum(&text)))
}
