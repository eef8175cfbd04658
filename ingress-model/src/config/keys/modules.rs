//! Keys of optional modules: ModSecurity, GeoIP and tracing.

use crate::value::{Literal, Template};

use super::{
    Context, KEY, KeyInfo,
    read::{boolean, host, number, optional, port, ratio, sampler, snippet},
};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "enable-modsecurity",
        value: "boolean",
        default: "false",
        example: "true",
        doc: "Whether ModSecurity looks at requests.",
        bad: Some("sure"),
        action: render!(enable_modsecurity, boolean),
        ..KEY
    },
    KeyInfo {
        name: "enable-owasp-modsecurity-crs",
        value: "boolean",
        default: "false",
        example: "true",
        doc: "Whether it has the OWASP core rule set.",
        bad: Some("sure"),
        action: render!(enable_owasp_modsecurity_crs, boolean),
        ..KEY
    },
    KeyInfo {
        name: "modsecurity-snippet",
        value: "ModSecurity rules",
        default: "none",
        example: "SecRuleEngine On",
        doc: "Its rules, instead of its file of rules.",
        action: render!(modsecurity_snippet, snippet),
        ..KEY
    },
    KeyInfo {
        name: "use-geoip2",
        value: "boolean",
        default: "false",
        example: "true",
        doc: "Whether variables tell where clients come from.",
        bad: Some("sure"),
        action: render!(use_geoip2, boolean),
        ..KEY
    },
    KeyInfo {
        name: "geoip2-autoreload-in-minutes",
        value: "minutes",
        default: "0",
        example: "60",
        doc: "How often the databases are looked at again; 0: never.",
        bad: Some("often"),
        action: render!(geoip2_autoreload_in_minutes, |text| number(
            text, 0, 1_000_000
        )),
        ..KEY
    },
    KeyInfo {
        name: "enable-opentelemetry",
        value: "boolean",
        default: "false",
        example: "true",
        doc: "Whether requests are traced.",
        bad: Some("sure"),
        action: render!(opentelemetry.enable, boolean),
        ..KEY
    },
    KeyInfo {
        name: "opentelemetry-config",
        value: "path",
        default: "a file of the controller",
        example: "/tmp/otel.toml",
        doc: "The file with the settings of the tracing module.",
        action: render!(opentelemetry.config, |text| optional(text, Literal::parse)),
        ..KEY
    },
    KeyInfo {
        name: "opentelemetry-operation-name",
        value: "text and variables",
        default: "none",
        example: "shop",
        doc: "Name of the spans.",
        action: render!(opentelemetry.operation_name, |text| optional(
            text,
            Template::parse
        )),
        ..KEY
    },
    KeyInfo {
        name: "opentelemetry-trust-incoming-span",
        value: "boolean",
        default: "true",
        context: Context::Location,
        example: "false",
        doc: "Fall-back of the annotation.",
        bad: Some("sure"),
        action: render!(opentelemetry.trust_incoming_span, boolean),
        ..KEY
    },
    KeyInfo {
        name: "otlp-collector-host",
        value: "host name or address",
        default: "none",
        context: Context::Controller,
        example: "otel.test",
        doc: "Where spans are sent.",
        bad: Some("a b"),
        action: render!(opentelemetry.collector_host, |text| optional(text, host)),
        ..KEY
    },
    KeyInfo {
        name: "otlp-collector-port",
        value: "port",
        default: "4317",
        context: Context::Controller,
        example: "14317",
        doc: "Its port.",
        bad: Some("70000"),
        action: render!(opentelemetry.collector_port, port),
        ..KEY
    },
    KeyInfo {
        name: "otel-service-name",
        value: "text",
        default: "nginx",
        context: Context::Controller,
        example: "edge",
        doc: "Name of this service.",
        action: render!(opentelemetry.service_name, Literal::parse),
        ..KEY
    },
    KeyInfo {
        name: "otel-sampler",
        value: "`AlwaysOn`, `AlwaysOff` or `TraceIdRatioBased`",
        default: "AlwaysOn",
        context: Context::Controller,
        example: "AlwaysOff",
        doc: "Which requests are traced.",
        bad: Some("Sometimes"),
        action: render!(opentelemetry.sampler, sampler),
        ..KEY
    },
    KeyInfo {
        name: "otel-sampler-ratio",
        value: "fraction",
        default: "0.01",
        context: Context::Controller,
        example: "0.5",
        doc: "How many are, by ratio.",
        bad: Some("1.5"),
        action: render!(opentelemetry.sampler_ratio, ratio),
        ..KEY
    },
    KeyInfo {
        name: "otel-sampler-parent-based",
        value: "boolean",
        default: "true",
        context: Context::Controller,
        example: "false",
        doc: "Whether the client's decision counts.",
        bad: Some("sure"),
        action: render!(opentelemetry.sampler_parent_based, boolean),
        ..KEY
    },
    KeyInfo {
        name: "otel-max-queuesize",
        value: "whole number",
        default: "2048",
        context: Context::Controller,
        example: "100",
        doc: "How many spans may wait.",
        bad: Some("many"),
        action: render!(opentelemetry.max_queue_size, |text| number(
            text, 1, 1_000_000
        )),
        ..KEY
    },
    KeyInfo {
        name: "otel-max-export-batch-size",
        value: "whole number",
        default: "512",
        context: Context::Controller,
        example: "10",
        doc: "How many are sent at once.",
        bad: Some("many"),
        action: render!(opentelemetry.max_export_batch_size, |text| number(
            text, 1, 1_000_000
        )),
        ..KEY
    },
    KeyInfo {
        name: "otel-schedule-delay-millis",
        value: "milliseconds",
        default: "5000",
        context: Context::Controller,
        example: "1000",
        doc: "How long they wait at most.",
        bad: Some("soon"),
        action: render!(opentelemetry.schedule_delay_millis, |text| number(
            text, 1, 3_600_000
        )),
        ..KEY
    },
];
