//! Keys of optional modules: ModSecurity, GeoIP and tracing.

use crate::annotation::Status;

use super::{Context, KEY, KeyInfo};

pub(super) const KEYS: &[KeyInfo] = &[
    KeyInfo {
        name: "enable-modsecurity",
        value: "boolean",
        default: "false",
        status: Status::NotYet,
        example: "true",
        doc: "Whether ModSecurity looks at requests.",
        ..KEY
    },
    KeyInfo {
        name: "enable-owasp-modsecurity-crs",
        value: "boolean",
        default: "false",
        status: Status::NotYet,
        example: "true",
        doc: "Whether it has the OWASP core rule set.",
        ..KEY
    },
    KeyInfo {
        name: "modsecurity-snippet",
        value: "ModSecurity rules",
        default: "none",
        status: Status::NotYet,
        example: "SecRuleEngine On",
        doc: "Its rules, instead of its file of rules.",
        ..KEY
    },
    KeyInfo {
        name: "use-geoip2",
        value: "boolean",
        default: "false",
        status: Status::NotYet,
        example: "true",
        doc: "Whether variables tell where clients come from.",
        ..KEY
    },
    KeyInfo {
        name: "geoip2-autoreload-in-minutes",
        value: "minutes",
        default: "0",
        status: Status::NotYet,
        example: "60",
        doc: "How often the databases are looked at again; 0: never.",
        ..KEY
    },
    KeyInfo {
        name: "enable-opentelemetry",
        value: "boolean",
        default: "false",
        status: Status::NotYet,
        example: "true",
        doc: "Whether requests are traced.",
        ..KEY
    },
    KeyInfo {
        name: "opentelemetry-config",
        value: "path",
        default: "a file of the controller",
        status: Status::NotYet,
        example: "/tmp/otel.toml",
        doc: "The file with the settings of the tracing module.",
        ..KEY
    },
    KeyInfo {
        name: "opentelemetry-operation-name",
        value: "text and variables",
        default: "none",
        status: Status::NotYet,
        example: "shop",
        doc: "Name of the spans.",
        ..KEY
    },
    KeyInfo {
        name: "opentelemetry-trust-incoming-span",
        value: "boolean",
        default: "true",
        context: Context::Location,
        status: Status::NotYet,
        example: "false",
        doc: "Fall-back of the annotation.",
        ..KEY
    },
    KeyInfo {
        name: "otlp-collector-host",
        value: "host name or address",
        default: "none",
        context: Context::Controller,
        status: Status::NotYet,
        example: "otel.test",
        doc: "Where spans are sent.",
        ..KEY
    },
    KeyInfo {
        name: "otlp-collector-port",
        value: "port",
        default: "4317",
        context: Context::Controller,
        status: Status::NotYet,
        example: "14317",
        doc: "Its port.",
        ..KEY
    },
    KeyInfo {
        name: "otel-service-name",
        value: "text",
        default: "nginx",
        context: Context::Controller,
        status: Status::NotYet,
        example: "edge",
        doc: "Name of this service.",
        ..KEY
    },
    KeyInfo {
        name: "otel-sampler",
        value: "`AlwaysOn`, `AlwaysOff` or `TraceIdRatioBased`",
        default: "AlwaysOn",
        context: Context::Controller,
        status: Status::NotYet,
        example: "AlwaysOff",
        doc: "Which requests are traced.",
        ..KEY
    },
    KeyInfo {
        name: "otel-sampler-ratio",
        value: "fraction",
        default: "0.01",
        context: Context::Controller,
        status: Status::NotYet,
        example: "0.5",
        doc: "How many are, by ratio.",
        ..KEY
    },
    KeyInfo {
        name: "otel-sampler-parent-based",
        value: "boolean",
        default: "true",
        context: Context::Controller,
        status: Status::NotYet,
        example: "false",
        doc: "Whether the client's decision counts.",
        ..KEY
    },
    KeyInfo {
        name: "otel-max-queuesize",
        value: "whole number",
        default: "2048",
        context: Context::Controller,
        status: Status::NotYet,
        example: "100",
        doc: "How many spans may wait.",
        ..KEY
    },
    KeyInfo {
        name: "otel-max-export-batch-size",
        value: "whole number",
        default: "512",
        context: Context::Controller,
        status: Status::NotYet,
        example: "10",
        doc: "How many are sent at once.",
        ..KEY
    },
    KeyInfo {
        name: "otel-schedule-delay-millis",
        value: "milliseconds",
        default: "5000",
        context: Context::Controller,
        status: Status::NotYet,
        example: "1000",
        doc: "How long they wait at most.",
        ..KEY
    },
];
