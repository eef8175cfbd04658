//! Keys of logs.

use crate::value::Literal;

use super::{
    Action, Context, KEY, KeyInfo,
    read::{
        access_log_params, access_log_path, boolean, disable_access_log, entry, host, log_format,
        log_level, optional, port,
    },
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "access-log-path",
        value: "path, or `syslog:` and its parameters",
        default: "`/var/log/nginx/access.log`, or where that cannot be written, the controller's log directory",
        example: "/tmp/access.log",
        doc: "Where requests and connections are logged.",
        action: Some(Action {
            set: access_log_path,
            differs: |a, b| {
                a.access_log_path != b.access_log_path
                    || a.stream_access_log_path != b.stream_access_log_path
            },
        }),
        ..KEY
    },
    KeyInfo {
        name: "http-access-log-path",
        value: "path, or `syslog:` and its parameters",
        default: "as `access-log-path`",
        example: "/tmp/http.log",
        doc: "Where requests are logged.",
        action: render!(access_log_path, |text| optional(text, Literal::parse)),
        ..KEY
    },
    KeyInfo {
        name: "stream-access-log-path",
        value: "path, or `syslog:` and its parameters",
        default: "as `access-log-path`",
        context: Context::Stream,
        example: "/tmp/stream.log",
        doc: "Where TCP and UDP connections are logged.",
        action: render!(stream_access_log_path, |text| optional(
            text,
            Literal::parse
        )),
        ..KEY
    },
    KeyInfo {
        name: "access-log-params",
        value: "words for `access_log`",
        default: "none",
        example: "buffer=16k flush=1m",
        bad: Some("gzip=9;x"),
        doc: "Further parameters of the access log: `buffer=`, `flush=` and `gzip`.",
        action: render!(access_log_params, access_log_params),
        ..KEY
    },
    KeyInfo {
        name: "disable-access-log",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether neither requests nor connections are logged.",
        action: Some(Action {
            set: disable_access_log,
            differs: |a, b| {
                a.disable_access_log != b.disable_access_log
                    || a.disable_stream_access_log != b.disable_stream_access_log
            },
        }),
        ..KEY
    },
    KeyInfo {
        name: "disable-http-access-log",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether requests are not logged.",
        action: Some(Action {
            set: |draft, text| {
                draft.render.disable_access_log |= boolean(text)?;
                Ok(())
            },
            differs: |_, _| false,
        }),
        ..KEY
    },
    KeyInfo {
        name: "disable-stream-access-log",
        value: "boolean",
        default: "false",
        context: Context::Stream,
        example: "true",
        bad: Some("sure"),
        doc: "Whether TCP and UDP connections are not logged.",
        action: Some(Action {
            set: |draft, text| {
                draft.render.disable_stream_access_log |= boolean(text)?;
                Ok(())
            },
            differs: |_, _| false,
        }),
        ..KEY
    },
    KeyInfo {
        name: "enable-access-log-for-default-backend",
        value: "boolean",
        default: "false",
        context: Context::Location,
        example: "true",
        bad: Some("sure"),
        doc: "Whether requests for unknown hosts are logged.",
        action: render!(enable_access_log_for_default_backend, boolean),
        ..KEY
    },
    KeyInfo {
        name: "skip-access-log-urls",
        value: "list of paths or `~` patterns",
        default: "none",
        example: "/health,~^/ping",
        doc: "Requests that are not logged.",
        action: render_list!(skip_access_log_urls, entry),
        ..KEY
    },
    KeyInfo {
        name: "error-log-path",
        value: "path, or `syslog:` and its parameters",
        default: "the controller's log directory, and `/var/log/nginx/error.log` where that is a file",
        example: "/tmp/error.log",
        doc: "Where errors of requests and connections are logged.",
        action: render!(error_log_path, |text| optional(text, Literal::parse)),
        ..KEY
    },
    KeyInfo {
        name: "error-log-level",
        value: "`debug`, `info`, `notice`, `warn`, `error`, `crit`, `alert` or `emerg`",
        default: "notice",
        example: "warn",
        bad: Some("loud"),
        doc: "Which errors are logged.",
        action: render!(error_log_level, log_level),
        ..KEY
    },
    KeyInfo {
        name: "log-format-upstream",
        value: "text and variables",
        default: "as ingress-nginx",
        example: "$remote_addr $status",
        doc: "A line of the access log.",
        action: render!(log_format_upstream, log_format),
        ..KEY
    },
    KeyInfo {
        name: "log-format-stream",
        value: "text and variables",
        default: "as ingress-nginx",
        context: Context::Stream,
        example: "$remote_addr $status",
        doc: "A line of the log of TCP and UDP connections.",
        action: render!(log_format_stream, log_format),
        ..KEY
    },
    KeyInfo {
        name: "log-format-escape-json",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether variables in the log are escaped for JSON.",
        action: render!(log_format_escape_json, boolean),
        ..KEY
    },
    KeyInfo {
        name: "log-format-escape-none",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether variables in the log are not escaped; wins over JSON.",
        action: render!(log_format_escape_none, boolean),
        ..KEY
    },
    KeyInfo {
        name: "enable-syslog",
        value: "boolean",
        default: "false",
        example: "true",
        bad: Some("sure"),
        doc: "Whether logs go to a syslog server.",
        action: render!(enable_syslog, boolean),
        ..KEY
    },
    KeyInfo {
        name: "syslog-host",
        value: "host name or address",
        default: "none",
        example: "logs.test",
        bad: Some("a b"),
        doc: "That server.",
        action: render!(syslog_host, |text| optional(text, host)),
        ..KEY
    },
    KeyInfo {
        name: "syslog-port",
        value: "port",
        default: "514",
        example: "1514",
        bad: Some("70000"),
        doc: "Its port.",
        action: render!(syslog_port, port),
        ..KEY
    },
];
