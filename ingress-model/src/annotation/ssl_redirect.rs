//! Redirects from HTTP to HTTPS.

use crate::{config::Risk, layout::LocationSettings};

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "ssl-redirect",
        value: "boolean",
        default: "true",
        config_key: Some("ssl-redirect"),
        example: "false",
        doc: "Redirects plain HTTP to HTTPS where the host has a certificate.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "force-ssl-redirect",
        value: "boolean",
        default: "false",
        config_key: Some("force-ssl-redirect"),
        risk: Risk::Medium,
        example: "true",
        doc: "Redirects plain HTTP to HTTPS in any case, for example when TLS ends in front of the controller.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "preserve-trailing-slash",
        value: "boolean",
        default: "false",
        config_key: Some("preserve-trailing-slash"),
        risk: Risk::Medium,
        example: "true",
        doc: "Keeps a final `/` in redirects to HTTPS.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "use-port-in-redirects",
        value: "boolean",
        default: "false",
        config_key: Some("use-port-in-redirects"),
        example: "true",
        doc: "Names the HTTPS port in redirects.",
        ..ANNOTATION
    },
];

pub(super) fn read(reader: &mut Reader<'_>, location: &mut LocationSettings) {
    let policy = reader.policy();
    location.ssl_redirect = reader
        .boolean("ssl-redirect")
        .unwrap_or(policy.ssl_redirect);
    location.force_ssl_redirect = reader
        .boolean("force-ssl-redirect")
        .unwrap_or(policy.force_ssl_redirect);
    location.preserve_trailing_slash = reader
        .boolean("preserve-trailing-slash")
        .unwrap_or(policy.preserve_trailing_slash);
    location.use_port_in_redirects = reader
        .boolean("use-port-in-redirects")
        .unwrap_or(policy.use_port_in_redirects);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        annotation::testing::{settings, settings_with},
        config::{GlobalConfig, Policy},
    };

    fn flags(location: &LocationSettings) -> [bool; 4] {
        [
            location.ssl_redirect,
            location.force_ssl_redirect,
            location.preserve_trailing_slash,
            location.use_port_in_redirects,
        ]
    }

    #[test]
    fn annotations_win_over_the_config_map() {
        assert_eq!(
            flags(&settings(&[]).unwrap().location),
            [true, false, false, false]
        );
        let config = GlobalConfig {
            policy: Policy {
                ssl_redirect: false,
                force_ssl_redirect: true,
                preserve_trailing_slash: true,
                use_port_in_redirects: true,
                ..Policy::default()
            },
            ..GlobalConfig::default()
        };
        let fallen_back = settings_with(&config, &[("ssl-redirect", "maybe")]).unwrap();
        assert_eq!(flags(&fallen_back.location), [false, true, true, true]);
        let own = settings_with(
            &config,
            &[
                ("ssl-redirect", "true"),
                ("force-ssl-redirect", "false"),
                ("preserve-trailing-slash", "false"),
                ("use-port-in-redirects", "false"),
            ],
        );
        assert_eq!(flags(&own.unwrap().location), [true, false, false, false]);
    }
}
