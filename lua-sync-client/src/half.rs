//! The halves of the state, which are told apart from each other.

use ingress_model::live::{Live, LiveDelta};

use crate::{
    client::LuaSyncClient,
    error::Error,
    revision::{Revision, Revisions},
};

/// One of the halves of a [`Live`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// The backends.
    Backends,
    /// Servers and their certificates.
    Servers,
}

impl Half {
    /// Whether `delta` changes this half.
    pub(crate) fn is_touched_by(self, delta: &LiveDelta) -> bool {
        match self {
            Self::Backends => !(delta.set_backends.is_empty() && delta.remove_backends.is_empty()),
            Self::Servers => {
                !(delta.set_certificates.is_empty()
                    && delta.remove_certificates.is_empty()
                    && delta.set_servers.is_empty()
                    && delta.remove_servers.is_empty())
            }
        }
    }

    /// Makes this half's changes of `delta`.
    pub(crate) fn apply(self, live: &mut Live, delta: &LiveDelta) {
        let part = match self {
            Self::Backends => LiveDelta {
                set_backends: delta.set_backends.clone(),
                remove_backends: delta.remove_backends.clone(),
                ..LiveDelta::default()
            },
            Self::Servers => LiveDelta {
                set_certificates: delta.set_certificates.clone(),
                remove_certificates: delta.remove_certificates.clone(),
                set_servers: delta.set_servers.clone(),
                remove_servers: delta.remove_servers.clone(),
                ..LiveDelta::default()
            },
        };
        live.apply(&part);
    }

    /// Empties this half.
    pub(crate) fn clear(self, live: &mut Live) {
        match self {
            Self::Backends => live.backends.clear(),
            Self::Servers => {
                live.certificates.clear();
                live.servers.clear();
            }
        }
    }

    /// This half's revision.
    pub(crate) fn of(self, revisions: Revisions) -> Revision {
        match self {
            Self::Backends => revisions.backends,
            Self::Servers => revisions.servers,
        }
    }

    /// Tells NGINX what changed since `base` in this half.
    pub(crate) async fn push(
        self,
        client: &LuaSyncClient,
        delta: &LiveDelta,
        base: Revision,
        revision: Revision,
    ) -> Result<(), Error> {
        match self {
            Self::Backends => client.push_backends(delta, base, revision).await,
            Self::Servers => client.push_servers(delta, base, revision).await,
        }
    }

    /// Tells NGINX all of this half.
    pub(crate) async fn replace(
        self,
        client: &LuaSyncClient,
        live: &Live,
        revision: Revision,
    ) -> Result<(), Error> {
        match self {
            Self::Backends => client.replace_backends(live, revision).await,
            Self::Servers => client.replace_servers(live, revision).await,
        }
    }
}
