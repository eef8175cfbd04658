//! Client certificates.

use regex::Regex;

use crate::{
    config::Risk,
    layout::VerifyClient,
    object::ObjectName,
    scalar,
    value::{Literal, Template, ValueError},
};

use super::{
    ClientAuthSettings,
    grammar::URL,
    reader::{FOREIGN, Reader},
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need, Scope},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "auth-tls-secret",
        value: "`namespace/name`",
        default: "none",
        scope: Scope::Server,
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "shop/clients-ca",
        doc: "Secret with the authorities (`ca.crt`, and `ca.crl`) that client certificates have to come from.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-tls-verify-client",
        needs: &[Need::given("auth-tls-secret")],
        value: "`on`, `off`, `optional` or `optional_no_ca`",
        default: "on",
        scope: Scope::Server,
        risk: Risk::Medium,
        example: "optional",
        doc: "Whether a client certificate is required.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-tls-verify-depth",
        needs: &[Need::given("auth-tls-secret")],
        value: "whole number",
        default: "1",
        scope: Scope::Server,
        example: "2",
        doc: "Longest chain of a client certificate.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-tls-error-page",
        needs: &[Need::given("auth-tls-secret")],
        value: "URL or named location",
        default: "none",
        scope: Scope::Server,
        risk: Risk::High,
        misuse: Misuse::Refuse,
        example: "http://shop.test/no-cert",
        doc: "Where a client without a valid certificate is sent.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-tls-match-cn",
        needs: &[Need::given("auth-tls-secret")],
        value: "`CN=` and a regular expression",
        default: "none",
        scope: Scope::Server,
        risk: Risk::High,
        misuse: Misuse::Refuse,
        example: "CN=(alice|bob)",
        doc: "What the subject of a client certificate has to match.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "auth-tls-pass-certificate-to-upstream",
        needs: &[Need::given("auth-tls-secret")],
        value: "boolean",
        default: "false",
        scope: Scope::Server,
        misuse: Misuse::Refuse,
        example: "true",
        doc: "Passes the certificate on as the header `ssl-client-cert`.",
        ..ANNOTATION
    },
];

const VERIFY: &[(&str, VerifyClient)] = &[
    ("on", VerifyClient::On),
    ("off", VerifyClient::Off),
    ("optional", VerifyClient::Optional),
    ("optional_no_ca", VerifyClient::OptionalNoCa),
];

/// `None` without `auth-tls-secret`: the others mean nothing without it.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<ClientAuthSettings> {
    let secret = secret(reader)?;
    let settings = ClientAuthSettings {
        secret,
        verify: reader
            .word("auth-tls-verify-client", VERIFY)
            .unwrap_or_default(),
        depth: reader.number("auth-tls-verify-depth", 1, 100).unwrap_or(1),
        error_page: error_page(reader),
        match_cn: match_cn(reader),
        pass_certificate: reader
            .boolean("auth-tls-pass-certificate-to-upstream")
            .unwrap_or(false),
    };
    // The Ingress is refused for these, but what is left of its guard must not be laxer than its author meant.
    let misused = ANNOTATIONS
        .iter()
        .find(|info| info.misuse == Misuse::Refuse && reader.is_misused(info.name));
    Some(match misused {
        Some(info) => {
            ClientAuthSettings::closed(format!("annotation {} cannot be used", info.name))
        }
        None => settings,
    })
}

/// The Secret, or why the hosts are closed: whoever names one wants the hosts guarded.
fn secret(reader: &mut Reader<'_>) -> Option<Result<ObjectName, String>> {
    let entry = reader.entry("auth-tls-secret")?;
    let secret = scalar::object_name(entry.value.trim()).and_then(|secret| {
        let foreign = secret.namespace() != reader.name().namespace();
        if foreign && !reader.policy().allow_cross_namespace_resources {
            return Err(FOREIGN);
        }
        Ok(secret)
    });
    Some(secret.map_err(|error| {
        reader.misused("auth-tls-secret", &error);
        format!("annotation auth-tls-secret cannot be used: {error}")
    }))
}

/// `@name`, a path, or a URL.
fn error_page(reader: &mut Reader<'_>) -> Option<Template> {
    let text = reader.entry("auth-tls-error-page")?.value.trim();
    if let Some(name) = text.strip_prefix('@') {
        let named = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        return reader.value("auth-tls-error-page", |text| {
            if named {
                Template::parse(text)
            } else {
                Err(ValueError::Rule(
                    "a named location has letters, digits, _ and - after @",
                ))
            }
        });
    }
    reader.template("auth-tls-error-page", URL)
}

/// The whole value is matched against the subject, `CN=` included.
fn match_cn(reader: &mut Reader<'_>) -> Option<Literal> {
    reader.value("auth-tls-match-cn", |text| {
        let pattern = text
            .strip_prefix("CN=")
            .ok_or(ValueError::Rule("it does not begin with CN="))?;
        if Regex::new(pattern).is_err() {
            return Err(ValueError::Rule(
                "what follows CN= is not a regular expression",
            ));
        }
        Literal::parse(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    fn read(more: &[(&str, &str)]) -> Option<ClientAuthSettings> {
        let mut annotations = vec![("auth-tls-secret", "shop/ca")];
        annotations.extend(more);
        settings(&annotations)?.server.client_auth
    }

    #[test]
    fn defaults_ask_for_a_certificate() {
        assert_eq!(
            read(&[]).unwrap(),
            ClientAuthSettings {
                secret: Ok(ObjectName::new("shop", "ca")),
                verify: VerifyClient::On,
                depth: 1,
                error_page: None,
                match_cn: None,
                pass_certificate: false,
            }
        );
        assert_eq!(
            settings(&[("auth-tls-verify-client", "off")])
                .unwrap()
                .server
                .client_auth,
            None
        );
    }

    #[test]
    fn an_unusable_secret_closes_the_hosts() {
        for secret in ["", "ca", "a b", "other/ca", "shop/ca/x"] {
            let annotations = [("auth-tls-secret", secret)];
            let auth = settings(&annotations).unwrap().server.client_auth.unwrap();
            assert!(auth.secret.is_err(), "{secret:?}");
            assert_eq!(faults(&annotations).len(), 1, "{secret:?}");
        }
    }

    #[test]
    fn misused_refinements_are_never_laxer() {
        let auth = read(&[
            ("auth-tls-verify-client", "no"),
            ("auth-tls-verify-depth", "0"),
        ])
        .unwrap();
        assert_eq!((auth.verify, auth.depth), (VerifyClient::On, 1));
        for empty in [
            "auth-tls-match-cn",
            "auth-tls-error-page",
            "auth-tls-pass-certificate-to-upstream",
        ] {
            assert_eq!(read(&[(empty, " ")]), read(&[]), "{empty}");
        }
        for bad in [
            ("auth-tls-match-cn", "alice"),
            ("auth-tls-match-cn", "CN=(alice"),
            ("auth-tls-error-page", "@;"),
            ("auth-tls-error-page", "http://x test"),
            ("auth-tls-pass-certificate-to-upstream", "si"),
        ] {
            assert_eq!(read(&[bad]), None, "{bad:?}");
        }
    }

    #[test]
    fn refinements() {
        let auth = read(&[
            ("auth-tls-verify-client", "optional_no_ca"),
            ("auth-tls-verify-depth", "3"),
            ("auth-tls-match-cn", "CN=(alice|bob)"),
            ("auth-tls-error-page", "@denied"),
            ("auth-tls-pass-certificate-to-upstream", "true"),
        ])
        .unwrap();
        assert_eq!(auth.verify, VerifyClient::OptionalNoCa);
        assert_eq!(auth.depth, 3);
        assert_eq!(auth.match_cn.unwrap().as_str(), "CN=(alice|bob)");
        assert_eq!(auth.error_page.unwrap().as_str(), "@denied");
        assert!(auth.pass_certificate);
    }
}
