//! Culprits that can be read off the files which NGINX has refused, all of them at once: a test for each would keep
//! everybody waiting at a start with many of them, and a search for each that is named by no line even longer.

use std::{collections::BTreeSet, fs::File, io::Read, path::Path};

use nginx_render::{
    Rendered,
    syntax::{self, Fault, Files},
};

use super::{
    Loader,
    inquiry::{Inquiry, named},
};
use crate::{culprit::Suspect, guard::guard, nginx::test::Refusal, planner::Trial, variables};

/// So many bytes of an included file are read.
const LONGEST_FILE: u64 = 1 << 20;

impl Loader {
    /// Keeps apart whatever is at fault for all to read, but for who has been dealt with. Answers whether that makes a
    /// difference.
    pub(super) fn keep_apart_readable(
        &self,
        rendered: &Rendered,
        refusal: &Refusal,
        dealt_with: Option<&Suspect>,
        trial: &Trial,
    ) -> bool {
        // Who is taken out once more is taken out further: once is enough.
        let mut seen: BTreeSet<Suspect> = dealt_with.into_iter().cloned().collect();
        // Nobody is released again if a key turns out to be at fault for something else.
        let mut inquiry = Inquiry::default();
        let mut differs = false;
        for fault in self.faults(rendered, refusal) {
            let Some(suspect) = named(&fault.source, trial) else {
                continue;
            };
            let Some(reason) = reason(&fault, &suspect, trial) else {
                continue;
            };
            if seen.insert(suspect.clone()) {
                let what = Some(fault.source.what);
                differs |= self.isolate(&suspect, &reason, what, trial, &mut inquiry);
            }
        }
        differs
    }

    /// What is wrong with files that NGINX has refused, as far as that can be read. Nothing, where reading fails: there is
    /// the search yet.
    pub(super) fn faults(&self, rendered: &Rendered, refusal: &Refusal) -> Vec<Fault> {
        let files = Machine(self.configuration.directory());
        let faults = guard("reading the configuration", || {
            let mut faults = syntax::check_with_files(rendered, &self.directives, &files);
            faults.extend(told(rendered, refusal));
            faults
        });
        faults.unwrap_or_default()
    }
}

/// Files as NGINX finds them whose directory this is.
struct Machine<'a>(&'a Path);

impl Files for Machine<'_> {
    fn is_there(&self, path: &str) -> Option<bool> {
        self.0.join(path).try_exists().ok()
    }

    fn read(&self, path: &str) -> Option<String> {
        let mut text = String::new();
        let file = File::open(self.0.join(path)).ok()?;
        let is_file = file.metadata().ok()?.is_file();
        let mut file = file.take(LONGEST_FILE);
        (is_file && file.read_to_string(&mut text).is_ok()).then_some(text)
    }
}

/// What to say of a fault. `None` when it is not the suspect's own: values of the ConfigMap stand in everybody's part of
/// the files.
pub(super) fn reason(fault: &Fault, suspect: &Suspect, trial: &Trial) -> Option<String> {
    let Some(variable) = &fault.variable else {
        return Some(fault.reason.clone());
    };
    match suspect {
        Suspect::Ingress(name) => {
            let objects = [trial.stored(name), trial.snapshot().ingresses.get(name)];
            let mut objects = objects.into_iter().flatten();
            let key = objects.find_map(|ingress| variables::annotation_with(ingress, variable))?;
            Some(format!("{key}: {}", fault.reason))
        }
        Suspect::Key(key) => {
            let config = trial.config();
            let names_it = syntax::mentions(config.get(key)?, variable);
            names_it.then(|| fault.reason.clone())
        }
    }
}

/// What NGINX has refused, where it says no more than the name of a variable: everybody's part that names it.
fn told(rendered: &Rendered, refusal: &Refusal) -> impl Iterator<Item = Fault> {
    let variable = unknown_variable(&refusal.reason).map(str::to_ascii_lowercase);
    let users = variable
        .as_deref()
        .map(|name| syntax::users(rendered, name));
    let fault = move |source| Fault {
        source,
        reason: refusal.reason.clone(),
        variable: variable.clone(),
    };
    users.unwrap_or_default().into_iter().map(fault)
}

/// What snippets would take from others, with NGINX taking it.
pub(super) fn trespass(rendered: &Rendered) -> Option<Refusal> {
    let faults = guard("reading the snippets", || syntax::trespasses(rendered));
    let first = faults.unwrap_or_default().into_iter().next()?;
    Some(Refusal::of(first.reason))
}

/// The variable that NGINX does not know.
pub(super) fn unknown_variable(reason: &str) -> Option<&str> {
    let rest = reason.strip_prefix("unknown \"")?;
    rest.strip_suffix("\" variable")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_taken_from_what_nginx_says() {
        assert_eq!(
            unknown_variable(r#"unknown "no_such" variable"#),
            Some("no_such")
        );
        assert_eq!(unknown_variable(r#"unknown directive "no_such""#), None);
        assert_eq!(unknown_variable("killed"), None);
    }
}
