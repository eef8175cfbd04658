//! TLS as all servers have it.

use ingress_model::config::RenderConfig;

use crate::value::{Printed, Unprintable, argument, arguments, plain, round_time, switch, word};

use super::{
    Context,
    directive::{Directive, directive},
};

/// Certificates of all servers. The variable in the path keeps NGINX from loading a file, at its start and at
/// handshakes: the Lua hook takes the place of what would load it.
pub(crate) fn certificates(context: &Context<'_>) -> Result<Vec<Directive>, Unprintable> {
    let path = format!("{}/ssl/$ssl_server_name.pem", context.environment.nginx_dir);
    Ok(vec![
        directive("ssl_certificate", [plain(&path)?]),
        directive("ssl_certificate_key", [plain(&path)?]),
    ])
}

pub(crate) fn directives(config: &RenderConfig) -> Result<Vec<Directive>, Unprintable> {
    let mut directives = vec![
        directive("ssl_protocols", arguments(&config.ssl_protocols)?),
        directive("ssl_early_data", [switch(config.ssl_early_data)]),
    ];
    if config.ssl_session_cache {
        let cache = format!("shared:SSL:{}", config.ssl_session_cache_size);
        directives.push(directive("ssl_session_cache", [word(cache)]));
        directives.push(directive(
            "ssl_session_timeout",
            [round_time(config.ssl_session_timeout)],
        ));
    }
    directives.push(directive(
        "ssl_session_tickets",
        [switch(config.ssl_session_tickets)],
    ));
    directives.push(directive(
        "ssl_buffer_size",
        [word(&config.ssl_buffer_size)],
    ));
    if let Some(ciphers) = &config.ssl_ciphers {
        directives.push(directive("ssl_ciphers", [plain(ciphers.as_str())?]));
        directives.push(directive("ssl_prefer_server_ciphers", [switch(true)]));
    }
    directives.push(directive(
        "ssl_ecdh_curve",
        [argument(config.ssl_ecdh_curve.as_str())?],
    ));
    Ok(directives)
}

/// The value of `Strict-Transport-Security` (RFC 6797).
pub(crate) fn hsts(config: &RenderConfig) -> Result<Printed, Unprintable> {
    let subdomains = if config.hsts_include_subdomains {
        "; includeSubDomains"
    } else {
        ""
    };
    let preload = if config.hsts_preload { "; preload" } else { "" };
    plain(&format!(
        "max-age={}{subdomains}{preload}",
        config.hsts_max_age.0
    ))
}
