//! Proxying: timeouts, retries and headers for the endpoints.

use crate::{
    config::Risk,
    layout::{HttpVersion, LocationSettings, ProxySettings},
    value::{Literal, Template, ValueError},
};

use super::{
    buffers,
    grammar::{COOKIES, Grammar, PATTERN, URLS},
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "proxy-body-size",
        value: "size",
        default: "1m",
        config_key: Some("proxy-body-size"),
        risk: Risk::Medium,
        example: "8m",
        doc: "Largest request body; 0: no limit.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-connect-timeout",
        value: "seconds",
        default: "5",
        config_key: Some("proxy-connect-timeout"),
        example: "3",
        doc: "Longest time for connecting to an endpoint.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-send-timeout",
        value: "seconds",
        default: "60",
        config_key: Some("proxy-send-timeout"),
        example: "30",
        doc: "Longest time between two writes to an endpoint.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-read-timeout",
        value: "seconds",
        default: "60",
        config_key: Some("proxy-read-timeout"),
        example: "120",
        doc: "Longest time between two reads from an endpoint.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-http-version",
        value: "`1.0` or `1.1`",
        default: "1.1",
        config_key: Some("proxy-http-version"),
        example: "1.0",
        doc: "HTTP version spoken to the endpoints.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-next-upstream",
        value: "list of conditions, separated by spaces",
        default: "error timeout",
        config_key: Some("proxy-next-upstream"),
        risk: Risk::Medium,
        example: "error http_502",
        doc: "When another endpoint is tried.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-next-upstream-timeout",
        value: "seconds",
        default: "0",
        config_key: Some("proxy-next-upstream-timeout"),
        example: "10",
        doc: "How long other endpoints are tried; 0: no limit.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-next-upstream-tries",
        value: "whole number",
        default: "3",
        config_key: Some("proxy-next-upstream-tries"),
        example: "2",
        doc: "How many endpoints are tried; 0: no limit.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-cookie-domain",
        value: "`off`, or two words",
        default: "off",
        config_key: Some("proxy-cookie-domain"),
        risk: Risk::Medium,
        example: "inner.test outer.test",
        doc: "Replaces the domain of cookies that endpoints set.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-cookie-path",
        value: "`off`, or two words",
        default: "off",
        config_key: Some("proxy-cookie-path"),
        risk: Risk::Medium,
        example: "/inner/ /outer/",
        doc: "Replaces the path of cookies that endpoints set.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-redirect-from",
        value: "`off`, `default` or URL characters",
        default: "off",
        config_key: Some("proxy-redirect-from"),
        risk: Risk::Medium,
        example: "http://inner.test/",
        doc: "What is replaced in the `Location` and `Refresh` headers of endpoints.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-redirect-to",
        value: "URL characters",
        default: "off",
        config_key: Some("proxy-redirect-to"),
        risk: Risk::Medium,
        example: "http://outer.test/",
        doc: "What it is replaced by; needs `proxy-redirect-from`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "connection-proxy-header",
        value: "`close` or `keep-alive`",
        default: "as the client asks to upgrade",
        misuse: Misuse::Refuse,
        example: "keep-alive",
        doc: "`Connection` header for the endpoints. WebSockets do not work with it.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "upstream-vhost",
        value: "plain characters and those of regular expressions",
        default: "the requested host",
        misuse: Misuse::Refuse,
        example: "inner.test",
        doc: "`Host` header for the endpoints.",
        ..ANNOTATION
    },
];

const HTTP_VERSIONS: &[(&str, HttpVersion)] =
    &[("1.0", HttpVersion::Http10), ("1.1", HttpVersion::Http11)];

/// When another endpoint may be tried (NGINX docs: `proxy_next_upstream`).
const CONDITIONS: &[&str] = &[
    "error",
    "timeout",
    "invalid_header",
    "http_500",
    "http_502",
    "http_503",
    "http_504",
    "http_403",
    "http_404",
    "http_429",
    "non_idempotent",
    "off",
];

/// More endpoints than anybody has.
const MOST_TRIES: u32 = 1_000_000_000;

pub(super) fn read(reader: &mut Reader<'_>, location: &mut LocationSettings) {
    let above = &reader.config.render;
    location.body_size = other(reader.size("proxy-body-size"), Some(&above.proxy_body_size));
    location.body_buffer_size = other(
        buffers::of_body(reader),
        Some(&above.client_body_buffer_size),
    );
    location.connection_header = connection_header(reader);
    location.upstream_vhost = reader.template("upstream-vhost", PATTERN);
    location.proxy = settings(reader, &above.proxy);
}

/// What differs from the ConfigMap's settings.
fn settings(reader: &mut Reader<'_>, above: &ProxySettings) -> ProxySettings {
    let mut own = ProxySettings {
        connect_timeout: other(
            reader.seconds("proxy-connect-timeout"),
            above.connect_timeout.as_ref(),
        ),
        send_timeout: other(
            reader.seconds("proxy-send-timeout"),
            above.send_timeout.as_ref(),
        ),
        read_timeout: other(
            reader.seconds("proxy-read-timeout"),
            above.read_timeout.as_ref(),
        ),
        http_version: other(
            reader.word("proxy-http-version", HTTP_VERSIONS),
            above.http_version.as_ref(),
        ),
        next_upstream: next_upstream(reader, above),
        next_upstream_timeout: other(
            reader.seconds("proxy-next-upstream-timeout"),
            above.next_upstream_timeout.as_ref(),
        ),
        next_upstream_tries: other(
            reader.number("proxy-next-upstream-tries", 0, MOST_TRIES),
            above.next_upstream_tries.as_ref(),
        ),
        cookie_domain: other(
            pair(reader, "proxy-cookie-domain"),
            above.cookie_domain.as_ref(),
        ),
        cookie_path: other(
            pair(reader, "proxy-cookie-path"),
            above.cookie_path.as_ref(),
        ),
        redirect: other(redirect(reader), above.redirect.as_ref()),
        ..ProxySettings::default()
    };
    buffers::read(reader, &mut own, above);
    own
}

fn connection_header(reader: &mut Reader<'_>) -> Option<Literal> {
    let headers = [("close", "close"), ("keep-alive", "keep-alive")];
    reader
        .word("connection-proxy-header", &headers)
        .map(Literal::constant)
}

fn next_upstream(reader: &mut Reader<'_>, above: &ProxySettings) -> Option<Vec<Literal>> {
    let non_idempotent = reader.policy().retry_non_idempotent;
    let words = reader.value("proxy-next-upstream", |text| {
        conditions(text, non_idempotent)
    });
    other(words, above.next_upstream.as_ref())
}

/// Conditions separated by spaces. `non_idempotent` comes last, and is added where the ConfigMap says so.
///
/// # Errors
/// When a word is none that NGINX knows.
pub(crate) fn conditions(text: &str, add_non_idempotent: bool) -> Result<Vec<Literal>, ValueError> {
    let mut words = Vec::new();
    let mut non_idempotent = add_non_idempotent;
    for text in text.split_whitespace() {
        let Some(word) = CONDITIONS.iter().find(|word| **word == text) else {
            return Err(ValueError::Word(
                ValueError::excerpt(text),
                CONDITIONS.join(", "),
            ));
        };
        match *word {
            "non_idempotent" => non_idempotent = true,
            word if words.iter().any(|known: &Literal| known.as_str() == word) => {}
            word => words.push(Literal::constant(word)),
        }
    }
    if non_idempotent {
        words.push(Literal::constant("non_idempotent"));
    }
    Ok(words)
}

fn pair(reader: &mut Reader<'_>, name: &str) -> Option<Vec<Template>> {
    let grammar = reader.validates().then_some(COOKIES);
    reader.value(name, |text| replacement(text, grammar))
}

/// `off`, or what is replaced and by what.
///
/// # Errors
/// When there are not two words, or other characters than the grammar's.
pub(crate) fn replacement(
    text: &str,
    grammar: Option<Grammar>,
) -> Result<Vec<Template>, ValueError> {
    if let Some(grammar) = grammar {
        grammar.check(text)?;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    match *words {
        ["off"] | [_, _] => words.into_iter().map(Template::parse).collect(),
        _ => Err(ValueError::Rule("it is neither off nor two words")),
    }
}

/// Arguments of `proxy_redirect`, if one of its annotations is set.
fn redirect(reader: &mut Reader<'_>) -> Option<Vec<Template>> {
    let from = reader.template("proxy-redirect-from", URLS);
    let to = reader.template("proxy-redirect-to", URLS);
    if from.is_none() && to.is_none() {
        return None;
    }
    let policy = reader.policy();
    if from.is_none() && policy.proxy_redirect_from.as_str() == "off" {
        reader.warn(
            "proxy-redirect-to",
            "has no effect without proxy-redirect-from".into(),
        );
    }
    let arguments = redirect_arguments(
        from.as_ref().unwrap_or(&policy.proxy_redirect_from),
        to.as_ref().unwrap_or(&policy.proxy_redirect_to),
    );
    if arguments.is_none() {
        reader.warn(
            "proxy-redirect-from",
            "has no effect without proxy-redirect-to".into(),
        );
    }
    arguments
}

/// What `proxy_redirect` has to say; `None`: nothing, since only half of a replacement is known.
pub(crate) fn redirect_arguments(from: &Template, to: &Template) -> Option<Vec<Template>> {
    match (from.as_str(), to.as_str()) {
        ("off" | "default", _) => Some(vec![from.clone()]),
        (_, "off" | "") => None,
        _ => Some(vec![from.clone(), to.clone()]),
    }
}

/// The value, unless the level above has the same.
pub(super) fn other<T: PartialEq>(value: Option<T>, above: Option<&T>) -> Option<T> {
    value.filter(|value| Some(value) != above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        annotation::testing::{faults, settings, settings_with},
        config::GlobalConfig,
        value::Seconds,
    };

    fn proxy(annotations: &[(&str, &str)]) -> ProxySettings {
        settings(annotations).unwrap().location.proxy.clone()
    }

    fn texts(words: Option<Vec<Template>>) -> Vec<String> {
        words
            .into_iter()
            .flatten()
            .map(|word| word.as_str().to_owned())
            .collect()
    }

    #[test]
    fn what_the_config_map_has_is_not_repeated() {
        let same = [
            ("proxy-connect-timeout", "5"),
            ("proxy-send-timeout", "60"),
            ("proxy-read-timeout", "60"),
            ("proxy-buffering", "off"),
            ("proxy-request-buffering", "on"),
            ("proxy-buffer-size", "4K"),
            ("proxy-buffers-number", "4"),
            ("proxy-max-temp-file-size", "1024m"),
            ("proxy-http-version", "1.1"),
            ("proxy-next-upstream", "error timeout"),
            ("proxy-next-upstream-timeout", "0"),
            ("proxy-next-upstream-tries", "3"),
            ("proxy-cookie-domain", "off"),
            ("proxy-cookie-path", "off"),
            ("proxy-redirect-from", "off"),
            ("proxy-body-size", "1m"),
            ("client-body-buffer-size", "8k"),
        ];
        assert_eq!(faults(&same), [""; 0]);
        assert_eq!(settings(&same), settings(&[]));
    }

    #[test]
    fn timeouts_are_whole_seconds() {
        for bad in ["40k", "25 s", "x", "-1", "5s", "99999999999999999999"] {
            let annotations = [("proxy-read-timeout", bad)];
            assert_eq!(proxy(&annotations).read_timeout, None, "{bad:?}");
            assert_eq!(faults(&annotations).len(), 1, "{bad:?}");
        }
        let long = [("proxy-read-timeout", "31536000")];
        assert_eq!(proxy(&long).read_timeout, Some(Seconds(2_000_000)));
        assert_eq!(faults(&long).len(), 1);
    }

    #[test]
    fn conditions_are_those_of_nginx() {
        let read = |text| {
            let words = proxy(&[("proxy-next-upstream", text)]).next_upstream;
            words.map(|words| {
                words
                    .iter()
                    .map(Literal::as_str)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        assert_eq!(read("http_502  error").unwrap(), "http_502 error");
        assert_eq!(
            read("non_idempotent error error").unwrap(),
            "error non_idempotent"
        );
        assert_eq!(read("off").unwrap(), "off");
        assert_eq!(read("error;"), None);
        assert_eq!(read("http_418"), None);
        let mut config = GlobalConfig::default();
        config.policy.retry_non_idempotent = true;
        let own = settings_with(&config, &[("proxy-next-upstream", "http_502")]).unwrap();
        assert_eq!(own.location.proxy.next_upstream.as_ref().unwrap().len(), 2);
    }

    #[test]
    fn cookies_are_rewritten_by_pairs() {
        let path = |text| texts(proxy(&[("proxy-cookie-path", text)]).cookie_path);
        assert_eq!(path("/one/  /"), ["/one/", "/"]);
        assert_eq!(path("~*^/(?!keep) /keep"), ["~*^/(?!keep)", "/keep"]);
        for bad in [
            "/one",
            "/a /b /c",
            "/a\"; add_header X-Marker 1 always; #",
            "/a; /b",
        ] {
            assert_eq!(path(bad), [""; 0], "{bad:?}");
            assert_eq!(faults(&[("proxy-cookie-path", bad)]).len(), 1, "{bad:?}");
        }
    }

    #[test]
    fn redirects_need_both_halves() {
        let from = ("proxy-redirect-from", "http://inner.test/");
        let to = ("proxy-redirect-to", "http://outer.test/");
        let read = |annotations: &[_]| texts(proxy(annotations).redirect);
        assert_eq!(read(&[from, to]), [from.1, to.1]);
        assert_eq!(read(&[("proxy-redirect-from", "default"), to]), ["default"]);
        assert_eq!(read(&[("proxy-redirect-from", "off"), to]), [""; 0]);
        assert_eq!(read(&[from]), [""; 0]);
        assert_eq!(faults(&[from]).len(), 1);
        assert_eq!(read(&[to]), [""; 0]);
    }

    #[test]
    fn headers() {
        let read = |annotation| settings(&[annotation]);
        let close = read(("connection-proxy-header", "close")).unwrap();
        assert_eq!(
            close.location.connection_header.as_ref().unwrap().as_str(),
            "close"
        );
        assert_eq!(read(("connection-proxy-header", "upgrade")), None);
        let host = read(("upstream-vhost", "inner.test")).unwrap();
        assert_eq!(
            host.location.upstream_vhost.as_ref().unwrap().as_str(),
            "inner.test"
        );
        for bad in [
            "odd!host",
            "a b",
            "a;",
            "/a\"; add_header X-Marker 1 always; #",
        ] {
            assert_eq!(read(("upstream-vhost", bad)), None, "{bad:?}");
        }
    }
}
