//! Raw configuration. The reader refuses it unless the administrator allows snippets.

use crate::{config::Risk, value::Snippet};

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Scope},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "configuration-snippet",
        value: "raw configuration",
        default: "none",
        risk: Risk::Critical,
        example: "more_set_headers \"X-From: edge\";",
        doc: "Raw configuration for the locations.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "server-snippet",
        value: "raw configuration",
        default: "none",
        scope: Scope::Server,
        risk: Risk::Critical,
        example: "more_set_headers \"X-From: edge\";",
        doc: "Raw configuration for the server.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "stream-snippet",
        value: "raw configuration",
        default: "none",
        scope: Scope::Ingress,
        risk: Risk::Critical,
        example: "server { listen 9000; return ok; }",
        doc: "Raw configuration for the stream block.",
        ..ANNOTATION
    },
];

/// What an Ingress puts in, by place.
pub(super) struct Snippets {
    pub(super) location: Option<Snippet>,
    pub(super) server: Option<Snippet>,
    pub(super) stream: Option<Snippet>,
}

pub(super) fn read(reader: &Reader<'_>) -> Snippets {
    Snippets {
        location: reader.snippet("configuration-snippet"),
        server: reader.snippet("server-snippet"),
        stream: reader.snippet("stream-snippet"),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        annotation::testing::{faults_with, settings_with},
        config::{GlobalConfig, Policy, Risk},
    };

    const ALL: [(&str, &str); 3] = [
        ("configuration-snippet", "a on;\n"),
        ("server-snippet", "b on;"),
        ("stream-snippet", " c on;"),
    ];

    fn config(allow: bool, level: Risk) -> GlobalConfig {
        GlobalConfig {
            policy: Policy {
                allow_snippet_annotations: allow,
                annotations_risk_level: level,
                ..Policy::default()
            },
            ..GlobalConfig::default()
        }
    }

    #[test]
    fn they_need_two_switches() {
        let settings = settings_with(&config(true, Risk::Critical), &ALL).unwrap();
        assert_eq!(
            settings.location.snippet.as_ref().unwrap().as_str(),
            "a on;"
        );
        assert_eq!(settings.server.snippet.unwrap().as_str(), "b on;");
        assert_eq!(settings.stream_snippet.unwrap().as_str(), "c on;");

        assert!(settings_with(&config(true, Risk::High), &ALL).is_none());

        for level in [Risk::High, Risk::Critical] {
            let settings = settings_with(&config(false, level), &ALL).unwrap();
            assert_eq!(settings.location.snippet, None);
            assert_eq!(settings.server.snippet, None);
            assert_eq!(settings.stream_snippet, None);
            assert_eq!(faults_with(&config(false, level), &ALL).len(), 3);
        }
    }
}
