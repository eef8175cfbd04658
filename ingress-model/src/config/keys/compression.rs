//! Keys of compression.

use crate::value::Literal;

use super::{
    KEY, KeyInfo,
    read::{boolean, media_types, number, optional},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "use-gzip",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether responses are compressed with gzip.",
        action: render!(use_gzip, boolean),
        ..KEY
    },
    KeyInfo {
        name: "gzip-level",
        value: "whole number from 1 to 9",
        default: "1",
        example: "5",
        bad: Some("10"),
        doc: "How hard gzip tries.",
        action: render!(gzip_level, |text| number(text, 1, 9)),
        ..KEY
    },
    KeyInfo {
        name: "gzip-min-length",
        value: "bytes",
        default: "256",
        example: "1000",
        bad: Some("small"),
        doc: "Shortest response that is compressed.",
        action: render!(gzip_min_length, |text| number(text, 0, 2_000_000_000)),
        ..KEY
    },
    KeyInfo {
        name: "gzip-types",
        value: "list of media types, separated by spaces, or `*`",
        default: "common text types",
        example: "text/css application/json",
        bad: Some("text/css;"),
        doc: "Media types that are compressed, besides text/html.",
        action: render!(gzip_types, media_types),
        ..KEY
    },
    KeyInfo {
        name: "gzip-disable",
        value: "regular expression",
        default: "none",
        example: "msie6",
        doc: "`User-Agent` headers that get no gzip.",
        action: render!(gzip_disable, |text| optional(text, Literal::parse)),
        ..KEY
    },
    KeyInfo {
        name: "enable-brotli",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether responses are compressed with Brotli, where NGINX can.",
        action: render!(enable_brotli, boolean),
        ..KEY
    },
    KeyInfo {
        name: "brotli-level",
        value: "whole number from 0 to 11",
        default: "4",
        example: "6",
        bad: Some("12"),
        doc: "How hard Brotli tries.",
        action: render!(brotli_level, |text| number(text, 0, 11)),
        ..KEY
    },
    KeyInfo {
        name: "brotli-min-length",
        value: "bytes",
        default: "20",
        example: "1000",
        bad: Some("small"),
        doc: "Shortest response that is compressed.",
        action: render!(brotli_min_length, |text| number(text, 0, 2_000_000_000)),
        ..KEY
    },
    KeyInfo {
        name: "brotli-types",
        value: "list of media types, separated by spaces, or `*`",
        default: "common text types",
        example: "text/css application/json",
        bad: Some("text/css;"),
        doc: "Media types that are compressed, besides text/html.",
        action: render!(brotli_types, media_types),
        ..KEY
    },
];
