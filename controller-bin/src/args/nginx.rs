//! Flags about the NGINX process.

use std::{path::PathBuf, time::Duration};

use super::{
    ArgsError,
    value::{self, Given},
};
use crate::quarantine::OnInvalid;

/// The NGINX process.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "NGINX")]
pub struct NginxArgs {
    /// Directory of nginx.conf and what belongs to it
    #[arg(long, value_name = "DIR", default_value = "/etc/nginx")]
    pub nginx_dir: PathBuf,

    /// The NGINX program; without it nginx on the PATH, or /usr/sbin/nginx
    #[arg(long, value_name = "FILE", env = "NGINX_BINARY", default_value = "", value_parser = value::path)]
    pub nginx_binary: Given<PathBuf>,

    /// How many reloads a second there may be; other changes are not limited
    #[arg(long, value_name = "RATE", default_value = "0.3", value_parser = value::rate)]
    pub sync_rate_limit: f64,

    /// How many configurations may have workers that still finish their requests before the next reload waits; 0: any
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub max_old_generations: u32,

    /// Retries of an update of endpoints or certificates
    #[arg(long, value_name = "COUNT", default_value_t = 15)]
    pub dynamic_configuration_retries: u32,

    /// What becomes of an Ingress that NGINX refuses: its last good version is served, or its paths answer 503
    #[arg(long, value_name = "last-good|503", default_value = "last-good", value_parser = value::on_invalid)]
    pub on_invalid: OnInvalid,

    /// Seconds between the signal to end and the end of NGINX; health checks fail meanwhile
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub shutdown_grace_period: u32,

    /// Seconds between the end of NGINX and the end of the controller
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub post_shutdown_grace_period: u32,

    /// MaxMind databases that `use-geoip2` reads, below /etc/ingress-controller/geoip
    #[arg(
        long,
        value_name = "EDITIONS",
        default_value = "GeoLite2-City,GeoLite2-ASN"
    )]
    pub maxmind_edition_ids: String,

    /// Key to fetch MaxMind databases with
    #[arg(long, value_name = "KEY", default_value = "", value_parser = value::text, hide_env_values = true)]
    pub maxmind_license_key: Given<String>,

    /// Where to fetch MaxMind databases instead of at MaxMind
    #[arg(long, value_name = "URL", default_value = "", value_parser = value::text)]
    pub maxmind_mirror: Given<String>,

    /// How often to try to fetch a MaxMind database
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub maxmind_retries_count: u32,

    /// How long to wait before the second try to fetch a MaxMind database
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = value::duration)]
    pub maxmind_retries_timeout: Duration,
}

const MAXMIND_EDITIONS: &[&str] = &[
    "GeoIP2-Anonymous-IP",
    "GeoIP2-Country",
    "GeoIP2-City",
    "GeoIP2-Connection-Type",
    "GeoIP2-Domain",
    "GeoIP2-ISP",
    "GeoIP2-ASN",
    "GeoLite2-ASN",
    "GeoLite2-City",
    "GeoLite2-Country",
];

impl NginxArgs {
    pub(super) fn check(&self) -> Result<(), ArgsError> {
        self.maxmind_editions()
            .find(|edition| !MAXMIND_EDITIONS.contains(edition))
            .map_or(Ok(()), |edition| {
                Err(ArgsError::MaxmindEdition(edition.into()))
            })
    }

    /// The MaxMind databases that are wanted.
    pub fn maxmind_editions(&self) -> impl Iterator<Item = &str> {
        let editions = self.maxmind_edition_ids.split(',');
        editions.filter(|edition| !edition.is_empty())
    }

    /// How many configurations may have workers that still finish their requests; `None`: any number.
    #[must_use]
    pub fn most_generations(&self) -> Option<usize> {
        let most = usize::try_from(self.max_old_generations).ok()?;
        (most > 0).then_some(most)
    }

    /// Time between the signal to end and the end of NGINX.
    #[must_use]
    pub fn shutdown_grace_period(&self) -> Duration {
        Duration::from_secs(self.shutdown_grace_period.into())
    }

    /// Time between the end of NGINX and the end of the controller.
    #[must_use]
    pub fn post_shutdown_grace_period(&self) -> Duration {
        Duration::from_secs(self.post_shutdown_grace_period.into())
    }
}
