//! Whatever stands in annotations and in the ConfigMap, reading it does not panic, and what is read keeps the promises
//! of its types.

use std::collections::BTreeMap;

use ingress_model::{
    Options, Severity,
    annotation::{self, annotations},
    config::{GlobalConfig, Risk, keys},
};
use k8s_openapi::api::{core::v1::ConfigMap, networking::v1::Ingress};
use proptest::{collection::vec, prelude::*, sample::select};

/// Text as found in annotations, and text as nobody should write it.
fn value(examples: Vec<&'static str>) -> impl Strategy<Value = String> {
    let example = select(examples);
    prop_oneof![
        2 => example.clone().prop_map(str::to_owned),
        1 => (example.clone(), ".{0,3}").prop_map(|(example, tail)| format!("{example}{tail}")),
        1 => (example, "[\\x00-\\x20;\"'{}$#\\\\]{1,4}").prop_map(|(example, tail)| format!("{tail}{example}")),
        1 => "[ -~]{0,40}",
        1 => "\\PC{0,20}",
        1 => any::<String>(),
        1 => Just("x".repeat(5_000)),
    ]
}

fn annotation() -> impl Strategy<Value = (String, String)> {
    let names: Vec<&str> = annotations()
        .flat_map(|info| std::iter::once(info.name).chain(info.aliases.iter().copied()))
        .collect();
    let examples: Vec<&str> = annotations().map(|info| info.example).collect();
    let name = select(names).prop_map(|name| format!("nginx.ingress.kubernetes.io/{name}"));
    (name, value(examples))
}

fn key() -> impl Strategy<Value = (String, String)> {
    let names: Vec<&str> = keys().map(|key| key.name).collect();
    let examples: Vec<&str> = keys().map(|key| key.example).collect();
    (select(names).prop_map(str::to_owned), value(examples))
}

fn ingress(annotations: BTreeMap<String, String>) -> Ingress {
    let mut ingress = Ingress::default();
    ingress.metadata.namespace = Some("shop".into());
    ingress.metadata.name = Some("web".into());
    ingress.metadata.annotations = Some(annotations);
    ingress
}

/// Everything that may be allowed is, so that as much as possible is read; but no raw configuration, which may hold
/// anything.
fn config() -> GlobalConfig {
    let mut config = GlobalConfig::default();
    config.policy.annotations_risk_level = Risk::Critical;
    config.policy.allow_cross_namespace_resources = true;
    config
}

/// Whether a text inside the value, wherever it stands, has a control character. Debug output escapes them.
fn has_control_characters(shown: &impl std::fmt::Debug) -> bool {
    let text = format!("{shown:?}");
    let mut rest = text.as_str();
    while let Some((_, escape)) = rest.split_once('\\') {
        let code = escape
            .strip_prefix("u{")
            .and_then(|hex| hex.split('}').next());
        let code = code.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let control = code.and_then(char::from_u32).is_some_and(char::is_control);
        if control || escape.starts_with(['n', 'r', 't', '0']) {
            return true;
        }
        rest = escape.get(1..).unwrap_or_default();
    }
    false
}

#[test]
fn control_characters_are_seen() {
    for text in ["a\nb", "\0", "\u{7f}", "\\\u{1}", "a\tb"] {
        assert!(has_control_characters(&text), "{text:?}");
    }
    for text in ["a\\nb", "\u{1772}", "\\u{1}", "\"x\""] {
        assert!(!has_control_characters(&text), "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_annotations_is_total(written in vec(annotation(), 0..12), validation: bool) {
        let options = Options { annotation_validation: validation, ..Options::default() };
        let ingress = ingress(written.into_iter().collect());
        let mut diagnostics = Vec::new();
        let settings = annotation::parse(&ingress, &options, &config(), &mut diagnostics);
        if let Some(settings) = &settings {
            let mut location = settings.location.as_ref().clone();
            // Words for people, which repeat what was written, escaped.
            let denied = location.denied.take();
            prop_assert!(!has_control_characters(&location), "{location:?}");
            prop_assert!(!has_control_characters(&settings.backend), "{:?}", settings.backend);
            prop_assert!(!has_control_characters(&settings.canary), "{:?}", settings.canary);
            let server = &settings.server;
            prop_assert!(!has_control_characters(&server.aliases), "{server:?}");
            prop_assert!(!has_control_characters(&server.ssl_ciphers), "{server:?}");
            prop_assert!(settings.location.snippet.is_none());
            prop_assert!(denied.is_none() || diagnostics.iter().any(|d| d.severity == Severity::Error));
        } else {
            prop_assert!(diagnostics.iter().any(|d| d.severity == Severity::Error));
        }
        for diagnostic in &diagnostics {
            prop_assert!(!diagnostic.message.chars().any(char::is_control), "{diagnostic:?}");
        }
        let mut again = Vec::new();
        prop_assert_eq!(annotation::parse(&ingress, &options, &config(), &mut again), settings);
        prop_assert_eq!(again, diagnostics);
    }

    #[test]
    fn reading_the_config_map_is_total(written in vec(key(), 0..12)) {
        let data: BTreeMap<String, String> = written
            .into_iter()
            .filter(|(name, _)| !name.ends_with("-snippet"))
            .collect();
        let config_map = ConfigMap { data: Some(data), ..ConfigMap::default() };
        let mut diagnostics = Vec::new();
        let config = GlobalConfig::parse(&config_map, &mut diagnostics);
        prop_assert!(!has_control_characters(&config.render), "{:?}", config.render);
        for diagnostic in &diagnostics {
            prop_assert!(!diagnostic.message.chars().any(char::is_control), "{diagnostic:?}");
        }
        prop_assert_eq!(config.render.changed_keys(&config.render), Vec::<&str>::new());
    }
}
