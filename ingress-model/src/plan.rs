//! Why a change needs a reload.

use std::fmt;

use serde::Serialize;

use crate::{host::Host, layout::Layout};

/// One reason to reload NGINX: a closed list, so that metrics and tools can match on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum ReloadReason {
    /// There is no configuration yet.
    First,
    /// Keys of the ConfigMap changed.
    ConfigChanged {
        /// Their names.
        keys: Vec<&'static str>,
    },
    /// A host is new.
    HostAdded {
        /// The host.
        host: Host,
    },
    /// A host is gone.
    HostRemoved {
        /// The host.
        host: Host,
    },
    /// A host has a TLS section now.
    TlsAdded {
        /// The host.
        host: Host,
    },
    /// A host has no TLS section any more.
    TlsRemoved {
        /// The host.
        host: Host,
    },
    /// A setting of a host changed.
    ServerChanged {
        /// The host.
        host: Host,
        /// What changed.
        setting: &'static str,
    },
    /// A path of a host is new.
    PathAdded {
        /// The host.
        host: Host,
        /// The path.
        path: String,
    },
    /// A path of a host is gone.
    PathRemoved {
        /// The host.
        host: Host,
        /// The path.
        path: String,
    },
    /// A path's setting, owner or upstream changed.
    LocationChanged {
        /// The host.
        host: Host,
        /// The path.
        path: String,
        /// What changed.
        setting: &'static str,
    },
    /// The order of a host's regular expressions changed.
    LocationsReordered {
        /// The host.
        host: Host,
    },
    /// A TCP or UDP port is new, gone or has other settings.
    StreamChanged {
        /// `TCP` or `UDP`.
        protocol: &'static str,
        /// The external port.
        port: u16,
    },
    /// Snippets for the stream block changed.
    StreamSnippetsChanged,
}

impl ReloadReason {
    /// The kind of reason, as a metric's label.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::First => "first",
            Self::ConfigChanged { .. } => "config_changed",
            Self::HostAdded { .. } => "host_added",
            Self::HostRemoved { .. } => "host_removed",
            Self::TlsAdded { .. } => "tls_added",
            Self::TlsRemoved { .. } => "tls_removed",
            Self::ServerChanged { .. } => "server_changed",
            Self::PathAdded { .. } => "path_added",
            Self::PathRemoved { .. } => "path_removed",
            Self::LocationChanged { .. } => "location_changed",
            Self::LocationsReordered { .. } => "locations_reordered",
            Self::StreamChanged { .. } => "stream_changed",
            Self::StreamSnippetsChanged => "stream_snippets_changed",
        }
    }
}

impl fmt::Display for ReloadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first configuration"),
            Self::ConfigChanged { keys } => write!(f, "ConfigMap changed: {}", keys.join(", ")),
            Self::HostAdded { host } => write!(f, "host {host} added"),
            Self::HostRemoved { host } => write!(f, "host {host} removed"),
            Self::TlsAdded { host } => write!(f, "TLS section of host {host} added"),
            Self::TlsRemoved { host } => write!(f, "TLS section of host {host} removed"),
            Self::ServerChanged { host, setting } => write!(f, "{setting} of host {host} changed"),
            Self::PathAdded { host, path } => write!(f, "path {path} of host {host} added"),
            Self::PathRemoved { host, path } => write!(f, "path {path} of host {host} removed"),
            Self::LocationChanged {
                host,
                path,
                setting,
            } => {
                write!(f, "{setting} of path {path} of host {host} changed")
            }
            Self::LocationsReordered { host } => {
                write!(f, "order of the paths of host {host} changed")
            }
            Self::StreamChanged { protocol, port } => write!(f, "{protocol} port {port} changed"),
            Self::StreamSnippetsChanged => f.write_str("stream snippets changed"),
        }
    }
}

/// Why NGINX has to be reloaded to show `new` where it shows `old`; empty when the two are equal.
#[must_use]
pub fn plan(old: Option<&Layout>, new: &Layout) -> Vec<ReloadReason> {
    if old == Some(new) {
        Vec::new()
    } else {
        vec![ReloadReason::First]
    }
}
