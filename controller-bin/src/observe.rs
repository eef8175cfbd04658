//! What the controller does, told to whoever counts or publishes it.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use ingress_model::{ObjectName, Outcome, ReloadReason};
use lua_sync_client::Applied;

/// Is told what the controller does. Every method does nothing unless overridden, and has to be quick.
pub trait Observer: fmt::Debug + Send + Sync + 'static {
    /// Objects were made into a configuration.
    fn merged(&self, outcome: &Arc<Outcome>, took: Duration) {
        let _ = (outcome, took);
    }

    /// A sync is over: NGINX was told of endpoints, certificates and the like, where there was something to tell.
    fn told(&self, told: &Told) {
        let _ = told;
    }

    /// NGINX runs with new configuration files.
    fn loaded(&self, load: &Load) {
        let _ = load;
    }

    /// NGINX does not run with the configuration files that it should run with.
    fn load_failed(&self, error: &dyn Error) {
        let _ = error;
    }

    /// NGINX refuses what this Ingress makes of the configuration; it is taken out so that all else goes on.
    fn isolated(&self, ingress: &ObjectName, reason: &str) {
        let _ = (ingress, reason);
    }

    /// NGINX takes what this Ingress makes of the configuration, after it did not; or the Ingress is gone.
    fn recovered(&self, ingress: &ObjectName) {
        let _ = ingress;
    }

    /// NGINX runs without something that this Ingress asks for by an annotation, such as one for a module that is not
    /// there.
    fn went_without(&self, ingress: &ObjectName, what: &str, reason: &str) {
        let _ = (ingress, what, reason);
    }
}

impl Observer for () {}

/// Each is told, one after the other.
impl Observer for Vec<Arc<dyn Observer>> {
    fn merged(&self, outcome: &Arc<Outcome>, took: Duration) {
        for each in self {
            each.merged(outcome, took);
        }
    }

    fn told(&self, told: &Told) {
        for each in self {
            each.told(told);
        }
    }

    fn loaded(&self, load: &Load) {
        for each in self {
            each.loaded(load);
        }
    }

    fn load_failed(&self, error: &dyn Error) {
        for each in self {
            each.load_failed(error);
        }
    }

    fn isolated(&self, ingress: &ObjectName, reason: &str) {
        for each in self {
            each.isolated(ingress, reason);
        }
    }

    fn recovered(&self, ingress: &ObjectName) {
        for each in self {
            each.recovered(ingress);
        }
    }

    fn went_without(&self, ingress: &ObjectName, what: &str, reason: &str) {
        for each in self {
            each.went_without(ingress, what, reason);
        }
    }
}

/// What NGINX was told in a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What was sent.
    pub applied: Applied,
    /// Time between the first change that the sync answers and its start.
    pub waited: Duration,
    /// How long it took to merge the objects.
    pub merge: Duration,
    /// How long it took to tell NGINX.
    pub tell: Duration,
    /// Whether files have to be loaded besides.
    pub loads: bool,
}

impl Told {
    /// How many things were sent, removals included.
    #[must_use]
    pub fn sent(&self) -> usize {
        let Applied {
            backends_sent,
            certificates_sent,
            servers_sent,
            ..
        } = self.applied;
        backends_sent + certificates_sent + servers_sent
    }
}

/// Why NGINX loads files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadReason {
    /// What objects say is different.
    Objects(ReloadReason),
    /// Other Ingresses are kept apart because NGINX refuses them, or none any more.
    Quarantine,
    /// Endpoints of TCP or UDP services changed, and this NGINX has to load them.
    StreamEndpoints,
    /// A shared dictionary has to be larger.
    Dictionaries,
    /// It was not certain that NGINX runs with the files on the disk.
    Unconfirmed,
}

impl LoadReason {
    /// The kind of reason, as a metric's label.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Objects(reason) => reason.label(),
            Self::Quarantine => "quarantine",
            Self::StreamEndpoints => "stream_endpoints",
            Self::Dictionaries => "dictionaries",
            Self::Unconfirmed => "unconfirmed",
        }
    }
}

impl fmt::Display for LoadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Objects(reason) => reason.fmt(f),
            Self::Quarantine => f.write_str("Ingresses that nginx refuses changed"),
            Self::StreamEndpoints => f.write_str("endpoints of TCP or UDP services changed"),
            Self::Dictionaries => f.write_str("shared dictionaries have to be larger"),
            Self::Unconfirmed => f.write_str("the files on the disk were not known to be in force"),
        }
    }
}

/// Configuration files that came into force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Why they are different from those before.
    pub reasons: Vec<LoadReason>,
    /// What they are known by.
    pub checksum: String,
    /// How long it took to write them.
    pub render: Duration,
    /// How long NGINX took to test them.
    pub test: Duration,
    /// How long it took until a worker ran with them.
    pub load: Duration,
}
