//! Keeps one NGINX at the state that is wanted, sending only what changed.

use std::time::Duration;

use ingress_model::live::{Live, LiveDelta};
use tokio::time::Instant;

use crate::{
    client::{LuaSyncClient, touches_backends, touches_servers},
    error::Error,
    revision::{Revision, RevisionSource, Revisions},
    wire::Status,
};

/// Remembers what an NGINX was told, and tells it what has changed since.
///
/// Backends, and servers with their certificates, are two halves that succeed and fail apart: certificates go on being
/// renewed while the backends do not fit into their dictionary. A half is told as a whole at first, when NGINX turns
/// out to have another revision (it was restarted, or someone else told it something), and after a failure that leaves
/// open whether it took effect. Every method may be cancelled by dropping its future; that counts as such a failure.
///
/// The state of TCP and UDP services is left out.
#[derive(Debug)]
pub struct Synchronizer {
    client: LuaSyncClient,
    revisions: RevisionSource,
    /// What NGINX has, in each half whose revision is known; else the last that it certainly had.
    told: Live,
    backends: Option<Revision>,
    servers: Option<Revision>,
    /// The NGINX that was told, once `verify` has seen it.
    instance: Option<String>,
}

/// What an update has sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Backends sent, and names of removed ones.
    pub backends_sent: usize,
    /// Certificates sent, and identities of removed ones.
    pub certificates_sent: usize,
    /// Hosts sent with the certificate they have, and names of hosts that have none any more.
    pub servers_sent: usize,
    /// Whether a half was told as a whole.
    pub full: bool,
    /// How long it took, retries included.
    pub elapsed: Duration,
}

/// How an NGINX compares with what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has what it was told.
    InStep,
    /// It was told nothing yet, or what became of the last update is unknown.
    Untold,
    /// It has lost its dictionaries: it was started anew, or they were resized.
    Restarted,
    /// It has revisions that it was not told by this synchronizer.
    Diverged {
        /// What it was told.
        told: Revisions,
        /// What it has.
        have: Revisions,
    },
}

impl Standing {
    /// Whether the next [`apply`](Synchronizer::apply) will tell everything.
    #[must_use]
    pub fn needs_repair(&self) -> bool {
        *self != Self::InStep
    }
}

/// One of the halves of a [`Live`].
#[derive(Clone, Copy)]
enum Half {
    Backends,
    Servers,
}

impl Synchronizer {
    /// A synchronizer for an NGINX of which nothing is known. Revisions start at the system's clock.
    #[must_use]
    pub fn new(client: LuaSyncClient) -> Self {
        Self::with_revisions(client, RevisionSource::from_clock())
    }

    /// The same with revisions from elsewhere.
    #[must_use]
    pub fn with_revisions(client: LuaSyncClient, revisions: RevisionSource) -> Self {
        Self {
            client,
            revisions,
            told: Live::default(),
            backends: None,
            servers: None,
            instance: None,
        }
    }

    /// The client that requests are made with.
    #[must_use]
    pub const fn client(&self) -> &LuaSyncClient {
        &self.client
    }

    /// What NGINX was told, as far as it is certain to have taken it.
    #[must_use]
    pub const fn told(&self) -> &Live {
        &self.told
    }

    /// Makes NGINX's state that of `wanted`.
    ///
    /// # Errors
    /// The first failure. Unless NGINX could not be reached, the other half was still told. Calling again with the
    /// same or a newer state continues where this one stopped.
    pub async fn apply(&mut self, wanted: &Live) -> Result<Applied, Error> {
        let delta = self.told.diff(wanted);
        self.converge(&delta).await
    }

    /// Adds what `wanted` has and NGINX lacks, and removes nothing: before a reload, so that new servers find what they
    /// need while old ones still have what they use. [`apply`](Self::apply) after the reload does the rest.
    ///
    /// # Errors
    /// As for [`apply`](Self::apply).
    pub async fn apply_additions(&mut self, wanted: &Live) -> Result<Applied, Error> {
        let (additions, _) = self.told.diff(wanted).split();
        self.converge(&additions).await
    }

    /// Asks NGINX which state it has. Where it is not what it was told, the next update tells everything.
    ///
    /// # Errors
    /// Whatever kept the answer from coming. What is known of NGINX stays as it was.
    pub async fn verify(&mut self) -> Result<Standing, Error> {
        let status = self.client.revision().await?;
        let standing = self.compare(&status);
        if self.backends != Some(status.backends) {
            self.backends = None;
        }
        if self.servers != Some(status.servers) {
            self.servers = None;
        }
        self.instance = Some(status.instance);
        Ok(standing)
    }

    /// Has the next update tell everything, for a caller that knows NGINX to have lost its state.
    pub fn forget(&mut self) {
        self.backends = None;
        self.servers = None;
    }

    fn compare(&self, status: &Status) -> Standing {
        let (Some(backends), Some(servers)) = (self.backends, self.servers) else {
            return Standing::Untold;
        };
        let (told, have) = (Revisions { backends, servers }, status.revisions());
        if told == have {
            return Standing::InStep;
        }
        match &self.instance {
            Some(instance) if *instance != status.instance => Standing::Restarted,
            _ => Standing::Diverged { told, have },
        }
    }

    async fn converge(&mut self, delta: &LiveDelta) -> Result<Applied, Error> {
        let started = Instant::now();
        let mut applied = Applied::default();
        // Certificates first: a backend may be wanted by a host that must not be served without its certificate.
        let servers = self.converge_half(Half::Servers, delta, &mut applied).await;
        if let Err(error) = &servers
            && !error.is_refusal()
        {
            return servers.map(|()| applied);
        }
        self.converge_half(Half::Backends, delta, &mut applied)
            .await?;
        servers?;
        applied.elapsed = started.elapsed();
        Ok(applied)
    }

    async fn converge_half(
        &mut self,
        half: Half,
        delta: &LiveDelta,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        // Taken now and given back when the outcome is known, which it is not when this future is dropped.
        if let Some(base) = self.revision_of(half).take() {
            if !half.is_touched_by(delta) {
                *self.revision_of(half) = Some(base);
                return Ok(());
            }
            match self.push(half, delta, base).await {
                Ok(revision) => {
                    *self.revision_of(half) = Some(revision);
                    half.apply(&mut self.told, delta);
                    half.count(delta, applied);
                    return Ok(());
                }
                Err(Error::Stale { .. }) => {}
                Err(error) => {
                    if error.is_refusal() {
                        *self.revision_of(half) = Some(base);
                    }
                    return Err(error);
                }
            }
        }
        let mut whole = self.told.clone();
        half.apply(&mut whole, delta);
        let revision = self.revisions.draw();
        match half {
            Half::Backends => self.client.replace_backends(&whole, revision).await?,
            Half::Servers => self.client.replace_servers(&whole, revision).await?,
        }
        *self.revision_of(half) = Some(revision);
        half.count_all(&whole, applied);
        self.told = whole;
        Ok(())
    }

    async fn push(
        &mut self,
        half: Half,
        delta: &LiveDelta,
        base: Revision,
    ) -> Result<Revision, Error> {
        let revision = self.revisions.draw();
        match half {
            Half::Backends => self.client.push_backends(delta, base, revision).await?,
            Half::Servers => self.client.push_servers(delta, base, revision).await?,
        }
        Ok(revision)
    }

    fn revision_of(&mut self, half: Half) -> &mut Option<Revision> {
        match half {
            Half::Backends => &mut self.backends,
            Half::Servers => &mut self.servers,
        }
    }
}

impl Half {
    fn is_touched_by(self, delta: &LiveDelta) -> bool {
        match self {
            Self::Backends => touches_backends(delta),
            Self::Servers => touches_servers(delta),
        }
    }

    /// Makes this half's changes of `delta`.
    fn apply(self, live: &mut Live, delta: &LiveDelta) {
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

    fn count(self, delta: &LiveDelta, applied: &mut Applied) {
        match self {
            Self::Backends => {
                applied.backends_sent += delta.set_backends.len() + delta.remove_backends.len();
            }
            Self::Servers => {
                applied.certificates_sent +=
                    delta.set_certificates.len() + delta.remove_certificates.len();
                applied.servers_sent += delta.set_servers.len() + delta.remove_servers.len();
            }
        }
    }

    fn count_all(self, whole: &Live, applied: &mut Applied) {
        applied.full = true;
        match self {
            Self::Backends => applied.backends_sent += whole.backends.len(),
            Self::Servers => {
                applied.certificates_sent += whole.certificates.len();
                applied.servers_sent += whole.servers.len();
            }
        }
    }
}
