//! Why a subcommand cannot tell anything.

use std::{io, path::PathBuf, time::Duration};

use lua_sync_client::lua_modules;
use nginx_render::RenderError;

use super::local::AskError;
use crate::{
    cluster::ClusterError,
    manifests::ManifestsError,
    nginx::{files::WriteError, program::ProgramError},
};

/// Why a subcommand cannot tell anything.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
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
    /// There is no runtime to ask anybody with.
    #[error("cannot start the runtime")]
    Runtime {
        /// What the system said.
        source: io::Error,
    },
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Write {
        /// What the system said.
        source: io::Error,
    },
    /// NGINX's program cannot be asked what it can do.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// There is no configuration.
    #[error("cannot render the configuration")]
    Render(#[from] RenderError),
    /// A controller uses the directory that files are to be written to.
    #[error("cannot write files to {}: a controller runs NGINX with that directory", .0.display())]
    InUse(PathBuf),
    /// There is a file of somebody else's where files are to be written.
    #[error("cannot overwrite {}: it was not written by this program", .0.display())]
    Foreign(PathBuf),
    /// A directory cannot be made.
    #[error("cannot make the directory {}", path.display())]
    MakeDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    WriteFile(#[from] WriteError),
    /// The Lua modules cannot be written.
    #[error("cannot write the Lua modules")]
    Lua(#[from] lua_modules::WriteError),
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The running NGINX does not answer.
    #[error("cannot ask the running nginx at port {port} (--status-port)")]
    Nginx {
        /// Its status port.
        port: u16,
        /// What went wrong.
        source: lua_sync_client::Error,
    },
    /// The running controller does not tell what it knows.
    #[error("cannot ask the running controller at port {port} (--healthz-port)")]
    Controller {
        /// The port of its health check.
        port: u16,
        /// What went wrong.
        source: AskError,
    },
    /// What the running controller tells of its model is not understood.
    #[error("cannot understand the model of the running controller")]
    Model {
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The flags that are given cannot be used together.
    #[error("cannot use the flags: {0}")]
    Flags(String),
    /// No subcommand is called so.
    #[error("there is no subcommand {0}")]
    Subcommand(String),
    /// More or less is named than can be compared.
    #[error(
        "cannot compare: name two directories, or one beside --running, --manifests or a cluster"
    )]
    Sets,
    /// There is nothing of that name.
    #[error("there is no {what}")]
    NotFound {
        /// What was asked for.
        what: String,
    },
    /// No certificate can be made.
    #[error("cannot make the certificate for hosts without one")]
    Certificate(#[from] rcgen::Error),
}

impl CommandError {
    /// The code with which the program ends.
    #[must_use]
    pub fn code(&self) -> u8 {
        if matches!(self, Self::NotFound { .. }) {
            1
        } else {
            2
        }
    }
}
