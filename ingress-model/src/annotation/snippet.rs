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

pub(super) fn read(reader: &mut Reader<'_>) -> Snippets {
    for name in ["configuration-snippet", "server-snippet"] {
        let text = reader.snippet(name);
        let taken = text.as_ref().and_then(|text| taken(text.as_str()));
        if let Some(taken) = taken {
            reader.warn(name, taken.message());
        }
    }
    Snippets {
        location: reader.snippet("configuration-snippet"),
        server: reader.snippet("server-snippet"),
        stream: reader.snippet("stream-snippet"),
    }
}

/// Variables by which metrics and the access log tell whose a request is.
const TOLD: [&str; 5] = [
    "namespace",
    "ingress_name",
    "service_name",
    "service_port",
    "location_path",
];

/// A variable of ours that a snippet sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// The one by which requests find their endpoints.
    Upstream,
    /// One of [`TOLD`].
    Told(&'static str),
}

impl Taken {
    fn message(self) -> String {
        match self {
            Self::Upstream => "it sets $proxy_upstream_name, by which requests find their endpoints: they may go to \
                               those of other Services, or be answered 503"
                .to_owned(),
            Self::Told(name) => format!(
                "it sets ${name}, by which metrics and the access log tell whose a request is"
            ),
        }
    }
}

/// The variable of ours that matters most among those that a snippet sets, by `set` or a named group of an expression.
fn taken(text: &str) -> Option<Taken> {
    let lines = text.lines().map(without_comment);
    let text: Vec<_> = lines.collect();
    let text = text.join("\n").to_ascii_lowercase();
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let is_set = |name: &str| {
        let mut pairs = words.windows(2);
        pairs.any(|pair| match pair {
            ["set", variable] => variable.strip_prefix('$') == Some(name),
            _ => false,
        }) || text.contains(&format!("(?<{name}>"))
            || text.contains(&format!("(?p<{name}>"))
    };
    if is_set("proxy_upstream_name") {
        return Some(Taken::Upstream);
    }
    TOLD.into_iter().find(|name| is_set(name)).map(Taken::Told)
}

/// A line up to a comment, which begins where a word would.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        if c == '#' && (before.is_whitespace() || matches!(before, ';' | '{' | '}')) {
            return line.get(..at).unwrap_or(line);
        }
        before = c;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{Taken, taken};
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
    fn whoever_sets_our_variables_is_warned() {
        for (text, want) in [
            ("set $proxy_upstream_name a-b-80;", Some(Taken::Upstream)),
            (
                "if ($uri ~ ^/(?<proxy_upstream_name>.+)) { set $x 1; }",
                Some(Taken::Upstream),
            ),
            (
                "set $namespace x;\nset\t$Proxy_Upstream_Name y;",
                Some(Taken::Upstream),
            ),
            (
                "if ($x) {set $service_name y;}",
                Some(Taken::Told("service_name")),
            ),
            ("set $x $proxy_upstream_name;", None),
            ("# set $proxy_upstream_name x;\nset $y 1;", None),
            ("set $my_proxy_upstream_name x;", None),
        ] {
            assert_eq!(taken(text), want, "{text}");
        }
        let config = config(true, Risk::Critical);
        let entry = [("configuration-snippet", "set $proxy_upstream_name x;")];
        let faults = faults_with(&config, &entry);
        assert_eq!(faults.len(), 1, "{faults:?}");
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
