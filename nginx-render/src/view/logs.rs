//! Where NGINX writes its logs.

use ingress_model::{
    config::RenderConfig,
    value::{Literal, Template},
};

use crate::{
    environment::Environment,
    value::{Printed, Unprintable, argument, arguments, constant, literal, template, word},
};

use super::directive::{Directive, directive};

/// Logs of the main, http and stream blocks.
pub(crate) struct Logs {
    pub(crate) error_log: Directive,
    pub(crate) http_format: Directive,
    pub(crate) http_access_log: Directive,
    pub(crate) stream_format: Directive,
    pub(crate) stream_access_log: Directive,
}

impl Logs {
    pub(crate) fn new(
        config: &RenderConfig,
        environment: &Environment,
    ) -> Result<Self, Unprintable> {
        let syslog = config.syslog_host.as_ref().filter(|_| config.enable_syslog);
        let syslog =
            syslog.map(|host| format!("syslog:server={}:{}", host.as_str(), config.syslog_port));
        let file = |path: &Option<Literal>, default: &str| match path {
            Some(path) => argument_or_literal(path.as_str()),
            None => argument_or_literal(default),
        };
        let error_path = match (&syslog, &config.error_log_path) {
            (Some(syslog), _) => argument(syslog)?,
            (None, Some(path)) => argument(path.as_str())?,
            (None, None) => argument(&environment.error_log)?,
        };
        let condition =
            (!config.skip_access_log_urls.is_empty()).then(|| constant("if=$loggable".into()));
        let http_access_log = match syslog {
            _ if config.disable_access_log => off(),
            Some(syslog) => access_log([argument(&syslog)?, word("upstreaminfo")], None, condition),
            None => access_log(
                [
                    file(&config.access_log_path, &environment.access_log)?,
                    word("upstreaminfo"),
                ],
                Some(arguments(&config.access_log_params)?),
                condition,
            ),
        };
        let stream_access_log = if config.disable_stream_access_log {
            off()
        } else {
            access_log(
                [
                    file(&config.stream_access_log_path, &environment.access_log)?,
                    word("log_stream"),
                ],
                Some(arguments(&config.access_log_params)?),
                None,
            )
        };
        Ok(Self {
            error_log: directive(
                "error_log",
                [error_path, argument(config.error_log_level.as_str())?],
            ),
            http_format: format("upstreaminfo", config, &config.log_format_upstream)?,
            http_access_log,
            stream_format: format("log_stream", config, &config.log_format_stream)?,
            stream_access_log,
        })
    }
}

fn access_log(
    words: [Printed; 2],
    parameters: Option<Vec<Printed>>,
    condition: Option<Printed>,
) -> Directive {
    let parameters = parameters.into_iter().flatten();
    directive(
        "access_log",
        words.into_iter().chain(parameters).chain(condition),
    )
}

fn off() -> Directive {
    directive("access_log", [word("off")])
}

/// A path of `access_log`, which takes variables.
fn argument_or_literal(path: &str) -> Result<Printed, Unprintable> {
    if path.contains('$') {
        literal(path)
    } else {
        argument(path)
    }
}

fn format(name: &str, config: &RenderConfig, format: &Template) -> Result<Directive, Unprintable> {
    let escape = match (config.log_format_escape_none, config.log_format_escape_json) {
        (true, _) => Some(word("escape=none")),
        (false, true) => Some(word("escape=json")),
        (false, false) => None,
    };
    let text = template(format.as_str())?;
    Ok(directive(
        "log_format",
        std::iter::once(word(name)).chain(escape).chain([text]),
    ))
}
