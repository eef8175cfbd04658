//! TLS spoken to the endpoints.

use crate::{
    config::Risk,
    layout::UpstreamTls,
    value::{Literal, ValueError},
};

use super::{
    grammar::{PATTERN, ciphers},
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "proxy-ssl-secret",
        needs: &[Need::one_of(
            "backend-protocol",
            &["HTTPS", "GRPCS", "AUTO_HTTP"],
        )],
        value: "`namespace/name`",
        default: "none",
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "shop/upstream-tls",
        doc: "Secret with the authorities of the endpoints (`ca.crt`) and the controller's certificate for them. Holds for the host's other paths too, unless they have their own or the ConfigMap's `proxy-ssl-location-only` is `true`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-ciphers",
        needs: &[Need::given("proxy-ssl-secret")],
        value: "OpenSSL cipher list",
        default: "DEFAULT",
        risk: Risk::Medium,
        example: "HIGH:!aNULL",
        doc: "Cipher suites spoken to the endpoints.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-name",
        needs: &[Need::given("proxy-ssl-secret")],
        value: "plain characters and those of regular expressions",
        default: "the host of the backend",
        risk: Risk::High,
        example: "inner.test",
        doc: "Name that the endpoints' certificate has to have.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-protocols",
        needs: &[Need::given("proxy-ssl-secret")],
        value: "list of `TLSv1.2` and `TLSv1.3`, separated by spaces",
        default: "TLSv1.2",
        example: "TLSv1.3",
        doc: "Versions of TLS spoken to the endpoints.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-server-name",
        needs: &[Need::given("proxy-ssl-secret")],
        value: "`on` or `off`",
        default: "off",
        example: "on",
        doc: "Whether the name is sent to the endpoints (SNI).",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-verify",
        needs: &[Need::given("proxy-ssl-secret")],
        value: "`on` or `off`",
        default: "off",
        example: "on",
        doc: "Whether the endpoints' certificate is checked.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "proxy-ssl-verify-depth",
        needs: &[Need::given("proxy-ssl-secret")],
        value: "whole number",
        default: "1",
        example: "2",
        doc: "Longest chain of the endpoints' certificate.",
        ..ANNOTATION
    },
];

/// `None` without a usable `proxy-ssl-secret`: the others mean nothing without it. Its certificates are read later.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<UpstreamTls> {
    Some(UpstreamTls {
        secret: reader.qualified_object("proxy-ssl-secret")?,
        authority: None,
        certificate: None,
        ciphers: reader
            .value("proxy-ssl-ciphers", ciphers)
            .unwrap_or_else(|| Literal::constant("DEFAULT")),
        protocols: reader
            .value("proxy-ssl-protocols", protocols)
            .unwrap_or_else(|| vec![Literal::constant("TLSv1.2")]),
        name: reader.template("proxy-ssl-name", PATTERN),
        server_name: reader.switch("proxy-ssl-server-name").unwrap_or(false),
        verify: reader.switch("proxy-ssl-verify").unwrap_or(false),
        verify_depth: reader.number("proxy-ssl-verify-depth", 1, 100).unwrap_or(1),
    })
}

fn protocols(text: &str) -> Result<Vec<Literal>, ValueError> {
    const PROTOCOLS: [&str; 2] = ["TLSv1.2", "TLSv1.3"];
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some(word) = words.iter().find(|word| !PROTOCOLS.contains(word)) {
        return Err(ValueError::Word(
            ValueError::excerpt(word),
            PROTOCOLS.join(", "),
        ));
    }
    let named = PROTOCOLS
        .into_iter()
        .filter(|protocol| words.contains(protocol));
    Ok(named.map(Literal::constant).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    fn read(more: &[(&str, &str)]) -> UpstreamTls {
        let mut annotations = vec![("proxy-ssl-secret", "shop/mtls")];
        annotations.extend(more);
        settings(&annotations)
            .unwrap()
            .location
            .upstream_tls
            .clone()
            .unwrap()
    }

    #[test]
    fn details() {
        let tls = read(&[
            ("proxy-ssl-ciphers", "HIGH:!CAMELLIA"),
            ("proxy-ssl-protocols", "TLSv1.3 TLSv1.2"),
            ("proxy-ssl-name", "inner.test"),
            ("proxy-ssl-server-name", "on"),
            ("proxy-ssl-verify", "on"),
            ("proxy-ssl-verify-depth", "3"),
        ]);
        assert_eq!(tls.ciphers.as_str(), "HIGH:!CAMELLIA");
        assert_eq!(tls.protocols.len(), 2);
        assert_eq!(tls.name.unwrap().as_str(), "inner.test");
        assert!(tls.server_name && tls.verify);
        assert_eq!(tls.verify_depth, 3);
    }

    #[test]
    fn misused_details_fall_back() {
        let bad = [
            ("proxy-ssl-verify", "maybe"),
            ("proxy-ssl-protocols", "SSLv3"),
            ("proxy-ssl-ciphers", "HIGH; evil"),
        ];
        assert_eq!(read(&bad), read(&[]));
    }

    #[test]
    fn an_unusable_secret_closes_the_location() {
        for bad in ["mtls", "other/mtls", "a b/c"] {
            let annotations = [("proxy-ssl-secret", bad)];
            assert!(
                settings(&annotations).unwrap().location.denied.is_some(),
                "{bad:?}"
            );
            assert_ne!(faults(&annotations), [""; 0], "{bad:?}");
        }
    }
}
