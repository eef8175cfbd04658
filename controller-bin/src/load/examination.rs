//! Trying Ingresses by themselves that are out: those that are held so that nobody waits for who is at fault, and those
//! that may have recovered.
//!
//! What is tested are their hosts only. Who NGINX takes comes back; who it refuses is told what it says about him, not about
//! somebody else. Everything else goes on: an examination ends as soon as other files are wanted.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use ingress_model::ObjectName;
use tracing::{debug, info, warn};

use super::{
    LoadError, Loader,
    inquiry::{annotation_of, owner, served},
    reading::{reason, unknown_variable},
};
use crate::{
    chain::chain,
    culprit::Suspect,
    nginx::test::Refusal,
    planner::Trial,
    quarantine::{Fault, Levels},
    stored::Stored,
    variables,
};

/// How long others wait at most for coming back until all have been examined.
const LONGEST: Duration = Duration::from_secs(5);

/// So many definitions of a variable by others are taken along.
const MOST_DEFINERS: usize = 8;

/// What came out of an examination.
#[derive(Default)]
struct Verdicts {
    accepted: Vec<ObjectName>,
    refused: Vec<(ObjectName, Fault)>,
}

impl Verdicts {
    fn is_empty(&self) -> bool {
        self.accepted.is_empty() && self.refused.is_empty()
    }
}

/// What NGINX says against some Ingresses, and who among them that is about.
struct Objection {
    reason: String,
    about: Option<ObjectName>,
    /// The annotation by which.
    what: Option<&'static str>,
}

impl Loader {
    /// Tries the Ingresses by themselves that are due. Answers whether others may be left.
    ///
    /// # Errors
    ///
    /// When NGINX cannot be asked.
    pub(super) async fn examine(&mut self) -> Result<bool, LoadError> {
        let due = self.quarantine.due();
        if due.is_empty() || self.plane.is_behind() {
            return Ok(false);
        }
        let began = Instant::now();
        let (_, mut trial) = self.planner.plan_with_trial()?;
        let out = self.quarantine.levels();
        let mut groups = vec![due];
        let mut verdicts = Verdicts::default();
        let mut tests = 0;
        while let Some(mut group) = groups.pop() {
            let is_late = began.elapsed() > LONGEST && !verdicts.is_empty();
            if is_late || self.plane.is_behind() {
                groups.push(group);
                break;
            }
            tests += 1;
            let Some(objection) = self.objection(&group, &out, &mut trial).await? else {
                verdicts.accepted.append(&mut group);
                continue;
            };
            let culprit = match group.as_slice() {
                [only] => Some(only.clone()),
                _ => objection.about,
            };
            if let Some(culprit) = culprit {
                group.retain(|name| *name != culprit);
                let fault = Fault {
                    reason: objection.reason,
                    annotation: objection.what,
                    served: served(self.memory.taken.as_ref(), &culprit),
                };
                verdicts.refused.push((culprit, fault));
            }
            let rest = group.split_off(group.len() / 2);
            groups.extend([group, rest].into_iter().filter(|group| !group.is_empty()));
        }
        let is_left = !groups.is_empty();
        info!(
            accepted = verdicts.accepted.len(),
            refused = verdicts.refused.len(),
            left = groups.iter().map(Vec::len).sum::<usize>(),
            tests,
            took = ?began.elapsed(),
            "tried Ingresses by themselves that were kept apart",
        );
        self.pronounce(verdicts, &trial);
        self.planner.plan()?;
        Ok(is_left)
    }

    fn pronounce(&mut self, verdicts: Verdicts, trial: &Trial) {
        for name in verdicts.accepted {
            debug!(ingress = %name, "nginx takes this Ingress by itself");
            self.quarantine.readmit(&name);
        }
        for (name, fault) in verdicts.refused {
            let Some(ingress) = trial.stored(&name) else {
                continue;
            };
            let prefix = &self.annotations_prefix;
            if self.quarantine.convict(ingress, &fault, prefix) {
                let reason = &fault.reason;
                warn!(ingress = %name, reason, "nginx refuses what an Ingress makes of its configuration");
                self.observer.isolated(&name, reason);
            }
            self.memory.isolated.insert(name);
        }
    }

    /// What NGINX has against some Ingresses where there are only their hosts.
    async fn objection(
        &mut self,
        group: &[ObjectName],
        out: &Levels,
        trial: &mut Trial,
    ) -> Result<Option<Objection>, LoadError> {
        let objection = self.objection_with(group, &[], out, trial).await?;
        let [only] = group else {
            return Ok(objection);
        };
        let unknown = objection
            .as_ref()
            .and_then(|it| unknown_variable(&it.reason));
        let Some(variable) = unknown.map(str::to_ascii_lowercase) else {
            return Ok(objection);
        };
        let all = trial.snapshot().ingresses.iter();
        let definers = all.filter(|(name, ingress)| {
            *name != only && !out.contains_key(*name) && variables::may_define(ingress, &variable)
        });
        let definers = definers.map(|(name, _)| name.clone());
        let definers: Vec<_> = definers.take(MOST_DEFINERS).collect();
        if definers.is_empty() {
            return Ok(objection);
        }
        self.objection_with(group, &definers, out, trial).await
    }

    async fn objection_with(
        &mut self,
        group: &[ObjectName],
        others: &[ObjectName],
        out: &Levels,
        trial: &mut Trial,
    ) -> Result<Option<Objection>, LoadError> {
        let layout = trial.fragment(group, others, out)?;
        let rendered = match self.render(&layout, &Levels::new()) {
            Ok(rendered) => rendered,
            Err(error @ (LoadError::Render(_) | LoadError::Panicked(_))) => {
                return Ok(Some(Objection {
                    reason: chain(&error),
                    about: None,
                    what: None,
                }));
            }
            Err(error) => return Err(error),
        };
        let Some(refusal) = self.configuration.test_apart(&rendered).await?.err() else {
            return Ok(None);
        };
        let by_line = owner(&rendered, &refusal).and_then(|source| {
            let name = source.ingress.clone().filter(|name| group.contains(name))?;
            Some((name, source.what, refusal.reason.clone()))
        });
        let found = by_line.or_else(|| {
            let faults = self.faults(&rendered, &refusal).into_iter();
            let mut own = faults.filter_map(|fault| {
                let name = fault.source.ingress.clone()?;
                let suspect = Suspect::Ingress(name.clone());
                let reason = reason(&fault, &suspect, trial)?;
                group
                    .contains(&name)
                    .then_some((name, fault.source.what, reason))
            });
            own.next()
        });
        Ok(Some(match found {
            Some((name, what, reason)) => Objection {
                reason,
                about: Some(name),
                what: Some(what),
            },
            None => Objection {
                what: annotation_of(&refusal.reason),
                reason: refusal.reason,
                about: None,
            },
        }))
    }

    /// Holds Ingresses back among which somebody may be at fault, so that all others are served at once: those with
    /// snippets at first, then all with annotations; of both only such that NGINX does not run with. Answers whether there
    /// were any.
    pub(super) fn hold(&self, refusal: &Refusal, trial: &Trial, only_snippets: bool) -> bool {
        let prefix = format!("{}/", self.annotations_prefix);
        let stored = trial.snapshot().ingresses.iter().filter_map(|(name, _)| {
            let ingress = trial.stored(name)?;
            let mut annotations = ingress.metadata.annotations.iter().flatten();
            let is_suspect = annotations.any(|(key, _)| {
                let own = key.strip_prefix(&prefix);
                own.is_some_and(|own| !only_snippets || own.ends_with("-snippet"))
            });
            is_suspect.then_some((name, ingress))
        });
        let mut held = BTreeSet::new();
        for (name, ingress) in stored {
            let taken = self.memory.taken.as_ref();
            let before = taken.and_then(|taken| taken.outcome.last_good.get(name));
            if before.is_some_and(|before| !before.matters(ingress)) {
                continue;
            }
            let served = served(taken, name);
            if self
                .quarantine
                .hold(ingress, served, &self.annotations_prefix)
            {
                held.insert(name);
            }
        }
        if !held.is_empty() {
            warn!(
                reason = refusal.reason,
                held = held.len(),
                only_snippets,
                "nginx refuses its configuration; Ingresses that may be at fault are held back until they have been tried by themselves"
            );
        }
        !held.is_empty()
    }
}
