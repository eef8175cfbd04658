//! Connections to an authenticating service that are kept open.

use crate::{layout::AuthKeepalive, scalar, value::Seconds};

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "auth-keepalive",
        needs: &[Need::given("auth-url")],
        value: "whole number",
        default: "0",
        example: "10",
        doc: "How many connections to the service are kept open; 0: none.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-keepalive-requests",
        needs: &[Need::given("auth-keepalive")],
        value: "whole number",
        default: "1000",
        example: "500",
        doc: "How many requests a kept connection serves; 0: none is kept.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-keepalive-timeout",
        needs: &[Need::given("auth-keepalive")],
        value: "seconds",
        default: "60",
        example: "30",
        doc: "How long a kept connection may be idle; 0: none is kept.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-keepalive-share-vars",
        needs: &[Need::given("auth-keepalive")],
        value: "boolean",
        default: "false",
        example: "true",
        doc: "Whether the question shares the request's variables.",
        ..ANNOTATION
    },
];

/// Kept connections. They need HTTP/1.1 between client and NGINX, and a host that is known beforehand.
pub(super) fn read(reader: &mut Reader<'_>, host: &str) -> Option<AuthKeepalive> {
    const MOST: u32 = 1_000_000;
    let count = |reader: &mut Reader<'_>, name, most| {
        let number = reader.value(name, scalar::integer)?;
        let checked = scalar::within(number, 0, most);
        match checked {
            Ok(count) => Some(count),
            // What is below zero is none, as zero is.
            Err(error) if number < 0 => {
                reader.ineffective(name, &format!("{error}; no connections are kept"));
                Some(0)
            }
            Err(error) => {
                reader.misused(name, &error);
                None
            }
        }
    };
    let connections = count(reader, "auth-keepalive", MOST)?;
    let keepalive = AuthKeepalive {
        connections,
        requests: count(reader, "auth-keepalive-requests", MOST).unwrap_or(1_000),
        timeout: Seconds(count(reader, "auth-keepalive-timeout", scalar::LONGEST).unwrap_or(60)),
        share_variables: reader.boolean("auth-keepalive-share-vars").unwrap_or(false),
    };
    let obstacle = if reader.config.render.use_http2 {
        "has no effect while the ConfigMap's use-http2 is true"
    } else if host.contains('$') {
        "has no effect since the host of auth-url holds a variable"
    } else {
        let some = connections > 0 && keepalive.requests > 0 && keepalive.timeout.0 > 0;
        return some.then_some(keepalive);
    };
    if connections > 0 {
        reader.warn("auth-keepalive", obstacle.into());
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        annotation::{
            IngressSettings,
            testing::{settings, settings_with},
        },
        config::GlobalConfig,
    };

    const URL: (&str, &str) = ("auth-url", "http://auth.test/");

    fn kept(settings: &IngressSettings) -> Option<&AuthKeepalive> {
        let auth = settings.location.external_auth.as_ref().unwrap();
        auth.keepalive.as_ref()
    }

    #[test]
    fn connections_are_kept_without_http2_only() {
        let mut config = GlobalConfig::default();
        let annotations = [
            URL,
            ("auth-keepalive", "10"),
            ("auth-keepalive-requests", "5"),
        ];
        assert_eq!(kept(&settings(&annotations).unwrap()), None);
        Arc::make_mut(&mut config.render).use_http2 = false;
        let without = settings_with(&config, &annotations).unwrap();
        let keepalive = kept(&without).unwrap();
        assert_eq!(
            (keepalive.connections, keepalive.requests, keepalive.timeout),
            (10, 5, Seconds(60))
        );
        for none in [
            "auth-keepalive",
            "auth-keepalive-requests",
            "auth-keepalive-timeout",
        ] {
            for number in ["0", "-1"] {
                let annotations = [URL, ("auth-keepalive", "10"), (none, number)];
                let settings = settings_with(&config, &annotations).unwrap();
                assert_eq!(kept(&settings), None, "{none}: {number}");
            }
        }
        let variable = [("auth-url", "http://$host/"), ("auth-keepalive", "10")];
        assert_eq!(kept(&settings_with(&config, &variable).unwrap()), None);
    }
}
