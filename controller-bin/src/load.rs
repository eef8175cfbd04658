//! From the layout that is wanted to an NGINX that runs with it.
//!
//! Render, test, tell what new servers need, put the file in place, reload, and wait until a worker confirms. An Ingress
//! whose part NGINX refuses is kept apart (`inquiry`) and the rest goes on; a fault that is nobody's leaves the last
//! good files in force. Who was kept apart is tried by itself behind that (`examination`).

mod examination;
mod inquiry;
mod reading;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use ingress_model::{Layout, ObjectName, Outcome, plan};
use lua_sync_client::LuaSyncClient;
use nginx_render::{Note, RenderError, Rendered, Renderer, syntax::Directives};
use tracing::{debug, error, info, warn};

use self::inquiry::Inquiry;
use crate::{
    chain::chain,
    dataplane::{DataPlane, Files, TellError},
    guard::{Panicked, guard},
    nginx::{
        census,
        configuration::{Configuration, ConfigurationError},
        reload::{self, ReloadError},
        test::Refusal,
    },
    observe::{Load, LoadReason, Observer},
    planner::Planner,
    quarantine::{self, Levels, Quarantine},
    room,
};

/// How long after NGINX has refused files that nobody can be kept apart for they are tried again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// How long after workers could not run with files these are tried again: nobody is served meanwhile.
const TRY_UNUSABLE_AGAIN: Duration = Duration::from_mins(10);

/// How long files wait for an NGINX that cannot be told what new servers need.
const LONGEST_SILENCE: Duration = Duration::from_secs(5);

/// How many faults may be kept apart in one go.
const MOST_ISOLATED_AT_ONCE: usize = 100;

/// How long a worker may take to confirm new files, besides a multiple of what the test took.
const CONFIRM: Duration = Duration::from_secs(30);

/// How many times as long as the test a load may take.
const LOAD_TO_TEST: u32 = 10;

/// Why NGINX does not run with the files that it should run with.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Workers of earlier configurations go on, and reloads are to follow one another (`enable-serial-reloads`), or there
    /// are too many of them (`--max-old-generations`).
    #[error("workers of nginx's earlier configurations have not ended yet")]
    Busy,
    /// The layout cannot be written as text.
    #[error("cannot render nginx's configuration")]
    Render(#[from] RenderError),
    /// The same, by a fault of the program.
    #[error("cannot make nginx's configuration")]
    Panicked(#[from] Panicked),
    /// The files cannot be written or tested.
    #[error("cannot write and test nginx's configuration")]
    Write(#[from] ConfigurationError),
    /// NGINX does not take them.
    #[error("nginx refuses its {}: {}", if *.has_good {
        "new configuration, the last good one stays in force"
    } else {
        "first configuration, nothing is served yet"
    }, .refusal.reason)]
    Refused {
        /// What it says.
        refusal: Refusal,
        /// Whether there is a configuration that it goes on with.
        has_good: bool,
    },
    /// NGINX could not be told what new servers need.
    #[error("cannot prepare nginx for its new configuration")]
    Tell(#[from] TellError),
    /// NGINX does not run with them.
    #[error("cannot bring nginx's new configuration into force")]
    Reload(#[from] ReloadError),
}

/// Brings files into force.
#[derive(Debug)]
pub struct Loader {
    /// For whom.
    pub plane: Arc<DataPlane>,
    /// Who writes them.
    pub renderer: Renderer,
    /// Where they are.
    pub configuration: Configuration,
    /// What NGINX knows: what is at fault can be read off files that it refuses.
    pub directives: Directives,
    /// Whom to ask whether they are in force.
    pub client: LuaSyncClient,
    /// Who says what is wanted once something is kept apart.
    pub planner: Arc<Planner>,
    /// Where that is kept.
    pub quarantine: Arc<Quarantine>,
    /// Who wants to know.
    pub observer: Arc<dyn Observer>,
    /// `--annotations-prefix`.
    pub annotations_prefix: String,
    /// How many configurations may have workers that still finish their requests (`--max-old-generations`).
    pub most_generations: Option<usize>,
    /// What is known from the loads before.
    pub memory: Memory,
}

/// What is known from the loads before. It begins empty.
#[derive(Debug, Default)]
pub struct Memory {
    /// The files that NGINX refused last, and until when they are not tried again.
    refused: Option<(String, Instant)>,
    /// The files that NGINX took last. It may have run with them although it did not live to confirm that, so that an
    /// Ingress was served last as it is in these.
    taken: Option<Files>,
    /// What the ConfigMap said then.
    config: BTreeMap<String, String>,
    /// Since when NGINX could not be told anything.
    silent_since: Option<Instant>,
    /// What NGINX runs without, as it was said last.
    notes: Vec<Note>,
    /// Ingresses that were said to be kept apart. One may have been mended before files without it came into force.
    isolated: BTreeSet<ObjectName>,
}

/// Files that NGINX takes.
struct Tested {
    wanted: Arc<Outcome>,
    rendered: Rendered,
    without: Levels,
    config: BTreeMap<String, String>,
    render: Duration,
    test: Duration,
}

impl Loader {
    /// Makes NGINX run with the files that are wanted, if it does not.
    ///
    /// # Errors
    ///
    /// When it does not run with them in the end; it is to be tried again then. Files that NGINX refuses for a reason
    /// that trying again does not mend are reported, and are no error here.
    pub async fn run(&mut self) -> Result<(), LoadError> {
        let plane = Arc::clone(&self.plane);
        loop {
            if let Some(wanted) = plane.begin_load() {
                let loaded = self.load(wanted).await;
                plane.end_load();
                match loaded {
                    // Trying the same again at once would be of no use.
                    Err(refused @ LoadError::Refused { .. }) => {
                        error!("{refused}");
                        self.observer.load_failed(&refused);
                        return Ok(());
                    }
                    Err(LoadError::Busy) => return Err(LoadError::Busy),
                    Err(failed) => {
                        self.observer.load_failed(&failed);
                        return Err(failed);
                    }
                    Ok(()) => {}
                }
            }
            // What is wanted meanwhile, or was refused a moment ago, has a load of its own to come.
            if plane.is_behind() {
                return Ok(());
            }
            let is_left = self.examine().await?;
            if !is_left && !plane.is_behind() {
                return Ok(());
            }
        }
    }

    async fn load(&mut self, wanted: Arc<Outcome>) -> Result<(), LoadError> {
        let ending = self.ending_generations();
        let is_serial = wanted.model.layout.config.enable_serial_reloads;
        if is_serial && ending > 0 || self.most_generations.is_some_and(|most| ending >= most) {
            return Err(LoadError::Busy);
        }
        let before = self.plane.loaded();
        let cramped = self.plane.is_cramped();
        let room = self.plane.room();
        room::reserve(&mut self.renderer, room);
        let Some(tested) = self.tested(wanted, before.as_ref()).await? else {
            return Ok(());
        };
        let files = Files {
            outcome: tested.wanted,
            without: tested.without,
            checksum: tested.rendered.checksum.to_string(),
        };
        let recovered = self.recovered(&files);
        let outcome = Arc::clone(&files.outcome);
        let runs = before
            .as_ref()
            .is_some_and(|before| before.checksum == files.checksum);
        // Where others were put in place since, NGINX may have begun to load them, and no worker could.
        if runs && self.plane.is_written(&files.checksum) && self.plane.has_endpoint_files() {
            debug!(
                checksum = files.checksum,
                "the files are the same; nothing to load"
            );
            self.memory.config = tested.config;
            self.memory.taken = Some(files.clone());
            self.plane.set_loaded(Some(files));
            self.plane.set_room(room);
            self.tell_recovered(&recovered, &outcome);
            self.plane.tell().await?;
            return Ok(());
        }

        let reasons = self.reasons(before.as_ref(), &files, cramped);
        self.tell_before().await?;
        let endpoint_files = self.plane.endpoint_files();
        let config = std::mem::replace(&mut self.memory.config, tested.config);
        self.put_in_place(&tested.rendered, &files)?;
        let began = Instant::now();
        let within = CONFIRM + tested.test * LOAD_TO_TEST;
        let master = self.plane.process().pid();
        if let Err(error) = self.bring_into_force(&files.checksum, within).await {
            if let Some(before) = &before
                && error.leaves_no_workers()
            {
                error!(
                    reasons = summary(&reasons),
                    error = chain(&error),
                    "nginx takes its new configuration but cannot serve with it; going back to the last good one"
                );
                self.memory.config = config;
                self.memory.refused = Some((files.checksum, Instant::now() + TRY_UNUSABLE_AGAIN));
                self.go_back(before, within).await?;
            } else if let Some(before) = &before
                && let ReloadError::Refused { said } = &error
                && master.is_some()
                && master == self.plane.process().pid()
            {
                // It goes on with the files before; these are what it should find if it has to be started anew.
                self.memory.config = config;
                self.restore(before)?;
                self.keep_apart_untested(&tested.rendered, &files, said)?;
            } else if before.is_none()
                && let ReloadError::Refused { said } | ReloadError::Ended { said } = &error
            {
                // There are no files to go on with: it is started again and again, and finds better ones next time.
                self.memory.config = config;
                self.keep_apart_untested(&tested.rendered, &files, said)?;
            }
            return Err(error.into());
        }
        let load = Load {
            reasons,
            checksum: files.checksum.clone(),
            render: tested.render,
            test: tested.test,
            load: began.elapsed(),
        };
        self.plane.set_loaded(Some(files));
        self.plane.set_endpoint_files(endpoint_files);
        self.plane.set_room(room);
        self.tell_notes(&tested.rendered.notes);
        info!(
            reasons = summary(&load.reasons),
            checksum = load.checksum,
            render = ?load.render,
            test = ?load.test,
            load = ?load.load,
            "loaded",
        );
        self.observer.loaded(&load);
        self.tell_recovered(&recovered, &outcome);
        // What only old servers used may go now.
        self.plane.tell().await?;
        self.configuration.tidy(&tested.rendered);
        Ok(())
    }

    /// Says what NGINX runs without although it was asked for, once.
    fn tell_notes(&mut self, notes: &[Note]) {
        for note in notes {
            if self.memory.notes.contains(note) {
                continue;
            }
            let (source, text) = (&note.source, &note.text);
            let ingress = source.ingress.as_ref();
            warn!(
                ingress = ingress.map(tracing::field::display),
                "{}: {text}", source.what
            );
            if let Some(ingress) = ingress {
                self.observer.went_without(ingress, source.what, text);
            }
        }
        self.memory.notes = notes.to_vec();
    }

    /// Tells NGINX what new servers need: it has to be there before they are. One that has not answered for a while is
    /// given its files all the same, since new workers may mend that.
    async fn tell_before(&mut self) -> Result<(), TellError> {
        let Err(error) = self.plane.tell().await else {
            self.memory.silent_since = None;
            return Ok(());
        };
        if self.plane.is_cramped() {
            // New workers will have more room.
            return Ok(());
        }
        let since = *self.memory.silent_since.get_or_insert_with(Instant::now);
        if since.elapsed() < LONGEST_SILENCE {
            return Err(error);
        }
        warn!(
            error = chain(&error),
            "nginx cannot be told of endpoints and certificates; loading its configuration all the same"
        );
        Ok(())
    }

    async fn bring_into_force(&self, checksum: &str, within: Duration) -> Result<(), ReloadError> {
        let process = self.plane.process();
        if process.is_started() {
            reload::reload(process, &self.client, checksum, within).await
        } else {
            reload::start(process, &self.client, checksum, within).await
        }
    }

    /// Has NGINX run again with the files that it ran with before.
    async fn go_back(&mut self, before: &Files, within: Duration) -> Result<(), LoadError> {
        let files = self.restore(before)?;
        self.bring_into_force(&files.checksum, within).await?;
        self.plane.set_loaded(Some(files));
        info!("nginx runs with its last good configuration again");
        Ok(())
    }

    /// Writes the files that NGINX ran with before once more.
    fn restore(&mut self, before: &Files) -> Result<Files, LoadError> {
        let rendered = self.render(&before.outcome.model.layout, &before.without)?;
        let files = Files {
            checksum: rendered.checksum.to_string(),
            ..before.clone()
        };
        self.put_in_place(&rendered, &files)?;
        Ok(files)
    }

    fn put_in_place(&mut self, rendered: &Rendered, files: &Files) -> Result<(), LoadError> {
        self.configuration
            .put_in_place(rendered)
            .map_err(ConfigurationError::from)?;
        self.plane.set_written(files.clone());
        self.memory.taken = Some(files.clone());
        Ok(())
    }

    /// Files as NGINX takes them: without what it refuses. `None` when it has refused the same files a moment ago.
    async fn tested(
        &mut self,
        mut wanted: Arc<Outcome>,
        running: Option<&Files>,
    ) -> Result<Option<Tested>, LoadError> {
        let mut inquiry = Inquiry::default();
        loop {
            let config = self.planner.config();
            let without = self.quarantine.levels();
            let began = Instant::now();
            // Who makes a layout of which no text can be made is looked for like who makes one that NGINX refuses.
            let rendered = self.render(&wanted.model.layout, &without);
            let render = began.elapsed();
            let checksum = rendered.as_ref().map(|it| it.checksum.to_string()).ok();
            let is_known =
                running.is_some_and(|running| Some(&running.checksum) == checksum.as_ref());
            if !is_known && self.was_refused(checksum.as_deref()) {
                return Ok(None);
            }
            let began = Instant::now();
            let refusal = match &rendered {
                Ok(_) if is_known => None,
                Ok(rendered) => match reading::trespass(rendered) {
                    Some(refusal) => Some(refusal),
                    None => self.configuration.test(rendered).await?.err(),
                },
                Err(error) => Some(Refusal::of(chain(error))),
            };
            let Some(refusal) = refusal else {
                self.memory.refused = None;
                return Ok(Some(Tested {
                    wanted,
                    rendered: rendered?,
                    without,
                    config,
                    render,
                    test: began.elapsed(),
                }));
            };
            inquiry.refusals += 1;
            let is_spent = inquiry.refusals > MOST_ISOLATED_AT_ONCE;
            let (planned, trial) = self.planner.plan_with_trial()?;
            // Objects may have changed since: nobody is blamed for what is not there any more.
            let is_outdated =
                planned.model.layout != wanted.model.layout || self.quarantine.levels() != without;
            let helped = !is_spent
                && (is_outdated
                    || self
                        .keep_apart(rendered.as_ref().ok(), &refusal, trial, &mut inquiry)
                        .await?);
            let isolated = inquiry.isolated.iter().cloned();
            self.memory.isolated.extend(isolated);
            if !helped {
                if !is_spent {
                    self.memory.refused = checksum.map(|it| (it, Instant::now() + TRY_AGAIN));
                }
                return Err(match rendered {
                    Ok(_) => LoadError::Refused {
                        refusal,
                        has_good: running.is_some(),
                    },
                    Err(error) => error,
                });
            }
            let (planned, _) = self.planner.plan()?;
            wanted = self.plane.begin_load().unwrap_or(planned);
        }
    }

    /// Why files are loaded.
    fn reasons(&self, before: Option<&Files>, files: &Files, cramped: bool) -> Vec<LoadReason> {
        let layout = before.map(|before| &before.outcome.model.layout);
        let plan = plan(layout, &files.outcome.model.layout);
        let mut reasons: Vec<_> = plan.into_iter().map(LoadReason::Objects).collect();
        if before.is_some_and(|before| before.without != files.without) {
            reasons.push(LoadReason::Quarantine);
        }
        if !self.plane.has_endpoint_files() {
            reasons.push(LoadReason::StreamEndpoints);
        }
        if cramped {
            reasons.push(LoadReason::Dictionaries);
        }
        if reasons.is_empty() {
            reasons.push(LoadReason::Unconfirmed);
        }
        reasons
    }

    fn render(&mut self, layout: &Layout, without: &Levels) -> Result<Rendered, LoadError> {
        let renderer = &mut self.renderer;
        let rendered = guard("rendering", || {
            if without.is_empty() {
                renderer.render(layout)
            } else {
                renderer.render(&quarantine::deny(layout, without))
            }
        })?;
        Ok(rendered?)
    }

    /// How many configurations have workers that still finish their requests.
    fn ending_generations(&self) -> usize {
        let Some(master) = self.plane.process().pid() else {
            return 0;
        };
        let at_once = census::workers(master).len().max(1);
        census::ending_workers(master).len().div_ceil(at_once)
    }

    fn was_refused(&self, checksum: Option<&str>) -> bool {
        let refused = self.memory.refused.as_ref();
        refused.is_some_and(|(refused, until)| {
            checksum == Some(refused.as_str()) && Instant::now() < *until
        })
    }

    /// Ingresses that are not kept apart any more.
    fn recovered(&mut self, files: &Files) -> Vec<ObjectName> {
        let isolated = &mut self.memory.isolated;
        let quarantine = &self.quarantine;
        let told = files
            .without
            .keys()
            .filter(|name| !quarantine.is_held(name));
        isolated.extend(told.cloned());
        let recovered = isolated
            .iter()
            .filter(|name| !files.without.contains_key(*name));
        recovered.cloned().collect()
    }

    fn tell_recovered(&mut self, ingresses: &[ObjectName], now: &Outcome) {
        for ingress in ingresses {
            self.memory.isolated.remove(ingress);
            if now.last_good.get(ingress).is_some() {
                info!(%ingress, "nginx does not refuse this Ingress any more");
            } else {
                info!(%ingress, "an Ingress that nginx refused is not there any more");
            }
            self.observer.recovered(ingress);
        }
    }
}

/// The first of some reasons, and how many more there are.
fn summary(reasons: &[LoadReason]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> = reasons
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect();
    match reasons.len().saturating_sub(SHOWN) {
        0 => shown.join("; "),
        more => format!("{} and {more} more", shown.join("; ")),
    }
}
