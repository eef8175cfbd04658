//! Keeps one NGINX at the state that is wanted, sending only what changed.

use std::{collections::BTreeSet, time::Duration};

use ingress_model::live::{Live, LiveDelta, UpstreamName};
use tokio::time::Instant;

use crate::{
    client::LuaSyncClient,
    error::Error,
    fit::{Search, Steps},
    half::Half,
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
/// When a change does not fit into a dictionary, as much of it as does is told all the same, what NGINX knows already
/// before what is new to it; [`told`](Self::told) shows what got through.
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

    /// What NGINX was told, as far as it is certain to have taken it. Empty in TCP and UDP services.
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
        let Some(base) = self.revision_of(half).take() else {
            return self.replace(half, delta, applied).await;
        };
        if !half.is_touched_by(delta) {
            *self.revision_of(half) = Some(base);
            return Ok(());
        }
        match self.push(half, delta, base, applied).await {
            Ok(revision) => {
                *self.revision_of(half) = Some(revision);
                Ok(())
            }
            Err(Error::Stale { .. }) => self.replace(half, delta, applied).await,
            Err(error) if error.is_misfit() => {
                let told = &self.told;
                let steps = Steps::new(half, delta, told, |name| told.backends.contains_key(name));
                self.fit(half, &steps, base, error, applied).await
            }
            Err(error) => {
                if error.is_refusal() {
                    *self.revision_of(half) = Some(base);
                }
                Err(error)
            }
        }
    }

    /// Tells all of a half: what NGINX was last known to have, with `delta` applied.
    async fn replace(
        &mut self,
        half: Half,
        delta: &LiveDelta,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        let mut whole = self.told.clone();
        half.apply(&mut whole, delta);
        let revision = self.revisions.draw();
        applied.full = true;
        match half.replace(&self.client, &whole, revision).await {
            Ok(()) => {
                half.clear(&mut self.told);
                let sent = self.told.diff(&whole);
                self.record(half, &sent, applied);
                *self.revision_of(half) = Some(revision);
                Ok(())
            }
            Err(error) if error.is_misfit() => {
                self.replace_in_parts(half, &whole, error, applied).await
            }
            Err(error) => Err(error),
        }
    }

    /// Brings an NGINX of unknown state as near to `whole` as its dictionary allows.
    async fn replace_in_parts(
        &mut self,
        half: Half,
        whole: &Live,
        error: Error,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        // Before what it names is asked for: a change in between then makes the first step stale.
        let base = half.of(self.client.revision().await?.revisions());
        let mut told = self.told.clone();
        half.clear(&mut told);
        let mut delta = told.diff(whole);
        let mut known = BTreeSet::new();
        if half == Half::Backends {
            let names = self.client.backends().await?.into_iter();
            known.extend(names.map(|backend| UpstreamName::new(&backend.name)));
            let gone = known
                .iter()
                .filter(|name| !whole.backends.contains_key(*name));
            delta.remove_backends = gone.cloned().collect();
        }
        let steps = Steps::new(half, &delta, &self.told, |name| known.contains(name));
        self.told = told;
        self.fit(half, &steps, base, error, applied).await
    }

    /// Tells as many parts of a change as fit. Fails with `error`, that of the whole, if any did not.
    async fn fit(
        &mut self,
        half: Half,
        steps: &Steps,
        mut base: Revision,
        error: Error,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        let mut all_fit = self.step(half, &steps.first, &mut base, applied).await?;
        let mut search = Search::over(steps.then.len());
        while let Some(range) = search.next() {
            let part = steps.joined(range.clone());
            if !self.step(half, &part, &mut base, applied).await? {
                search.does_not_fit(&range);
            }
        }
        all_fit &= search.all_fit();
        if all_fit {
            all_fit = self.step(half, &steps.last, &mut base, applied).await?;
        }
        *self.revision_of(half) = Some(base);
        if all_fit { Ok(()) } else { Err(error) }
    }

    /// Tells one part of a change, unless it does not fit. Returns whether it did.
    async fn step(
        &mut self,
        half: Half,
        part: &LiveDelta,
        base: &mut Revision,
        applied: &mut Applied,
    ) -> Result<bool, Error> {
        if !half.is_touched_by(part) {
            return Ok(true);
        }
        match self.push(half, part, *base, applied).await {
            Ok(revision) => {
                *base = revision;
                Ok(true)
            }
            Err(error) if error.is_misfit() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn push(
        &mut self,
        half: Half,
        delta: &LiveDelta,
        base: Revision,
        applied: &mut Applied,
    ) -> Result<Revision, Error> {
        let revision = self.revisions.draw();
        half.push(&self.client, delta, base, revision).await?;
        self.record(half, delta, applied);
        Ok(revision)
    }

    /// Takes note that NGINX took `delta`.
    fn record(&mut self, half: Half, delta: &LiveDelta, applied: &mut Applied) {
        half.apply(&mut self.told, delta);
        match half {
            Half::Backends => {
                applied.backends_sent += delta.set_backends.len() + delta.remove_backends.len();
            }
            Half::Servers => {
                applied.certificates_sent +=
                    delta.set_certificates.len() + delta.remove_certificates.len();
                applied.servers_sent += delta.set_servers.len() + delta.remove_servers.len();
            }
        }
    }

    fn revision_of(&mut self, half: Half) -> &mut Option<Revision> {
        match half {
            Half::Backends => &mut self.backends,
            Half::Servers => &mut self.servers,
        }
    }
}
