//! Annotations that ingress-nginx knew once, and other spellings of what is none of ours.

use super::registry;

/// An annotation that ingress-nginx has done away with.
struct Retired {
    /// Its name without prefix; with a hyphen at the end, what the names of a family begin with.
    name: &'static str,
    /// The version that was the first without it (its changelog says so).
    version: &'static str,
    /// What serves its purpose now.
    instead: &'static str,
}

const fn retired(name: &'static str, version: &'static str, instead: &'static str) -> Retired {
    Retired {
        name,
        version,
        instead,
    }
}

/// The version of which we have every annotation; those whose end is not known more closely ended before.
const BEFORE_OURS: &str = "before 1.15";

const TLS: &str = "backend-protocol: HTTPS takes its place";
const NONE: &str = "nothing takes its place";
const REWRITE: &str =
    "nothing takes its place: let the application write such links, helped by x-forwarded-prefix";
const RATE: &str = "limit-rps and limit-rpm count for each controller by itself";
const CHECKS: &str = "readiness probes and proxy-next-upstream take its place";
const WAF: &str = "enable-modsecurity is the web application firewall that there is";

const RETIRED: &[Retired] = &[
    retired("secure-backends", "in 0.21.0", TLS),
    retired(
        "grpc-backend",
        "in 0.21.0",
        "backend-protocol: GRPC takes its place",
    ),
    retired("upstream-max-fails", "in 0.21.0", CHECKS),
    retired("upstream-fail-timeout", "in 0.21.0", CHECKS),
    retired("add-base-url", "in 0.22.0", REWRITE),
    retired("base-url-scheme", "in 0.22.0", REWRITE),
    retired("session-cookie-hash", "in 0.24.0", NONE),
    retired(
        "enable-opentracing",
        "in 1.10.0",
        "enable-opentelemetry takes its place",
    ),
    retired(
        "opentracing-trust-incoming-span",
        "in 1.10.0",
        "opentelemetry-trust-incoming-span takes its place",
    ),
    retired("global-rate-limit", "in 1.12.0", RATE),
    retired("global-rate-limit-", "in 1.12.0", RATE),
    retired(
        "secure-verify-ca-secret",
        BEFORE_OURS,
        "proxy-ssl-secret takes its place",
    ),
    retired("enable-influxdb", BEFORE_OURS, NONE),
    retired("influxdb-", BEFORE_OURS, NONE),
    retired("lua-resty-waf", BEFORE_OURS, WAF),
    retired("lua-resty-waf-", BEFORE_OURS, WAF),
];

/// The prefix that annotations had before the usual one. Other controllers have it too.
const FORMER_PREFIX: &str = "ingress.kubernetes.io";

/// How the class is not told.
const CLASS: [&str; 4] = [
    "ingress.class",
    "ingress-class",
    "ingressClassName",
    "class",
];

/// What somebody may need to know who wrote the name, which is none of an annotation that is read.
pub(super) fn hint(name: &str) -> Option<String> {
    if CLASS.contains(&name) {
        return Some(
            "is not read: the class of an Ingress is told by spec.ingressClassName, or by the annotation \
             kubernetes.io/ingress.class"
                .into(),
        );
    }
    let is_it = |retired: &&Retired| {
        retired.name == name || retired.name.ends_with('-') && name.starts_with(retired.name)
    };
    let retired = RETIRED.iter().find(is_it)?;
    let Retired {
        version, instead, ..
    } = retired;
    Some(format!(
        "there is no such annotation any more: it was removed from ingress-nginx {version}; {instead}"
    ))
}

/// Whether an annotation of neither our prefix nor the usual one is reported, by its prefix and its name: whoever wrote
/// it most likely meant us.
pub(crate) fn is_meant(prefix: &str, name: &str) -> bool {
    match prefix {
        FORMER_PREFIX => registry::find(name).is_some() || hint(name).is_some(),
        "kubernetes.io" => name != "ingress.class" && CLASS.contains(&name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    #[test]
    fn what_takes_the_place_is_told() {
        for (name, text) in [
            (
                "secure-backends",
                "removed from ingress-nginx in 0.21.0; backend-protocol: HTTPS",
            ),
            ("grpc-backend", "backend-protocol: GRPC takes its place"),
            ("add-base-url", "in 0.22.0; nothing takes its place"),
            ("session-cookie-hash", "in 0.24.0"),
            ("enable-opentracing", "in 1.10.0; enable-opentelemetry"),
            ("global-rate-limit", "in 1.12.0; limit-rps"),
            ("global-rate-limit-window", "in 1.12.0; limit-rps"),
            ("influxdb-host", "before 1.15"),
            ("lua-resty-waf-debug", "enable-modsecurity"),
            ("ingress.class", "spec.ingressClassName"),
        ] {
            let told = faults(&[(name, "true")]);
            assert_eq!(told.len(), 1, "{name}: {told:?}");
            assert!(told[0].contains(text), "{told:?}");
            assert!(settings(&[(name, "true")]).is_some());
        }
    }

    #[test]
    fn nothing_that_is_read_is_retired() {
        for info in registry::annotations() {
            let names = std::iter::once(&info.name).chain(info.aliases);
            assert!(
                names.copied().all(|name| hint(name).is_none()),
                "{}",
                info.name
            );
        }
        for name in ["use-regexp", "global-rate", "influx"] {
            assert_eq!(hint(name), None);
        }
    }

    #[test]
    fn the_old_prefix_is_told_where_the_name_is_ours() {
        let old = ("ingress.kubernetes.io/rewrite-target", "/");
        let told = faults(&[old]);
        assert_eq!(told.len(), 1);
        assert!(
            told[0].contains("begin with nginx.ingress.kubernetes.io/ here"),
            "{told:?}"
        );
        // Written for two controllers, or another one's.
        assert_eq!(faults(&[old, ("rewrite-target", "/")]), [""; 0]);
        assert_eq!(faults(&[("ingress.kubernetes.io/waf", "x")]), [""; 0]);
    }

    #[test]
    fn misspelt_classes_are_told() {
        for name in [
            "kubernetes.io/ingress-class",
            "kubernetes.io/ingressClassName",
        ] {
            let told = faults(&[(name, "nginx")]);
            assert!(
                told.concat().contains("spec.ingressClassName"),
                "{name}: {told:?}"
            );
        }
        assert_eq!(faults(&[("kubernetes.io/ingress.class", "nginx")]), [""; 0]);
        assert_eq!(faults(&[("kubernetes.io/tls-acme", "true")]), [""; 0]);
    }
}
