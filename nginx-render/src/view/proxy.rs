//! Timeouts, buffers and retries: said once for all in the http block, and again only where they differ.

use std::collections::BTreeSet;

use ingress_model::{
    config::RenderConfig,
    layout::{BackendProtocol, LocationSettings, ProxySettings},
    value::{Size, Template},
};

use crate::value::{Printed, Unprintable, arguments, switch, template_arguments, time, word};

use super::directive::{Directive, directive};

/// What the http block says, except for what its snippet says itself.
pub(crate) fn inherited(
    config: &RenderConfig,
    http_names: &BTreeSet<&str>,
) -> Result<Vec<Directive>, Unprintable> {
    let mut directives = of_proxy(&config.proxy)?;
    if let Some(redirect) = &config.proxy.redirect
        && !is_default(redirect)
    {
        directives.push(directive("proxy_redirect", template_arguments(redirect)?));
    }
    directives.push(directive(
        "client_max_body_size",
        [word(&config.proxy_body_size)],
    ));
    directives.push(directive(
        "client_body_buffer_size",
        [word(&config.client_body_buffer_size)],
    ));
    directives.extend(of_grpc(&config.proxy));
    directives.retain(|directive| !http_names.contains(directive.0.name));
    Ok(directives)
}

/// What a location says: what differs from the http block, or what a snippet between the two has changed.
pub(crate) fn overrides(
    settings: &LocationSettings,
    protocol: BackendProtocol,
    config: &RenderConfig,
    inherited: &[Directive],
    changed_between: &BTreeSet<&str>,
) -> Result<Vec<Directive>, Unprintable> {
    let has_own = settings.proxy != ProxySettings::default()
        || settings.body_size.is_some()
        || settings.body_buffer_size.is_some();
    if !has_own && changed_between.is_empty() {
        return Ok(Vec::new());
    }
    let proxy = over(&settings.proxy, &config.proxy);
    let mut directives = match protocol {
        BackendProtocol::Grpc | BackendProtocol::Grpcs => of_grpc(&proxy),
        BackendProtocol::Http | BackendProtocol::Https | BackendProtocol::AutoHttp => {
            of_proxy(&proxy)?
        }
        BackendProtocol::Fcgi => Vec::new(),
    };
    let body_size = settings
        .body_size
        .as_ref()
        .unwrap_or(&config.proxy_body_size);
    let buffer_size = settings
        .body_buffer_size
        .as_ref()
        .unwrap_or(&config.client_body_buffer_size);
    directives.push(directive("client_max_body_size", [word(body_size)]));
    directives.push(directive("client_body_buffer_size", [word(buffer_size)]));
    directives.retain(|directive| {
        let is_inherited = inherited.iter().any(|above| above.0 == directive.0);
        !is_inherited || changed_between.contains(directive.0.name)
    });
    Ok(directives)
}

/// What a location that asks a service on behalf of another one says: answers are read as that one reads those of
/// endpoints, whose heads may be as long.
pub(crate) fn of_question(
    settings: &LocationSettings,
    config: &RenderConfig,
    inherited: &[Directive],
    changed_between: &BTreeSet<&str>,
) -> Result<Vec<Directive>, Unprintable> {
    const SAME: [&str; 6] = [
        "proxy_buffer_size",
        "proxy_buffering",
        "proxy_buffers",
        "proxy_busy_buffers_size",
        "proxy_http_version",
        "proxy_max_temp_file_size",
    ];
    let protocol = BackendProtocol::Http;
    let mut directives = overrides(settings, protocol, config, inherited, changed_between)?;
    directives.retain(|directive| SAME.contains(&directive.0.name));
    Ok(directives)
}

/// `proxy_redirect`, which has to stand behind `proxy_pass` if it is `default`.
pub(crate) fn redirect(
    settings: &LocationSettings,
    protocol: BackendProtocol,
    config: &RenderConfig,
    changed_between: &BTreeSet<&str>,
) -> Result<Option<Directive>, Unprintable> {
    let Some(redirect) = settings
        .proxy
        .redirect
        .as_ref()
        .or(config.proxy.redirect.as_ref())
    else {
        return Ok(None);
    };
    let is_variable = match protocol {
        BackendProtocol::Http | BackendProtocol::Https => false,
        BackendProtocol::AutoHttp => true,
        BackendProtocol::Grpc | BackendProtocol::Grpcs | BackendProtocol::Fcgi => return Ok(None),
    };
    if is_default(redirect) {
        // NGINX accepts `default` only where the address of the endpoints holds no variable.
        let value = if is_variable { "off" } else { "default" };
        return Ok(Some(directive("proxy_redirect", [word(value)])));
    }
    let differs =
        settings.proxy.redirect.is_some() && settings.proxy.redirect != config.proxy.redirect;
    if differs || changed_between.contains("proxy_redirect") {
        return Ok(Some(directive(
            "proxy_redirect",
            template_arguments(redirect)?,
        )));
    }
    Ok(None)
}

fn is_default(redirect: &[Template]) -> bool {
    matches!(redirect, [word] if word.as_str() == "default")
}

/// The settings of `own`, and those of `base` where it has none.
fn over(own: &ProxySettings, base: &ProxySettings) -> ProxySettings {
    fn or<T: Clone>(own: Option<&T>, base: Option<&T>) -> Option<T> {
        own.or(base).cloned()
    }
    ProxySettings {
        connect_timeout: own.connect_timeout.or(base.connect_timeout),
        send_timeout: own.send_timeout.or(base.send_timeout),
        read_timeout: own.read_timeout.or(base.read_timeout),
        buffering: own.buffering.or(base.buffering),
        request_buffering: own.request_buffering.or(base.request_buffering),
        buffer_size: or(own.buffer_size.as_ref(), base.buffer_size.as_ref()),
        buffers_number: own.buffers_number.or(base.buffers_number),
        busy_buffers_size: or(
            own.busy_buffers_size.as_ref(),
            base.busy_buffers_size.as_ref(),
        ),
        max_temp_file_size: or(
            own.max_temp_file_size.as_ref(),
            base.max_temp_file_size.as_ref(),
        ),
        http_version: own.http_version.or(base.http_version),
        next_upstream: or(own.next_upstream.as_ref(), base.next_upstream.as_ref()),
        next_upstream_timeout: own.next_upstream_timeout.or(base.next_upstream_timeout),
        next_upstream_tries: own.next_upstream_tries.or(base.next_upstream_tries),
        cookie_domain: or(own.cookie_domain.as_ref(), base.cookie_domain.as_ref()),
        cookie_path: or(own.cookie_path.as_ref(), base.cookie_path.as_ref()),
        redirect: or(own.redirect.as_ref(), base.redirect.as_ref()),
    }
}

/// Everything but `proxy_redirect`.
fn of_proxy(proxy: &ProxySettings) -> Result<Vec<Directive>, Unprintable> {
    let mut directives = Vec::new();
    let mut add = |name, arguments: Option<Vec<Printed>>| {
        directives.extend(arguments.map(|arguments| directive(name, arguments)));
    };
    add(
        "proxy_connect_timeout",
        proxy.connect_timeout.map(|t| vec![time(t)]),
    );
    add(
        "proxy_send_timeout",
        proxy.send_timeout.map(|t| vec![time(t)]),
    );
    add(
        "proxy_read_timeout",
        proxy.read_timeout.map(|t| vec![time(t)]),
    );
    add(
        "proxy_buffering",
        proxy.buffering.map(|on| vec![switch(on)]),
    );
    add(
        "proxy_request_buffering",
        proxy.request_buffering.map(|on| vec![switch(on)]),
    );
    add(
        "proxy_http_version",
        proxy.http_version.map(|version| vec![word(version)]),
    );
    add(
        "proxy_next_upstream",
        proxy.next_upstream.as_deref().map(arguments).transpose()?,
    );
    add(
        "proxy_next_upstream_timeout",
        proxy.next_upstream_timeout.map(|t| vec![word(t.0)]),
    );
    add(
        "proxy_next_upstream_tries",
        proxy.next_upstream_tries.map(|tries| vec![word(tries)]),
    );
    add(
        "proxy_cookie_domain",
        proxy
            .cookie_domain
            .as_deref()
            .map(template_arguments)
            .transpose()?,
    );
    add(
        "proxy_cookie_path",
        proxy
            .cookie_path
            .as_deref()
            .map(template_arguments)
            .transpose()?,
    );
    directives.extend(buffers(proxy));
    Ok(directives)
}

/// Buffer sizes as NGINX accepts them together: it refuses the whole configuration if they do not fit.
fn buffers(proxy: &ProxySettings) -> Vec<Directive> {
    let (Some(size), Some(number)) = (&proxy.buffer_size, proxy.buffers_number) else {
        return Vec::new();
    };
    let number = number.max(2);
    let mut directives = vec![
        directive("proxy_buffer_size", [word(size)]),
        directive("proxy_buffers", [word(number), word(size)]),
    ];
    // NGINX docs: at least one buffer, at most all but one.
    let all_but_one = size.bytes().saturating_mul(u64::from(number) - 1);
    if let Some(busy) = &proxy.busy_buffers_size
        && (size.bytes()..=all_but_one).contains(&busy.bytes())
    {
        directives.push(directive("proxy_busy_buffers_size", [word(busy)]));
    }
    if let Some(file) = &proxy.max_temp_file_size {
        let fits = file.bytes() == 0 || file.bytes() >= size.bytes();
        let file: &Size = if fits { file } else { size };
        directives.push(directive("proxy_max_temp_file_size", [word(file)]));
    }
    directives
}

fn of_grpc(proxy: &ProxySettings) -> Vec<Directive> {
    [
        ("grpc_connect_timeout", proxy.connect_timeout),
        ("grpc_send_timeout", proxy.send_timeout),
        ("grpc_read_timeout", proxy.read_timeout),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|value| directive(name, [time(value)])))
    .collect()
}
