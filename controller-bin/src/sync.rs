//! From a change of objects to what NGINX should do, and to what it can be told at once.

use std::{fmt::Write, sync::Arc, time::Instant};

use sync_queue::{Handle, Task};
use tracing::{debug, info};

use crate::{
    dataplane::{DataPlane, TellError},
    guard::Panicked,
    observe::{Observer, Told},
    planner::Planner,
    store::{Change, Store},
};

/// Why a sync is made. Each covers everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Objects changed.
    Objects,
    /// NGINX was started anew.
    Started,
    /// NGINX does not have what it was told.
    Astray,
    /// Time has passed: certificates expire, Ingresses get another try.
    Clock,
}

/// The key of the queue of loads: each brings all files up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoadFiles;

/// Why a sync was not made, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The objects could not be made into a configuration; the last one stays in force.
    #[error("cannot merge the objects")]
    Merge(#[from] Panicked),
    /// NGINX could not be told.
    #[error(transparent)]
    Tell(#[from] TellError),
}

/// Makes syncs.
#[derive(Debug)]
pub struct Sync {
    /// Where objects are.
    pub store: Arc<Store>,
    /// Who applies the rules.
    pub planner: Arc<Planner>,
    /// Who is told.
    pub plane: Arc<DataPlane>,
    /// Who loads files.
    pub loads: Handle<LoadFiles>,
    /// Who wants to know.
    pub observer: Arc<dyn Observer>,
}

impl Sync {
    /// Makes one sync.
    ///
    /// # Errors
    ///
    /// When the objects could not be merged or NGINX could not be told; it is to be tried again then.
    pub async fn run(&mut self, task: &Task<Cause>) -> Result<(), SyncError> {
        if !self.store.is_ready() {
            return Ok(());
        }
        let began = Instant::now();
        let (_, changes) = self.planner.plan()?;
        let merged = began.elapsed();
        let behind = self.plane.is_behind();
        if behind || self.planner.has_due() {
            self.loads.enqueue_skippable(LoadFiles);
        }
        let applied = self.plane.tell().await?;
        let Some(applied) = applied else {
            debug!(cause = ?task.key, changes = summary(&changes), ?merged, "merged; nginx does not run yet");
            return Ok(());
        };
        let told = Told {
            applied,
            waited: task.waited,
            merge: merged,
            tell: began.elapsed().saturating_sub(merged),
            loads: behind,
        };
        self.observer.told(&told);
        let Told { applied, tell, .. } = &told;
        if told.sent() > 0 || behind {
            info!(
                cause = ?task.key,
                changes = summary(&changes),
                backends = applied.backends_sent,
                certificates = applied.certificates_sent,
                servers = applied.servers_sent,
                loads = behind,
                waited = ?task.waited,
                ?merged,
                told = ?tell,
                "synced",
            );
        } else {
            debug!(cause = ?task.key, changes = summary(&changes), ?merged, "synced; nothing to tell");
        }
        Ok(())
    }
}

/// The first of some changes, and how many more there are.
fn summary(changes: &[Change]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = changes
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect();
    let mut text = shown.join(", ");
    if changes.len() > SHOWN {
        // Writing to a text cannot fail.
        let _written = write!(text, " and {} more", changes.len() - SHOWN);
    }
    text
}

#[cfg(test)]
mod tests {
    use ingress_model::{ObjectKind, ObjectName, ObjectRef};

    use super::*;
    use crate::store::Verb;

    #[test]
    fn a_long_list_of_changes_is_cut() {
        let change = |number: usize| Change {
            object: ObjectRef::new(
                ObjectKind::Ingress,
                ObjectName::new("shop", &number.to_string()),
            ),
            verb: Verb::Added,
        };
        let changes: Vec<_> = (0..7).map(change).collect();
        assert_eq!(summary(changes.get(..1).unwrap()), "Ingress shop/0 added");
        let long = summary(&changes);
        assert!(long.ends_with("Ingress shop/4 added and 2 more"), "{long}");
        assert_eq!(summary(&[]), "");
    }
}
