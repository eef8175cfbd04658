//! From the layout that is wanted to an NGINX that runs with it.
//!
//! Render, test, tell what new servers need, put the file in place, reload, and wait until a worker confirms. An Ingress
//! whose part NGINX refuses is kept apart and the rest goes on; a fault that is nobody's leaves the last good files in
//! force.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use ingress_model::{Layout, ObjectName, Outcome, ReloadReason, plan};
use k8s_openapi::api::networking::v1::Ingress;
use lua_sync_client::LuaSyncClient;
use nginx_render::{RenderError, Rendered, Renderer, Source};
use tracing::{debug, error, info, warn};

use crate::{
    chain::chain,
    culprit::{self, Suspect},
    dataplane::{DataPlane, Files, TellError},
    guard::{Panicked, guard},
    nginx::{
        census,
        configuration::{Configuration, ConfigurationError},
        reload::{self, ReloadError},
        test::Refusal,
    },
    observe::{Load, Observer},
    planner::{Planner, Trial},
    quarantine::{self, Fault, Level, Levels, Quarantine},
    stored::Stored,
};

/// How long after NGINX has refused files that nobody can be kept apart for they are tried again.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// How long after workers could not run with files these are tried again: nobody is served meanwhile.
const TRY_UNUSABLE_AGAIN: Duration = Duration::from_mins(10);

/// How many faults may be kept apart in one go.
const MOST_ISOLATED_AT_ONCE: usize = 100;

/// How many tests may be made in one go to find out what is at fault.
const MOST_TRIALS: usize = 200;

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
    #[error("cannot make nginx's configuration")]
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
    /// Who says what is wanted once something is kept apart.
    pub planner: Arc<Planner>,
    /// Where that is kept.
    pub quarantine: Arc<Quarantine>,
    /// Who wants to know.
    pub observer: Arc<dyn Observer>,
    /// The files that NGINX refused last, and until when they are not tried again.
    pub refused: Option<(String, Instant)>,
    /// What the ConfigMap said when NGINX took files last.
    pub config: BTreeMap<String, String>,
    /// `--annotations-prefix`.
    pub annotations_prefix: String,
}

/// Files that NGINX takes.
struct Tested {
    wanted: Arc<Outcome>,
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
        let Some(tested) = self.tested(wanted, before.as_ref()).await? else {
            return Ok(());
        };
        let files = Files {
            outcome: tested.wanted,
            without: tested.without,
            checksum: tested.rendered.checksum.to_string(),
        };
        let reasons = reasons(before.as_ref(), &files);
        let recovered = recovered(before.as_ref(), &files);
        let runs = before
            .as_ref()
            .is_some_and(|before| before.checksum == files.checksum);
        // Where others were put in place since, NGINX may have begun to load them, and no worker could.
        if runs && self.plane.is_written(&files.checksum) {
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
        if let Err(error) = self.bring_into_force(&files.checksum, within).await {
            if error.leaves_no_workers()
                && let Some(before) = &before
            {
                error!(
                    reasons = summary(&reasons),
                    error = chain(&error),
                    "nginx takes its new configuration but cannot serve with it; going back to the last good one"
                );
                self.refused = Some((files.checksum, Instant::now() + TRY_UNUSABLE_AGAIN));
                self.go_back(before, within).await?;
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
        let rendered = self.render(&before.outcome.model.layout, &before.without)?;
        let files = Files {
            checksum: rendered.checksum.to_string(),
            ..before.clone()
        };
        self.put_in_place(&rendered, &files)?;
        self.bring_into_force(&files.checksum, within).await?;
        self.plane.set_loaded(Some(files));
        info!("nginx runs with its last good configuration again");
        Ok(())
    }

    fn put_in_place(&self, rendered: &Rendered, files: &Files) -> Result<(), LoadError> {
        self.configuration
            .put_in_place(rendered)
            .map_err(ConfigurationError::from)?;
        self.plane.set_written(files.clone());
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
            let rendered = self.render(&wanted.model.layout, &without)?;
            let render = began.elapsed();
            let checksum = rendered.checksum.to_string();
            let is_known = running.is_some_and(|running| running.checksum == checksum);
            if !is_known && self.was_refused(&checksum) {
                return Ok(None);
            }
            let began = Instant::now();
            let tested = if is_known {
                Ok(())
            } else {
                self.configuration.test(&rendered).await?
            };
            let Err(refusal) = tested else {
                self.refused = None;
                self.config = config;
                return Ok(Some(Tested {
                    wanted,
                    rendered,
                    without,
                    render,
                    test: began.elapsed(),
                }));
            };
            inquiry.refusals += 1;
            // Objects may have changed since: nobody is blamed for what is not there any more.
            let (planned, _) = self.planner.plan()?;
            if planned.model.layout != wanted.model.layout
                && inquiry.refusals <= MOST_ISOLATED_AT_ONCE
            {
                wanted = self.plane.begin_load().unwrap_or(planned);
                continue;
            }
            let helped = inquiry.refusals <= MOST_ISOLATED_AT_ONCE
                && self
                    .keep_apart(&rendered, &refusal, running, &mut inquiry)
                    .await?;
            if !helped {
                self.refused = Some((checksum, Instant::now() + TRY_AGAIN));
                return Err(LoadError::Refused(refusal));
            }
            let (planned, _) = self.planner.plan()?;
            wanted = self.plane.begin_load().unwrap_or(planned);
        }
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

    /// Keeps apart what NGINX refuses. Answers whether that makes a difference.
    async fn keep_apart(
        &mut self,
        rendered: &Rendered,
        refusal: &Refusal,
        running: Option<&Files>,
        inquiry: &mut Inquiry,
    ) -> Result<bool, LoadError> {
        let mut trial = self.planner.trial();
        let source = owner(rendered, refusal);
        let annotation = source.map(|source| source.what);
        let annotation = annotation.or_else(|| annotation_of(&refusal.reason));
        let suspect = match source {
            Some(source) => Self::named(source, &trial),
            None => None,
        };
        if let Some(suspect) = suspect
            && !self.is_innocent(&suspect, refusal, running, &trial, inquiry)
        {
            inquiry.reasons.insert(refusal.reason.clone());
            return Ok(self.isolate(&suspect, refusal, annotation, running, &trial, inquiry));
        }
        for suspects in suspects(&trial, running, &self.config) {
            if let Some(found) = self.search(suspects, &mut trial, inquiry).await? {
                if matches!(found, Suspect::Key(_)) {
                    // The Ingresses that the key has broken are not at fault.
                    for name in std::mem::take(&mut inquiry.isolated) {
                        self.quarantine.release(&name);
                    }
                }
                return Ok(self.isolate(&found, refusal, annotation, running, &trial, inquiry));
            }
        }
        Ok(false)
    }

    /// What a source stands for.
    fn named(source: &Source, trial: &Trial) -> Option<Suspect> {
        if let Some(ingress) = &source.ingress {
            return Some(Suspect::Ingress(ingress.clone()));
        }
        let config = trial.config();
        let key = config.contains_key(source.what);
        key.then(|| Suspect::Key(source.what.to_owned()))
    }

    /// Whether the fault is rather in the ConfigMap, whose values stand among what belongs to Ingresses: it has changed
    /// and the Ingress has not, or another Ingress has the same fault.
    fn is_innocent(
        &self,
        suspect: &Suspect,
        refusal: &Refusal,
        running: Option<&Files>,
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
        let served = running.and_then(|running| served(running, name));
        let now = trial.snapshot().ingresses.get(name);
        let is_same = served.is_some_and(|served| now.is_some_and(|now| !served.matters(now)));
        (is_same && config != self.config) || inquiry.reasons.contains(&refusal.reason)
    }

    /// The one among the suspects without which NGINX takes the files.
    async fn search(
        &mut self,
        suspects: Vec<Suspect>,
        trial: &mut Trial,
        inquiry: &mut Inquiry,
    ) -> Result<Option<Suspect>, LoadError> {
        inquiry.has_searched = true;
        let without = self.quarantine.levels();
        let layout = trial.without(&[])?;
        let rendered = self.render(&layout, &without)?;
        if self.configuration.test(&rendered).await?.is_ok() {
            // What was refused is not there any more.
            return Ok(None);
        }
        culprit::find(suspects, async |suspects: &[Suspect]| {
            inquiry.trials += 1;
            if inquiry.trials > MOST_TRIALS {
                return Ok(false);
            }
            let layout = trial.without(suspects)?;
            let rendered = self.render(&layout, &without)?;
            Ok(self.configuration.test(&rendered).await?.is_ok())
        })
        .await
    }

    /// Whether workers of an older configuration still finish their requests.
    fn is_ending_workers(&self) -> bool {
        let master = self.plane.process().pid();
        master.is_some_and(|master| !census::ending_workers(master).is_empty())
    }

    fn was_refused(&self, checksum: &str) -> bool {
        let refused = self.refused.as_ref();
        refused.is_some_and(|(refused, until)| refused == checksum && Instant::now() < *until)
    }

    /// Keeps apart what was found to be at fault. Answers whether that makes a difference.
    fn isolate(
        &self,
        suspect: &Suspect,
        refusal: &Refusal,
        annotation: Option<&'static str>,
        running: Option<&Files>,
        trial: &Trial,
        inquiry: &mut Inquiry,
    ) -> bool {
        let reason = &refusal.reason;
        let name = match suspect {
            Suspect::Ingress(name) => name,
            Suspect::Key(key) => {
                let config = trial.config();
                let value = config.get(key);
                return value.is_some_and(|value| self.quarantine.leave_out(key, value, reason));
            }
        };
        let Some(ingress) = self.planner.ingress(name) else {
            return false;
        };
        let fault = Fault {
            reason: reason.clone(),
            annotation,
            served: running.and_then(|running| served(running, name)),
        };
        let prefix = &self.annotations_prefix;
        let Some(level) = self.quarantine.isolate(&ingress, &fault, prefix) else {
            return false;
        };
        let effect = match level {
            Level::Earlier => "its version before is served".to_owned(),
            Level::Without(annotation) => format!("it is served without {annotation}"),
            Level::Denied => "its paths answer 503".to_owned(),
            Level::Removed => "it is left out".to_owned(),
        };
        warn!(ingress = %name, reason, effect, "nginx refuses what an Ingress makes of its configuration");
        inquiry.isolated.push(name.clone());
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

/// What has been found out while one set of files is made acceptable.
#[derive(Debug, Default)]
struct Inquiry {
    refusals: usize,
    trials: usize,
    /// Whether anything was searched for without a name to go by.
    has_searched: bool,
    /// The reasons for which Ingresses were kept apart.
    reasons: BTreeSet<String>,
    /// Those Ingresses.
    isolated: Vec<ObjectName>,
}

/// Whose part of the files a refusal is about: by the line that it names, or by another file.
fn owner<'a>(rendered: &'a Rendered, refusal: &Refusal) -> Option<&'a Source> {
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
fn annotation_of(reason: &str) -> Option<&'static str> {
    reason
        .contains("SSL_CTX_set_cipher_list")
        .then_some("ssl-ciphers")
}

/// The version of an Ingress that NGINX runs with.
fn served(running: &Files, name: &ObjectName) -> Option<Arc<Ingress>> {
    let is_served = matches!(
        running.without.get(name),
        None | Some(Level::Earlier | Level::Without(_))
    );
    let served = running.outcome.last_good.get(name);
    served.filter(|_| is_served).cloned()
}

/// Who may be at fault: first those that are not as NGINX runs with them, then all.
fn suspects(
    trial: &Trial,
    running: Option<&Files>,
    config: &BTreeMap<String, String>,
) -> Vec<Vec<Suspect>> {
    let ingresses = || trial.snapshot().ingresses.iter();
    let now = trial.config();
    let changed = |(name, ingress): &(&ObjectName, &Arc<Ingress>)| {
        let served = running.and_then(|running| running.outcome.last_good.get(name));
        served.is_none_or(|served| served.matters(ingress))
    };
    let suspect = |(name, _): (&ObjectName, &Arc<Ingress>)| Suspect::Ingress(name.clone());
    let some = ingresses().filter(changed).map(suspect);
    let some: Vec<_> = some.chain(culprit::changed_keys(&now, config)).collect();
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
