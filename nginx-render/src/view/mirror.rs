//! A copy of each request.

use std::sync::Arc;

use ingress_model::{Location, layout::Mirror};

use crate::{
    rendered::Fingerprint,
    source_map::{END, Source, Sources},
    value::{Unprintable, constant, plain, switch, template, word},
};

use super::{
    Context,
    directive::{Directive, directive},
    errors, forwarded,
    internal::{self, InternalView},
    location::ServerFacts,
};

/// What a location says, and the location that sends the copy. Locations of one Ingress share it.
pub(crate) fn mirror(
    mirror: &Mirror,
    location: &Location,
    facts: &ServerFacts<'_>,
    context: &Context<'_>,
    source: &Arc<Source>,
    sources: &mut Sources,
) -> Result<(Vec<Directive>, InternalView), Unprintable> {
    let mut fingerprint = Fingerprint::new();
    fingerprint.add(
        &location
            .ingress
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    );
    fingerprint.add(mirror.target.as_str());
    fingerprint.add(mirror.host.as_str());
    let path = format!("_mirror-{:016x}", fingerprint.get());
    let settings = vec![
        directive("mirror", [plain(&path)?]),
        directive("mirror_request_body", [switch(mirror.request_body)]),
    ];
    let begin = sources.begin(Arc::clone(source));
    let variable = || constant("$mirror_target".into());
    let mut copy = vec![
        directive("internal", []),
        directive("access_log", [switch(false)]),
        directive("proxy_intercept_errors", [switch(false)]),
        errors::of_question(),
        directive("proxy_ssl_server_name", [switch(true)]),
        directive("proxy_redirect", [switch(false)]),
        directive(
            "proxy_set_header",
            [word("Host"), template(mirror.host.as_str())?],
        ),
        // The status server takes no orders from what is marked by it, whoever chose target and body.
        directive(
            "proxy_set_header",
            [word("X-Sent-From"), word("nginx-ingress-controller")],
        ),
    ];
    if let Some(own) = forwarded::own_header(context)? {
        copy.push(directive("proxy_set_header", [own, plain("")?]));
    }
    copy.extend(facts.upstream_tls.taken_back());
    if !mirror.request_body {
        copy.push(directive("proxy_pass_request_body", [switch(false)]));
        copy.push(directive(
            "proxy_set_header",
            [word("Content-Length"), plain("")?],
        ));
    }
    let internal = InternalView {
        begin,
        end: END,
        matcher: internal::exact(&path),
        settings: copy,
        snippet: None,
        cors: None,
        escapes_uri: false,
        // By a variable, so that the target is looked up for each copy, not when NGINX starts.
        handler: vec![
            directive("set", [variable(), template(mirror.target.as_str())?]),
            directive("proxy_pass", [variable()]),
        ],
    };
    Ok((settings, internal))
}
