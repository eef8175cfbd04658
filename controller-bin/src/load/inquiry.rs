//! Finding out what of a configuration NGINX refuses, and keeping it apart.
//!
//! The error names a line, and the line belongs to an Ingress or a key of the ConfigMap. Who else is at fault for all to
//! read goes with it (`reading`). Where the error names no line and nothing is to be read, or where a key has broken what
//! belongs to Ingresses, those are held that may be at fault (`examination`), and if that does not help the culprit is
//! searched for by halving.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ingress_model::{Layout, ObjectName};
use k8s_openapi::api::networking::v1::Ingress;
use nginx_render::{Rendered, Source};
use tracing::warn;

use super::{LoadError, Loader, Memory};
use crate::{
    chain::chain,
    culprit::{self, Suspect},
    dataplane::Files,
    nginx::test::Refusal,
    planner::Trial,
    quarantine::{Fault, Level, Levels},
    stored::Stored,
};

/// How many tests may be made in one go to find out what is at fault.
const MOST_TRIALS: usize = 200;

/// With so many refusals in one go, all Ingresses with snippets are held: each costs a test of everything.
const FEW_REFUSALS: usize = 2;

/// The same for all Ingresses with annotations.
const MANY_REFUSALS: usize = 4;

/// What has been found out while one set of files is made acceptable.
#[derive(Debug, Default)]
pub(super) struct Inquiry {
    /// How often NGINX has refused files.
    pub(super) refusals: usize,
    trials: usize,
    /// Who is held already: those with snippets (`true`), those with annotations (`false`).
    held: BTreeSet<bool>,
    /// Whether anything was searched for without a name to go by.
    has_searched: bool,
    /// The reasons for which Ingresses were kept apart.
    reasons: BTreeSet<String>,
    /// Those Ingresses.
    pub(super) isolated: Vec<ObjectName>,
}

impl Loader {
    /// Keeps apart what NGINX refuses. Answers whether that makes a difference. The trial is one of the objects that the
    /// files were made from.
    pub(super) async fn keep_apart(
        &mut self,
        rendered: Option<&Rendered>,
        refusal: &Refusal,
        mut trial: Trial,
        inquiry: &mut Inquiry,
    ) -> Result<bool, LoadError> {
        let source = rendered.and_then(|rendered| owner(rendered, refusal));
        let annotation = source.map(|source| source.what);
        let annotation = annotation.or_else(|| annotation_of(&refusal.reason));
        let suspect = source.and_then(|source| named(source, &trial));
        let suspect = suspect.filter(|it| !self.is_innocent(it, refusal, &trial, inquiry));
        let mut differs = false;
        if let Some(suspect) = &suspect {
            inquiry.reasons.insert(refusal.reason.clone());
            differs |= self.isolate(suspect, &refusal.reason, annotation, &trial, inquiry);
        }
        if let Some(rendered) = rendered {
            differs |= self.keep_apart_readable(rendered, refusal, suspect.as_ref(), &trial);
        }
        let is_found = suspect.is_some() || differs;
        // Denied paths keep the ciphers of their hosts.
        let is_no_use =
            matches!(suspect, Some(Suspect::Key(_))) || annotation.is_some() && !is_found;
        for (refusals, only_snippets) in [(FEW_REFUSALS, true), (MANY_REFUSALS, false)] {
            let is_time = inquiry.refusals >= refusals || !is_found && !differs;
            if is_time && !is_no_use && inquiry.held.insert(only_snippets) {
                differs |= self.hold(refusal, &trial, only_snippets);
            }
        }
        if is_found || differs {
            return Ok(differs);
        }
        for suspects in suspects(&trial, &self.memory) {
            let reason = &refusal.reason;
            if let Some(found) = self.search(suspects, reason, &mut trial, inquiry).await? {
                if matches!(found, Suspect::Key(_)) {
                    // The Ingresses that the key has broken are not at fault.
                    for name in std::mem::take(&mut inquiry.isolated) {
                        self.quarantine.release(&name);
                    }
                }
                let reason = self.said_of(&found, &mut trial).await?;
                let reason = reason.unwrap_or_else(|| {
                    let reason = &refusal.reason;
                    format!("nginx takes it by itself, but not together with others: {reason}")
                });
                return Ok(self.isolate(&found, &reason, annotation, &trial, inquiry));
            }
        }
        Ok(false)
    }

    /// What NGINX says against somebody who is by himself: what it has said first may be about somebody else.
    async fn said_of(
        &mut self,
        found: &Suspect,
        trial: &mut Trial,
    ) -> Result<Option<String>, LoadError> {
        let all: Vec<_> = culprit::changed_keys(&trial.config(), &BTreeMap::new()).collect();
        let layout = trial.only(std::slice::from_ref(found), &all)?;
        let without = self.quarantine.levels();
        self.refusal(&layout, &without).await
    }

    /// Keeps apart what no test finds out, only the attempt to run: whose snippet has NGINX listen where somebody else
    /// does, or else the raw configuration that is new in the ConfigMap (a zone of shared memory that is another one).
    pub(super) fn keep_apart_untested(
        &mut self,
        rendered: &Rendered,
        files: &Files,
        said: &str,
    ) -> Result<(), LoadError> {
        let (planned, trial) = self.planner.plan_with_trial()?;
        if planned.model.layout != files.outcome.model.layout {
            // Something else is wanted by now.
            return Ok(());
        }
        let mut inquiry = Inquiry::default();
        let differs = if said.contains("bind()") {
            let listener = listener(rendered, said);
            listener.is_some_and(|(source, reason)| {
                let what = Some(source.what);
                let suspect = named(source, &trial);
                suspect.is_some_and(|suspect| {
                    self.isolate(&suspect, &reason, what, &trial, &mut inquiry)
                })
            })
        } else {
            let snippets = culprit::changed_keys(&trial.config(), &self.memory.config)
                .filter(|suspect| matches!(suspect, Suspect::Key(key) if key.ends_with("-snippet")))
                .collect::<Vec<_>>();
            let suspects = if snippets.is_empty() {
                definers(said, &trial, &self.memory)
            } else {
                snippets
            };
            let isolated = suspects
                .iter()
                .map(|suspect| self.isolate(suspect, said, None, &trial, &mut inquiry));
            isolated.fold(false, |any, one| any | one)
        };
        if differs {
            self.planner.plan()?;
        }
        Ok(())
    }

    /// Whether the fault is rather in the ConfigMap, whose values stand among what belongs to Ingresses: it has changed
    /// and the Ingress has not, or another Ingress has the same fault.
    fn is_innocent(
        &self,
        suspect: &Suspect,
        refusal: &Refusal,
        trial: &Trial,
        inquiry: &Inquiry,
    ) -> bool {
        let Suspect::Ingress(name) = suspect else {
            return false;
        };
        let config = trial.config();
        if config.is_empty() || inquiry.has_searched {
            return false;
        }
        let served = served(self.memory.taken.as_ref(), name);
        let now = trial.snapshot().ingresses.get(name);
        let is_same = served.is_some_and(|served| now.is_some_and(|now| !served.matters(now)));
        (is_same && config != self.memory.config) || inquiry.reasons.contains(&refusal.reason)
    }

    /// The one among the suspects that NGINX refuses for that reason even by itself, or else the one without which it takes
    /// the files.
    async fn search(
        &mut self,
        suspects: Vec<Suspect>,
        reason: &str,
        trial: &mut Trial,
        inquiry: &mut Inquiry,
    ) -> Result<Option<Suspect>, LoadError> {
        inquiry.has_searched = true;
        let without = self.quarantine.levels();
        let layout = trial.without(&[])?;
        if self.refusal(&layout, &without).await?.is_none() {
            // NGINX takes now what it has just refused: the fault was not in the files.
            return Ok(None);
        }
        // Nothing but the suspects is tested, and ever fewer of them.
        let all = suspects.clone();
        let alone = culprit::find_alone(suspects, async |suspects: &[Suspect]| {
            inquiry.trials += 1;
            if inquiry.trials > MOST_TRIALS {
                return Ok(false);
            }
            let layout = trial.only(suspects, &all)?;
            let said = self.refusal(&layout, &without).await?;
            Ok::<_, LoadError>(said.is_some_and(|said| said == reason))
        });
        if let Some(found) = alone.await? {
            return Ok(Some(found));
        }
        let found = culprit::find(all, async |suspects: &[Suspect]| {
            inquiry.trials += 1;
            if inquiry.trials > MOST_TRIALS {
                return Ok(false);
            }
            let layout = trial.without(suspects)?;
            Ok::<_, LoadError>(self.refusal(&layout, &without).await?.is_none())
        });
        let found = found.await?;
        // Answers that were not NGINX's tell nothing of who is at fault.
        Ok(found.filter(|_| inquiry.trials <= MOST_TRIALS))
    }

    /// What NGINX says against a layout, or why that cannot be rendered.
    async fn refusal(
        &mut self,
        layout: &Layout,
        without: &Levels,
    ) -> Result<Option<String>, LoadError> {
        match self.render(layout, without) {
            Ok(rendered) => {
                let refusal = self.configuration.test_apart(&rendered).await?.err();
                Ok(refusal.map(|refusal| refusal.reason))
            }
            Err(error @ (LoadError::Render(_) | LoadError::Panicked(_))) => Ok(Some(chain(&error))),
            Err(error) => Err(error),
        }
    }

    /// Keeps apart what was found to be at fault. Answers whether that makes a difference.
    pub(super) fn isolate(
        &self,
        suspect: &Suspect,
        reason: &str,
        annotation: Option<&'static str>,
        trial: &Trial,
        inquiry: &mut Inquiry,
    ) -> bool {
        let name = match suspect {
            Suspect::Ingress(name) => name,
            Suspect::Key(key) => {
                let config = trial.config();
                let value = config.get(key);
                return value.is_some_and(|value| self.quarantine.leave_out(key, value, reason));
            }
        };
        let Some(ingress) = trial.stored(name) else {
            return false;
        };
        let fault = Fault {
            reason: reason.to_owned(),
            annotation,
            served: served(self.memory.taken.as_ref(), name),
        };
        let prefix = &self.annotations_prefix;
        let Some(level) = self.quarantine.isolate(ingress, &fault, prefix) else {
            return false;
        };
        let effect = level.to_string();
        warn!(ingress = %name, reason, effect, "nginx refuses what an Ingress makes of its configuration");
        inquiry.isolated.push(name.clone());
        self.observer.isolated(name, reason);
        true
    }
}

/// Whose part of the files a refusal is about: by the line that it names, or by another file.
pub(super) fn owner<'a>(rendered: &'a Rendered, refusal: &Refusal) -> Option<&'a Source> {
    let map = &rendered.source_map;
    let line = refusal
        .place
        .as_ref()
        .and_then(|(_, line)| map.locate(*line));
    let named = || {
        let mut named = rendered
            .files
            .keys()
            .filter(|path| refusal.reason.contains(path.as_str()));
        named.find_map(|path| map.locate_file(path.as_str()))
    };
    line.or_else(named)
}

/// The annotation that an error without a line is about.
pub(super) fn annotation_of(reason: &str) -> Option<&'static str> {
    reason
        .contains("SSL_CTX_set_cipher_list")
        .then_some("ssl-ciphers")
}

/// The version of an Ingress that was served last, as far as files that NGINX took tell.
pub(super) fn served(taken: Option<&Files>, name: &ObjectName) -> Option<Arc<Ingress>> {
    let taken = taken?;
    let is_served = matches!(
        taken.without.get(name),
        None | Some(Level::Earlier | Level::Without(_))
    );
    let served = taken.outcome.last_good.get(name);
    served.filter(|_| is_served).cloned()
}

/// What a source stands for.
pub(super) fn named(source: &Source, trial: &Trial) -> Option<Suspect> {
    if let Some(ingress) = &source.ingress {
        return Some(Suspect::Ingress(ingress.clone()));
    }
    let key = trial.config().contains_key(source.what);
    key.then(|| Suspect::Key(source.what.to_owned()))
}

/// Whose snippet has NGINX listen at the address that it says it cannot have, and what it says.
fn listener<'a>(rendered: &'a Rendered, said: &str) -> Option<(&'a Source, String)> {
    let (_, failed) = said.split_once("bind() to ")?;
    let (address, _) = failed.split_once(" failed")?;
    let (_, port) = address.rsplit_once(':')?;
    let is_about = |line: &str| {
        let mut words = line.split([' ', '\t', ';', '{', '}', ':', ']']);
        words.any(|word| word == "listen") && words.any(|word| word == port)
    };
    let lines = rendered.main.lines().zip(1..);
    let mut about = lines.filter(|(line, _)| is_about(line));
    let source = about.find_map(|(_, number)| {
        let source = rendered.source_map.locate(number)?;
        source.what.ends_with("-snippet").then_some(source)
    })?;
    let reason = failed.split(';').next().unwrap_or(failed);
    Some((source, format!("bind() to {reason}")))
}

/// Whose snippets may define what NGINX knows otherwise than the files say, which only a running NGINX finds out: those
/// that name it in quotes as it does, and of these rather those that are not as NGINX runs with them.
fn definers(said: &str, trial: &Trial, memory: &Memory) -> Vec<Suspect> {
    let quoted = said.split('"').skip(1).step_by(2);
    let names: Vec<_> = quoted.filter(|name| !name.starts_with('$')).collect();
    let defines = |ingress: &Ingress| {
        let annotations = ingress.metadata.annotations.iter().flatten();
        let mut snippets = annotations.filter(|(key, _)| key.ends_with("-snippet"));
        snippets.any(|(_, snippet)| {
            let mut words = snippet.split(|c: char| c.is_whitespace() || ";:={}\"'".contains(c));
            words.any(|word| names.contains(&word))
        })
    };
    let all = trial.snapshot().ingresses.iter();
    let all: Vec<_> = all.filter(|(_, ingress)| defines(ingress)).collect();
    let is_new = |(name, ingress): &&(&ObjectName, &Arc<Ingress>)| {
        let served = served(memory.taken.as_ref(), name);
        served.is_none_or(|served| served.matters(ingress))
    };
    let new: Vec<_> = all.iter().filter(is_new).copied().collect();
    let suspects = if new.is_empty() { all } else { new };
    suspects
        .into_iter()
        .map(|(name, _)| Suspect::Ingress(name.clone()))
        .collect()
}

/// Who may be at fault: first those that are not as NGINX runs with them, then all.
fn suspects(trial: &Trial, memory: &Memory) -> Vec<Vec<Suspect>> {
    let ingresses = || trial.snapshot().ingresses.iter();
    let now = trial.config();
    let changed = |(name, ingress): &(&ObjectName, &Arc<Ingress>)| {
        let taken = memory.taken.as_ref();
        let served = taken.and_then(|taken| taken.outcome.last_good.get(name));
        served.is_none_or(|served| served.matters(ingress))
    };
    let suspect = |(name, _): (&ObjectName, &Arc<Ingress>)| Suspect::Ingress(name.clone());
    let some = ingresses().filter(changed).map(suspect);
    let some: Vec<_> = some
        .chain(culprit::changed_keys(&now, &memory.config))
        .collect();
    let all = ingresses().map(suspect);
    let all: Vec<_> = all
        .chain(culprit::changed_keys(&now, &BTreeMap::new()))
        .collect();
    if some.len() == all.len() {
        vec![all]
    } else {
        vec![some, all]
    }
}
