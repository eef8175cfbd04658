//! Names and TLS of a host's server.

use crate::{config::Risk, host::Host, scalar, value::Literal};

use super::{
    grammar::ciphers,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Effect, Misuse, Scope},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "server-alias",
        value: "list of names, and of regular expressions behind `~`",
        default: "none",
        scope: Scope::Server,
        risk: Risk::High,
        example: "a.test,b.test",
        doc: "Further names that the host is served under. One that cannot be used is left out.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "ssl-ciphers",
        value: "OpenSSL cipher list",
        default: "as the ConfigMap has it",
        config_key: Some("ssl-ciphers"),
        scope: Scope::Server,
        misuse: Misuse::Refuse,
        example: "HIGH:!aNULL",
        doc: "Cipher suites up to TLS 1.2.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "ssl-prefer-server-ciphers",
        value: "boolean",
        default: "as the ConfigMap has it",
        scope: Scope::Server,
        example: "true",
        doc: "Whether the server's order of the suites counts.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "ssl-passthrough",
        value: "boolean",
        default: "false",
        scope: Scope::Server,
        misuse: Misuse::Refuse,
        effect: Effect::Dynamic,
        example: "true",
        doc: "Passes TLS through to the endpoints of the path `/`; needs `--enable-ssl-passthrough`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "http2-push-preload",
        value: "boolean",
        default: "false",
        misuse: Misuse::Refuse,
        example: "true",
        doc: "Turns `Link` headers of responses into HTTP/2 pushes, where NGINX still can.",
        ..ANNOTATION
    },
];

pub(super) fn aliases(reader: &mut Reader<'_>) -> Vec<Host> {
    let mut aliases = Vec::new();
    let mut unusable = Vec::new();
    // What is between the commas is judged one by one.
    let _read = reader.value("server-alias", |text| {
        for item in scalar::items(text) {
            match Host::parse_alias(item) {
                Ok(alias) => aliases.push(alias),
                Err(error) => unusable.push(error),
            }
        }
        Ok(())
    });
    for error in unusable {
        let message = format!("an alias is left out: {error}");
        if aliases.is_empty() {
            reader.ineffective("server-alias", &message);
        } else {
            reader.warn("server-alias", message);
        }
    }
    aliases.sort_unstable();
    aliases.dedup();
    aliases
}

pub(super) fn ssl_ciphers(reader: &mut Reader<'_>) -> Option<Literal> {
    reader.value("ssl-ciphers", ciphers)
}

pub(super) fn ssl_prefer_server_ciphers(reader: &mut Reader<'_>) -> Option<bool> {
    reader.boolean("ssl-prefer-server-ciphers")
}

pub(super) fn http2_push_preload(reader: &mut Reader<'_>) -> bool {
    reader.boolean("http2-push-preload").unwrap_or(false)
}

pub(super) fn ssl_passthrough(reader: &mut Reader<'_>) -> bool {
    let wanted = reader.boolean("ssl-passthrough").unwrap_or(false);
    if wanted && !reader.passes_tls {
        let message =
            "has no effect without the flag --enable-ssl-passthrough: TLS ends at the controller";
        reader.ineffective("ssl-passthrough", message);
    }
    wanted && reader.passes_tls
}

#[cfg(test)]
mod tests {
    use crate::{
        GlobalConfig, Options, Severity,
        annotation::{
            parse,
            testing::{faults, ingress, settings},
        },
    };

    #[test]
    fn aliases_are_names() {
        let read = |text: &str| {
            let server = settings(&[("server-alias", text)])?.server;
            Some(
                server
                    .aliases
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            read("b.test, A.test,,b.test ,*.c.test").unwrap(),
            ["*.c.test", "a.test", "b.test"]
        );
        assert_eq!(read("").unwrap(), [""; 0]);
        assert_eq!(read("~^a[0-9]+$").unwrap(), ["~^a[0-9]+$"]);
        for bad in [
            "a b",
            "~^a($",
            "_",
            "a.test;",
            "/a\"; add_header X-Marker 1 always; #",
        ] {
            assert_eq!(read(bad).unwrap(), [""; 0], "{bad:?}");
            let among = format!("b.test,{bad},~^c");
            assert_eq!(read(&among).unwrap(), ["b.test", "~^c"], "{bad:?}");
            assert_eq!(faults(&[("server-alias", &among)]).len(), 1, "{bad:?}");
        }
    }

    #[test]
    fn passthrough_needs_its_flag() {
        let used = ingress(&[("ssl-passthrough", "true")]);
        let config = GlobalConfig::default();
        for enabled in [true, false] {
            let options = Options {
                ssl_passthrough: enabled,
                ..Options::default()
            };
            let mut diagnostics = Vec::new();
            let read = parse(&used, &options, &config, &mut diagnostics).unwrap();
            assert_eq!(read.server.ssl_passthrough, enabled);
            let told = diagnostics.iter().any(|diagnostic| {
                diagnostic.severity == Severity::Warning
                    && diagnostic.message.contains("--enable-ssl-passthrough")
            });
            assert_eq!(told, !enabled);
        }
    }

    #[test]
    fn ciphers() {
        let read = |text| {
            Some(
                settings(&[("ssl-ciphers", text)])?
                    .server
                    .ssl_ciphers?
                    .as_str()
                    .to_owned(),
            )
        };
        assert_eq!(
            read("HIGH:!aNULL:@SECLEVEL=1").unwrap(),
            "HIGH:!aNULL:@SECLEVEL=1"
        );
        assert!(read("ALL:@STRENGTH:@SECLEVEL=5").is_some());
        for bad in [
            "ALL;",
            "ALL:@SECLEVEL=6",
            "ALL:@SECLEVEL=",
            "@SECLEVEL=12",
            "ALL:@strength",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
