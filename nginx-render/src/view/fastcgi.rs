//! FastCGI.

use ingress_model::layout::FastCgi;

use crate::value::{Printed, Unprintable, argument, constant, plain, template, word};

use super::directive::{Directive, directive};

/// What programs expect to be told (RFC 3875, and what PHP asks for).
const PARAMETERS: &[(&str, &str)] = &[
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$pass_access_scheme"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$pass_port"),
    ("SERVER_NAME", "$server_name"),
    ("REDIRECT_STATUS", "200"),
    // Read as the address of a proxy to use.
    ("HTTP_PROXY", "\"\""),
];

/// The parameters of the http block.
pub(crate) fn standard() -> Vec<Directive> {
    with(&[]).collect()
}

/// What a location says: its parameters replace those of the same name, and NGINX inherits all or none.
///
/// # Errors
/// When a text cannot stand in the configuration.
pub(crate) fn own(fastcgi: &FastCgi) -> Result<Vec<Directive>, Unprintable> {
    let mut directives = Vec::new();
    if let Some(index) = &fastcgi.index {
        directives.push(directive("fastcgi_index", [argument(index.as_str())?]));
    }
    if !fastcgi.params.is_empty() {
        let names: Vec<&str> = fastcgi
            .params
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        directives.extend(with(&names));
        for (name, value) in &fastcgi.params {
            let parameter: [Printed; 2] = [plain(name.as_str())?, template(value.as_str())?];
            directives.push(directive("fastcgi_param", parameter));
        }
    }
    Ok(directives)
}

fn with<'a>(replaced: &'a [&'a str]) -> impl Iterator<Item = Directive> + 'a {
    let standard = PARAMETERS
        .iter()
        .filter(|(name, _)| !replaced.contains(name));
    let https = (!replaced.contains(&"HTTPS")).then(|| {
        directive(
            "fastcgi_param",
            [
                word("HTTPS"),
                constant("$https".into()),
                word("if_not_empty"),
            ],
        )
    });
    standard
        .map(|(name, value)| directive("fastcgi_param", [word(name), constant((*value).into())]))
        .chain(https)
}
