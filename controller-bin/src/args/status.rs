//! Flags about what is reported to the cluster.

use std::time::Duration;

use ingress_model::ObjectName;

use super::{
    ArgsError,
    value::{self, Given},
};

/// What is reported to the cluster, and by which replica.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Status of Ingresses")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches, each of its own"
)]
pub struct StatusArgs {
    /// Write addresses to the status of Ingresses
    #[arg(long, default_value = "true", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub update_status: bool,

    /// Take the addresses back when the last replica ends
    #[arg(long, default_value = "true", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub update_status_on_shutdown: bool,

    /// Seconds between two looks at the status; at least 5
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub status_update_interval: i64,

    /// Service whose addresses are written
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "", value_parser = value::object_name)]
    pub publish_service: Given<ObjectName>,

    /// Addresses that are written, separated by commas
    #[arg(long, value_name = "ADDRESSES", default_value = "", value_parser = value::text)]
    pub publish_status_address: Given<String>,

    /// Write the internal addresses of the nodes rather than the external ones
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub report_node_internal_ip_address: bool,

    /// Name of the Lease by which replicas agree on who writes
    #[arg(long, value_name = "NAME", default_value = "ingress-controller-leader")]
    pub election_id: String,

    /// Within half of this time, another replica writes after the one that wrote is gone
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = value::duration)]
    pub election_ttl: Duration,

    /// Never write the status
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub disable_leader_election: bool,

    /// Create no Events about Ingresses
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub disable_sync_events: bool,
}

/// The least time between two looks at the status.
const SHORTEST_UPDATE_INTERVAL: Duration = Duration::from_secs(5);

/// The same unless a positive time is given.
const DEFAULT_ELECTION_TTL: Duration = Duration::from_secs(30);

impl StatusArgs {
    pub(super) fn check(&self) -> Result<(), ArgsError> {
        if self.publish_service.is_some() && self.publish_status_address.is_some() {
            return Err(ArgsError::Exclusive(
                "--publish-service",
                "--publish-status-address",
            ));
        }
        Ok(())
    }

    /// Time between two looks at the status, at least 5 s.
    #[must_use]
    pub fn update_interval(&self) -> Duration {
        let asked = u64::try_from(self.status_update_interval).unwrap_or_default();
        let asked = Duration::from_secs(asked);
        if asked < SHORTEST_UPDATE_INTERVAL {
            tracing::warn!(?asked, used = ?SHORTEST_UPDATE_INTERVAL, "flag --status-update-interval is too low");
        }
        asked.max(SHORTEST_UPDATE_INTERVAL)
    }

    /// The time that the times of the election are measured by.
    #[must_use]
    pub fn election_ttl(&self) -> Duration {
        if self.election_ttl.is_zero() {
            DEFAULT_ELECTION_TTL
        } else {
            self.election_ttl
        }
    }
}
