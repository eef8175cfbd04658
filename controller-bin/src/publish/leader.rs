//! Takes part in the election of a leader, by a Lease of the API server.
//!
//! Only `get`, `create` and `update` are asked of the API server: that is what ingress-nginx's role allows.

use std::{pin::pin, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tracing::{debug, info};

use super::{
    election::{Election, Step, Terms},
    request::{RequestError, within},
    trouble::Trouble,
};

/// Whether this replica leads. Clones tell the same.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<Option<Instant>>);

/// Takes part in an election.
#[derive(Debug)]
pub struct Candidate {
    leases: Api<Lease>,
    name: String,
    election: Election,
    /// The Lease as we wrote it last; `None` if it may be different by now.
    ours: Option<Lease>,
    /// Until when this replica leads.
    standing: watch::Sender<Option<Instant>>,
    leads: bool,
    trouble: Trouble,
}

impl Leadership {
    /// Whether it leads at this moment.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let until = *self.0.borrow();
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Waits until it leads; for ever if it never will.
    pub async fn gained(&mut self) {
        while !self.is_held() {
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until it does not lead.
    pub async fn lost(&mut self) {
        while self.is_held() {
            let until = *self.0.borrow_and_update();
            let end = async {
                if let Some(until) = until {
                    sleep_until(until).await;
                }
            };
            tokio::select! {
                () = end => {}
                // Without a sender nothing changes before the end.
                Ok(()) = self.0.changed() => {}
            }
        }
    }
}

impl Candidate {
    /// A candidate of that identity for the Lease `name` of a namespace.
    #[must_use]
    pub fn new(
        client: &Client,
        namespace: &str,
        name: &str,
        identity: &str,
        terms: Terms,
    ) -> (Self, Leadership) {
        let (standing, leadership) = watch::channel(None);
        let candidate = Self {
            leases: Api::namespaced(client.clone(), namespace),
            name: name.to_owned(),
            election: Election::new(name, identity, terms),
            ours: None,
            standing,
            leads: false,
            trouble: Trouble::new("take part in the election of a leader"),
        };
        (candidate, Leadership(leadership))
    }

    /// Takes part until the controller ends. A leader goes on leading until it has `finished` what it does at the end,
    /// and then gives the Lease up.
    pub async fn run(
        mut self,
        mut ended: watch::Receiver<bool>,
        finished: impl Future<Output = ()>,
    ) {
        let mut finished = pin!(finished);
        while self.leads || !*ended.borrow() {
            let wait = self.look().await;
            let ending = async {
                if *ended.borrow_and_update() || ended.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = &mut finished => break,
                () = ending => {}
                () = sleep(wait) => {}
            }
        }
        self.give_up().await;
    }

    /// Looks at the Lease, and writes it where that is ours to do. Answers how long to wait for the next look.
    async fn look(&mut self) -> Duration {
        let terms = self.election.terms();
        let wait = match self.try_look().await {
            Ok(wait) => {
                self.trouble.ended();
                wait
            }
            Err(error) => {
                self.trouble.met(&error);
                terms.retry
            }
        };
        let until = *self.standing.borrow();
        self.set_leads(until.is_some_and(|until| Instant::now() < until));
        wait
    }

    async fn try_look(&mut self) -> Result<Duration, RequestError> {
        let terms = self.election.terms();
        // A leader that waits longer has to stop before it could try once more.
        let limit = terms.trust / 2;
        let params = PostParams::default();
        // What is written now holds from now on at the latest.
        let asked = Instant::now();
        let lease = match self.ours.take() {
            Some(lease) => Some(lease),
            None => within(limit, self.leases.get_opt(&self.name)).await?,
        };
        let step = self
            .election
            .step(lease.as_ref(), Instant::now(), Timestamp::now());
        let written = match step {
            Step::Wait(wait) => {
                self.standing.send_replace(None);
                return Ok(wait);
            }
            Step::Create(lease) => within(limit, self.leases.create(&params, &lease)).await,
            Step::Replace(lease) => {
                within(limit, self.leases.replace(&self.name, &params, &lease)).await
            }
        };
        match written {
            Ok(lease) => {
                self.ours = Some(lease);
                self.standing.send_replace(Some(asked + terms.trust));
                Ok(terms.retry)
            }
            // Somebody else has written it; it is to be read again.
            Err(error) if error.is_conflict() => Ok(terms.retry / 4),
            Err(error) => Err(error),
        }
    }

    /// Gives the Lease up, so that another replica need not wait for its end.
    async fn give_up(&mut self) {
        self.standing.send_replace(None);
        self.set_leads(false);
        let Some(lease) = self.ours.take() else {
            return;
        };
        let Some(released) = self.election.release(&lease, Timestamp::now()) else {
            return;
        };
        let params = PostParams::default();
        let written = self.leases.replace(&self.name, &params, &released);
        match within(self.election.terms().trust, written).await {
            Ok(_) => debug!(lease = self.name, "gave the Lease up"),
            // It ends by itself.
            Err(error) => debug!(lease = self.name, %error, "cannot give the Lease up"),
        }
    }

    fn set_leads(&mut self, leads: bool) {
        if self.leads != leads {
            self.leads = leads;
            let lease = &self.name;
            if leads {
                info!(lease, "leads: writes the status of Ingresses");
            } else {
                info!(lease, "does not lead any more");
            }
        }
    }
}
