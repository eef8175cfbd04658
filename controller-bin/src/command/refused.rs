//! What NGINX refuses of objects, kept apart as a running controller keeps it apart.
//!
//! It is known from a running controller, which has asked NGINX; or found by reading the configuration as NGINX would, as
//! `lint` does. Whoever explains objects explains what is served, and so has to leave out what is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ingress_model::{
    Diagnostic, ObjectKind, ObjectName, ObjectRef, Severity, Snapshot, diagnostic::Reason,
};
use nginx_render::{Rendered, Source, syntax};

use super::{
    CommandError, local,
    nginx::{NginxChoice, Target},
    source::{Merged, Objects},
};
use crate::{
    args::{Args, switch},
    quarantine::{Fault, Level, Quarantine, Record},
    stored::Stored,
};

/// How often something more may be kept apart: what is refused may hide something else that is.
const MOST_ROUNDS: usize = 20;

/// How it is found out what NGINX refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct RefusalArgs {
    /// Which NGINX it is.
    #[command(flatten)]
    pub nginx: NginxChoice,

    /// Ask the controller that runs on this machine (--healthz-port) what its NGINX refuses, instead of reading the
    /// configuration as NGINX would
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = switch, help_heading = "Rendering")]
    pub running: bool,
}

/// What the rules make of objects without what NGINX refuses.
#[derive(Debug)]
pub(super) struct Judged {
    /// Its diagnostics tell of what NGINX refuses, too.
    pub(super) merged: Merged,
    /// The objects, without keys of the ConfigMap that NGINX refuses.
    pub(super) snapshot: Snapshot,
    /// How far Ingresses are out.
    pub(super) levels: BTreeMap<ObjectName, Level>,
    /// Those keys, and what NGINX says.
    pub(super) keys: Vec<(String, String)>,
}

impl RefusalArgs {
    /// Merges objects without what NGINX refuses.
    ///
    /// # Errors
    ///
    /// When the running controller is to be asked, and does not answer.
    pub(super) fn judge(self, found: &Objects, args: &Args) -> Result<Judged, CommandError> {
        if self.running {
            let record = still_refused(local::isolated(args)?, found, args);
            let quarantine = Quarantine::of_record(args.nginx.on_invalid, record);
            let merged = found.merge_without(&quarantine, args);
            return Ok(Judged::new(found, merged, &quarantine, &BTreeMap::new()));
        }
        let target = self.nginx.any_target(args);
        let quarantine = Quarantine::new(args.nginx.on_invalid);
        let mut about = BTreeMap::new();
        let mut merged = found.merge_without(&quarantine, args);
        for _ in 0..MOST_ROUNDS {
            // Where nothing can be rendered, nothing can be read either.
            let Ok(rendered) = target.render(&merged.outcome.model) else {
                break;
            };
            if !keep_apart(&rendered, &target, found, &merged, &quarantine, &mut about) {
                tell_notes(&rendered, &mut merged);
                break;
            }
            merged = found.merge_without(&quarantine, args);
        }
        Ok(Judged::new(found, merged, &quarantine, &about))
    }
}

impl Judged {
    fn new(
        found: &Objects,
        mut merged: Merged,
        quarantine: &Quarantine,
        about: &BTreeMap<ObjectName, &'static str>,
    ) -> Self {
        let mut snapshot = found.snapshot.clone();
        quarantine.substitute(&mut snapshot, &merged.options);
        // Ingresses are told of as they are written.
        snapshot.ingresses = found.snapshot.ingresses.clone();
        let levels = quarantine.levels();
        let keys = quarantine.keys();
        let diagnostics = &mut merged.outcome.diagnostics;
        for (name, level) in &levels {
            let reason = quarantine.reason(name).unwrap_or_default();
            let object = ObjectRef::new(ObjectKind::Ingress, name.clone());
            let message = format!("{reason}; {level}");
            let said = Diagnostic::new(object, Severity::Error, Reason::RefusedByNginx, message);
            diagnostics.push(match about.get(name) {
                Some(what) => said.with_key(*what),
                None => said,
            });
        }
        if let Some(config_map) = &merged.options.config_map {
            diagnostics.extend(keys.iter().map(|(key, reason)| {
                let object = ObjectRef::new(ObjectKind::ConfigMap, config_map.clone());
                let message = format!("{reason}; its default holds");
                Diagnostic::new(object, Severity::Error, Reason::RefusedByNginx, message)
                    .with_key(key)
            }));
        }
        diagnostics.sort();
        Self {
            merged,
            snapshot,
            levels,
            keys,
        }
    }
}

/// What is still as it was when NGINX refused it. Who reads manifests makes up some metadata, which tells nothing.
fn still_refused(mut record: Record, found: &Objects, args: &Args) -> Record {
    record.ingresses.retain(|told| {
        let name = told.refused.object_name();
        let now = name.and_then(|name| found.snapshot.ingresses.get(&name));
        now.is_some_and(|now| {
            now.spec == told.refused.spec
                && now.metadata.annotations == told.refused.metadata.annotations
        })
    });
    let config_map = args.options().config_map;
    let config_map = config_map.and_then(|name| found.snapshot.config_maps.get(&name));
    let keys = config_map.and_then(|map| map.data.as_ref());
    record.keys.retain(|told| {
        let value = keys.and_then(|keys| keys.get(&told.key));
        value == Some(&told.value)
    });
    record
}

/// Keeps apart what NGINX would refuse of a configuration. Answers whether there was anything.
fn keep_apart(
    rendered: &Rendered,
    target: &Target,
    found: &Objects,
    merged: &Merged,
    quarantine: &Quarantine,
    about: &mut BTreeMap<ObjectName, &'static str>,
) -> bool {
    let config_map = merged.options.config_map.as_ref();
    let config_map = config_map.and_then(|name| found.snapshot.config_maps.get(name));
    let keys = config_map.and_then(|map| map.data.as_ref());
    let mut differs = false;
    let mut seen = BTreeSet::new();
    for fault in syntax::check(rendered, &target.directives) {
        let Source { ingress, what, .. } = &*fault.source;
        // What has several faults has still to be seen without the first one.
        if !seen.insert(ingress.clone().ok_or(*what)) {
            continue;
        }
        let reason = format!("{}{}", place(&fault.source), fault.reason);
        let stored = ingress
            .as_ref()
            .and_then(|name| found.snapshot.ingresses.get(name));
        if let Some((name, stored)) = ingress.as_ref().zip(stored) {
            let fault = Fault {
                reason,
                annotation: Some(what),
                served: None,
            };
            let prefix = &merged.options.annotations_prefix;
            if quarantine
                .isolate(&Arc::clone(stored), &fault, prefix)
                .is_some()
            {
                differs = true;
                let is_annotation = !matches!(*what, "server" | "location");
                about.extend(is_annotation.then(|| (name.clone(), *what)));
            }
        } else if let Some(value) = keys.and_then(|keys| keys.get(*what)) {
            differs |= quarantine.leave_out(what, value, &reason);
        }
    }
    differs
}

/// Adds what could not be rendered as it was asked for.
fn tell_notes(rendered: &Rendered, merged: &mut Merged) {
    let config_map = merged.options.config_map.as_ref();
    let notes = rendered.notes.iter().filter_map(|note| {
        let ingress = note.source.ingress.as_ref();
        let ingress = ingress.map(|name| ObjectRef::new(ObjectKind::Ingress, name.clone()));
        let config_map = config_map.map(|name| ObjectRef::new(ObjectKind::ConfigMap, name.clone()));
        let message = format!("{}{}", place(&note.source), note.text);
        let said = Diagnostic::new(
            ingress.or(config_map)?,
            Severity::Warning,
            Reason::NotRendered,
            message,
        );
        Some(match note.source.what {
            "server" | "location" => said,
            what => said.with_key(what),
        })
    });
    merged.outcome.diagnostics.extend(notes);
}

/// The place of a source, to stand before what there is to say of it.
pub(super) fn place(source: &Source) -> String {
    match (&source.host, &source.path) {
        (Some(host), Some(path)) => format!("host {host}, path {path}: "),
        (Some(host), None) => format!("host {host}: "),
        (None, _) => String::new(),
    }
}
