//! Client certificates that a host asks for.

use std::sync::Arc;

use ingress_model::{
    Host, Server,
    layout::{Authority, BackendProtocol, ClientAuth, Owned},
};

use crate::{
    pattern,
    rendered::{FileContent, RelativePath},
    source_map::{END, Mark, Source, Sources},
    value::{Printed, Unprintable, plain, template_argument, word},
};

use super::{
    Context,
    directive::{Directive, directive},
    headers,
    routing::protocol,
};

/// A file, and who is behind it.
pub(crate) type OwnedFile = (RelativePath, FileContent, Arc<Source>);

/// What a server says about client certificates.
pub(crate) struct ClientAuthView {
    pub(crate) begin: Mark,
    pub(crate) end: Mark,
    pub(crate) settings: Vec<Directive>,
    /// Whether certificates count only on connections that were opened for the host.
    pub(crate) is_bound: bool,
    /// What the certificate's subject has to match.
    pub(crate) subject: Option<Printed>,
}

impl ClientAuthView {
    /// The view, and the files that go with it; `None` when nothing is asked for.
    ///
    /// # Errors
    /// When a text cannot stand in the configuration. The host must not be served then.
    pub(crate) fn new(
        host: &Host,
        auth: &Owned<ClientAuth>,
        source: &Arc<Source>,
        context: &Context<'_>,
        sources: &mut Sources,
    ) -> Result<Option<(Self, Vec<OwnedFile>)>, Unprintable> {
        let auth = &auth.value;
        let mut settings = Vec::new();
        let mut files = Vec::new();
        if let Some(authority) = &auth.authority {
            let mut write = |directive_name, kind, text: &str| {
                let (path, file) = certificate_file(authority, kind, text)?;
                let absolute = plain(&format!("{}/{path}", context.environment.nginx_dir))?;
                settings.push(directive(directive_name, [absolute]));
                files.push((path, file, Arc::clone(source)));
                Ok(())
            };
            write("ssl_client_certificate", "ca", &authority.pem)?;
            if let Some(crl) = &authority.crl {
                write("ssl_crl", "crl", crl)?;
            }
            settings.push(directive("ssl_verify_client", [word(auth.verify)]));
            settings.push(directive("ssl_verify_depth", [word(auth.depth)]));
            if let Some(page) = &auth.error_page {
                let statuses = [word(495), word(496), word("=")];
                settings.push(directive(
                    "error_page",
                    statuses.into_iter().chain([template_argument(page)?]),
                ));
            }
        }
        let subject = auth
            .match_cn
            .as_ref()
            .map(|subject| {
                pattern::check_groups(subject.as_str())?;
                plain(subject.as_str())
            })
            .transpose()?;
        if settings.is_empty() && subject.is_none() {
            return Ok(None);
        }
        let begin = sources.begin(Arc::clone(source));
        Ok(Some((
            Self {
                begin,
                end: END,
                settings,
                // The catch-all host's server verifies what comes without a name, or with one that nobody serves, by an
                // authority of its own; NGINX itself compares only names that it knows.
                is_bound: auth.authority.is_some() && !host.is_catch_all(),
                subject,
            },
            files,
        )))
    }
}

/// The headers of a server whose clients have certificates, for each module that its locations speak through.
pub(crate) fn headers(
    server: &Server,
    auth: &ClientAuth,
    context: &Context<'_>,
) -> Result<Vec<Directive>, Unprintable> {
    if auth.authority.is_none() {
        return Ok(Vec::new());
    }
    let uses = |wanted: &[BackendProtocol]| {
        server
            .locations
            .iter()
            .any(|location| wanted.contains(&protocol(location)))
    };
    let of = |protocol| {
        let own = headers::Own {
            client_auth: Some(auth),
            ..headers::Own::default()
        };
        headers::all(context, protocol, own)
    };
    let mut directives = of(BackendProtocol::Http)?;
    if uses(&[BackendProtocol::Grpc, BackendProtocol::Grpcs]) {
        directives.extend(of(BackendProtocol::Grpc)?);
    }
    Ok(directives)
}

/// The file for certificates of a Secret. Names of namespaces hold no underscore, so that two Secrets never share one.
pub(crate) fn certificate_file(
    authority: &Authority,
    kind: &str,
    text: &str,
) -> Result<(RelativePath, FileContent), Unprintable> {
    let secret = &authority.secret;
    let path = format!("ssl/{kind}-{}_{}.pem", secret.namespace(), secret.name());
    let path = RelativePath::new(&path).ok_or(Unprintable::FileName)?;
    Ok((path, FileContent::public(text)))
}
