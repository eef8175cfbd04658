//! Keys of raw configuration.

use super::{Context, KEY, KeyInfo, read::snippet};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "main-snippet",
        value: "raw configuration",
        default: "none",
        context: Context::Main,
        example: "env TZ;",
        doc: "Raw configuration for the main block.",
        action: render!(main_snippet, snippet),
        ..KEY
    },
    KeyInfo {
        name: "http-snippet",
        value: "raw configuration",
        default: "none",
        example: "map_hash_max_size 4096;",
        doc: "Raw configuration for the http block.",
        action: render!(http_snippet, snippet),
        ..KEY
    },
    KeyInfo {
        name: "server-snippet",
        value: "raw configuration",
        default: "none",
        context: Context::Server,
        example: "add_header X-From edge;",
        doc: "Raw configuration for every server.",
        action: render!(server_snippet, snippet),
        ..KEY
    },
    KeyInfo {
        name: "location-snippet",
        value: "raw configuration",
        default: "none",
        context: Context::Location,
        example: "add_header X-From edge;",
        doc: "Raw configuration for every location.",
        action: render!(location_snippet, snippet),
        ..KEY
    },
    KeyInfo {
        name: "stream-snippet",
        value: "raw configuration",
        default: "none",
        context: Context::Stream,
        example: "tcp_nodelay on;",
        doc: "Raw configuration for the stream block.",
        action: render!(stream_snippet, snippet),
        ..KEY
    },
];
