//! Keys of TCP and UDP services.

use crate::value::Time;

use super::{
    Context, KEY, KeyInfo,
    read::{boolean, duration, number},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "proxy-stream-timeout",
        value: "time",
        default: "600s",
        context: Context::Stream,
        example: "60s",
        bad: Some("soon"),
        doc: "How long a TCP or UDP session may be idle.",
        action: render!(proxy_stream_timeout, Time::parse),
        ..KEY
    },
    KeyInfo {
        name: "proxy-stream-next-upstream",
        value: "boolean",
        default: "true",
        context: Context::Stream,
        example: "false",
        bad: Some("sure"),
        doc: "Whether another endpoint is tried when one cannot be reached, as long as the endpoints are those of NGINX's last load.",
        action: render!(proxy_stream_next_upstream, boolean),
        ..KEY
    },
    KeyInfo {
        name: "proxy-stream-next-upstream-timeout",
        value: "time",
        default: "600s",
        context: Context::Stream,
        example: "10s",
        bad: Some("soon"),
        doc: "How long others are tried; 0: no limit.",
        action: render!(proxy_stream_next_upstream_timeout, Time::parse),
        ..KEY
    },
    KeyInfo {
        name: "proxy-stream-next-upstream-tries",
        value: "whole number",
        default: "3",
        context: Context::Stream,
        example: "2",
        bad: Some("many"),
        doc: "How many are tried; 0: no limit.",
        action: render!(proxy_stream_next_upstream_tries, |text| number(
            text, 0, 1_000
        )),
        ..KEY
    },
    KeyInfo {
        name: "proxy-stream-responses",
        value: "whole number",
        default: "1",
        context: Context::Stream,
        example: "2",
        bad: Some("many"),
        doc: "How many datagrams answer one.",
        action: render!(proxy_stream_responses, |text| number(text, 0, 1_000_000)),
        ..KEY
    },
    KeyInfo {
        name: "proxy-protocol-header-timeout",
        value: "time",
        default: "5s",
        context: Context::Stream,
        example: "10s",
        doc: "Longest time for the PROXY header of TCP services.",
        bad: Some("soon"),
        action: render!(proxy_protocol_header_timeout, duration),
        ..KEY
    },
];
