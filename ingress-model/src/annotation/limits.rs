//! How much a client may ask for.

use crate::{
    layout::{Limits, LocationSettings},
    scalar,
    value::ValueError,
};

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse, Need},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "limit-connections",
        value: "whole number",
        default: "0",
        misuse: Misuse::Refuse,
        example: "20",
        doc: "How many connections a client may have at once; 0: any number.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-rps",
        value: "whole number",
        default: "0",
        misuse: Misuse::Refuse,
        example: "5",
        doc: "How many requests a client may make in a second; 0: any number.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-rpm",
        value: "whole number",
        default: "0",
        misuse: Misuse::Refuse,
        example: "300",
        doc: "How many requests a client may make in a minute; 0: any number.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-burst-multiplier",
        needs: &[Need::given("limit-rps"), Need::given("limit-rpm")],
        value: "whole number",
        default: "5",
        example: "3",
        doc: "How many times the rate may be exceeded at once.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-allowlist",
        needs: &[
            Need::given("limit-rps"),
            Need::given("limit-rpm"),
            Need::given("limit-connections"),
        ],
        aliases: &["limit-whitelist"],
        value: "list of addresses and networks",
        default: "none",
        misuse: Misuse::Refuse,
        example: "10.0.0.0/8",
        doc: "Clients without limits.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-rate",
        value: "kilobytes a second",
        default: "0",
        config_key: Some("limit-rate"),
        example: "100",
        doc: "How fast a response is sent; 0: as fast as it goes. Needs `proxy-buffering: \"on\"`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "limit-rate-after",
        needs: &[Need::given("limit-rate").or_above(|config| config.render.limit_rate > 0)],
        value: "kilobytes",
        default: "0",
        config_key: Some("limit-rate-after"),
        example: "1000",
        doc: "How much is sent before that. So does this take `proxy-buffering: \"on\"`.",
        ..ANNOTATION
    },
];

/// More requests than anybody counts.
const MOST_REQUESTS: u32 = 1_000_000;

/// NGINX counts connections in sixteen bits (NGINX docs: `limit_conn`).
const MOST_CONNECTIONS: u32 = 65_535;

pub(super) fn read(reader: &mut Reader<'_>, location: &mut LocationSettings) {
    let above = &reader.config.render;
    let own_rate = rate(reader, "limit-rate");
    if own_rate.is_some_and(|rate| rate > 0) {
        report_unbuffered(reader, location);
    }
    location.limit_rate = own_rate.filter(|rate| *rate != above.limit_rate);
    location.limit_rate_after =
        rate(reader, "limit-rate-after").filter(|after| *after != above.limit_rate_after);
    let limits = Limits {
        connections: count(reader, "limit-connections", MOST_CONNECTIONS),
        per_second: count(reader, "limit-rps", MOST_REQUESTS),
        per_minute: count(reader, "limit-rpm", MOST_REQUESTS),
        burst_multiplier: reader
            .number("limit-burst-multiplier", 1, 1_000)
            .unwrap_or(5),
        exempt: reader
            .value("limit-allowlist", scalar::networks)
            .unwrap_or_default(),
    };
    let limited = limits.connections > 0 || limits.per_second > 0 || limits.per_minute > 0;
    location.limits = limited.then_some(limits);
}

/// NGINX sends what it does not buffer as fast as it comes (NGINX docs: `proxy_limit_rate`, `limit_rate`).
fn report_unbuffered(reader: &mut Reader<'_>, location: &LocationSettings) {
    let above = reader.config.render.proxy.buffering;
    if location.proxy.buffering.or(above) != Some(true) {
        let message = "has no effect while proxy-buffering is off".to_owned();
        reader.warn("limit-rate", message);
    }
}

/// A number; zero stands for no limit, and so does what is below it, which its author has to be told. One that is too
/// large for NGINX is the largest there is.
fn count(reader: &mut Reader<'_>, name: &str, most: u32) -> u32 {
    let Some(number) = reader.value(name, scalar::integer) else {
        return 0;
    };
    if number < 0 {
        let fault = ValueError::Range(number, 0, most.into());
        reader.ineffective(name, &format!("{fault}; there is no limit"));
        return 0;
    }
    if number > most.into() {
        reader.warn(
            name,
            format!("{number} is more than can be counted; it is {most}"),
        );
        return most;
    }
    u32::try_from(number).unwrap_or(0)
}

/// Kilobytes.
fn rate(reader: &mut Reader<'_>, name: &str) -> Option<u32> {
    reader.number(name, 0, 4_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, faults_with, settings, settings_with};
    use crate::config::GlobalConfig;

    #[test]
    fn limits_of_all_kinds() {
        let annotations = [
            ("limit-connections", "8"),
            ("limit-rps", "5"),
            ("limit-rpm", "300"),
            ("limit-burst-multiplier", "3"),
            ("limit-whitelist", "10.0.0.0/8"),
        ];
        let want = Limits {
            connections: 8,
            per_second: 5,
            per_minute: 300,
            burst_multiplier: 3,
            exempt: vec!["10.0.0.0/8".parse().unwrap()],
        };
        assert_eq!(settings(&annotations).unwrap().location.limits, Some(want));
    }

    #[test]
    fn zero_and_less_is_no_limit() {
        for name in ["limit-rps", "limit-rpm", "limit-connections"] {
            for (number, told) in [("0", 0), ("-1", 1)] {
                let annotations = [(name, number)];
                let location = settings(&annotations).unwrap().location;
                assert_eq!(location.limits, None, "{name}: {number}");
                assert_eq!(faults(&annotations).len(), told, "{name}: {number}");
            }
        }
        let bursts = settings(&[("limit-rps", "1"), ("limit-burst-multiplier", "0")]).unwrap();
        assert_eq!(bursts.location.limits.as_ref().unwrap().burst_multiplier, 5);
    }

    #[test]
    fn what_nginx_cannot_count_is_limited_all_the_same() {
        for (name, limits) in [
            ("limit-connections", [65_535, 0, 0]),
            ("limit-rps", [0, 1_000_000, 0]),
            ("limit-rpm", [0, 0, 1_000_000]),
        ] {
            let annotations = [(name, "9999999999")];
            let read = settings(&annotations).unwrap().location.limits.clone();
            let read = read.unwrap();
            let read = [read.connections, read.per_second, read.per_minute];
            assert_eq!(read, limits, "{name}");
            assert_eq!(faults(&annotations).len(), 1, "{name}");
        }
    }

    #[test]
    fn an_unreadable_limit_leaves_the_ingress_out() {
        assert_eq!(settings(&[("limit-connections", "eight")]), None);
        assert_eq!(settings(&[("limit-allowlist", "10.0.0.0/33")]), None);
        let rate = settings(&[("limit-rate", "fast")]).unwrap();
        assert_eq!(rate.location.limit_rate, None);
    }

    #[test]
    fn a_rate_without_buffers_is_reported() {
        let rate = ("limit-rate", "64");
        let on = ("proxy-buffering", "on");
        assert_eq!(faults(&[rate, on]), [""; 0]);
        assert_eq!(faults(&[("limit-rate", "0")]), [""; 0]);
        for annotations in [&[rate][..], &[rate, ("proxy-buffering", "off")]] {
            let told = faults(annotations).concat();
            assert!(told.contains("proxy-buffering is off"), "{told}");
        }
        let mut config = GlobalConfig::default();
        std::sync::Arc::make_mut(&mut config.render).proxy.buffering = Some(true);
        assert_eq!(faults_with(&config, &[rate]), [""; 0]);
    }

    #[test]
    fn a_rate_of_zero_overrides_the_config_map() {
        let mut config = GlobalConfig::default();
        std::sync::Arc::make_mut(&mut config.render).limit_rate = 64;
        let rate = |value| {
            settings_with(&config, &[("limit-rate", value)])
                .unwrap()
                .location
                .limit_rate
        };
        assert_eq!(rate("0"), Some(0));
        assert_eq!(rate("64"), None);
        assert_eq!(rate("75"), Some(75));
    }
}
