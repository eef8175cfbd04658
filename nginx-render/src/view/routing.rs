//! Where a location's requests come from and go to.

use ingress_model::{
    Location, Server,
    layout::{BackendProtocol, Modifier},
    live::UpstreamName,
    value::Template,
};

use crate::{
    pattern,
    value::{Printed, Unprintable, constant, joined, plain},
};

use super::Context;

/// Modifier and path.
///
/// # Errors
/// When the path cannot stand in the configuration.
pub(crate) fn matcher(location: &Location) -> Result<Printed, Unprintable> {
    let path = &location.path;
    match location.modifier {
        Modifier::Exact => Ok(joined("= ", &plain(path)?)),
        // Anything else in front would be a modifier.
        Modifier::Prefix if !path.starts_with('/') => Err(Unprintable::NoSlash),
        Modifier::Prefix => plain(path),
        Modifier::Regex => {
            pattern::check_groups(path)?;
            Ok(joined("~* ", &plain(&format!("^{path}"))?))
        }
    }
}

/// Where requests to a location are redirected from HTTP to HTTPS, if they are.
pub(crate) fn to_https(
    location: &Location,
    server: &Server,
    context: &Context<'_>,
) -> Option<Printed> {
    if !redirects(location, server) {
        return None;
    }
    let settings = &*location.settings;
    let port = if settings.use_port_in_redirects {
        format!(":{}", context.environment.ports.https)
    } else {
        String::new()
    };
    let uri = if settings.preserve_trailing_slash {
        "$request_uri"
    } else {
        "$redirect_uri"
    };
    Some(constant(format!("https://$redirect_host{port}{uri}")))
}

/// Whether requests to a location are redirected from HTTP to HTTPS.
pub(crate) fn redirects(location: &Location, server: &Server) -> bool {
    let settings = &*location.settings;
    settings.force_ssl_redirect || (settings.ssl_redirect && server.tls)
}

/// The path's replacement, unless it is the path itself.
pub(crate) fn active_rewrite(location: &Location) -> Option<&Template> {
    let target = location.settings.rewrite_target.as_ref()?;
    (!target.as_str().is_empty() && target.as_str() != location.path).then_some(target)
}

/// The protocol that is spoken: the default backend is NGINX itself, or a Service that is asked by HTTP only.
pub(crate) fn protocol(location: &Location) -> BackendProtocol {
    if location.upstream.as_str() == UpstreamName::DEFAULT_BACKEND {
        BackendProtocol::Http
    } else {
        location.settings.backend_protocol
    }
}
