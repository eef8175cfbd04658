//! TLS as all servers have it.

use ingress_model::config::{DhParameters, RenderConfig};

use crate::{
    rendered::FileContent,
    value::{Printed, Unprintable, argument, arguments, plain, switch, word},
};

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

/// The file with the key of session tickets, below NGINX's directory.
pub(crate) const TICKET_KEY: &str = "ssl/tickets.key";

/// The files that all servers share.
pub(crate) fn files(config: &RenderConfig) -> Vec<(String, FileContent)> {
    let mut files = Vec::new();
    if let Some(key) = &config.ssl_session_ticket_key {
        let key = FileContent::private(decode(key.reveal()));
        files.push((TICKET_KEY.to_owned(), key));
    }
    if let Some(dh) = &config.ssl_dh_param {
        files.push((dh_path(dh), FileContent::public(&*dh.pem)));
    }
    files
}

fn dh_path(dh: &DhParameters) -> String {
    format!("ssl/dh-{}_{}.pem", dh.secret.namespace(), dh.secret.name())
}

/// The bytes that base64 stands for; whatever is no digit of it is left out.
fn decode(base64: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for digit in base64.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_le_bytes()[0]);
        }
    }
    bytes
}

pub(crate) fn directives(context: &Context<'_>) -> Result<Vec<Directive>, Unprintable> {
    let config = context.config;
    let below = |path: &str| plain(&format!("{}/{path}", context.environment.nginx_dir));
    let mut directives = vec![
        directive("ssl_protocols", arguments(&config.ssl_protocols)?),
        directive("ssl_early_data", [switch(config.ssl_early_data)]),
    ];
    if config.ssl_session_cache {
        let cache = format!("shared:SSL:{}", config.ssl_session_cache_size);
        directives.push(directive("ssl_session_cache", [word(cache)]));
        directives.push(directive(
            "ssl_session_timeout",
            [argument(config.ssl_session_timeout.as_str())?],
        ));
    }
    directives.push(directive(
        "ssl_session_tickets",
        [switch(config.ssl_session_tickets)],
    ));
    if config.ssl_session_ticket_key.is_some() {
        let key = below(TICKET_KEY)?;
        directives.push(directive("ssl_session_ticket_key", [key]));
    }
    if let Some(dh) = &config.ssl_dh_param {
        directives.push(directive("ssl_dhparam", [below(&dh_path(dh))?]));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        assert_eq!(decode("AAECAwQF"), [0, 1, 2, 3, 4, 5]);
        assert_eq!(decode("//79+w=="), [255, 254, 253, 251]);
        assert_eq!(decode(""), [0; 0]);
    }
}
