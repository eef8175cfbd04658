//! What the Lua side gets from the configuration: its dictionaries and its settings file.

use std::collections::BTreeMap;

use ingress_model::value::Size;
use serde_json::json;

use crate::value::{Printed, Unprintable, constant, word};

use super::{
    Context,
    directive::{Directive, directive},
};

/// Names and sizes of the shared dictionaries: the controller's own, and those of the ConfigMap.
fn sizes<'a>(context: &'a Context<'_>) -> BTreeMap<&'a str, &'a Size> {
    let configured = context
        .config
        .lua_shared_dicts
        .iter()
        .filter(|(name, _)| is_name(name));
    let own = context.environment.shared_dicts.iter();
    own.chain(configured)
        .map(|(name, size)| (name.as_str(), size))
        .collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

pub(crate) fn directives(context: &Context<'_>) -> Vec<Directive> {
    sizes(context)
        .into_iter()
        .map(|(name, size)| {
            directive(
                "lua_shared_dict",
                [word(name), word(size.to_string().to_ascii_uppercase())],
            )
        })
        .collect()
}

/// The largest body that the status port takes: as much as a dictionary could hold.
pub(crate) fn body_limit(context: &Context<'_>) -> Printed {
    const ROOM: u64 = 1 << 20;
    let sizes = sizes(context);
    let size = |name| sizes.get(name).map_or(0, |size| size.bytes());
    let largest = size("configuration_data").max(size("certificate_data"));
    word(largest.saturating_add(ROOM).min(i64::MAX as u64))
}

/// A string of Lua within a `…_by_lua_block`, where NGINX counts braces.
pub(crate) fn lua_string(text: &str) -> Result<Printed, Unprintable> {
    let mut string = String::from("\"");
    for c in text.chars() {
        match c {
            c if c.is_control() => return Err(Unprintable::Control(c.into())),
            c if c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-') => string.push(c),
            c => {
                let mut bytes = [0; 4];
                string.extend(
                    c.encode_utf8(&mut bytes)
                        .bytes()
                        .map(|byte| format!("\\{byte:03}")),
                );
            }
        }
    }
    string.push('"');
    Ok(constant(string))
}

/// The file that the Lua side reads when NGINX loads its configuration. `checksum` is that of all the other files.
pub(crate) fn settings_file(context: &Context<'_>, checksum: &str) -> String {
    let (config, environment) = (context.config, context.environment);
    let sizes: BTreeMap<_, _> = sizes(context)
        .into_iter()
        .map(|(name, size)| (name, size.bytes()))
        .collect();
    let metrics = environment.metrics.as_ref();
    let passthrough = context.passthrough();
    let mut text = json!({
        "checksum": checksum,
        "dict_sizes": sizes,
        "enable_metrics": metrics.is_some(),
        "enable_ocsp": config.enable_ocsp,
        "hsts": config.hsts,
        "hsts_include_subdomains": config.hsts_include_subdomains,
        "hsts_max_age": config.hsts_max_age.0.to_string(),
        "hsts_preload": config.hsts_preload,
        "http_redirect_code": config.http_redirect_code,
        "is_ssl_passthrough_enabled": passthrough.is_some(),
        "listen_ports": {
            "https": environment.ports.https.to_string(),
            "ssl_proxy": passthrough.map_or(442, |ports| ports.https).to_string(),
            "status_port": environment.ports.status.to_string(),
        },
        "metrics_socket": metrics.map_or("", |metrics| metrics.socket.as_str()),
        "monitor_batch_max_size": metrics.map_or(10_000, |metrics| metrics.batch_size.max(1)),
        "use_forwarded_headers": config.use_forwarded_headers,
        "use_proxy_protocol": config.use_proxy_protocol,
    })
    .to_string();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lua_strings_hold_nothing_that_nginx_or_lua_reads() {
        assert_eq!(
            lua_string("/etc/nginx/lua.json").unwrap().0.to_string(),
            "\"/etc/nginx/lua.json\""
        );
        assert_eq!(
            lua_string("a\"}ä").unwrap().0.to_string(),
            "\"a\\034\\125\\195\\164\""
        );
        assert!(lua_string("a\n").is_err());
    }
}
