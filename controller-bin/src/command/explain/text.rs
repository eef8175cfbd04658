//! Explanations for people.

use ingress_model::{
    Diagnostic,
    explain::{
        ConfigReport, Explanation, HostExplanation, HostSummary, Ignored, LocationSummary,
        NextInLine, Overview, PathSummary, Setting, SettingSource, TlsReport,
    },
    provenance::Decision,
};

use super::{
    super::table::{Table, printable},
    Answer, Report, words,
};

/// The report as text; with all settings, if those that have their defaults are wanted too.
pub(super) fn report(report: &Report, defaults: bool) -> String {
    let mut parts = match &report.answer {
        Answer::Request(explanation) => request(explanation, defaults),
        Answer::Host(explanation) => host(explanation, defaults),
        Answer::Overview(overview) => self::overview(overview),
        Answer::Config(report) => config(report),
        Answer::BadRequest { request, reason } => {
            vec![printable(&format!("{request}: NGINX answers 400, since {reason}")) + "\n"]
        }
    };
    parts.push(broken(&report.broken_manifests));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn request(explanation: &Explanation, defaults: bool) -> Vec<String> {
    let mut table = Table::plain();
    let mut row = |name: &str, what: String, why: String| table.row([name.to_owned(), what, why]);
    row(
        "request",
        format!("{}{}", explanation.host, explanation.path),
        String::new(),
    );
    let server = &explanation.server;
    row(
        "server",
        words::host(&server.name),
        words::host_match(&server.by),
    );
    if let Some(choice) = &explanation.location {
        let by = words::path_match(choice.by).to_owned();
        row("location", words::location(&choice.location), by);
        row(
            "defined by",
            words::origin(choice),
            held(choice.decision.as_ref()),
        );
    }
    let (answer, why) = words::answer_and_why(&explanation.answer);
    row("answer", answer, why);
    if let Some(upstream) = &explanation.upstream {
        row("upstream", words::upstream(upstream), String::new());
        row(
            "endpoints",
            words::endpoints(&upstream.endpoints),
            String::new(),
        );
        for canary in &upstream.canaries {
            row("canary", words::canary(canary), String::new());
        }
    }
    tls(&mut row, &explanation.tls);
    let (http, why) = words::plain_http(explanation.plain_http);
    row("plain HTTP", http.to_owned(), why.to_owned());
    vec![
        table.lines(false),
        next_in_line(&explanation.others),
        first_in_line(&explanation.unknown),
        settings(&explanation.settings, "", defaults),
        conflicts(
            explanation
                .conflicts
                .iter()
                .map(|decision| (None, decision)),
        ),
        ignored(&explanation.ignored),
        notices(&explanation.notices),
    ]
}

fn host(explanation: &HostExplanation, defaults: bool) -> Vec<String> {
    let mut table = Table::plain();
    let mut row = |name: &str, what: String, why: String| table.row([name.to_owned(), what, why]);
    row("host", explanation.host.clone(), String::new());
    let server = &explanation.server;
    row(
        "server",
        words::host(&server.name),
        words::host_match(&server.by),
    );
    if !explanation.summary.aliases.is_empty() {
        row("aliases", aliases(&explanation.summary), String::new());
    }
    tls(&mut row, &explanation.summary.tls);
    vec![
        table.lines(false),
        paths(std::slice::from_ref(&explanation.summary)),
        settings(&explanation.settings, " of the host as a whole", defaults),
        conflicts(
            explanation
                .conflicts
                .iter()
                .map(|decision| (None, decision)),
        ),
        ignored(&explanation.ignored),
        notices(&explanation.notices),
    ]
}

fn overview(overview: &Overview) -> Vec<String> {
    let mut streams = Table::new(["PORT", "UPSTREAM", "ENDPOINTS"]);
    for stream in &overview.streams {
        streams.row([
            format!("{}/{}", stream.port, stream.protocol),
            stream.upstream.to_string(),
            stream.endpoints.to_string(),
        ]);
    }
    let mut certificates = Table::new(["HOST", "ALIASES", "CERTIFICATE", "WHY"]);
    for host in &overview.hosts {
        certificates.row([
            words::host(&host.host),
            aliases(host),
            words::certificate(&host.tls.certificate),
            words::tls_reason(&host.tls.reason),
        ]);
    }
    let decided = overview.conflicts.iter();
    vec![
        paths(&overview.hosts),
        certificates.lines(true),
        streams.lines(true),
        conflicts(decided.map(|decided| (Some(words::host(&decided.host)), &decided.decision))),
        ignored(&overview.ignored),
        notices(&overview.notices),
    ]
}

fn config(report: &ConfigReport) -> Vec<String> {
    let name = &report.config_map;
    if !report.exists {
        return vec![format!("ConfigMap {name} does not exist; defaults hold\n")];
    }
    let mut table = Table::new(["KEY", "VALUE", "", ""]);
    for used in &report.keys {
        let value = used.value.clone();
        let mut notes = used.notes.join("; ");
        if let (true, Some(suggestion)) = (notes.is_empty(), used.suggestion) {
            notes = format!("did you mean {suggestion}?");
        }
        table.row([
            used.key.clone(),
            value.unwrap_or_else(|| "(not shown)".to_owned()),
            words::fate(used.fate).to_owned(),
            notes,
        ]);
    }
    vec![
        format!("ConfigMap {name}, {} keys\n", report.keys.len()),
        table.lines(true),
    ]
}

fn tls(row: &mut impl FnMut(&str, String, String), tls: &TlsReport) {
    let certificate = words::certificate(&tls.certificate);
    row("certificate", certificate, words::tls_reason(&tls.reason));
}

fn held(decision: Option<&Decision>) -> String {
    let decision = decision.filter(|decision| !decision.losers.is_empty());
    decision.map_or_else(String::new, |decision| {
        format!(
            "held against {}: {}",
            words::losers(decision),
            words::rule(decision.rule)
        )
    })
}

fn aliases(host: &HostSummary) -> String {
    let aliases: Vec<_> = host.aliases.iter().map(ToString::to_string).collect();
    aliases.join(" ")
}

fn paths(hosts: &[HostSummary]) -> String {
    let mut table = Table::new(["HOST", "PATH", "INGRESS", "UPSTREAM", "ANSWER"]);
    for host in hosts {
        for path in &host.paths {
            table.row([
                words::host(&host.host),
                words::path(path),
                words::ingress(path.ingress.as_ref()),
                path.upstream.to_string(),
                words::answer(&path.answer),
            ]);
            table.rows(canary(host, path));
        }
    }
    table.lines(true)
}

/// The row of a canary, below that of its path.
fn canary(host: &HostSummary, path: &PathSummary) -> Option<[String; 5]> {
    let canary = path.canary.as_ref()?;
    Some([
        words::host(&host.host),
        format!("{} (canary)", path.path),
        words::ingress(canary.ingress.as_ref()),
        canary.name.to_string(),
        words::share(canary),
    ])
}

fn next_in_line(locations: &[NextInLine]) -> String {
    let mut table = Table::new(["NEXT IN LINE", "INGRESS", "UPSTREAM", ""]);
    for next in locations {
        let doubt = if next.matches {
            ""
        } else {
            "if it matches, which only NGINX knows"
        };
        table.row([
            words::location(&next.location),
            words::ingress(next.location.ingress.as_ref()),
            next.location.upstream.to_string(),
            doubt.to_owned(),
        ]);
    }
    table.lines(true)
}

fn first_in_line(locations: &[LocationSummary]) -> String {
    let heading = "ONLY NGINX KNOWS WHETHER THIS MATCHES FIRST";
    let mut table = Table::new([heading, "INGRESS", "UPSTREAM"]);
    for location in locations {
        table.row([
            words::location(location),
            words::ingress(location.ingress.as_ref()),
            location.upstream.to_string(),
        ]);
    }
    table.lines(true)
}

/// Settings in effect; `scope` says whose they are where that is not plain.
fn settings(settings: &[Setting], scope: &str, defaults: bool) -> String {
    let mut table = Table::new(["SETTING", "VALUE", "FROM", ""]);
    let mut is_hidden = false;
    for setting in settings {
        if setting.source == SettingSource::Default && setting.notes.is_empty() && !defaults {
            is_hidden = true;
            continue;
        }
        let value = setting.value.clone();
        table.row([
            setting.name.to_owned(),
            value.unwrap_or_else(|| "(not shown)".to_owned()),
            words::source(&setting.source),
            setting.notes.join("; "),
        ]);
    }
    let mut text = table.lines(true);
    if is_hidden {
        let which = if text.is_empty() { "All" } else { "All other" };
        text += which;
        text += " settings";
        text += scope;
        text += " have their defaults; --defaults shows them.\n";
    }
    text
}

fn conflicts<'a>(decisions: impl Iterator<Item = (Option<String>, &'a Decision)>) -> String {
    let mut table = Table::new(["CONFLICT", "HELD BY", "LOST BY", "RULE"]);
    for (host, decision) in decisions {
        let host = host.map(|host| format!("{host}: ")).unwrap_or_default();
        table.row([
            format!("{host}{}", decision.subject),
            decision.winner.to_string(),
            words::losers(decision),
            words::rule(decision.rule).to_owned(),
        ]);
    }
    table.lines(true)
}

fn ignored(ignored: &[Ignored]) -> String {
    let mut table = Table::new(["NOT SERVED", "REASON", "FIELD", ""]);
    for ignored in ignored {
        for reason in &ignored.reasons {
            table.row([
                format!("Ingress {}", ignored.ingress),
                reason.reason.to_string(),
                reason.key.clone().unwrap_or_default(),
                reason.message.clone(),
            ]);
        }
    }
    table.lines(true)
}

fn notices(notices: &[Diagnostic]) -> String {
    let mut table = Table::new(["NOTICE", "REASON", "FIELD", ""]);
    for notice in notices {
        table.row([
            notice.object.to_string(),
            notice.reason.to_string(),
            notice.key.clone().unwrap_or_default(),
            notice.message.clone(),
        ]);
    }
    table.lines(true)
}

fn broken(manifests: &[String]) -> String {
    let mut table = Table::new(["MANIFESTS THAT CANNOT BE READ"]);
    for manifest in manifests {
        table.row([manifest.clone()]);
    }
    table.lines(true)
}
