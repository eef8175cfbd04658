//! What the parts of an explanation are called.

use ingress_model::{
    Host, ObjectName,
    config::Fate,
    explain::{
        Answer, CanarySummary, CertificateSource, HostMatch, LocationChoice, LocationSummary,
        Origin, PathMatch, PathSummary, PlainHttp, SettingSource, TlsReason, UpstreamSummary,
    },
    layout::Modifier,
    provenance::{Decision, Rule},
};

/// The controller's own server is called `_`.
pub(in crate::command) fn host(host: &Host) -> String {
    if host.is_catch_all() {
        "_ (all other hosts)".to_owned()
    } else {
        host.to_string()
    }
}

pub(in crate::command) fn host_match(by: &HostMatch) -> String {
    match by {
        HostMatch::Exact => "it is the server's host".to_owned(),
        HostMatch::Alias { alias } => format!("its alias {alias} matches (server-alias)"),
        HostMatch::Redirected => {
            "it is redirected to the server's host (from-to-www-redirect)".to_owned()
        }
        HostMatch::Wildcard => {
            "it is the wildcard host that matches; * stands for one label".to_owned()
        }
        HostMatch::CatchAll => "no server has the host".to_owned(),
    }
}

/// A location as NGINX's file has it.
pub(in crate::command) fn location(location: &LocationSummary) -> String {
    match location.modifier {
        Modifier::Exact => format!("= {}", location.path),
        Modifier::Prefix => location.path.clone(),
        Modifier::Regex => format!("~* ^{}", location.path),
    }
}

pub(in crate::command) fn path_match(by: PathMatch) -> &'static str {
    match by {
        PathMatch::Exact => "it is the request's path",
        PathMatch::LongestPrefix => "the longest path that the request's begins with",
        PathMatch::FirstExpression => "the first regular expression of the server that matches",
    }
}

/// Who wants the location, and how.
pub(in crate::command) fn origin(choice: &LocationChoice) -> String {
    let location = &choice.location;
    let by = location.ingress.as_ref();
    let by = by.map_or_else(
        || "the controller".to_owned(),
        |name| format!("Ingress {name}"),
    );
    match choice.origin {
        Origin::Path => format!(
            "{by}, path {} ({:?})",
            location.ingress_path, location.path_type
        ),
        Origin::DefaultBackend => format!("{by}, spec.defaultBackend"),
        Origin::Host if location.ingress.is_some() => {
            format!("the host: nobody defines the path; annotations of {by}")
        }
        Origin::Host => "the controller: nobody defines the path".to_owned(),
    }
}

/// A path as its Ingress writes it.
pub(in crate::command) fn path(path: &PathSummary) -> String {
    let expression = if path.is_expression { ", ~*" } else { "" };
    format!("{} ({:?}{expression})", path.path, path.path_type)
}

/// Who defines something.
pub(in crate::command) fn ingress(name: Option<&ObjectName>) -> String {
    name.map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// An answer, and apart from it why a location is closed.
pub(in crate::command) fn answer_and_why(answer: &Answer) -> (String, String) {
    if let Answer::Closed { status, reason } = answer {
        (status.to_string(), reason.clone())
    } else {
        (self::answer(answer), String::new())
    }
}

pub(in crate::command) fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Endpoint { endpoints: 1 } => "1 endpoint".to_owned(),
        Answer::Endpoint { endpoints } => format!("{endpoints} endpoints"),
        Answer::Redirect { status, target } => format!("{status}, to {target}"),
        Answer::Closed { status, reason } => format!("{status}: {reason}"),
        Answer::StandIn {
            upstream,
            endpoints,
        } => format!("no endpoints; {endpoints} of {upstream} stand in (default-backend)"),
        Answer::NoEndpoints => "503: no endpoints".to_owned(),
        Answer::Controller => "the controller itself (health check, NGINX's status)".to_owned(),
        Answer::NotFound => "404: nothing serves it".to_owned(),
    }
}

/// What plain HTTP gets, and why.
pub(in crate::command) fn plain_http(http: PlainHttp) -> (&'static str, &'static str) {
    match http {
        PlainHttp::Served => ("served", ""),
        PlainHttp::Redirected => ("redirected to HTTPS", ""),
        PlainHttp::NoCertificate => (
            "403",
            "it brings no client certificate, of which auth-tls-match-cn asks for something",
        ),
    }
}

pub(in crate::command) fn upstream(upstream: &UpstreamSummary) -> String {
    let mut text = upstream.name.to_string();
    if let (Some(service), Some(namespace)) = (&upstream.service, &upstream.namespace) {
        text = format!(
            "{text}: Service {namespace}/{}, port {}",
            service.name, service.port
        );
    }
    let picked = upstream.load_balance.map(|how| format!("{how:?}"));
    let hashed = upstream
        .hash_by
        .as_ref()
        .map(|key| format!("hash of {key}"));
    let cookie = upstream.affinity_cookie.as_ref();
    let cookie = cookie.map(|name| format!("cookie {name}"));
    for part in [picked, hashed, cookie].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(&part);
    }
    text
}

pub(in crate::command) fn canary(canary: &CanarySummary) -> String {
    let by = canary.ingress.as_ref();
    let by = by.map_or_else(String::new, |name| format!(", Ingress {name}"));
    format!("{}{by}: {}", canary.name, share(canary))
}

/// Which requests a canary takes, and where to.
pub(in crate::command) fn share(canary: &CanarySummary) -> String {
    let header =
        canary.header.as_ref().map(
            |name| match (&canary.header_value, &canary.header_pattern) {
                (Some(value), _) => format!("requests with header {name}: {value}"),
                (None, Some(pattern)) => format!("requests whose header {name} matches {pattern}"),
                (None, None) => format!("requests with header {name}: always"),
            },
        );
    let cookie = canary.cookie.as_ref();
    let parts = [
        header,
        cookie.map(|name| format!("requests with cookie {name}=always")),
        Some(format!("{} of {}", canary.weight, canary.weight_total)).filter(|_| canary.weight > 0),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let requests = if parts.is_empty() {
        "no requests".to_owned()
    } else {
        parts.join(", ")
    };
    format!("{requests} ({})", endpoints(&canary.endpoints))
}

pub(in crate::command) fn endpoints(endpoints: &[String]) -> String {
    if endpoints.is_empty() {
        return "none".to_owned();
    }
    endpoints.join(" ")
}

pub(in crate::command) fn certificate(source: &CertificateSource) -> String {
    match source {
        CertificateSource::Secret { secret } => format!("Secret {secret}"),
        CertificateSource::DefaultSecret { secret } => {
            format!("Secret {secret} (--default-ssl-certificate)")
        }
        CertificateSource::Generated => "made by the controller".to_owned(),
        CertificateSource::None => "none".to_owned(),
    }
}

pub(in crate::command) fn tls_reason(reason: &TlsReason) -> String {
    match reason {
        TlsReason::Listed { ingress, entry } => {
            format!("spec.tls[{entry}] of Ingress {ingress} lists the host")
        }
        TlsReason::NamedByCertificate { ingress } => {
            format!("spec.tls of Ingress {ingress} names it, and its certificate is for the host")
        }
        TlsReason::Unusable { ingress, faults } => {
            format!(
                "spec.tls of Ingress {ingress} cannot be used: {}",
                faults.join("; ")
            )
        }
        TlsReason::NoSection => "no Ingress of the host has spec.tls".to_owned(),
        TlsReason::NotForAlias => "the host's own certificate is not for this name".to_owned(),
        TlsReason::CatchAll => "default of hosts without one of their own".to_owned(),
    }
}

pub(in crate::command) fn source(source: &SettingSource) -> String {
    match source {
        SettingSource::Annotation { ingress, key } => format!("Ingress {ingress}, {key}"),
        SettingSource::ConfigMap { config_map, key } => format!("ConfigMap {config_map}, {key}"),
        SettingSource::Default => "default".to_owned(),
    }
}

pub(in crate::command) fn losers(decision: &Decision) -> String {
    let losers: Vec<_> = decision.losers.iter().map(ToString::to_string).collect();
    losers.join(", ")
}

/// Why the winner of a decision holds.
pub(in crate::command) fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::Sole => "nobody else defines it",
        Rule::CreatedLater => "created later",
        Rule::CreatedEarlier => "created earlier",
        Rule::LargerName => "created at the same time, larger name",
        Rule::SameIngress => "defined twice by one Ingress",
        Rule::NoCanary => "the other one has a canary's settings, but is none",
    }
}

pub(in crate::command) fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Accepted => "accepted",
        Fate::InPart => "accepted in part",
        Fate::Refused => "refused: the default holds",
        Fate::Unknown => "unknown",
        Fate::NotYet => "without effect in this version",
        Fate::Overridden => "overridden by the key in lower case",
    }
}
