//! Keys of the process: workers, files, connections.

use crate::value::Time;

use super::{
    Context, KEY, KeyInfo,
    read::{boolean, cpu_masks, network, number, open_files, workers},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "worker-processes",
        value: "whole number or `auto`",
        default: "auto",
        context: Context::Main,
        example: "4",
        bad: Some("four"),
        doc: "How many worker processes NGINX has; `auto`: as many as the controller has CPUs.",
        action: render!(worker_processes, workers),
        ..KEY
    },
    KeyInfo {
        name: "worker-cpu-affinity",
        value: "`auto`, or masks of 0 and 1",
        default: "none",
        context: Context::Main,
        example: "auto",
        bad: Some("all;"),
        doc: "Which CPUs the workers are bound to.",
        action: render!(worker_cpu_affinity, cpu_masks),
        ..KEY
    },
    KeyInfo {
        name: "worker-shutdown-timeout",
        value: "time",
        default: "240s",
        context: Context::Main,
        example: "10s",
        bad: Some("soon"),
        doc: "How long workers of an older configuration may go on serving.",
        action: render!(worker_shutdown_timeout, Time::parse),
        ..KEY
    },
    KeyInfo {
        name: "max-worker-open-files",
        value: "whole number, 0 or from 512 on",
        default: "0",
        context: Context::Main,
        example: "65536",
        bad: Some("many"),
        doc: "How many files a worker may open; 0: as many as the process's limit leaves. Fewer than `max-worker-connections` are reported.",
        action: render!(max_worker_open_files, open_files),
        ..KEY
    },
    KeyInfo {
        name: "max-worker-connections",
        value: "whole number",
        default: "16384",
        context: Context::Events,
        example: "1024",
        bad: Some("many"),
        doc: "How many connections a worker may have; 0: three quarters of its files.",
        action: render!(max_worker_connections, |text| number(text, 0, 16_777_216)),
        ..KEY
    },
    KeyInfo {
        name: "enable-multi-accept",
        value: "boolean",
        default: "true",
        context: Context::Events,
        example: "false",
        bad: Some("sure"),
        doc: "Whether a worker takes all waiting connections at once.",
        action: render!(enable_multi_accept, boolean),
        ..KEY
    },
    KeyInfo {
        name: "debug-connections",
        value: "list of addresses and networks",
        default: "none",
        context: Context::Events,
        example: "192.0.2.1,10.0.0.0/8",
        bad: Some("everybody"),
        doc: "Clients whose connections are logged at the level debug.",
        action: render_list!(debug_connections, network),
        ..KEY
    },
    KeyInfo {
        name: "enable-serial-reloads",
        value: "boolean",
        default: "false",
        context: Context::Controller,
        example: "true",
        bad: Some("sure"),
        doc: "Whether a reload waits until the workers of the one before have ended.",
        action: render!(enable_serial_reloads, boolean),
        ..KEY
    },
];
