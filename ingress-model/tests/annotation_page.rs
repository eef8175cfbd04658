//! Every row of `ANNOTATIONS.md` is read as the row says: its example changes what an Ingress leads to, under each of its
//! names, and a value that cannot be used has the consequence that stands in the column *misused*.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests"
)]

use ingress_model::{
    Options,
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

/// Annotations that mean something only together with another one.
fn companions(info: &AnnotationInfo) -> Vec<(&'static str, &'static str)> {
    let needed = info.needs.and_then(find);
    let needed = needed.map(|needed| (needed.name, needed.example));
    let more = match info.name {
        "proxy-redirect-from" => Some(("proxy-redirect-to", "http://x.test/")),
        "proxy-redirect-to" => Some(("proxy-redirect-from", "http://x.test/")),
        "limit-rate" => Some(("proxy-buffering", "on")),
        "limit-burst-multiplier" | "limit-allowlist" => Some(("limit-rps", "1")),
        "proxy-busy-buffers-size" => Some(("proxy-buffer-size", "8k")),
        "auth-type" | "auth-secret-type" | "auth-realm" => Some(("auth-secret", "users")),
        "auth-cache-duration" => Some(("auth-cache-key", "$remote_user")),
        "auth-signin-redirect-param" => Some(("auth-signin", "http://auth.test/start")),
        name if name.starts_with("auth-keepalive-") => Some(("auth-keepalive", "10")),
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

/// What annotations lead to, and what is said about them.
fn read(annotations: &[(&str, &str)]) -> (Option<IngressSettings>, Vec<String>) {
    let prefix = "nginx.ingress.kubernetes.io";
    let annotations = annotations.iter();
    let mut ingress = Ingress::default();
    ingress.metadata.namespace = Some("shop".into());
    ingress.metadata.name = Some("web".into());
    ingress.metadata.annotations = Some(
        annotations
            .map(|(name, value)| (format!("{prefix}/{name}"), (*value).to_owned()))
            .collect(),
    );
    let options = Options {
        ssl_passthrough: true,
        ..Options::default()
    };
    let mut diagnostics = Vec::new();
    let settings = annotation::parse(&ingress, &options, &permissive(), &mut diagnostics);
    (
        settings,
        diagnostics.iter().map(ToString::to_string).collect(),
    )
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
