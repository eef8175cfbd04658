//! External authentication: a service of the user decides about each request.

use std::sync::Arc;

use crate::{
    config::Risk,
    layout::{AuthCache, AuthKeepalive, CacheValid, ExternalAuth, SignIn},
    object::ObjectName,
    scalar,
    value::{Literal, Seconds, Snippet, Template, ValueError},
};

use super::{
    auth_keepalive,
    grammar::{Grammar, URL, URLS, VARIABLES},
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "auth-url",
        value: "URL, may hold variables",
        default: "none",
        config_key: Some("global-auth-url"),
        risk: Risk::High,
        misuse: Misuse::Deny,
        example: "http://auth.test/verify",
        doc: "Service that is asked whether a request may pass. Empty beside others that say how it is asked, it closes the paths.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-method",
        needs: &[Need::given("auth-url")],
        value: "HTTP method",
        default: "that of the request",
        config_key: Some("global-auth-method"),
        misuse: Misuse::Deny,
        example: "POST",
        doc: "Method of the question.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-signin",
        needs: &[Need::given("auth-url")],
        value: "URL, may hold variables",
        default: "none",
        config_key: Some("global-auth-signin"),
        risk: Risk::High,
        example: "http://auth.test/start",
        doc: "Where a client that was refused with 401 is sent.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-signin-redirect-param",
        needs: &[Need::given("auth-signin")],
        value: "URL characters",
        default: "rd",
        config_key: Some("global-auth-signin-redirect-param"),
        risk: Risk::Medium,
        example: "next",
        doc: "Query parameter that tells the sign-in page where the client came from.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-response-headers",
        needs: &[Need::given("auth-url")],
        value: "list of header names",
        default: "none",
        config_key: Some("global-auth-response-headers"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "X-User,X-Groups",
        doc: "Headers of the answer that are passed on to the endpoints.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-proxy-set-headers",
        needs: &[Need::given("auth-url")],
        value: "`namespace/name`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "shop/headers",
        doc: "ConfigMap with headers that are added to the question.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-request-redirect",
        needs: &[Need::given("auth-url")],
        value: "URL characters",
        default: "$request_uri",
        config_key: Some("global-auth-request-redirect"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "http://shop.test/",
        doc: "`X-Auth-Request-Redirect` of the question.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-cache-key",
        needs: &[Need::given("auth-url")],
        value: "letters, digits and `-_${}`",
        default: "none",
        config_key: Some("global-auth-cache-key"),
        risk: Risk::Medium,
        example: "$remote_user$http_authorization",
        doc: "Caches answers under this key.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-cache-duration",
        needs: &[Need::given("auth-cache-key")],
        value: "list of statuses and times",
        default: "200 202 401 5m",
        config_key: Some("global-auth-cache-duration"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "200 10m,401 1m",
        doc: "How long answers are cached.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-always-set-cookie",
        needs: &[Need::given("auth-url")],
        value: "boolean",
        default: "false",
        config_key: Some("global-auth-always-set-cookie"),
        misuse: Misuse::Deny,
        example: "true",
        doc: "Passes cookies of the answer on whatever the status of the response.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-snippet",
        needs: &[Need::given("auth-url")],
        value: "raw configuration",
        default: "none",
        config_key: Some("global-auth-snippet"),
        risk: Risk::Critical,
        example: "proxy_set_header X-From edge;",
        doc: "Raw configuration for the location that asks.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "enable-global-auth",
        value: "boolean",
        default: "true",
        example: "false",
        doc: "Whether the ConfigMap's external authentication applies.",
        ..ANNOTATION
    },
];

/// Annotations that mean nothing to an Ingress whose requests are not to be authenticated.
const DETAILS: [&str; 7] = [
    "auth-method",
    "auth-signin",
    "auth-response-headers",
    "auth-proxy-set-headers",
    "auth-request-redirect",
    "auth-cache-key",
    "auth-snippet",
];

/// URLs with variables.
const TARGET: Grammar = Grammar::new("-._~/:,?&=$", "letters, digits and -._~/:,?&=$");

/// What is known of an authentication while its settings are read one by one; the ConfigMap's and an Ingress's have
/// the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) url: Option<AuthUrl>,
    pub(crate) method: Option<Literal>,
    pub(crate) signin: Option<Template>,
    pub(crate) signin_parameter: Option<Literal>,
    pub(crate) response_headers: Vec<Literal>,
    pub(crate) request_redirect: Option<Template>,
    pub(crate) cache_key: Option<Template>,
    pub(crate) cache_valid: Option<Vec<CacheValid>>,
    pub(crate) always_set_cookie: bool,
    pub(crate) keepalive: Option<AuthKeepalive>,
    pub(crate) snippet: Option<Snippet>,
}

impl Parts {
    /// The authentication; `None` without a URL, which is what switches it on.
    pub(crate) fn build(self) -> Option<ExternalAuth> {
        let url = self.url?;
        let parameter = self.signin_parameter;
        let valid = self.cache_valid;
        Some(ExternalAuth {
            url: url.url,
            host: url.host,
            authority: url.authority,
            method: self.method,
            signin: self.signin.map(|url| SignIn {
                back: way_back(
                    url.as_str(),
                    parameter.as_ref().map_or("rd", Literal::as_str),
                ),
                url,
            }),
            response_headers: self.response_headers,
            request_redirect: self.request_redirect,
            request_headers: Vec::new(),
            cache: self.cache_key.map(|key| AuthCache {
                key,
                valid: valid.unwrap_or_else(default_cache_valid),
            }),
            always_set_cookie: self.always_set_cookie,
            keepalive: self.keepalive,
            snippet: self.snippet,
        })
    }
}

/// The authentication of an Ingress's own; an unusable part closes its locations.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<ExternalAuth> {
    if reader.is_blank("auth-url") && DETAILS.iter().any(|name| reader.says(name)) {
        reader.deny_because(
            "auth-url",
            "it is empty, while others say how requests are authenticated",
        );
        return None;
    }
    let url = reader.value("auth-url", url)?;
    let keepalive = auth_keepalive::read(reader, url.host.as_str());
    let parts = Parts {
        url: Some(url),
        method: reader.value("auth-method", method),
        signin: reader.value("auth-signin", target),
        signin_parameter: reader.value("auth-signin-redirect-param", parameter),
        response_headers: reader
            .value("auth-response-headers", scalar::header_names)
            .unwrap_or_default(),
        request_redirect: reader.template("auth-request-redirect", URLS),
        cache_key: reader.template("auth-cache-key", VARIABLES),
        cache_valid: reader.value("auth-cache-duration", cache_valid),
        always_set_cookie: reader.boolean("auth-always-set-cookie").unwrap_or(false),
        keepalive,
        snippet: reader.snippet("auth-snippet"),
    };
    parts.build()
}

/// The ConfigMap with further headers of the question.
pub(super) fn request_headers(reader: &mut Reader<'_>) -> Option<ObjectName> {
    reader.qualified_object("auth-proxy-set-headers")
}

/// The ConfigMap's authentication, if it applies to an Ingress with or without one of its own.
pub(super) fn global(reader: &mut Reader<'_>, has_own: bool) -> Option<Arc<ExternalAuth>> {
    let is_wanted = reader.boolean("enable-global-auth").unwrap_or(true) && !has_own;
    let global = reader.policy().global_auth.as_ref();
    global.filter(|_| is_wanted).cloned()
}

/// Where a service is asked.
#[derive(Clone, Debug)]
pub(crate) struct AuthUrl {
    url: Template,
    host: Template,
    authority: Template,
}

/// `http://` or `https://`, a host that may hold variables, and the rest.
///
/// # Errors
/// When it is anything else.
pub(crate) fn url(text: &str) -> Result<AuthUrl, ValueError> {
    let url = target(text)?;
    let authority = authority(text)?;
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    Ok(AuthUrl {
        url,
        host: Template::parse(host)?,
        authority: Template::parse(authority)?,
    })
}

/// A URL or path that may hold variables.
///
/// # Errors
/// When a character may not stand in it.
pub(crate) fn target(text: &str) -> Result<Template, ValueError> {
    TARGET.check(text)?;
    Template::parse(text)
}

/// The host and port of an `http://` or `https://` URL.
///
/// # Errors
/// When there is none, or an impossible one.
pub(crate) fn authority(url: &str) -> Result<&str, ValueError> {
    const HOST: Grammar = Grammar::new("-._$", "letters, digits and -._$");
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))
        .ok_or(ValueError::Rule(
            "the URL begins with neither http:// nor https://",
        ))?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    if host.is_empty() || host.contains("..") || host.starts_with('.') {
        return Err(ValueError::Rule("the URL has no usable host"));
    }
    HOST.check(host)?;
    match port.split_once('$') {
        // What follows a variable is not known.
        Some((_, variable)) => HOST.check(variable)?,
        None => scalar::within(scalar::integer(port)?, 1, u16::MAX.into()).map(drop)?,
    }
    Ok(authority)
}

/// An HTTP method.
///
/// # Errors
/// When it is none, or not in upper case.
pub(crate) fn method(text: &str) -> Result<Literal, ValueError> {
    let methods = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE",
    ]
    .map(|method| (method, method));
    scalar::word(text, &methods).map(Literal::constant)
}

/// The name of a query parameter, perhaps behind others and their values.
///
/// # Errors
/// When a character may not stand in it.
pub(crate) fn parameter(text: &str) -> Result<Literal, ValueError> {
    URL.check(text)?;
    Literal::parse(text)
}

/// What is put between the sign-in page and the URL to come back to, unless the page's URL names one.
fn way_back(url: &str, parameter: &str) -> Option<Literal> {
    let joint = match url.split_once('?') {
        Some((_, query)) => {
            let named = query.split('&').any(|pair| {
                let value = pair.split_once('=').filter(|(name, _)| *name == parameter);
                value.is_some_and(|(_, value)| !value.is_empty())
            });
            if named {
                return None;
            }
            "&"
        }
        None => "?",
    };
    Literal::parse(&format!("{joint}{parameter}=")).ok()
}

/// Items with commas between them: statuses, then a time.
///
/// # Errors
/// When an item is anything else.
pub(crate) fn cache_valid(text: &str) -> Result<Vec<CacheValid>, ValueError> {
    let items = scalar::items(text).map(|item| {
        let mut words: Vec<&str> = item.split_whitespace().collect();
        let time = words.pop().unwrap_or_default();
        // A number alone would be one more status.
        if words.is_empty() || time.ends_with(|last: char| last.is_ascii_digit()) {
            return Err(ValueError::Rule(
                "an item is statuses and a time, such as 200 202 5m",
            ));
        }
        let statuses = words
            .into_iter()
            .map(|word| {
                let status = scalar::within(scalar::integer(word)?, 100, 599)?;
                Ok(u16::try_from(status).unwrap_or_default())
            })
            .collect::<Result<Vec<u16>, ValueError>>()?;
        Ok(CacheValid {
            statuses,
            time: scalar::time(time)?,
        })
    });
    let items = items.collect::<Result<Vec<CacheValid>, ValueError>>()?;
    if items.is_empty() {
        return Err(ValueError::Empty);
    }
    Ok(items)
}

fn default_cache_valid() -> Vec<CacheValid> {
    vec![CacheValid {
        statuses: vec![200, 202, 401],
        time: Seconds(300),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        annotation::{
            IngressSettings,
            testing::{settings, settings_with},
        },
        config::GlobalConfig,
    };

    const URL: (&str, &str) = ("auth-url", "http://auth.test:8080/verify?x=$request_uri");

    fn own(settings: &IngressSettings) -> &ExternalAuth {
        settings.location.external_auth.as_ref().unwrap()
    }

    #[test]
    fn the_url_tells_the_host() {
        let settings = settings(&[URL]).unwrap();
        assert_eq!(own(&settings).host.as_str(), "auth.test");
        assert_eq!(own(&settings).authority.as_str(), "auth.test:8080");
        let variable = url("http://$http_x_authority/basic").unwrap();
        assert_eq!(variable.host.as_str(), "$http_x_authority");
    }

    #[test]
    fn nothing_unusable_opens_the_location() {
        for bad in [
            ("auth-url", "https://broken..auth.test"),
            ("auth-url", "auth.test"),
            ("auth-url", "ftp://auth.test"),
            ("auth-url", "http://"),
            ("auth-url", "http://a:b/"),
            ("auth-url", "http://a.test/;"),
            ("auth-method", "FETCH"),
            ("auth-response-headers", "X-Account, X$Role"),
            ("auth-request-redirect", "http://x.test/{a}\"b"),
            ("auth-cache-duration", "200 {5m}"),
            ("auth-cache-duration", "200"),
            ("auth-cache-duration", "200 202"),
            ("auth-cache-duration", "200 5m, 401 30"),
            ("auth-always-set-cookie", "yes please"),
            ("auth-proxy-set-headers", "headers"),
            ("auth-proxy-set-headers", "other/headers"),
        ] {
            let settings = settings(&[URL, bad]).unwrap();
            assert!(settings.location.denied.is_some(), "{bad:?}");
        }
    }

    #[test]
    fn an_empty_url_opens_only_what_nothing_else_guards() {
        let closed = |annotations: &[_]| {
            let settings = settings(annotations).unwrap();
            assert_eq!(settings.location.external_auth, None);
            settings.location.denied.is_some()
        };
        for empty in ["", "  "] {
            let url = ("auth-url", empty);
            assert!(!closed(&[url]));
            assert!(!closed(&[url, ("auth-signin", "")]));
            assert!(!closed(&[url, ("auth-keepalive", "10")]));
            assert!(closed(&[url, ("auth-signin", "http://auth.test/start")]));
            assert!(closed(&[url, ("auth-response-headers", "X-User")]));
        }
        assert!(!closed(&[("auth-signin", "http://auth.test/start")]));
    }

    #[test]
    fn the_sign_in_page_learns_where_to_go_back_to() {
        for (url, parameter, want) in [
            ("http://$host/login", None, Some("?rd=")),
            ("http://$host/login?lang=sv", None, Some("&rd=")),
            ("http://$host/login?rd=http://home.test/", None, None),
            ("http://$host/login?rd=", None, Some("&rd=")),
            ("http://$host/login", Some("back"), Some("?back=")),
            ("http://$host/login", Some("a=b&rd"), Some("?a=b&rd=")),
        ] {
            let mut annotations = vec![URL, ("auth-signin", url)];
            annotations.extend(parameter.map(|name| ("auth-signin-redirect-param", name)));
            let settings = settings(&annotations).unwrap();
            let back = own(&settings).signin.as_ref().unwrap().back.as_ref();
            assert_eq!(back.map(Literal::as_str), want, "{url}");
        }
        let bad = ("auth-signin", "/a\"; add_header X-Marker 1 always; #");
        assert_eq!(own(&settings(&[URL, bad]).unwrap()).signin, None);
    }

    #[test]
    fn answers_are_kept_by_status() {
        let kept = [
            URL,
            ("auth-cache-key", "$remote_user"),
            ("auth-cache-duration", "200 201 10m,401 30s"),
        ];
        let settings = settings(&kept).unwrap();
        let cache = own(&settings).cache.as_ref().unwrap();
        assert_eq!(cache.valid.len(), 2);
        assert_eq!(
            cache.valid[0],
            CacheValid {
                statuses: vec![200, 201],
                time: Seconds(600)
            }
        );
    }

    #[test]
    fn the_config_maps_service_is_asked_unless_there_is_another_or_none_wanted() {
        let mut config = GlobalConfig::default();
        let parts = Parts {
            url: Some(url("http://global.test/").unwrap()),
            ..Parts::default()
        };
        config.policy.global_auth = parts.build().map(Arc::new);
        let host = |annotations: &[_]| {
            let settings = settings_with(&config, annotations).unwrap();
            let auth = settings.location.external_auth.as_ref()?;
            Some(auth.host.as_str().to_owned())
        };
        assert_eq!(host(&[]).unwrap(), "global.test");
        assert_eq!(host(&[URL]).unwrap(), "auth.test");
        assert_eq!(host(&[("enable-global-auth", "false")]), None);
        assert_eq!(
            host(&[("enable-global-auth", "false"), URL]).unwrap(),
            "auth.test"
        );
    }
}
