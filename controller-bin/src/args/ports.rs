//! Flags about where to listen.

use std::{net::IpAddr, time::Duration};

use super::{
    ArgsError,
    value::{self, Given},
};

/// Where to listen.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Ports")]
pub struct PortArgs {
    /// NGINX's port for HTTP
    #[arg(long, value_name = "PORT", default_value_t = 80)]
    pub http_port: u16,

    /// NGINX's port for HTTPS
    #[arg(long, value_name = "PORT", default_value_t = 443)]
    pub https_port: u16,

    /// Local port at which NGINX is told of endpoints and certificates, and tells its state
    #[arg(long, value_name = "PORT", default_value_t = 10246)]
    pub status_port: u16,

    /// Local port between NGINX's two servers that pass TLS through; no TCP or UDP service can have it
    #[arg(long, value_name = "PORT", default_value_t = 10247)]
    pub stream_port: u16,

    /// Port at which NGINX answers 404
    #[arg(long, value_name = "PORT", default_value_t = 8181)]
    pub default_server_port: u16,

    /// Address at which the controller answers health checks and shows metrics; without it all
    #[arg(long, value_name = "HOST", default_value = "", value_parser = value::text)]
    pub healthz_host: Given<String>,

    /// Port at which the controller answers health checks and shows metrics
    #[arg(long, value_name = "PORT", default_value_t = 10254)]
    pub healthz_port: u16,

    /// Path of the health check, of the controller and of NGINX
    #[arg(long, value_name = "PATH", default_value = "/healthz")]
    pub health_check_path: String,

    /// Seconds that NGINX has to answer the controller's health check
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub health_check_timeout: u32,

    /// Show a page for people at /ui of --healthz-port, to clients of this machine only
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub enable_ui: bool,

    /// Pass TLS of hosts with ssl-passthrough through to their Services
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub enable_ssl_passthrough: bool,

    /// Local port at which NGINX ends TLS of all other hosts where --enable-ssl-passthrough is set
    #[arg(long, value_name = "PORT", default_value_t = 442)]
    pub ssl_passthrough_proxy_port: u16,

    /// Address of the chroot image's log receiver
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:11514")]
    pub internal_logger_address: String,

    /// Serve profiles
    #[arg(long, default_value = "true", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub profiling: bool,

    /// Port of the profiler
    #[arg(long, value_name = "PORT", default_value_t = 10245)]
    pub profiler_port: u16,

    /// Address of the profiler
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub profiler_address: IpAddr,
}

impl PortArgs {
    pub(super) fn check(&self) -> Result<(), ArgsError> {
        let mut ports = vec![
            ("--http-port", self.http_port),
            ("--https-port", self.https_port),
            ("--status-port", self.status_port),
            ("--stream-port", self.stream_port),
            ("--default-server-port", self.default_server_port),
            ("--healthz-port", self.healthz_port),
            ("--profiler-port", self.profiler_port),
        ];
        if self.enable_ssl_passthrough {
            ports.push((
                "--ssl-passthrough-proxy-port",
                self.ssl_passthrough_proxy_port,
            ));
        }
        for (index, (flag, port)) in ports.iter().enumerate() {
            let mut earlier = ports.iter().take(index);
            if let Some((other, _)) = earlier.find(|(_, other)| other == port) {
                return Err(ArgsError::SamePort(other, flag, *port));
            }
        }
        if let Some((flag, _)) = self.of_nginx().into_iter().find(|(_, port)| *port == 0) {
            return Err(ArgsError::NoPort(flag));
        }
        let path = &self.health_check_path;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
        if !path.starts_with('/') || !path.chars().all(plain) {
            return Err(ArgsError::UnsafePath("--health-check-path"));
        }
        Ok(())
    }

    /// The ports that no TCP or UDP service can have.
    #[must_use]
    pub fn reserved(&self) -> Vec<u16> {
        let mut ports = vec![
            self.http_port,
            self.https_port,
            self.healthz_port,
            self.default_server_port,
            self.profiler_port,
            self.status_port,
            self.stream_port,
        ];
        if self.enable_ssl_passthrough {
            ports.push(self.ssl_passthrough_proxy_port);
        }
        ports
    }

    /// The ports at which NGINX itself will listen, with their flags.
    #[must_use]
    pub fn of_nginx(&self) -> Vec<(&'static str, u16)> {
        let mut ports = vec![
            ("--http-port", self.http_port),
            ("--https-port", self.https_port),
            ("--default-server-port", self.default_server_port),
            ("--status-port", self.status_port),
        ];
        if self.enable_ssl_passthrough {
            ports.extend([
                (
                    "--ssl-passthrough-proxy-port",
                    self.ssl_passthrough_proxy_port,
                ),
                ("--stream-port", self.stream_port),
            ]);
        }
        ports
    }

    /// How long NGINX may take to answer the controller's health check.
    #[must_use]
    pub fn health_check_timeout(&self) -> Duration {
        Duration::from_secs(self.health_check_timeout.max(1).into())
    }
}
