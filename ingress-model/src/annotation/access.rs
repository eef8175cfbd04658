//! Which clients may come, by address.

use ipnet::IpNet;

use crate::{config::Risk, layout::LocationSettings, scalar, value::ValueError};

use super::{
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Misuse},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "allowlist-source-range",
        aliases: &["whitelist-source-range"],
        value: "list of addresses and networks",
        default: "none",
        config_key: Some("whitelist-source-range"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "10.0.0.0/8,192.0.2.7",
        doc: "Only these clients are served; others get 403.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "denylist-source-range",
        value: "list of addresses and networks",
        default: "none",
        config_key: Some("denylist-source-range"),
        risk: Risk::Medium,
        misuse: Misuse::Deny,
        example: "198.51.100.0/24",
        doc: "These clients get 403.",
        ..ANNOTATION
    },
];

pub(super) fn read(reader: &mut Reader<'_>, location: &mut LocationSettings) {
    let config = reader.config;
    let allow = networks(reader, "allowlist-source-range");
    let deny = networks(reader, "denylist-source-range");
    if allow.is_none() && config.policy.unusable.contains("whitelist-source-range") {
        reader.deny("ConfigMap key whitelist-source-range cannot be used".into());
    }
    location.allow = allow.unwrap_or_else(|| config.policy.allowlist_source_range.clone());
    location.deny = deny.unwrap_or_else(|| config.policy.denylist_source_range.clone());
    if !location.allow.is_empty() || !location.deny.is_empty() {
        location.deny.extend(&config.render.block_cidrs);
        location.deny.sort_unstable();
        location.deny.dedup();
    }
}

/// An empty list lets nobody in: whoever wrote it did not mean everybody.
fn networks(reader: &mut Reader<'_>, name: &str) -> Option<Vec<IpNet>> {
    let entry = reader.entry(name)?;
    match scalar::networks(entry.value) {
        Ok(networks) if !networks.is_empty() => Some(networks),
        Ok(_) => {
            reader.misused(name, &ValueError::Empty);
            None
        }
        Err(error) => {
            reader.misused(name, &error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        annotation::testing::{settings, settings_with},
        config::GlobalConfig,
    };

    fn texts(networks: &[IpNet]) -> Vec<String> {
        networks.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_are_normalised() {
        let lists = [
            ("allowlist-source-range", "192.0.2.7, 10.1.2.3/8,10.0.0.0/8"),
            ("denylist-source-range", "2001:db8::1"),
        ];
        let settings = settings(&lists).unwrap();
        assert_eq!(
            texts(&settings.location.allow),
            ["10.0.0.0/8", "192.0.2.7/32"]
        );
        assert_eq!(texts(&settings.location.deny), ["2001:db8::1/128"]);
    }

    #[test]
    fn unusable_lists_close_the_location() {
        for name in [
            "allowlist-source-range",
            "whitelist-source-range",
            "denylist-source-range",
        ] {
            for bad in ["", " ", ",", "10.0.0.300/8", "192.0.2.0/33", "all"] {
                let settings = settings(&[(name, bad)]).unwrap();
                assert!(settings.location.denied.is_some(), "{name} {bad:?}");
            }
        }
    }

    #[test]
    fn an_unusable_list_of_the_config_map_closes_locations_without_their_own() {
        let mut config = GlobalConfig::default();
        config.policy.unusable.insert("whitelist-source-range");
        let closed = |annotations: &[_]| {
            let settings = settings_with(&config, annotations).unwrap();
            settings.location.denied.is_some()
        };
        assert!(closed(&[]));
        assert!(closed(&[("denylist-source-range", "192.0.2.7")]));
        assert!(!closed(&[("allowlist-source-range", "192.0.2.7")]));
    }

    #[test]
    fn a_former_name_serves_where_the_present_one_is_empty() {
        let both = [
            ("allowlist-source-range", ""),
            ("whitelist-source-range", "10.0.0.0/8"),
        ];
        let settings = settings(&both).unwrap();
        assert_eq!(texts(&settings.location.allow), ["10.0.0.0/8"]);
    }

    #[test]
    fn own_lists_keep_what_everybody_blocks() {
        let mut config = GlobalConfig::default();
        config.policy.allowlist_source_range = vec!["10.0.0.0/8".parse().unwrap()];
        let fallen_back = settings_with(&config, &[]).unwrap();
        assert_eq!(texts(&fallen_back.location.allow), ["10.0.0.0/8"]);
        std::sync::Arc::make_mut(&mut config.render).block_cidrs =
            vec!["192.0.2.0/24".parse().unwrap()];
        let own = settings_with(&config, &[("denylist-source-range", "198.51.100.1")]).unwrap();
        assert_eq!(
            texts(&own.location.deny),
            ["192.0.2.0/24", "198.51.100.1/32"]
        );
    }
}
