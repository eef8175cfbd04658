//! What happens, on its way from those who do it to those who tell it.

use std::{error::Error, sync::Arc, time::Duration};

use ingress_model::{ObjectName, Outcome};
use tokio::sync::{mpsc, watch};

use crate::{
    chain::chain,
    observe::{Load, Observer},
};

/// The latest outcome of a merge; `None` before the first one. What came between two looks is passed over.
pub type Outcomes = watch::Receiver<Option<Arc<Outcome>>>;

/// What happened, in order.
pub type Happenings = mpsc::UnboundedReceiver<Happening>;

/// Something that happened to NGINX's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// NGINX runs with new files.
    Loaded,
    /// NGINX does not run with the files that it should run with.
    LoadFailed {
        /// Why, with all causes.
        error: String,
    },
    /// NGINX refuses what an Ingress makes of the configuration.
    Isolated {
        /// The Ingress.
        ingress: ObjectName,
        /// What NGINX says.
        reason: String,
    },
    /// NGINX takes what an Ingress makes of the configuration, after it did not.
    Recovered {
        /// The Ingress.
        ingress: ObjectName,
    },
    /// NGINX runs without something that an Ingress asks for.
    WentWithout {
        /// The Ingress.
        ingress: ObjectName,
        /// The annotation, or what else asks for it.
        what: String,
        /// Why, and what is done instead.
        reason: String,
    },
}

/// Takes in what happens without keeping anybody waiting.
#[derive(Debug)]
pub struct Feed {
    outcomes: watch::Sender<Option<Arc<Outcome>>>,
    happenings: mpsc::UnboundedSender<Happening>,
}

impl Feed {
    /// A feed, and its two ends.
    #[must_use]
    pub fn new() -> (Arc<Self>, Outcomes, Happenings) {
        let (outcomes, latest) = watch::channel(None);
        let (happenings, happened) = mpsc::unbounded_channel();
        let feed = Self {
            outcomes,
            happenings,
        };
        (Arc::new(feed), latest, happened)
    }

    fn happened(&self, happening: Happening) {
        // Nobody listens any more at the end.
        let _told = self.happenings.send(happening);
    }
}

impl Observer for Feed {
    fn merged(&self, outcome: &Arc<Outcome>, _: Duration) {
        self.outcomes.send_replace(Some(Arc::clone(outcome)));
    }

    fn loaded(&self, _: &Load) {
        self.happened(Happening::Loaded);
    }

    fn load_failed(&self, error: &dyn Error) {
        self.happened(Happening::LoadFailed {
            error: chain(error),
        });
    }

    fn isolated(&self, ingress: &ObjectName, reason: &str) {
        self.happened(Happening::Isolated {
            ingress: ingress.clone(),
            reason: reason.to_owned(),
        });
    }

    fn recovered(&self, ingress: &ObjectName) {
        self.happened(Happening::Recovered {
            ingress: ingress.clone(),
        });
    }

    fn went_without(&self, ingress: &ObjectName, what: &str, reason: &str) {
        self.happened(Happening::WentWithout {
            ingress: ingress.clone(),
            what: what.to_owned(),
            reason: reason.to_owned(),
        });
    }
}
