//! What makes syncs and loads happen: objects that change, an NGINX that is started anew, and time.

use std::{sync::Arc, time::Duration};

use lua_sync_client::LuaSyncClient;
use sync_queue::Handle;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::warn;

use crate::{
    chain::chain,
    dataplane::DataPlane,
    nginx::process::{Process, State},
    store::Store,
    sync::{Cause, LoadFiles},
};

/// How often NGINX is asked whether it has what it was told.
const VERIFY: Duration = Duration::from_secs(5);

/// How often everything is gone through although nothing happened: certificates expire.
const CLOCK: Duration = Duration::from_mins(1);

/// How often to look whether an NGINX that was started anew answers.
const LOOK: Duration = Duration::from_millis(10);

/// Asks for a sync whenever objects have changed, until the store is gone.
pub(crate) async fn sync_on_change(store: Arc<Store>, syncs: Handle<Cause>) {
    let mut changed = store.subscribe();
    // Readiness may have come before we looked.
    syncs.enqueue_skippable(Cause::Objects);
    while changed.changed().await.is_ok() {
        syncs.enqueue_skippable(Cause::Objects);
    }
}

/// Has an NGINX told everything that was started anew, as soon as it answers.
pub(crate) async fn sync_on_start(
    process: Arc<Process>,
    client: LuaSyncClient,
    syncs: Handle<Cause>,
) {
    let mut state = process.state();
    loop {
        let now = *state.borrow_and_update();
        // The first start is looked after by who starts it.
        if let State::Running { start: 2.., .. } = now {
            while *state.borrow() == now && client.revision().await.is_err() {
                sleep(LOOK).await;
            }
            syncs.enqueue_skippable(Cause::Started);
        }
        if state.changed().await.is_err() {
            return;
        }
    }
}

/// Looks again and again whether NGINX does what it should, and mends it if not. Everything is gone through at least as
/// often as `--sync-period` says, if it says anything.
pub(crate) async fn repair(
    plane: Arc<DataPlane>,
    syncs: Handle<Cause>,
    loads: Handle<LoadFiles>,
    sync_period: Duration,
) {
    let mut verify = interval(VERIFY);
    verify.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let period = Some(sync_period).filter(|period| !period.is_zero());
    let mut clock = interval(period.map_or(CLOCK, |period| period.min(CLOCK)));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = verify.tick() => match plane.is_astray().await {
                Ok(true) => {
                    syncs.enqueue(Cause::Astray);
                }
                Ok(false) if plane.is_behind() => {
                    loads.enqueue_skippable(LoadFiles);
                }
                Ok(false) => {}
                Err(error) => warn!(error = chain(&error), "cannot ask nginx what it was told"),
            },
            _ = clock.tick() => {
                syncs.enqueue_skippable(Cause::Clock);
            }
        }
    }
}
