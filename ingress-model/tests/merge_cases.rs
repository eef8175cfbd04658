//! The rules, a file each: objects and what is made of them.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "cases are files, and a malformed one fails the test"
)]

mod show;
mod support;

use std::{collections::BTreeMap, fs, path::Path};

use ingress_model::{
    ConflictPolicy, Host, ObjectName, Options, Outcome,
    live::{Certificate, CertificateId},
    merge,
    selector::LabelSelector,
};
use serde::Deserialize;
use serde_json::Value;

/// Objects, and parts of the outcome as text. Both policies have to give what is expected, unless the one that the
/// oldest definition wins has expectations of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    options: CaseOptions,
    #[serde(default)]
    objects: Vec<Value>,
    /// Ingresses as they were served before.
    #[serde(default)]
    before: Vec<Value>,
    expect: BTreeMap<String, String>,
    #[serde(default)]
    oldest: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CaseOptions {
    now: Option<String>,
    config_map: Option<String>,
    tcp_services: Option<String>,
    udp_services: Option<String>,
    default_backend_service: Option<String>,
    default_ssl_certificate: Option<String>,
    generated_certificate: bool,
    reserved_ports: Vec<u16>,
    disable_external_name: bool,
    ssl_passthrough: bool,
    disable_catch_all: bool,
    node: Option<String>,
    namespace_selector: Option<String>,
    with_class: bool,
}

impl CaseOptions {
    fn options(&self, conflict_policy: ConflictPolicy) -> Options {
        let name = |text: &Option<String>| text.as_deref().and_then(ObjectName::parse);
        let generated = self.generated_certificate.then(|| Certificate {
            id: CertificateId::new(CertificateId::GENERATED),
            pem: "generated".into(),
        });
        let selector = self.namespace_selector.as_deref();
        Options {
            conflict_policy,
            watch_ingress_without_class: !self.with_class,
            config_map: name(&self.config_map),
            tcp_services: name(&self.tcp_services),
            udp_services: name(&self.udp_services),
            default_backend_service: name(&self.default_backend_service),
            default_ssl_certificate: name(&self.default_ssl_certificate),
            generated_certificate: generated,
            reserved_ports: self.reserved_ports.clone(),
            disable_external_name: self.disable_external_name,
            ssl_passthrough: self.ssl_passthrough,
            disable_catch_all: self.disable_catch_all,
            node: self.node.clone(),
            namespace_selector: selector.map(|text| LabelSelector::parse(text).unwrap()),
            ..Options::default()
        }
    }
}

fn run(case: &Case, policy: ConflictPolicy) -> Outcome {
    let options = case.options.options(policy);
    let now = case
        .options
        .now
        .as_deref()
        .unwrap_or("2024-01-01T00:00:00Z");
    let now = now.parse().unwrap();
    let before = support::snapshot(&case.before);
    let mut snapshot = support::snapshot(&case.objects);
    snapshot.last_good = merge(&before, &options, now).last_good;
    merge(&snapshot, &options, now)
}

/// What is not as expected.
fn differences(case: &Case) -> Vec<String> {
    let mut differences = Vec::new();
    for policy in [
        ConflictPolicy::LastDefinitionWins,
        ConflictPolicy::OldestWins,
    ] {
        let outcome = run(case, policy);
        assert!(
            outcome
                .model
                .layout
                .servers
                .contains_key(&Host::catch_all())
        );
        let shown = show::show(&outcome);
        for (part, expected) in &case.expect {
            let expected = match policy {
                ConflictPolicy::OldestWins => case.oldest.get(part).unwrap_or(expected),
                ConflictPolicy::LastDefinitionWins => expected,
            };
            let actual = shown
                .get(part.as_str())
                .map_or("no such part", String::as_str);
            if actual.trim_end() != expected.trim_end() {
                let name = &case.name;
                differences.push(format!("{name}: {part} with {policy:?}:\n{actual}"));
            }
        }
    }
    differences
}

#[test]
fn every_rule_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut differences = Vec::new();
    let mut count = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let cases: Vec<Case> = serde_saphyr::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for case in &cases {
            count += 1;
            assert!(!case.expect.is_empty(), "{} expects nothing", case.name);
            differences.extend(self::differences(case));
        }
    }
    assert!(count > 0, "there are no cases");
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}
