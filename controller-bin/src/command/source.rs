//! The objects to look at, read once, and what the rules make of them.

use std::{io, path::Path, path::PathBuf, sync::Arc, time::Duration};

use ingress_model::{
    ObjectKind, Options, Outcome, Snapshot,
    live::{Certificate, CertificateId},
    manifests::{Ignored, ManifestError, Repeated},
    merge,
};
use jiff::Timestamp;
use tokio::{runtime::Runtime, time::timeout};
use tracing::Level;

use super::CommandError;
use crate::{
    args::Args,
    cluster,
    manifests::{self, AssumedClass},
    quarantine::{Quarantine, deny},
    store::Store,
    watch,
};

/// How long the API server may take to list everything.
const WITHIN: Duration = Duration::from_secs(30);

/// The objects, and what is wrong with their source.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) snapshot: Snapshot,
    /// Whether the API server lets us list IngressClasses.
    pub(super) classes_readable: bool,
    /// The files of a directory of manifests.
    pub(super) files: Vec<PathBuf>,
    /// Manifests that are left out.
    pub(super) broken: Vec<ManifestError>,
    /// Objects that several manifests define.
    pub(super) repeated: Vec<Repeated>,
    /// Objects of manifests whose kind is not read.
    pub(super) ignored: Vec<(PathBuf, Ignored)>,
}

/// What the rules made of objects.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) options: Options,
    pub(super) outcome: Outcome,
}

impl Objects {
    /// Merges the objects as a controller with these flags does.
    pub(super) fn merge(&self, args: &Args) -> Merged {
        self.merge_by(args.options())
    }

    /// Merges the objects by these options, but for what is known of their source.
    pub(super) fn merge_by(&self, options: Options) -> Merged {
        let options = self.known_to(options);
        let outcome = merge(&self.snapshot, &options, Timestamp::now());
        Merged { options, outcome }
    }

    /// Merges the objects without what is out, as a controller with these flags does that keeps it apart.
    pub(super) fn merge_without(&self, quarantine: &Quarantine, args: &Args) -> Merged {
        let options = self.known_to(args.options());
        let mut snapshot = self.snapshot.clone();
        quarantine.substitute(&mut snapshot, &options);
        let mut outcome = merge(&snapshot, &options, Timestamp::now());
        outcome.model.layout = deny(&outcome.model.layout, &quarantine.levels());
        Merged { options, outcome }
    }

    /// Options with what is known of the objects' source.
    fn known_to(&self, mut options: Options) -> Options {
        options.ingress_classes_readable = self.classes_readable;
        // A running controller makes one; here it only stands for it.
        options.generated_certificate = Some(Certificate {
            id: CertificateId::new(CertificateId::GENERATED),
            pem: "".into(),
        });
        options
    }

    /// What is wrong with manifests: file, line and reason.
    pub(super) fn broken_manifests(&self) -> Vec<String> {
        self.broken.iter().map(ToString::to_string).collect()
    }
}

/// Reads the objects from where the controller would read them.
pub(super) fn find(args: &Args) -> Result<Objects, CommandError> {
    match &args.kubernetes.manifests {
        Some(directory) => read(args, directory),
        None => block_on(ask(args))?,
    }
}

/// Reads the objects of a directory.
pub(super) fn read(args: &Args, directory: &Path) -> Result<Objects, CommandError> {
    let found = manifests::read(directory, AssumedClass::ours(&args.options()))?;
    Ok(Objects {
        snapshot: found.together.snapshot(),
        classes_readable: true,
        files: found.files,
        broken: found.errors,
        repeated: found.together.repeated,
        ignored: found.ignored,
    })
}

/// Waits for an answer.
pub(super) fn block_on<T>(answer: impl Future<Output = T>) -> Result<T, CommandError> {
    let runtime = Runtime::new().map_err(|source| CommandError::Runtime { source })?;
    let answer = runtime.block_on(answer);
    // Watches and connections are of no use any more.
    runtime.shutdown_background();
    Ok(answer)
}

/// Lists what the controller would watch. What goes wrong meanwhile is told on standard error.
async fn ask(args: &Args) -> Result<Objects, CommandError> {
    warn_on_standard_error();
    choose_tls();
    let client = cluster::client(&args.kubernetes).await?;
    let lists = watch::lists(args);
    let store = Arc::new(Store::awaiting(lists.iter().map(ToString::to_string)));
    let _watches = watch::start(&client, lists, &store);
    timeout(WITHIN, store.until_ready())
        .await
        .map_err(|_elapsed| CommandError::Silent {
            lists: store.awaited().join(", "),
            within: WITHIN,
        })?;
    Ok(Objects {
        snapshot: store.snapshot(),
        classes_readable: !store.is_refused(ObjectKind::IngressClass),
        ..Objects::default()
    })
}

/// Chooses how TLS is spoken to API servers.
pub(super) fn choose_tls() {
    // It fails when a program around us has chosen already.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
}

fn warn_on_standard_error() {
    let warnings = tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_writer(io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false);
    // The error is that flags have asked for more already.
    let _started = warnings.try_init();
}
