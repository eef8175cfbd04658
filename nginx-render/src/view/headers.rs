//! Headers that endpoints are sent. The http block has the standard ones; NGINX inherits them only where a level sets
//! none, so a level that adds one says all of them again.

use ingress_model::{
    config::RenderConfig,
    layout::{BackendProtocol, ClientAuth},
    value::{Literal, Template},
};

use crate::value::{Printed, Unprintable, constant, plain, template, word};

use super::{
    Context,
    directive::{Directive, directive},
    forwarded,
};

/// The longest name that NGINX's gRPC module has room for: the size of its table cannot be set.
pub(crate) const LONGEST_OF_GRPC: usize = 46;

/// What a level has besides the standard headers, or instead.
#[derive(Default)]
pub(crate) struct Own<'a> {
    /// Instead of the request's `Host`.
    pub(crate) host: Option<Printed>,
    /// Instead of what the request's `Upgrade` asks for.
    pub(crate) connection: Option<Printed>,
    /// `X-Forwarded-Prefix`.
    pub(crate) prefix: Option<Printed>,
    /// The name of a variable instead of `$pass_port`.
    pub(crate) port: Option<&'static str>,
    /// The name of a variable instead of `$pass_access_scheme`.
    pub(crate) scheme: Option<&'static str>,
    /// Facts about the client's certificate.
    pub(crate) client_auth: Option<&'a ClientAuth>,
    /// Names and values.
    pub(crate) further: Vec<(Printed, Printed)>,
}

/// All headers of a level, for the module that speaks this protocol. A header of the ConfigMap's `proxy-set-headers`
/// takes the place of a standard one: NGINX would send both.
///
/// # Errors
/// When a header of the ConfigMap cannot stand in the configuration.
pub(crate) fn all(
    context: &Context<'_>,
    protocol: BackendProtocol,
    own: Own<'_>,
) -> Result<Vec<Directive>, Unprintable> {
    let config = context.config;
    let (name, is_grpc) = match protocol {
        BackendProtocol::Http | BackendProtocol::Https | BackendProtocol::AutoHttp => {
            ("proxy_set_header", false)
        }
        BackendProtocol::Grpc | BackendProtocol::Grpcs => ("grpc_set_header", true),
        BackendProtocol::Fcgi => return Ok(Vec::new()),
    };
    let variable = |name: &str| constant(name.to_owned());
    let mut headers = vec![(
        "Host",
        own.host.unwrap_or_else(|| variable("$best_http_host")),
    )];
    if let Some(client_auth) = own.client_auth {
        headers
            .extend(of_certificate(client_auth).map(|(header, value)| (header, variable(value))));
    }
    if !is_grpc {
        // HTTP/2 has neither (RFC 9113 §8.2.2).
        headers.push(("Upgrade", variable("$http_upgrade")));
        headers.push((
            "Connection",
            own.connection
                .unwrap_or_else(|| variable("$connection_upgrade")),
        ));
    }
    let port = format!("${}", own.port.unwrap_or("pass_port"));
    let scheme = format!("${}", own.scheme.unwrap_or("pass_access_scheme"));
    headers.extend([
        ("X-Request-ID", variable("$req_id")),
        ("X-Real-IP", variable("$remote_addr")),
        ("X-Forwarded-For", variable(full_forwarded_for(config))),
        ("X-Forwarded-Host", variable("$best_http_host")),
        ("X-Forwarded-Port", variable(&port)),
        ("X-Forwarded-Proto", variable(&scheme)),
        ("X-Forwarded-Scheme", variable(&scheme)),
        ("X-Scheme", variable(&scheme)),
    ]);
    if config.proxy_add_original_uri_header {
        headers.push(("X-Original-URI", variable("$request_uri")));
    }
    headers.extend([
        (
            "X-Original-Forwarded-For",
            constant(header_variable(config.forwarded_for_header.as_str())),
        ),
        (
            "X-Original-Forwarded-Host",
            constant(header_variable(config.forwarded_host_header.as_str())),
        ),
        // Read by CGI programs as the address of a proxy to use.
        ("Proxy", constant("\"\"".into())),
    ]);
    headers.extend(own.prefix.map(|prefix| ("X-Forwarded-Prefix", prefix)));
    let of_config = &config.proxy_set_headers;
    headers.retain(|(header, _)| {
        let is_same = |(own, _): &(Literal, Template)| own.as_str().eq_ignore_ascii_case(header);
        !of_config.iter().any(is_same)
    });
    let mut directives: Vec<_> = headers
        .into_iter()
        .map(|(header, value)| directive(name, [word(header), value]))
        .collect();
    for (header, value) in of_config {
        if is_grpc && header.as_str().len() > LONGEST_OF_GRPC {
            continue;
        }
        let arguments = [plain(header.as_str())?, template(value.as_str())?];
        directives.push(directive(name, arguments));
    }
    let own_header = forwarded::own_header(context)?;
    let own_header = own_header.map(|header| (header, constant("\"\"".into())));
    let further = own.further.into_iter().chain(own_header);
    directives.extend(further.map(|(header, value)| directive(name, [header, value])));
    Ok(directives)
}

/// The variable with the addresses that a request came through.
pub(crate) fn full_forwarded_for(config: &RenderConfig) -> &'static str {
    if config.use_forwarded_headers && config.compute_full_forwarded_for {
        "$full_x_forwarded_for"
    } else {
        "$remote_addr"
    }
}

/// Facts about the client's certificate. What a client says about it itself reaches nobody.
pub(crate) fn of_certificate(
    client_auth: &ClientAuth,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let certificate = if client_auth.pass_certificate {
        "$ssl_client_escaped_cert"
    } else {
        "\"\""
    };
    let facts = [
        ("ssl-client-cert", certificate),
        ("ssl-client-verify", "$ssl_client_verify"),
        ("ssl-client-subject-dn", "$ssl_client_s_dn"),
        ("ssl-client-issuer-dn", "$ssl_client_i_dn"),
    ];
    facts.into_iter()
}

/// The variable that holds a request header: `$http_x_forwarded_for`.
pub(crate) fn header_variable(header: &str) -> String {
    variable("$http_", header)
}

/// The variable of a family that holds a header.
pub(crate) fn variable(family: &str, header: &str) -> String {
    let name = header
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .map(|c| {
            if c == '-' {
                '_'
            } else {
                c.to_ascii_lowercase()
            }
        });
    family.chars().chain(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_variables_hold_nothing_else() {
        assert_eq!(header_variable("X-Forwarded-For"), "$http_x_forwarded_for");
        assert_eq!(header_variable("a b;$\n"), "$http_ab");
    }
}
