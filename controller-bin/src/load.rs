//! From the layout that is wanted to an NGINX that runs with it.
//!
//! Render, test, tell what new servers need, put the file in place, reload, and wait until a worker confirms. An Ingress
//! whose part NGINX refuses is kept apart and the rest goes on; a fault that is nobody's leaves the last good files in
//! force.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ingress_model::{Layout, ObjectName, Outcome, ReloadReason, plan};
use lua_sync_client::LuaSyncClient;
use nginx_render::{RenderError, Rendered, Renderer};
use tracing::{debug, error, info, warn};

use crate::{
    culprit,
    dataplane::{DataPlane, Files, TellError},
    guard::{Panicked, guard},
    nginx::{
        census,
        configuration::{Configuration, ConfigurationError},
        reload::{self, ReloadError},
        test::Refusal,
    },
    observe::{Load, Observer},
    quarantine::{self, Level, Levels, Quarantine},
    store::Store,
};

/// How long after NGINX has refused files that nobody can be kept apart for they are tried again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// How many Ingresses may be kept apart in one go.
const MOST_ISOLATED_AT_ONCE: usize = 100;

/// How long a worker may take to confirm new files, besides a multiple of what the test took.
const CONFIRM: Duration = Duration::from_secs(30);

/// How many times as long as the test a load may take.
const LOAD_TO_TEST: u32 = 10;

/// Why NGINX does not run with the files that it should run with.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Workers of the configuration before go on, and reloads are to follow one another (`enable-serial-reloads`).
    #[error("workers of nginx's last configuration have not ended yet")]
    Busy,
    /// The layout cannot be written as text.
    #[error("cannot render nginx's configuration")]
    Render(#[from] RenderError),
    /// The same, by a fault of the program.
    #[error("cannot render nginx's configuration")]
    Panicked(#[from] Panicked),
    /// The files cannot be written or tested.
    #[error("cannot write and test nginx's configuration")]
    Write(#[from] ConfigurationError),
    /// NGINX does not take them.
    #[error("nginx refuses its new configuration, the last good one stays in force: {}", .0.reason)]
    Refused(Refusal),
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
    /// Whom to ask whether they are in force.
    pub client: LuaSyncClient,
    /// Where Ingresses are looked up.
    pub store: Arc<Store>,
    /// Where bad ones are kept apart.
    pub quarantine: Arc<Quarantine>,
    /// Who wants to know.
    pub observer: Arc<dyn Observer>,
    /// The files that NGINX refused last, and when.
    pub refused: Option<(String, Instant)>,
}

/// Files that NGINX takes.
struct Tested {
    rendered: Rendered,
    without: Levels,
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
        let Some(wanted) = plane.begin_load() else {
            return Ok(());
        };
        let loaded = self.load(wanted).await;
        plane.end_load();
        match loaded {
            // Trying the same again at once would be of no use.
            Err(refused @ LoadError::Refused(_)) => {
                error!("{refused}");
                self.observer.load_failed(&refused);
                Ok(())
            }
            Err(LoadError::Busy) => Err(LoadError::Busy),
            Err(failed) => {
                self.observer.load_failed(&failed);
                Err(failed)
            }
            Ok(()) => Ok(()),
        }
    }

    async fn load(&mut self, wanted: Arc<Outcome>) -> Result<(), LoadError> {
        if wanted.model.layout.config.enable_serial_reloads && self.is_ending_workers() {
            return Err(LoadError::Busy);
        }
        let before = self.plane.loaded();
        let Some(tested) = self.tested(&wanted.model.layout, before.as_ref()).await? else {
            return Ok(());
        };
        let files = Files {
            outcome: Arc::clone(&wanted),
            without: tested.without,
            checksum: tested.rendered.checksum.to_string(),
        };
        let reasons = reasons(before.as_ref(), &files);
        let recovered = recovered(before.as_ref(), &files);
        let runs = before.is_some_and(|before| before.checksum == files.checksum);
        if runs && !self.plane.is_written(&files.checksum) {
            // Others were to be loaded and could not.
            self.put_in_place(&tested.rendered, &files)?;
        }
        if runs {
            debug!(
                checksum = files.checksum,
                "the files are the same; nothing to load"
            );
            self.plane.set_loaded(Some(files));
            self.tell_recovered(&recovered);
            self.plane.tell().await?;
            return Ok(());
        }

        // What new servers need has to be there before they are.
        self.plane.tell().await?;
        self.put_in_place(&tested.rendered, &files)?;
        let began = Instant::now();
        let within = CONFIRM + tested.test * LOAD_TO_TEST;
        let process = self.plane.process();
        if process.is_started() {
            reload::reload(process, &self.client, &files.checksum, within).await?;
        } else {
            reload::start(process, &self.client, &files.checksum, within).await?;
        }
        let load = Load {
            reasons,
            checksum: files.checksum.clone(),
            render: tested.render,
            test: tested.test,
            load: began.elapsed(),
        };
        self.plane.set_loaded(Some(files));
        for note in &tested.rendered.notes {
            warn!(
                ingress = note.source.ingress.as_ref().map(tracing::field::display),
                "{}", note.text
            );
        }
        info!(
            reasons = summary(&load.reasons),
            checksum = load.checksum,
            render = ?load.render,
            test = ?load.test,
            load = ?load.load,
            "loaded",
        );
        self.observer.loaded(&load);
        self.tell_recovered(&recovered);
        // What only old servers used may go now.
        self.plane.tell().await?;
        self.configuration.tidy(&tested.rendered);
        Ok(())
    }

    fn put_in_place(&self, rendered: &Rendered, files: &Files) -> Result<(), LoadError> {
        self.configuration
            .put_in_place(rendered)
            .map_err(ConfigurationError::from)?;
        self.plane.set_written(files.clone());
        Ok(())
    }

    /// The files for a layout, as NGINX takes them: without the Ingresses that it refuses. `None` when it has refused
    /// the same files a moment ago.
    async fn tested(
        &mut self,
        layout: &Layout,
        running: Option<&Files>,
    ) -> Result<Option<Tested>, LoadError> {
        let mut isolated = 0;
        loop {
            let without = self.quarantine.levels();
            let began = Instant::now();
            let rendered = self.render(layout, &without)?;
            let render = began.elapsed();
            let checksum = rendered.checksum.to_string();
            let known = running.is_some_and(|running| running.checksum == checksum);
            if known {
                return Ok(Some(Tested {
                    rendered,
                    without,
                    render,
                    test: Duration::ZERO,
                }));
            }
            if self.was_refused(&checksum) {
                return Ok(None);
            }
            let began = Instant::now();
            match self.configuration.test(&rendered).await? {
                Ok(()) => {
                    self.refused = None;
                    let test = began.elapsed();
                    return Ok(Some(Tested {
                        rendered,
                        without,
                        render,
                        test,
                    }));
                }
                Err(refusal) => {
                    isolated += 1;
                    let culprit = match owner(&rendered, &refusal) {
                        Some(owner) => Some(owner),
                        None => self.culprit(layout, running, &without).await?,
                    };
                    let helped = culprit.is_some_and(|name| self.isolate(&name, &refusal.reason));
                    if !helped || isolated > MOST_ISOLATED_AT_ONCE {
                        self.refused = Some((checksum, Instant::now()));
                        return Err(LoadError::Refused(refusal));
                    }
                }
            }
        }
    }

    fn render(&mut self, layout: &Layout, without: &Levels) -> Result<Rendered, LoadError> {
        let renderer = &mut self.renderer;
        let rendered = guard("rendering", || {
            if without.is_empty() {
                renderer.render(layout)
            } else {
                renderer.render(&quarantine::without(layout, without))
            }
        })?;
        Ok(rendered?)
    }

    /// The Ingress without which NGINX takes the files, where it does not say whose fault it is.
    async fn culprit(
        &mut self,
        layout: &Layout,
        running: Option<&Files>,
        without: &Levels,
    ) -> Result<Option<ObjectName>, LoadError> {
        let running = running.map(|running| &running.outcome.model.layout);
        let (renderer, configuration) = (&mut self.renderer, &self.configuration);
        let mut accepts = async |without: &Levels| {
            let rendered = renderer.render(&quarantine::without(layout, without))?;
            Ok::<_, LoadError>(configuration.test(&rendered).await?.is_ok())
        };
        let changed = culprit::changed(layout, running);
        let found = culprit::find(changed.clone(), without, &mut accepts).await?;
        let all = culprit::changed(layout, None);
        if found.is_some() || all == changed {
            return Ok(found);
        }
        culprit::find(all, without, accepts).await
    }

    /// Whether workers of an older configuration still finish their requests.
    fn is_ending_workers(&self) -> bool {
        let master = self.plane.process().pid();
        master.is_some_and(|master| !census::ending_workers(master).is_empty())
    }

    fn was_refused(&self, checksum: &str) -> bool {
        let refused = self.refused.as_ref();
        refused.is_some_and(|(refused, when)| refused == checksum && when.elapsed() < TRY_AGAIN)
    }

    /// Keeps an Ingress apart that NGINX refuses. Answers whether that makes a difference.
    fn isolate(&self, name: &ObjectName, reason: &str) -> bool {
        let snapshot = self.store.snapshot();
        let Some(ingress) = snapshot.ingresses.get(name) else {
            return false;
        };
        let Some(level) = self.quarantine.isolate(ingress, reason) else {
            return false;
        };
        let effect = match level {
            Level::Denied => "its paths answer 503",
            Level::Removed => "its paths are left out",
        };
        warn!(ingress = %name, reason, effect, "nginx refuses what an Ingress makes of its configuration");
        self.observer.isolated(name, reason);
        true
    }

    fn tell_recovered(&self, ingresses: &[ObjectName]) {
        for ingress in ingresses {
            info!(%ingress, "nginx does not refuse this Ingress any more");
            self.observer.recovered(ingress);
        }
    }
}

/// The Ingress whose part of the files a refusal is about: by the line that it names, or by another file.
fn owner(rendered: &Rendered, refusal: &Refusal) -> Option<ObjectName> {
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
    line.and_then(|source| source.ingress.clone())
        .or_else(|| named()?.ingress.clone())
}

fn reasons(before: Option<&Files>, files: &Files) -> Vec<ReloadReason> {
    let layout = before.map(|before| &before.outcome.model.layout);
    plan(layout, &files.outcome.model.layout)
}

/// Ingresses that are not kept apart any more.
fn recovered(before: Option<&Files>, files: &Files) -> Vec<ObjectName> {
    let kept = before.iter().flat_map(|before| before.without.keys());
    kept.filter(|name| !files.without.contains_key(*name))
        .cloned()
        .collect()
}

/// The first of some reasons, and how many more there are.
fn summary(reasons: &[ReloadReason]) -> String {
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
