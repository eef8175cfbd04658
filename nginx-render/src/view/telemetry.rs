//! Tracing by the OpenTelemetry project's module (`otel_ngx_module`).

use std::sync::Arc;

use ingress_model::{Layout, config::OpenTelemetry, layout::Tracing};

use crate::{
    capabilities::Module,
    source_map::{Note, Source},
    value::{Unprintable, argument, plain, switch, template},
};

use super::{
    Context,
    directive::{Directive, directive},
    extras::Extras,
    note,
};

/// The file with the module's settings, below NGINX's directory.
pub(crate) const SETTINGS: &str = "opentelemetry.toml";

/// Whether the module can be used.
pub(crate) fn is_possible(context: &Context<'_>) -> bool {
    obstacle(context).is_none()
}

/// Why the module cannot be used, if it cannot.
fn obstacle(context: &Context<'_>) -> Option<&'static str> {
    let config = &context.config.opentelemetry;
    if !context.capabilities.has(Module::OpenTelemetry) {
        return Some("NGINX has no module for it");
    }
    let is_set = config.config.is_some() || config.collector_host.is_some();
    (!is_set).then_some("otlp-collector-host is not set")
}

/// Whether the configuration or an Ingress asks for it.
pub(crate) fn is_wanted(layout: &Layout) -> bool {
    let locations = || {
        let servers = layout.servers.values();
        servers.flat_map(|server| &server.locations)
    };
    layout.config.opentelemetry.enable
        || locations().any(|location| location.settings.tracing.enable == Some(true))
}

/// What the http block says. It is off there: locations turn it on.
///
/// # Errors
/// When a setting cannot stand in the configuration.
pub(crate) fn inherited(
    layout: &Layout,
    context: &Context<'_>,
    notes: &mut Vec<Note>,
) -> Result<Vec<Directive>, Unprintable> {
    let config = &context.config.opentelemetry;
    if !is_wanted(layout) {
        return Ok(Vec::new());
    }
    if let Some(why) = obstacle(context) {
        notes.push(note(
            "enable-opentelemetry",
            format!("requests are not traced: {why}"),
        ));
        return Ok(Vec::new());
    }
    let path = match &config.config {
        Some(path) => plain(path.as_str())?,
        None => plain(&format!("{}/{SETTINGS}", context.environment.nginx_dir))?,
    };
    let mut directives = vec![
        directive("opentelemetry_config", [path]),
        directive("opentelemetry", [switch(false)]),
    ];
    if let Some(name) = &config.operation_name {
        let name = template(name.as_str())?;
        directives.push(directive("opentelemetry_operation_name", [name]));
    }
    Ok(directives)
}

/// What a location says.
///
/// # Errors
/// When a setting cannot stand in the configuration.
pub(crate) fn of_location(
    tracing: &Tracing,
    context: &Context<'_>,
    source: &Arc<Source>,
    extras: &mut Extras,
) -> Result<Vec<Directive>, Unprintable> {
    let config = &context.config.opentelemetry;
    if !tracing.enable.unwrap_or(config.enable) {
        return Ok(Vec::new());
    }
    if let Some(why) = obstacle(context) {
        if tracing.enable == Some(true) {
            let text = format!("requests are not traced: {why}");
            extras.note(source, "enable-opentelemetry", &text);
        }
        return Ok(Vec::new());
    }
    let trust = tracing
        .trust_incoming_span
        .unwrap_or(config.trust_incoming_span);
    let mut directives = vec![
        directive("opentelemetry", [switch(true)]),
        directive("opentelemetry_propagate", []),
        directive("opentelemetry_trust_incoming_spans", [switch(trust)]),
    ];
    if let Some(name) = &tracing.operation_name {
        let name = argument(name.as_str())?;
        directives.push(directive("opentelemetry_operation_name", [name]));
    }
    Ok(directives)
}

/// What a location says that asks a service on behalf of another one: the question is a part of the request's trace.
pub(crate) fn of_question(tracing: &Tracing, context: &Context<'_>) -> Vec<Directive> {
    let is_traced = tracing
        .enable
        .unwrap_or(context.config.opentelemetry.enable);
    if !is_traced || !is_possible(context) {
        return Vec::new();
    }
    vec![
        directive("opentelemetry", [switch(true)]),
        directive("opentelemetry_propagate", []),
    ]
}

/// The file with the module's settings.
pub(crate) fn settings(config: &OpenTelemetry) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let host = config.collector_host.as_ref();
    format!(
        "exporter = \"otlp\"\nprocessor = \"batch\"\n\n\
        [exporters.otlp]\nhost = {}\nport = {}\n\n\
        [processors.batch]\nmax_queue_size = {}\nschedule_delay_millis = {}\nmax_export_batch_size = {}\n\n\
        [service]\nname = {}\n\n\
        [sampler]\nname = {}\nratio = {}\nparent_based = {}\n",
        text(host.map_or("", |host| host.as_str())),
        config.collector_port,
        config.max_queue_size,
        config.schedule_delay_millis,
        config.max_export_batch_size,
        text(config.service_name.as_str()),
        text(config.sampler.as_str()),
        fraction(config.sampler_ratio.as_str()),
        config.sampler_parent_based,
    )
}

/// A number that TOML takes for a fraction.
fn fraction(text: &str) -> String {
    let (whole, digits) = text.split_once('.').unwrap_or((text, "0"));
    let digits = if digits.is_empty() { "0" } else { digits };
    format!("{whole}.{digits}")
}

#[cfg(test)]
mod tests {
    use ingress_model::value::Literal;

    use super::*;

    #[test]
    fn texts_of_the_file_are_quoted() {
        let config = OpenTelemetry {
            collector_host: Some(Literal::constant("otel.test")),
            service_name: Literal::constant("a \"b\"\\"),
            sampler_ratio: Literal::constant("1"),
            ..OpenTelemetry::default()
        };
        let file = settings(&config);
        assert!(
            file.contains("host = \"otel.test\"\nport = 4317\n"),
            "{file}"
        );
        assert!(file.contains(r#"name = "a \"b\"\\""#), "{file}");
        assert!(
            file.contains("ratio = 1.0\nparent_based = true\n"),
            "{file}"
        );
    }
}
