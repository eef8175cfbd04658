//! Where NGINX writes its logs.

use ingress_model::{
    config::RenderConfig,
    value::{Literal, Template},
};

use crate::value::{Printed, Unprintable, argument, arguments, constant, literal, template, word};

use super::{
    Context,
    directive::{Directive, directive},
};

/// Logs of the main, http and stream blocks.
pub(crate) struct Logs {
    /// Where the controller reads what NGINX says of itself, whatever the ConfigMap says.
    pub(crate) main_error_log: Directive,
    pub(crate) http_error_log: Vec<Directive>,
    pub(crate) http_format: Directive,
    pub(crate) http_access_log: Directive,
    pub(crate) stream_error_log: Vec<Directive>,
    pub(crate) stream_format: Directive,
    pub(crate) stream_access_log: Directive,
}

/// How lines for requests are gathered unless `access-log-params` says something. A write of this size to a pipe, as
/// containers have for a log, is not torn apart by that of another worker (POSIX: `PIPE_BUF`); nobody who reads along
/// notices the time.
const BUFFER: [&str; 2] = ["buffer=4k", "flush=100ms"];

impl Logs {
    pub(crate) fn new(context: &Context<'_>) -> Result<Self, Unprintable> {
        let (config, environment) = (context.config, context.environment);
        let syslog = config.syslog_host.as_ref().filter(|_| config.enable_syslog);
        let syslog =
            syslog.map(|host| format!("syslog:server={}:{}", host.as_str(), config.syslog_port));
        let file = |path: &Option<Literal>, default: &str| match path {
            Some(path) => argument_or_literal(path.as_str()),
            None => argument_or_literal(default),
        };
        let error_log = |path: &str| -> Result<Directive, Unprintable> {
            let level = if environment.debug_log {
                word("debug")
            } else {
                argument(config.error_log_level.as_str())?
            };
            Ok(directive("error_log", [argument(path)?, level]))
        };
        let error_paths = match &config.error_log_path {
            Some(path) => vec![path.as_str()],
            None => environment
                .usual_error_log
                .as_deref()
                .into_iter()
                .chain([&*environment.error_log])
                .collect(),
        };
        let error_logs = |paths: &[&str]| -> Result<Vec<_>, Unprintable> {
            paths.iter().map(|path| error_log(path)).collect()
        };
        let condition =
            (!config.skip_access_log_urls.is_empty()).then(|| constant("if=$loggable".into()));
        let http_access_log = match &syslog {
            _ if config.disable_access_log => off(),
            Some(syslog) => access_log([argument(syslog)?, word("upstreaminfo")], None, condition),
            None => {
                let path = config.access_log_path.as_ref();
                let path = path.map_or(&*environment.access_log, Literal::as_str);
                // Buffers are for files that stay the same.
                let is_file = !path.contains('$') && !path.starts_with("syslog:");
                let parameters = if config.access_log_params.is_empty() && is_file {
                    BUFFER.map(word).into()
                } else {
                    arguments(&config.access_log_params)?
                };
                access_log(
                    [argument_or_literal(path)?, word("upstreaminfo")],
                    Some(parameters),
                    condition,
                )
            }
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
            main_error_log: error_log(&environment.error_log)?,
            http_error_log: match &syslog {
                Some(syslog) => error_logs(&[syslog]),
                None => error_logs(&error_paths),
            }?,
            stream_error_log: error_logs(&error_paths)?,
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
