//! Every row of `ANNOTATIONS.md` is read as the row says: its example changes what an Ingress leads to, under each of its
//! names, a value that cannot be used has the consequence that stands in the column *misused*, and one of another type
//! than the column *value* says is reported.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests"
)]

use ingress_model::{
    Diagnostic, ObjectKind, ObjectName, ObjectRef, Options, Reason, Severity,
    annotation::{self, AnnotationInfo, IngressSettings, Scope, annotations, find},
    config::{GlobalConfig, Risk},
};
use k8s_openapi::api::{core::v1::ConfigMap, networking::v1::Ingress};

const PAGE: &str = include_str!("../../ANNOTATIONS.md");

/// A row of the page.
struct Row {
    /// Its names, the present one first.
    names: Vec<&'static str>,
    /// What a value that cannot be used leads to.
    misused: &'static str,
    info: &'static AnnotationInfo,
}

fn rows() -> impl Iterator<Item = Row> {
    let mut column = None;
    PAGE.lines().filter_map(move |line| {
        let line = line.strip_prefix("| ")?;
        // A bar within a cell is escaped.
        let cells: Vec<&str> = line.split(" | ").collect();
        if let Some(at) = cells.iter().position(|cell| *cell == "misused") {
            column = Some(at);
            return None;
        }
        let names: Vec<&str> = cells[0].split('`').skip(1).step_by(2).collect();
        let info = find(names[0]).unwrap_or_else(|| panic!("{} is no annotation", names[0]));
        let misused = cells[column.expect("a table has a head")];
        Some(Row {
            names,
            misused,
            info,
        })
    })
}

/// What an annotation needs, and what that needs.
fn needed(info: &AnnotationInfo) -> Vec<(&'static str, &'static str)> {
    let mut all = Vec::new();
    let mut next = info.needs.first();
    while let Some((need, needed)) = next.and_then(|need| Some((need, find(need.name)?))) {
        all.push((need.name, need.value().unwrap_or(needed.example)));
        next = needed.needs.first();
    }
    all
}

/// Annotations that mean something only together with another one.
fn companions(info: &AnnotationInfo) -> Vec<(&'static str, &'static str)> {
    let needed = needed(info);
    let more = match info.name {
        "proxy-redirect-from" => Some(("proxy-redirect-to", "http://x.test/")),
        "proxy-redirect-to" => Some(("proxy-redirect-from", "http://x.test/")),
        "limit-rate" | "limit-rate-after" => Some(("proxy-buffering", "on")),
        "proxy-busy-buffers-size" => Some(("proxy-buffer-size", "8k")),
        "auth-type" | "auth-secret-type" | "auth-realm" => Some(("auth-secret", "users")),
        name if name.starts_with("canary-") => Some(("canary", "true")),
        _ => None,
    };
    needed.into_iter().chain(more).collect()
}

/// Everything is allowed, and the ConfigMap has what some annotations need.
fn permissive() -> GlobalConfig {
    let data = [
        ("allow-snippet-annotations", "true"),
        ("annotations-risk-level", "Critical"),
        ("use-http2", "false"),
        ("global-auth-url", "http://global.test/"),
    ];
    let config_map = ConfigMap {
        data: Some(data.map(|(key, value)| (key.into(), value.into())).into()),
        ..ConfigMap::default()
    };
    GlobalConfig::parse(&config_map, &mut Vec::new())
}

const PREFIX: &str = "nginx.ingress.kubernetes.io";

/// What annotations lead to, and what is said about them, as text.
fn read(annotations: &[(&str, &str)]) -> (Option<IngressSettings>, Vec<String>) {
    let (settings, said) = tell(annotations);
    (settings, said.iter().map(ToString::to_string).collect())
}

/// What annotations lead to, and what is said about them.
fn tell(annotations: &[(&str, &str)]) -> (Option<IngressSettings>, Vec<Diagnostic>) {
    let annotations = annotations.iter();
    let mut ingress = Ingress::default();
    ingress.metadata.namespace = Some("shop".into());
    ingress.metadata.name = Some("web".into());
    ingress.metadata.annotations = Some(
        annotations
            .map(|(name, value)| (format!("{PREFIX}/{name}"), (*value).to_owned()))
            .collect(),
    );
    let options = Options {
        ssl_passthrough: true,
        ..Options::default()
    };
    let mut diagnostics = Vec::new();
    let settings = annotation::parse(&ingress, &options, &permissive(), &mut diagnostics);
    (settings, diagnostics)
}

/// Values that are of no use to an annotation that takes what the page says.
fn of_another_type(info: &AnnotationInfo) -> Vec<&'static str> {
    const NO_NUMBERS: [&str; 8] = [
        "many",
        "1.5",
        "1 2",
        "0x10",
        "1m",
        "1e3",
        "+",
        "99999999999999999999",
    ];
    // Cookies may end in the past, and browsers may be told to remember nothing.
    let may_be_negative = [
        "cors-max-age",
        "session-cookie-expires",
        "session-cookie-max-age",
    ];
    let first = info.value.split(' ').next().unwrap_or_default();
    match first {
        "raw" => Vec::new(),
        "boolean" => vec!["yes", "on", "2", "tRUE", "true;", "true false"],
        "whole" | "seconds" | "kilobytes" => {
            let below = (!may_be_negative.contains(&info.name)).then_some("-1");
            NO_NUMBERS.into_iter().chain(below).collect()
        }
        "size" => vec!["8q", "-8k", "8kb", "1.5m", "k", "99999999999999999999"],
        _ if info.value.starts_with("list of addresses") => {
            vec![
                "10.0.0.0/33",
                "300.1.1.1",
                "all",
                "10.0.0.0/8;",
                "10.0.0.0/8 10.1.0.0/16",
            ]
        }
        _ if info.value.starts_with("list of statuses from") => {
            vec!["399", "600", "499", "4xx", "404 503", "404,0"]
        }
        // Words to choose from, perhaps beside free text.
        _ if first.starts_with('`') && !info.value.contains("characters") => {
            vec!["nonsense;", "\"", "a b c"]
        }
        _ => vec!["a\"b;", "#", "\u{e4}"],
    }
}

#[test]
fn the_page_has_every_annotation_once() {
    let mut names: Vec<_> = rows().flat_map(|row| row.names).collect();
    assert_eq!(rows().count(), 136);
    assert_eq!(names.len(), 138);
    let registered = annotations();
    let registered = registered.flat_map(|info| std::iter::once(&info.name).chain(info.aliases));
    let mut registered: Vec<_> = registered.copied().collect();
    names.sort_unstable();
    registered.sort_unstable();
    assert_eq!(names, registered);
}

#[test]
fn every_name_changes_what_an_ingress_leads_to() {
    // What is not read changes nothing, and what is not known is said.
    let (unread, said) = read(&[("no-such-annotation", "x")]);
    assert_eq!((unread, said.len()), (read(&[]).0, 1));
    for row in rows() {
        let companions = companions(row.info);
        let (base, _) = read(&companions);
        for name in row.names {
            let set = [companions.as_slice(), &[(name, row.info.example)]].concat();
            let (settings, said) = read(&set);
            assert_eq!(said, [""; 0], "{name}");
            assert!(settings.is_some(), "{name}");
            assert_ne!(settings, base, "{name}");
        }
    }
}

#[test]
fn every_name_leads_to_what_the_page_says_when_it_is_misused() {
    for row in rows().filter(|row| row.info.risk < Risk::Critical) {
        let companions = companions(row.info);
        let (base, _) = read(&companions);
        for name in &row.names {
            let set = [companions.as_slice(), &[(*name, "\u{1}\n;")]].concat();
            let (settings, said) = read(&set);
            let key = format!("nginx.ingress.kubernetes.io/{name}: ");
            assert!(said.iter().any(|said| said.contains(&key)), "{said:?}");
            match row.misused {
                "not served" => assert_eq!(settings, None, "{name}"),
                "closed" if row.info.scope == Scope::Server => {
                    let auth = settings.unwrap().server.client_auth.unwrap();
                    assert!(auth.secret.is_err(), "{name}");
                }
                "closed" => assert!(settings.unwrap().location.denied.is_some(), "{name}"),
                // What is left is half a replacement, a list of nobody, or a canary that is switched off.
                "default holds"
                    if matches!(
                        *name,
                        "cors-allow-origin" | "proxy-redirect-from" | "canary"
                    ) => {}
                "default holds" => assert_eq!(settings, base, "{name}"),
                other => panic!("{name}: {other:?} is nothing that the page explains"),
            }
        }
    }
}

#[test]
fn a_value_of_another_type_is_reported_with_the_object_and_the_key() {
    let mut silent = Vec::new();
    for row in rows() {
        let companions = companions(row.info);
        for (name, value) in row.names.iter().flat_map(|name| {
            of_another_type(row.info)
                .into_iter()
                .map(move |it| (name, it))
        }) {
            let set = [companions.as_slice(), &[(*name, value)]].concat();
            let (_, said) = tell(&set);
            let about = ObjectRef::new(ObjectKind::Ingress, ObjectName::new("shop", "web"));
            let key = format!("{PREFIX}/{name}");
            let is_told = said.iter().any(|said| {
                said.object == about
                    && said.key.as_ref() == Some(&key)
                    && said.severity >= Severity::Warning
                    && said.reason == Reason::InvalidAnnotation
                    && !said.message.is_empty()
            });
            if !is_told {
                silent.push(format!("{name}: {value:?} {said:?}"));
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
