//! Outcomes as text.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test cannot show fails it"
)]

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use ingress_model::{
    Backend, Diagnostic, Live, Outcome, Server,
    layout::Modifier,
    live::{CookieAffinity, HashBy, LoadBalance, Variant},
};

/// Parts of an outcome as text, by name.
pub(crate) fn show(outcome: &Outcome) -> BTreeMap<&'static str, String> {
    let layout = &outcome.model.layout;
    let live = &outcome.model.live;
    let mut servers = String::new();
    for server in layout.servers.values() {
        show_server(server, &mut servers);
    }
    let mut backends = String::new();
    for backend in live.backends.values() {
        show_backend(backend, &mut backends);
    }
    let mut certificates = String::new();
    for (host, id) in &live.servers {
        let known = live.certificates.contains_key(id);
        writeln!(
            certificates,
            "{host} {id:?}{}",
            if known { "" } else { " missing" }
        )
        .unwrap();
    }
    let mut streams = String::new();
    let services = [
        ("tcp", &layout.tcp, &live.tcp),
        ("udp", &layout.udp, &live.udp),
    ];
    for (protocol, servers, backends) in services {
        for (port, server) in servers {
            write!(streams, "{protocol} {port}").unwrap();
            flag(&mut streams, "reads", server.proxy_protocol_in);
            flag(&mut streams, "sends", server.proxy_protocol_out);
            streams.push(' ');
            show_backend(&backends[port], &mut streams);
        }
    }
    for snippet in &layout.stream_snippets {
        writeln!(streams, "{} {:?}", snippet.ingress, snippet.value.as_str()).unwrap();
    }
    BTreeMap::from([
        ("servers", servers),
        ("backends", backends),
        ("certificates", certificates),
        ("streams", streams),
        ("passthrough", show_passthrough(live)),
        (
            "diagnostics",
            lines(outcome.diagnostics.iter().map(diagnostic)),
        ),
        ("provenance", show_provenance(outcome)),
        (
            "dependencies",
            lines(
                outcome
                    .dependencies
                    .to_set()
                    .into_iter()
                    .map(ToString::to_string),
            ),
        ),
    ])
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\n").collect()
}

fn show_passthrough(live: &Live) -> String {
    lines(live.passthrough.iter().map(|(host, backend)| {
        let Some(backend) = backend else {
            return format!("{host} ends here");
        };
        let endpoints = backend.endpoints.iter();
        let endpoints: Vec<_> = endpoints
            .map(|endpoint| format!("{}:{}", endpoint.address, endpoint.port))
            .collect();
        format!("{host} {} [{}]", backend.name, endpoints.join(" "))
    }))
}

fn diagnostic(diagnostic: &Diagnostic) -> String {
    format!("{:?} {diagnostic}", diagnostic.severity)
}

fn flag(text: &mut String, name: &str, is_set: bool) {
    if is_set {
        write!(text, " {name}").unwrap();
    }
}

fn show_server(server: &Arc<Server>, text: &mut String) {
    write!(text, "{}", server.host).unwrap();
    flag(text, "tls", server.tls);
    for alias in &server.aliases {
        write!(text, " alias {alias}").unwrap();
    }
    if let Some(ciphers) = &server.ssl_ciphers {
        write!(text, " ciphers {}", ciphers.as_str()).unwrap();
    }
    if let Some(snippet) = &server.snippet {
        write!(
            text,
            " snippet {} {:?}",
            snippet.ingress,
            snippet.value.as_str()
        )
        .unwrap();
    }
    if let Some(auth) = &server.client_auth {
        match (&auth.value.denied, &auth.value.authority) {
            (Some(denied), None) => write!(text, " denied {} ({denied})", auth.ingress),
            (None, Some(authority)) => write!(text, " auth {} {}", auth.ingress, authority.secret),
            other => panic!("client certificates are neither checked nor refused: {other:?}"),
        }
        .unwrap();
    }
    text.push('\n');
    for location in &server.locations {
        let modifier = match location.modifier {
            Modifier::Exact => "= ",
            Modifier::Prefix => "",
            Modifier::Regex => "~ ",
        };
        let owner = location.ingress.as_ref();
        let owner = owner.map_or_else(|| "-".to_owned(), ToString::to_string);
        write!(
            text,
            "  {modifier}{} {owner} {}",
            location.path, location.upstream
        )
        .unwrap();
        if let Some(service) = &location.service {
            write!(text, " ({}:{})", service.name, service.port).unwrap();
        }
        if let Some(to) = &location.settings.rewrite_target {
            write!(text, " rewrite {}", to.as_str()).unwrap();
        }
        if let Some(redirect) = &location.settings.redirect {
            write!(text, " redirect {}", redirect.target.as_str()).unwrap();
        }
        flag(text, "closed", location.settings.denied.is_some());
        text.push('\n');
    }
}

fn show_backend(backend: &Backend, text: &mut String) {
    write!(text, "{}:", backend.name).unwrap();
    for endpoint in &backend.endpoints {
        write!(text, " {}:{}", endpoint.address, endpoint.port).unwrap();
    }
    flag(text, "external", backend.external_name);
    show_balancing(
        backend.load_balance,
        backend.hash_by.as_ref(),
        backend.affinity.as_deref(),
        text,
    );
    if let Some(shaping) = &backend.traffic_shaping {
        assert!(backend.canary, "only canaries have a share");
        write!(text, " canary {}/{}", shaping.weight, shaping.weight_total).unwrap();
    }
    for alternative in &backend.alternatives {
        write!(text, " or {alternative}").unwrap();
    }
    text.push('\n');
    for variant in &backend.variants {
        show_variant(variant, text);
    }
}

fn show_variant(variant: &Variant, text: &mut String) {
    text.push_str("  for");
    for ingress in &variant.ingresses {
        write!(text, " {ingress}").unwrap();
    }
    text.push(':');
    for endpoint in variant.endpoints.iter().flatten() {
        write!(text, " {}:{}", endpoint.address, endpoint.port).unwrap();
    }
    show_balancing(
        variant.load_balance,
        variant.hash_by.as_ref(),
        variant.affinity.as_deref(),
        text,
    );
    for alternative in &variant.alternatives {
        write!(text, " or {alternative}").unwrap();
    }
    text.push('\n');
}

fn show_balancing(
    load_balance: Option<LoadBalance>,
    hash_by: Option<&HashBy>,
    affinity: Option<&CookieAffinity>,
    text: &mut String,
) {
    if let Some(balance) = load_balance {
        write!(text, " {balance:?}").unwrap();
    }
    if let Some(hash) = hash_by {
        write!(text, " hash {}", hash.key).unwrap();
    }
    if let Some(affinity) = affinity {
        write!(text, " cookie {} {:?}", affinity.name, affinity.locations).unwrap();
    }
}

fn show_provenance(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (host, decisions) in &outcome.provenance.hosts {
        for decision in &**decisions {
            let losers = decision.losers.iter().map(|loser| format!(" > {loser}"));
            let losers: String = losers.collect();
            writeln!(
                text,
                "{host}: {}: {}{losers} ({:?})",
                decision.subject, decision.winner, decision.rule
            )
            .unwrap();
        }
    }
    text
}
