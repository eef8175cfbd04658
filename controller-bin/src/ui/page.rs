//! What the page shows, as texts.

use std::{collections::BTreeSet, sync::Arc};

use askama::Template;
use ingress_model::{
    Backend, Diagnostic, Host, Location, Outcome, Server, Severity,
    explain::WrittenType,
    layout::{Modifier, PathType},
    live::Live,
    provenance::Decision,
};
use jiff::Timestamp;

use super::{
    board::{Board, Latest, Loaded},
    words::{ago, count, day, moment, share, span, took},
};
use crate::{
    metrics::certificates::Facts,
    observe::{Load, Told},
    quarantine::{Level, Levels},
};

/// How many hosts are shown; a search finds the others.
const MOST_HOSTS: usize = 300;

/// How many rows any other table has.
const MOST_ROWS: usize = 200;

/// How many endpoints of a path are named.
const MOST_ENDPOINTS: usize = 6;

/// How many reasons of a reload are named.
const MOST_REASONS: usize = 6;

/// How many days before its end a certificate is shown as ending.
const ENDS_SOON: i64 = 21;

/// The page. Its texts are escaped by the template.
#[derive(Debug, Template)]
#[template(path = "ui.html")]
pub(super) struct Page {
    release: &'static str,
    now: String,
    uptime: String,
    /// What is wrong; empty: nothing.
    trouble: String,
    search: String,
    tiles: Vec<Tile>,
    hosts: Vec<HostRow>,
    more_hosts: usize,
    conflicts: Vec<ConflictRow>,
    isolated: Vec<IsolatedRow>,
    notices: Vec<NoticeRow>,
    more_notices: usize,
    syncs: Vec<SyncRow>,
    loads: Vec<LoadRow>,
    certificates: Vec<CertificateRow>,
    more_certificates: usize,
}

/// A number that matters.
#[derive(Debug)]
struct Tile {
    number: usize,
    label: &'static str,
    /// `bad`, `warn` or empty.
    class: &'static str,
}

#[derive(Debug)]
struct HostRow {
    host: String,
    aliases: String,
    tls: bool,
    paths: Vec<PathRow>,
}

#[derive(Debug)]
struct PathRow {
    path: String,
    /// How the path is written to be matched, and how it is.
    kind: String,
    ingress: String,
    service: String,
    endpoints: String,
    /// All of them.
    title: String,
    class: &'static str,
    /// Why requests are answered 503, and canaries.
    remarks: Vec<String>,
}

#[derive(Debug)]
struct ConflictRow {
    host: String,
    subject: String,
    winner: String,
    losers: String,
    why: String,
}

#[derive(Debug)]
struct IsolatedRow {
    ingress: String,
    since: String,
    /// What becomes of it.
    effect: String,
    reason: String,
}

#[derive(Debug)]
struct NoticeRow {
    class: &'static str,
    object: String,
    reason: &'static str,
    message: String,
}

#[derive(Debug)]
struct SyncRow {
    when: String,
    title: String,
    sent: String,
    waited: String,
    merge: String,
    tell: String,
}

#[derive(Debug)]
struct LoadRow {
    when: String,
    title: String,
    class: &'static str,
    text: String,
    render: String,
    test: String,
    load: String,
}

#[derive(Debug)]
struct CertificateRow {
    host: String,
    secret: String,
    issuer: String,
    end: String,
    left: String,
    class: &'static str,
}

impl Page {
    pub(super) fn new(board: &Board, search: &str, now: Timestamp, trouble: String) -> Self {
        let latest = board.latest();
        let Latest {
            outcome,
            syncs,
            loads,
            isolated,
        } = &latest;
        let levels = board.levels();
        let mut hosts: Vec<_> = hosts(outcome, &levels).collect();
        let paths = hosts.iter().map(|host| host.paths.len()).sum();
        let ingresses = ingresses(outcome);
        let conflicts: Vec<_> = conflicts(outcome).collect();
        let notices: Vec<_> = outcome
            .diagnostics
            .iter()
            .filter(|one| is_shown(one))
            .collect();
        let certificates = certificates(board, outcome, now);
        let ending = certificates
            .iter()
            .filter(|row| !row.class.is_empty())
            .count();
        let tile = |number, label, class| Tile {
            number,
            label,
            class: if number == 0 { "" } else { class },
        };
        let tiles = vec![
            tile(hosts.len(), "hosts", ""),
            tile(paths, "paths", ""),
            tile(ingresses, "Ingresses", ""),
            tile(isolated.len(), "isolated", "bad"),
            tile(conflicts.len(), "conflicts", "warn"),
            tile(ending, "certificates ending", "warn"),
        ];
        hosts.retain(|host| host.matches(search));
        let more_hosts = hosts.len().saturating_sub(MOST_HOSTS);
        hosts.truncate(MOST_HOSTS);
        Self {
            release: env!("CARGO_PKG_VERSION"),
            now: moment(now),
            uptime: span(now.as_second() - board.started().as_second()),
            trouble,
            search: search.to_owned(),
            tiles,
            hosts,
            more_hosts,
            conflicts: conflicts.into_iter().take(MOST_ROWS).collect(),
            isolated: isolated
                .iter()
                .map(|(ingress, (since, reason))| IsolatedRow {
                    ingress: ingress.to_string(),
                    since: ago(*since, now),
                    effect: levels
                        .get(ingress)
                        .map_or_else(|| "it is given another try".to_owned(), ToString::to_string),
                    reason: reason.clone(),
                })
                .collect(),
            more_notices: notices.len().saturating_sub(MOST_ROWS),
            notices: notices
                .into_iter()
                .take(MOST_ROWS)
                .map(NoticeRow::new)
                .collect(),
            syncs: syncs
                .iter()
                .map(|(when, told)| SyncRow {
                    when: ago(*when, now),
                    title: moment(*when),
                    sent: sent(told),
                    waited: took(told.waited),
                    merge: took(told.merge),
                    tell: took(told.tell),
                })
                .collect(),
            loads: loads
                .iter()
                .map(|(when, loaded)| LoadRow::new(*when, loaded, now))
                .collect(),
            more_certificates: certificates.len().saturating_sub(MOST_ROWS),
            certificates: certificates.into_iter().take(MOST_ROWS).collect(),
        }
    }
}

impl HostRow {
    fn matches(&self, search: &str) -> bool {
        let has = |text: &str| text.contains(search);
        let of_path = |path: &PathRow| has(&path.ingress) || has(&path.service);
        has(&self.host) || has(&self.aliases) || self.paths.iter().any(of_path)
    }
}

impl NoticeRow {
    fn new(diagnostic: &Diagnostic) -> Self {
        Self {
            class: match diagnostic.severity {
                Severity::Error => "bad",
                Severity::Warning => "warn",
                Severity::Info => "",
            },
            object: diagnostic.object.to_string(),
            reason: diagnostic.reason.as_str(),
            message: match &diagnostic.key {
                Some(key) => format!("{key}: {}", diagnostic.message),
                None => diagnostic.message.clone(),
            },
        }
    }
}

impl LoadRow {
    fn new(when: Timestamp, loaded: &Loaded, now: Timestamp) -> Self {
        let row = |class, text, [render, test, load]: [String; 3]| Self {
            when: ago(when, now),
            title: moment(when),
            class,
            text,
            render,
            test,
            load,
        };
        match loaded {
            Loaded::Done(load) => {
                let times = [load.render, load.test, load.load].map(took);
                row("", reasons(load), times)
            }
            Loaded::Failed(error) => row("bad", error.clone(), Default::default()),
        }
    }
}

fn hosts(outcome: &Outcome, levels: &Levels) -> impl Iterator<Item = HostRow> {
    let model = &outcome.model;
    let servers = model.layout.servers.values();
    servers.map(|server| HostRow {
        host: shown(&server.host),
        aliases: list(server.aliases.iter().map(ToString::to_string)),
        tls: model.live.servers.contains_key(&server.host),
        paths: paths(server)
            .map(|location| path(&server.host, location, outcome, levels))
            .collect(),
    })
}

/// One location for each path of an Ingress: a Prefix has two.
fn paths(server: &Server) -> impl Iterator<Item = &Location> {
    let mut seen = BTreeSet::new();
    let locations = server.locations.iter();
    locations.filter(move |location| {
        let path = (location.ingress_path.as_str(), location.path_type);
        seen.insert((path, location.ingress.as_ref()))
    })
}

/// The server of all hosts that nobody names is called `_` by NGINX.
fn shown(host: &Host) -> String {
    if host.is_catch_all() {
        "all other hosts".to_owned()
    } else {
        host.to_string()
    }
}

/// The type as the Ingress writes it, and what it is taken for if that is something else.
fn kind(written: WrittenType, location: &Location) -> String {
    let written = match written {
        WrittenType::Exact => "Exact",
        WrittenType::Prefix => "Prefix",
        WrittenType::ImplementationSpecific => "ImplementationSpecific",
    };
    let taken_for = match (location.modifier, location.path_type) {
        (Modifier::Regex, _) => "regular expression",
        (Modifier::Exact | Modifier::Prefix, PathType::Exact) => "Exact",
        (Modifier::Exact | Modifier::Prefix, PathType::Prefix) => "Prefix",
    };
    if written == taken_for {
        written.to_owned()
    } else {
        format!("{written}, as {taken_for}")
    }
}

fn path(host: &Host, location: &Location, outcome: &Outcome, levels: &Levels) -> PathRow {
    let live = &outcome.model.live;
    let backend = live.backend(&location.upstream, location.ingress.as_ref());
    let backend = backend.as_deref();
    let mut remarks = Vec::new();
    let ingress = location.ingress.as_ref();
    let level = ingress.and_then(|ingress| levels.get(ingress));
    remarks.extend(level.map(|level| format!("nginx refuses the Ingress: {level}")));
    if let Some(why) = &location.settings.denied {
        remarks.push(format!("answers 503: {why}"));
    }
    if let Some(redirect) = &location.settings.redirect {
        remarks.push(format!("redirects with {}", redirect.code));
    }
    remarks.extend(
        backend
            .into_iter()
            .flat_map(|backend| canaries(backend, live)),
    );
    let peers = backend.map_or(&[][..], |backend| &backend.endpoints);
    let names = peers.iter().map(|peer| {
        let (address, port) = (&peer.address, peer.port);
        if address.contains(':') {
            format!("[{address}]:{port}")
        } else {
            format!("{address}:{port}")
        }
    });
    let names: Vec<_> = names.collect();
    let is_dead = level == Some(&Level::Denied)
        || location.settings.denied.is_some()
        || (location.ingress.is_some() && peers.is_empty());
    PathRow {
        path: location.ingress_path.to_string(),
        kind: kind(WrittenType::of(outcome, host, location), location),
        ingress: location
            .ingress
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        service: match &location.service {
            Some(service) => format!("{}:{}", service.name, service.port),
            None => location.upstream.to_string(),
        },
        endpoints: some(&names, MOST_ENDPOINTS),
        title: names.join("\n"),
        class: if is_dead { "bad" } else { "" },
        remarks,
    }
}

fn canaries(backend: &Backend, live: &Live) -> Vec<String> {
    let alternatives = backend.alternatives.iter();
    let shares = alternatives.map(|name| {
        let canary = live.backends.get(name);
        let shaping = canary.and_then(|canary| canary.traffic_shaping.as_ref());
        let share = shaping.map(|shaping| format!(", {}", share(shaping)));
        format!("canary {name}{}", share.unwrap_or_default())
    });
    shares.collect()
}

fn ingresses(outcome: &Outcome) -> usize {
    let servers = outcome.model.layout.servers.values();
    let locations = servers.flat_map(|server| &server.locations);
    let names: BTreeSet<_> = locations
        .filter_map(|location| location.ingress.as_ref())
        .collect();
    names.len()
}

fn conflicts(outcome: &Outcome) -> impl Iterator<Item = ConflictRow> {
    let hosts = outcome.provenance.hosts.iter();
    hosts.flat_map(|(host, decisions)| {
        let lost = decisions.iter().filter(|one| !one.losers.is_empty());
        lost.map(|decision: &Decision| ConflictRow {
            host: host.to_string(),
            subject: decision.subject.to_string(),
            winner: decision.winner.to_string(),
            losers: list(decision.losers.iter().map(ToString::to_string)),
            why: decision.rule.to_string(),
        })
    })
}

fn is_shown(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity > Severity::Info
}

fn sent(told: &Told) -> String {
    let applied = &told.applied;
    let parts = [
        (applied.backends_sent, "backend"),
        (applied.certificates_sent, "certificate"),
        (applied.servers_sent, "host"),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let mut texts: Vec<_> = parts.map(|(number, word)| count(number, word)).collect();
    if told.loads {
        texts.push("asks for a reload".to_owned());
    }
    texts.join(", ")
}

fn reasons(load: &Load) -> String {
    let reasons: Vec<_> = load.reasons.iter().map(ToString::to_string).collect();
    some(&reasons, MOST_REASONS)
}

/// The certificates, the one that ends first in front.
fn certificates(board: &Board, outcome: &Outcome, now: Timestamp) -> Vec<CertificateRow> {
    let mut all = board.certificates(outcome);
    all.sort_by_key(|(_, facts)| facts.not_after);
    let row = |(host, facts): (&Host, Arc<Facts>)| {
        let left = facts.not_after - now.as_second();
        CertificateRow {
            host: shown(host),
            secret: match &facts.secret {
                Some(secret) => secret.to_string(),
                None => "made by the controller".to_owned(),
            },
            issuer: facts.issuer_common_name.clone(),
            end: Timestamp::from_second(facts.not_after).map_or_else(|_| String::new(), day),
            left: match left {
                ..=0 => format!("ended {} ago", span(left)),
                _ => format!("in {}", span(left)),
            },
            class: match left {
                ..=0 => "bad",
                _ if left < ENDS_SOON * 86_400 => "warn",
                _ => "",
            },
        }
    };
    all.into_iter().map(row).collect()
}

/// The first of some texts, and how many more there are.
fn some(texts: &[String], most: usize) -> String {
    let shown: Vec<_> = texts.iter().take(most).cloned().collect();
    match texts.len().saturating_sub(most) {
        0 if texts.is_empty() => "none".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn list(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(", ")
}
