//! Why a change needs a reload.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::Serialize;

use crate::{
    changes::pairs,
    host::Host,
    layout::{Layout, Location, LocationSettings, Modifier, Server, StreamServer},
};

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

/// Why NGINX has to be reloaded to show `new` where it shows `old`; empty when, and only when, the two are equal.
///
/// Parts that are one shared pointer are not compared further, so that a plan after few changes is cheap.
#[must_use]
pub fn plan(old: Option<&Layout>, new: &Layout) -> Vec<ReloadReason> {
    let Some(old) = old else {
        return vec![ReloadReason::First];
    };
    let Layout {
        config,
        servers,
        tcp,
        udp,
        stream_snippets,
    } = old;
    let mut reasons = Vec::new();
    if *config != new.config {
        let mut keys = config.changed_keys(&new.config);
        if keys.is_empty() {
            keys.push("(other)");
        }
        reasons.push(ReloadReason::ConfigChanged { keys });
    }
    for (host, change) in servers.differences(&new.servers) {
        let host = host.clone();
        match change {
            (None, _) => reasons.push(ReloadReason::HostAdded { host }),
            (_, None) => reasons.push(ReloadReason::HostRemoved { host }),
            (Some(old), Some(new)) => {
                if !Arc::ptr_eq(old, new) && old != new {
                    server(old, new, &mut reasons);
                }
            }
        }
    }
    streams("TCP", tcp, &new.tcp, &mut reasons);
    streams("UDP", udp, &new.udp, &mut reasons);
    if *stream_snippets != new.stream_snippets {
        reasons.push(ReloadReason::StreamSnippetsChanged);
    }
    reasons
}

fn streams(
    protocol: &'static str,
    old: &BTreeMap<u16, StreamServer>,
    new: &BTreeMap<u16, StreamServer>,
    reasons: &mut Vec<ReloadReason>,
) {
    let changed = pairs(old, new).filter(|(_, (old, new))| old != new);
    reasons.extend(changed.map(|(port, _)| ReloadReason::StreamChanged {
        protocol,
        port: *port,
    }));
}

/// The names of those fields that differ. Every field of the type has to be listed, either here or as one that is
/// looked at elsewhere, so that no difference goes without a name.
macro_rules! differing {
    ($type:ident, $old:expr, $new:expr, [$($field:ident),+ $(,)?], elsewhere [$($other:ident),* $(,)?]) => {{
        let (old, new): (&$type, &$type) = ($old, $new);
        let $type { $($field: _,)+ $($other: _,)* } = old;
        [$((stringify!($field), old.$field != new.$field)),+]
            .into_iter()
            .filter(|(_, differs)| *differs)
            .map(|(name, _)| name)
    }};
}

/// Why two servers of one host differ.
fn server(old: &Server, new: &Server, reasons: &mut Vec<ReloadReason>) {
    let host = || new.host.clone();
    match (old.tls, new.tls) {
        (false, true) => reasons.push(ReloadReason::TlsAdded { host: host() }),
        (true, false) => reasons.push(ReloadReason::TlsRemoved { host: host() }),
        (true, true) | (false, false) => {}
    }
    let settings = differing!(
        Server,
        old,
        new,
        [
            host,
            aliases,
            redirected,
            client_auth,
            ssl_ciphers,
            ssl_prefer_server_ciphers,
            upstream_tls,
            snippet,
        ],
        elsewhere [tls, locations]
    );
    reasons.extend(settings.map(|setting| ReloadReason::ServerChanged {
        host: host(),
        setting,
    }));
    locations(old, new, reasons);
}

/// What tells the locations of a server apart.
fn key(location: &Location) -> (&str, Modifier) {
    (&location.path, location.modifier)
}

fn places(server: &Server) -> BTreeMap<(&str, Modifier), usize> {
    let locations = server.locations.iter().enumerate();
    locations.map(|(i, location)| (key(location), i)).collect()
}

fn locations(old: &Server, new: &Server, reasons: &mut Vec<ReloadReason>) {
    if old.locations == new.locations {
        return;
    }
    let before = reasons.len();
    let (olds, news) = (places(old), places(new));
    let host = || new.host.clone();
    for ((path, _), change) in pairs(&olds, &news) {
        let path = || (*path).to_owned();
        match change {
            (None, _) => reasons.push(ReloadReason::PathAdded {
                host: host(),
                path: path(),
            }),
            (_, None) => reasons.push(ReloadReason::PathRemoved {
                host: host(),
                path: path(),
            }),
            (Some(i), Some(j)) => {
                let pair = old.locations.get(*i).zip(new.locations.get(*j));
                let settings = pair.into_iter().flat_map(|(old, new)| location(old, new));
                reasons.extend(settings.map(|setting| ReloadReason::LocationChanged {
                    host: host(),
                    path: path(),
                    setting,
                }));
            }
        }
    }
    // A path that is both exact and prefix comes and goes as one.
    dedup(reasons, before);
    let olds_kept = old.locations.iter().map(key);
    let olds_kept = olds_kept.filter(|key| news.contains_key(key));
    let news_kept = new.locations.iter().map(key);
    let news_kept = news_kept.filter(|key| olds.contains_key(key));
    // They do differ, if only in how often one is there.
    if !olds_kept.eq(news_kept) || reasons.len() == before {
        reasons.push(ReloadReason::LocationsReordered { host: host() });
    }
}

/// Leaves out repetitions from a place on.
fn dedup(reasons: &mut Vec<ReloadReason>, from: usize) {
    let mut tail = reasons.split_off(from.min(reasons.len()));
    tail.dedup();
    reasons.append(&mut tail);
}

/// The settings in which two locations differ.
fn location(old: &Location, new: &Location) -> Vec<&'static str> {
    let settings = differing!(
        Location,
        old,
        new,
        [upstream, service, ingress, ingress_path, path_type],
        elsewhere [path, modifier, settings]
    );
    let mut settings: Vec<_> = settings.collect();
    if !Arc::ptr_eq(&old.settings, &new.settings) {
        settings.extend(annotations(&old.settings, &new.settings));
    }
    settings
}

fn annotations(
    old: &LocationSettings,
    new: &LocationSettings,
) -> impl Iterator<Item = &'static str> {
    differing!(
        LocationSettings,
        old,
        new,
        [
        denied,
        backend_protocol,
        ssl_redirect,
        force_ssl_redirect,
        preserve_trailing_slash,
        use_port_in_redirects,
        app_root,
        redirect,
        rewrite_target,
        use_regex,
        forwarded_prefix,
        upstream_vhost,
        body_size,
        body_buffer_size,
        connection_header,
        proxy,
        access_log,
        rewrite_log,
        satisfy,
        snippet,
        allow,
        deny,
        limits,
        limit_rate,
        limit_rate_after,
        basic_auth,
        external_auth,
        cors,
        response_headers,
        custom_http_errors,
        default_backend,
        disable_proxy_intercept_errors,
        relative_redirects,
        http2_push_preload,
        mirror,
        upstream_tls,
        fastcgi,
        modsecurity,
        tracing,
        ],
        elsewhere []
    )
}
