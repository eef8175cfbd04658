//! The objects to be explained, read once.

use std::{io, sync::Arc, time::Duration};

use ingress_model::{ObjectKind, Snapshot, manifests::ManifestError};
use tokio::{runtime::Runtime, time::timeout};
use tracing::Level;

use crate::{
    args::Args,
    cluster::{self, ClusterError},
    manifests::{self, AssumedClass, ManifestsError},
    store::Store,
    watch,
};

/// How long the API server may take to list everything.
const WITHIN: Duration = Duration::from_secs(30);

/// Why nothing can be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The directory of manifests cannot be read.
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    /// It is not known how to ask the API server.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The API server does not answer.
    #[error("cannot list {lists}: the API server did not answer within {} s", within.as_secs())]
    Silent {
        /// For what was waited.
        lists: String,
        /// How long.
        within: Duration,
    },
    /// There is no ConfigMap to explain.
    #[error("cannot explain the ConfigMap: --config needs --configmap")]
    NoConfigMap,
    /// There is no runtime to ask the API server with.
    #[error("cannot start the runtime")]
    Runtime {
        /// What the system said.
        source: io::Error,
    },
    /// The explanation cannot be written.
    #[error("cannot write the explanation")]
    Write {
        /// What the system said.
        source: io::Error,
    },
}

/// The objects, and what is wrong with their source.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) snapshot: Snapshot,
    /// Whether the API server lets us list IngressClasses.
    pub(super) classes_readable: bool,
    /// Manifests that are left out.
    pub(super) broken: Vec<ManifestError>,
}

/// Reads the objects from where the controller would read them.
pub(super) fn find(args: &Args) -> Result<Objects, ExplainError> {
    let Some(directory) = &args.kubernetes.manifests else {
        let runtime = Runtime::new().map_err(|source| ExplainError::Runtime { source })?;
        let found = runtime.block_on(ask(args));
        // Its watches are of no use any more.
        runtime.shutdown_background();
        return found;
    };
    let found = manifests::read(directory, AssumedClass::ours(&args.options()))?;
    Ok(Objects {
        snapshot: found.together.snapshot(),
        classes_readable: true,
        broken: found.errors,
    })
}

/// Lists what the controller would watch. What goes wrong meanwhile is told on standard error.
async fn ask(args: &Args) -> Result<Objects, ExplainError> {
    let warnings = tracing_subscriber::fmt()
        .with_max_level(Level::WARN)
        .with_writer(io::stderr)
        .with_ansi(false)
        .without_time()
        .with_target(false);
    // The error is that flags have asked for more already.
    let _started = warnings.try_init();
    // It fails when a program around us has chosen already.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let client = cluster::client(&args.kubernetes).await?;
    let lists = watch::lists(args);
    let store = Arc::new(Store::awaiting(lists.iter().map(ToString::to_string)));
    let _watches = watch::start(&client, lists, &store);
    timeout(WITHIN, store.until_ready())
        .await
        .map_err(|_elapsed| ExplainError::Silent {
            lists: store.awaited().join(", "),
            within: WITHIN,
        })?;
    Ok(Objects {
        snapshot: store.snapshot(),
        classes_readable: !store.is_refused(ObjectKind::IngressClass),
        broken: Vec::new(),
    })
}
