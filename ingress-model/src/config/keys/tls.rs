//! Keys of TLS.

use crate::{annotation::grammar::ciphers, value::Seconds};

use super::{
    Context, KEY, KeyInfo,
    read::{
        boolean, buffer, curves, number, optional, session_cache_size, session_timeout, ticket_key,
        tls_versions,
    },
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "ssl-protocols",
        value: "list of TLS versions, separated by spaces",
        default: "TLSv1.2 TLSv1.3",
        example: "TLSv1.3",
        bad: Some("TLSv9"),
        doc: "Versions of TLS.",
        action: render!(ssl_protocols, tls_versions),
        ..KEY
    },
    KeyInfo {
        name: "ssl-ciphers",
        value: "OpenSSL cipher list, or empty for OpenSSL's own",
        default: "suites with forward secrecy",
        example: "HIGH:!aNULL",
        bad: Some("ALL;"),
        doc: "Cipher suites up to TLS 1.2.",
        action: render!(ssl_ciphers, |text| optional(text, ciphers)),
        ..KEY
    },
    KeyInfo {
        name: "ssl-ecdh-curve",
        value: "list of curves, separated by colons",
        default: "auto",
        example: "X25519:prime256v1",
        bad: Some("a curve;"),
        doc: "Curves for key exchange.",
        action: render!(ssl_ecdh_curve, curves),
        ..KEY
    },
    KeyInfo {
        name: "ssl-dh-param",
        value: "`namespace/name`",
        default: "none",
        example: "ingress/dh",
        bad: Some("dh"),
        doc: "Secret with Diffie-Hellman parameters (`dhparam.pem`).",
        action: reference!(ssl_dh_param),
        ..KEY
    },
    KeyInfo {
        name: "ssl-session-cache",
        value: "boolean",
        default: "true",
        example: "false",
        bad: Some("sure"),
        doc: "Whether TLS sessions are kept for resumption.",
        action: render!(ssl_session_cache, boolean),
        ..KEY
    },
    KeyInfo {
        name: "ssl-session-cache-size",
        value: "size from 32k on",
        default: "10m",
        example: "20m",
        bad: Some("2x"),
        doc: "Memory for these sessions.",
        action: render!(ssl_session_cache_size, session_cache_size),
        ..KEY
    },
    KeyInfo {
        name: "ssl-session-timeout",
        value: "time",
        default: "10m",
        example: "5m",
        bad: Some("soon"),
        doc: "How long a session can be resumed.",
        action: render!(ssl_session_timeout, session_timeout),
        ..KEY
    },
    KeyInfo {
        name: "ssl-session-tickets",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether sessions are resumed by tickets.",
        action: render!(ssl_session_tickets, boolean),
        ..KEY
    },
    KeyInfo {
        name: "ssl-session-ticket-key",
        value: "base64 of 48 or 80 bytes",
        default: "none",
        example: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v",
        doc: "Key of the tickets, to be shared by several controllers.",
        bad: Some("AAAA"),
        action: render!(ssl_session_ticket_key, |text| optional(text, ticket_key)),
        ..KEY
    },
    KeyInfo {
        name: "ssl-buffer-size",
        value: "size",
        default: "4k",
        example: "16k",
        bad: Some("2x"),
        doc: "Size of the records that are sent.",
        action: render!(ssl_buffer_size, buffer),
        ..KEY
    },
    KeyInfo {
        name: "ssl-early-data",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether TLS 1.3 clients may send a request with their first packet.",
        action: render!(ssl_early_data, boolean),
        ..KEY
    },
    KeyInfo {
        name: "ssl-reject-handshake",
        value: "boolean",
        default: "false",
        context: Context::Server,
        example: "true",
        bad: Some("sure"),
        doc: "Whether TLS is refused to hosts without a server of their own.",
        action: render!(ssl_reject_handshake, boolean),
        ..KEY
    },
    KeyInfo {
        name: "enable-ocsp",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether the state of certificates is stapled.",
        action: render!(enable_ocsp, boolean),
        ..KEY
    },
    KeyInfo {
        name: "hsts",
        value: "boolean",
        default: "true",
        example: "false",
        bad: Some("sure"),
        doc: "Whether HTTPS responses have `Strict-Transport-Security`.",
        action: render!(hsts, boolean),
        ..KEY
    },
    KeyInfo {
        name: "hsts-max-age",
        value: "seconds",
        default: "31536000",
        example: "600",
        bad: Some("long"),
        doc: "How long browsers remember it.",
        action: render!(hsts_max_age, |text| number(text, 0, u32::MAX).map(Seconds)),
        ..KEY
    },
    KeyInfo {
        name: "hsts-include-subdomains",
        value: "boolean",
        default: "true",
        example: "false",
        bad: Some("sure"),
        doc: "Whether it holds for subdomains.",
        action: render!(hsts_include_subdomains, boolean),
        ..KEY
    },
    KeyInfo {
        name: "hsts-preload",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether browsers may come with it built in.",
        action: render!(hsts_preload, boolean),
        ..KEY
    },
];
