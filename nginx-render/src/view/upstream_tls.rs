//! TLS spoken to endpoints.

use ingress_model::layout::{BackendProtocol, UpstreamTls};

use crate::{
    rendered::{FileContent, RelativePath},
    value::{Printed, Unprintable, argument, arguments, plain, switch, template, word},
};

use super::{
    Context,
    client_auth::certificate_file,
    directive::{Directive, directive},
};

/// Names of the directives of a module.
struct Names {
    trusted: &'static str,
    crl: &'static str,
    certificate: &'static str,
    key: &'static str,
    ciphers: &'static str,
    protocols: &'static str,
    name: &'static str,
    server_name: &'static str,
    verify: &'static str,
    depth: &'static str,
}

const PROXY: Names = Names {
    trusted: "proxy_ssl_trusted_certificate",
    crl: "proxy_ssl_crl",
    certificate: "proxy_ssl_certificate",
    key: "proxy_ssl_certificate_key",
    ciphers: "proxy_ssl_ciphers",
    protocols: "proxy_ssl_protocols",
    name: "proxy_ssl_name",
    server_name: "proxy_ssl_server_name",
    verify: "proxy_ssl_verify",
    depth: "proxy_ssl_verify_depth",
};

const GRPC: Names = Names {
    trusted: "grpc_ssl_trusted_certificate",
    crl: "grpc_ssl_crl",
    certificate: "grpc_ssl_certificate",
    key: "grpc_ssl_certificate_key",
    ciphers: "grpc_ssl_ciphers",
    protocols: "grpc_ssl_protocols",
    name: "grpc_ssl_name",
    server_name: "grpc_ssl_server_name",
    verify: "grpc_ssl_verify",
    depth: "grpc_ssl_verify_depth",
};

/// Files that directives refer to.
type Files = Vec<(RelativePath, FileContent)>;

/// The directives of a location, and their files.
///
/// # Errors
/// When a text cannot stand in the configuration.
pub(crate) fn directives(
    tls: &UpstreamTls,
    protocol: BackendProtocol,
    context: &Context<'_>,
) -> Result<(Vec<Directive>, Files), Unprintable> {
    let names = match protocol {
        BackendProtocol::Http | BackendProtocol::Https | BackendProtocol::AutoHttp => &PROXY,
        BackendProtocol::Grpc | BackendProtocol::Grpcs => &GRPC,
        BackendProtocol::Fcgi => return Ok((Vec::new(), Vec::new())),
    };
    let mut files = Vec::new();
    let mut keep = |(path, file): (RelativePath, FileContent)| -> Result<Printed, Unprintable> {
        let absolute = plain(&format!("{}/{path}", context.environment.nginx_dir));
        files.push((path, file));
        absolute
    };
    let mut directives = Vec::new();
    if let Some(authority) = &tls.authority {
        let ca = keep(certificate_file(authority, "proxy-ca", &authority.pem)?)?;
        directives.push(directive(names.trusted, [ca]));
        if let Some(crl) = &authority.crl {
            let crl = keep(certificate_file(authority, "proxy-crl", crl)?)?;
            directives.push(directive(names.crl, [crl]));
        }
    }
    if let Some(pem) = &tls.certificate {
        let path = format!(
            "ssl/proxy-{}_{}.pem",
            tls.secret.namespace(),
            tls.secret.name()
        );
        let path = RelativePath::new(&path).ok_or(Unprintable::FileName)?;
        let file = FileContent::private(pem.reveal());
        let absolute = keep((path, file))?;
        directives.push(directive(names.key, [crate::value::copy(&absolute)]));
        directives.push(directive(names.certificate, [absolute]));
    }
    directives.push(directive(names.ciphers, [argument(tls.ciphers.as_str())?]));
    directives.push(directive(names.protocols, arguments(&tls.protocols)?));
    if let Some(name) = &tls.name {
        directives.push(directive(names.name, [template(name.as_str())?]));
    }
    directives.push(directive(names.server_name, [switch(tls.server_name)]));
    directives.push(directive(names.verify, [switch(tls.verify)]));
    directives.push(directive(names.depth, [word(tls.verify_depth)]));
    Ok((directives, files))
}
