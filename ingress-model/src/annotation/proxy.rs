//! Proxying: timeouts, buffers, retries and headers for the endpoints.

use crate::{
    config::Risk,
    layout::{HttpVersion, LocationSettings, ProxySettings},
    value::{Literal, Size, Template, ValueError},
};

use super::{
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
        name: "client-body-buffer-size",
        value: "size",
        default: "8k",
        config_key: Some("client-body-buffer-size"),
        misuse: Misuse::Refuse,
        example: "16k",
        doc: "How much of a request body is kept in memory.",
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
        name: "proxy-buffering",
        value: "`on` or `off`",
        default: "off",
        config_key: Some("proxy-buffering"),
        example: "on",
        doc: "Whether responses are buffered.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-request-buffering",
        value: "`on` or `off`",
        default: "on",
        config_key: Some("proxy-request-buffering"),
        example: "off",
        doc: "Whether request bodies are read whole before an endpoint is asked.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-buffer-size",
        value: "size",
        default: "4k",
        config_key: Some("proxy-buffer-size"),
        example: "16k",
        doc: "Size of the buffer for the head of a response, of the authenticating service's too, and of each further buffer.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-buffers-number",
        value: "whole number",
        default: "4",
        config_key: Some("proxy-buffers-number"),
        example: "8",
        doc: "How many buffers a response has.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-busy-buffers-size",
        value: "size",
        default: "twice the buffer size",
        config_key: Some("proxy-busy-buffers-size"),
        example: "8k",
        doc: "How much may be on its way to the client while the response is still being read.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-max-temp-file-size",
        value: "size",
        default: "1024m",
        config_key: Some("proxy-max-temp-file-size"),
        example: "64m",
        doc: "How much of a response may be put in a temporary file; 0: nothing.",
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

/// Most buffers that one response may have.
const MOST_BUFFERS: u32 = 65_536;

pub(super) fn read(reader: &mut Reader<'_>, location: &mut LocationSettings) {
    let above = &reader.config.render;
    location.body_size = other(reader.size("proxy-body-size"), Some(&above.proxy_body_size));
    location.body_buffer_size = other(
        body_buffer_size(reader),
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
        buffering: other(reader.switch("proxy-buffering"), above.buffering.as_ref()),
        request_buffering: other(
            reader.switch("proxy-request-buffering"),
            above.request_buffering.as_ref(),
        ),
        buffer_size: other(
            buffer(reader, "proxy-buffer-size"),
            above.buffer_size.as_ref(),
        ),
        buffers_number: other(
            reader.number("proxy-buffers-number", 2, MOST_BUFFERS),
            above.buffers_number.as_ref(),
        ),
        busy_buffers_size: other(
            buffer(reader, "proxy-busy-buffers-size"),
            above.busy_buffers_size.as_ref(),
        ),
        max_temp_file_size: other(
            buffer(reader, "proxy-max-temp-file-size"),
            above.max_temp_file_size.as_ref(),
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
            reader.number("proxy-next-upstream-tries", 0, 1_000),
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
    };
    if let Err(error) = check_buffers(&own, above) {
        for name in BUFFERS {
            reader.fall_back(name, &error);
        }
        own.buffer_size = None;
        own.buffers_number = None;
        own.busy_buffers_size = None;
        own.max_temp_file_size = None;
    }
    own
}

/// The annotations that [`check_buffers`] looks at together.
const BUFFERS: [&str; 4] = [
    "proxy-buffer-size",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-max-temp-file-size",
];

/// Whether NGINX takes these buffers together, `above` filling in what is not set (NGINX source:
/// `ngx_http_proxy_merge_loc_conf`).
///
/// # Errors
/// When the sizes contradict each other.
pub(crate) fn check_buffers(own: &ProxySettings, above: &ProxySettings) -> Result<(), ValueError> {
    let bytes =
        |own: &Option<Size>, above: &Option<Size>| own.as_ref().or(above.as_ref()).map(Size::bytes);
    let number = own
        .buffers_number
        .or(above.buffers_number)
        .map_or(4, u64::from);
    let Some(buffer) = bytes(&own.buffer_size, &above.buffer_size) else {
        return Ok(());
    };
    let busy = bytes(&own.busy_buffers_size, &above.busy_buffers_size)
        .unwrap_or_else(|| buffer.saturating_mul(2));
    let file = bytes(&own.max_temp_file_size, &above.max_temp_file_size).unwrap_or(0);
    if buffer == 0 {
        return Err(ValueError::Rule("proxy buffers cannot have no bytes"));
    }
    if busy < buffer {
        return Err(ValueError::Rule(
            "proxy-busy-buffers-size is smaller than proxy-buffer-size",
        ));
    }
    if busy > buffer.saturating_mul(number.saturating_sub(1)) {
        return Err(ValueError::Rule(
            "proxy-busy-buffers-size (by default two buffers) is larger than all proxy buffers but one",
        ));
    }
    if file != 0 && file < buffer {
        return Err(ValueError::Rule(
            "proxy-max-temp-file-size is smaller than proxy-buffer-size, but not 0",
        ));
    }
    Ok(())
}

/// A size in bytes, k or m: directives about memory do not know g.
fn buffer(reader: &mut Reader<'_>, name: &str) -> Option<Size> {
    reader.value(name, buffer_size)
}

/// As [`Size::parse`], but without the unit g, which NGINX does not take for memory.
///
/// # Errors
/// When the text is not such a size.
pub(crate) fn buffer_size(text: &str) -> Result<Size, ValueError> {
    if text.ends_with(['g', 'G']) {
        return Err(ValueError::Rule(
            "the unit g is not taken here: write it in m",
        ));
    }
    Size::parse(text)
}

/// As [`buffer_size`], but not zero: NGINX reads nothing into such a buffer, and its connections end unanswered.
///
/// # Errors
/// When the text is not such a size.
pub(crate) fn some_buffer_size(text: &str) -> Result<Size, ValueError> {
    let size = buffer_size(text)?;
    if size.bytes() == 0 {
        return Err(ValueError::Rule("a buffer cannot have no bytes"));
    }
    Ok(size)
}

/// A size that NGINX does not take here falls back; text that is no size is worse.
fn body_buffer_size(reader: &mut Reader<'_>) -> Option<Size> {
    const NAME: &str = "client-body-buffer-size";
    let read = reader.value(NAME, |text| {
        let bytes = text.strip_suffix(['b', 'B']);
        let is_size =
            Size::parse(text).is_ok() || bytes.is_some_and(|it| it.parse::<u64>().is_ok());
        match some_buffer_size(text) {
            Err(error) if !is_size => Err(error),
            read => Ok(read),
        }
    });
    match read? {
        Ok(size) => Some(size),
        Err(error) => {
            reader.fall_back(NAME, &error);
            None
        }
    }
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
fn other<T: PartialEq>(value: Option<T>, above: Option<&T>) -> Option<T> {
    value.filter(|value| Some(value) != above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        annotation::testing::{faults, settings, settings_with},
        config::GlobalConfig,
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
        for bad in ["40k", "25 s", "x", "-1", "5s", "9999999999"] {
            let annotations = [("proxy-read-timeout", bad)];
            assert_eq!(proxy(&annotations).read_timeout, None, "{bad:?}");
            assert_eq!(faults(&annotations).len(), 1, "{bad:?}");
        }
    }

    #[test]
    fn memory_is_not_counted_in_gigabytes() {
        for name in [
            "proxy-buffer-size",
            "client-body-buffer-size",
            "proxy-max-temp-file-size",
        ] {
            assert_eq!(settings(&[(name, "8g")]), settings(&[]), "{name}");
            assert_eq!(settings(&[(name, "1b")]), settings(&[]), "{name}");
            let empty = settings(&[(name, "0")]);
            let may_be_empty = name == "proxy-max-temp-file-size";
            assert_eq!(empty != settings(&[]), may_be_empty, "{name}");
        }
        let body = settings(&[("proxy-body-size", "8g")]).unwrap();
        assert_eq!(body.location.body_size, Some(Size::parse("8g").unwrap()));
    }

    #[test]
    fn a_body_buffer_of_no_size_leaves_the_ingress_out() {
        for bad in ["lots", "8kb", "-8k", "8k;", "b"] {
            assert_eq!(
                settings(&[("client-body-buffer-size", bad)]),
                None,
                "{bad:?}"
            );
        }
    }

    #[test]
    fn buffers_that_contradict_each_other_fall_back_together() {
        for bad in [
            &[
                ("proxy-buffer-size", "4k"),
                ("proxy-busy-buffers-size", "1m"),
            ][..],
            &[("proxy-busy-buffers-size", "2k")],
            &[("proxy-buffers-number", "2")],
            &[("proxy-buffer-size", "0")],
            &[
                ("proxy-buffers-number", "8"),
                ("proxy-max-temp-file-size", "1k"),
            ],
        ] {
            assert_eq!(settings(bad), settings(&[]), "{bad:?}");
            assert_eq!(faults(bad).len(), bad.len(), "{bad:?}");
        }
        let good = [
            ("proxy-buffer-size", "16k"),
            ("proxy-busy-buffers-size", "32k"),
        ];
        assert_eq!(proxy(&good).busy_buffers_size, Some(Size::kib(32)));
        assert_eq!(
            proxy(&[("proxy-buffer-size", "64k")]).buffer_size,
            Some(Size::kib(64))
        );
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
