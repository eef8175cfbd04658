//! How backends are balanced.

use crate::{
    config::Risk,
    live::{HashBy, LoadBalance},
    scalar,
};

use super::{
    grammar::VARIABLES,
    reader::Reader,
    registry::{ANNOTATION, AnnotationInfo, Effect, Misuse, Need, Scope},
};

/// What can be set.
pub(super) const ANNOTATIONS: &[AnnotationInfo] = &[
    AnnotationInfo {
        name: "load-balance",
        value: "`round_robin`, `ewma`, `chash`, `chashsubset`, `sticky_balanced` or `sticky_persistent`",
        default: "round_robin",
        config_key: Some("load-balance"),
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        misuse: Misuse::Refuse,
        example: "ewma",
        doc: "How endpoints are picked. `chash` and `chashsubset` need `upstream-hash-by`, `sticky_balanced` and `sticky_persistent` need `affinity`.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "upstream-hash-by",
        value: "letters, digits and `-_${}`",
        default: "none",
        scope: Scope::Backend,
        risk: Risk::High,
        effect: Effect::Dynamic,
        misuse: Misuse::Refuse,
        example: "$request_uri",
        doc: "Picks the endpoint by the hash of this text.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "upstream-hash-by-subset",
        needs: &[Need::given("upstream-hash-by")],
        value: "boolean",
        default: "false",
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        misuse: Misuse::Refuse,
        example: "true",
        doc: "Lets the hash pick a set of endpoints rather than one.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "upstream-hash-by-subset-size",
        needs: &[Need::on("upstream-hash-by-subset")],
        value: "whole number",
        default: "3",
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        misuse: Misuse::Refuse,
        example: "2",
        doc: "How many endpoints such a set has.",
        ..ANNOTATION
    },
    AnnotationInfo {
        name: "service-upstream",
        value: "boolean",
        default: "false",
        config_key: Some("service-upstream"),
        scope: Scope::Backend,
        effect: Effect::Dynamic,
        example: "true",
        doc: "Sends to the Service's address rather than to its endpoints.",
        ..ANNOTATION
    },
];

/// `load-balance`. The algorithms that other annotations choose have names too; alone they choose nothing.
pub(super) const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("round_robin", Algorithm::Of(LoadBalance::RoundRobin)),
    ("ewma", Algorithm::Of(LoadBalance::Ewma)),
    ("chash", Algorithm::Elsewhere("upstream-hash-by")),
    ("chashsubset", Algorithm::Elsewhere("upstream-hash-by")),
    ("sticky_balanced", Algorithm::Elsewhere("affinity")),
    ("sticky_persistent", Algorithm::Elsewhere("affinity")),
];

/// What a name of an algorithm stands for.
#[derive(Clone, Copy)]
pub(super) enum Algorithm {
    /// It is chosen by the name.
    Of(LoadBalance),
    /// It is chosen by that annotation.
    Elsewhere(&'static str),
}

pub(super) fn load_balance(reader: &mut Reader<'_>) -> Option<LoadBalance> {
    let fall_back = reader.policy().load_balance;
    match reader.word("load-balance", ALGORITHMS) {
        Some(Algorithm::Of(algorithm)) => Some(algorithm),
        Some(Algorithm::Elsewhere(annotation)) => {
            if !reader.has(annotation) {
                reader.warn(
                    "load-balance",
                    format!("has no effect without {annotation}"),
                );
            }
            fall_back
        }
        None => fall_back,
    }
}

pub(super) fn hash_by(reader: &mut Reader<'_>) -> Option<HashBy> {
    let key = reader.text("upstream-hash-by", VARIABLES);
    let subset = reader.boolean("upstream-hash-by-subset").unwrap_or(false);
    let subset_size = subset_size(reader).unwrap_or(3);
    Some(HashBy {
        key: key?.split(' ').collect(),
        subset,
        subset_size,
    })
}

/// Zero stands for the default; text that is no number is worse than a number that is none of a size.
fn subset_size(reader: &mut Reader<'_>) -> Option<u32> {
    const NAME: &str = "upstream-hash-by-subset-size";
    let number = reader.value(NAME, scalar::integer)?;
    match scalar::within(number, 0, 10_000) {
        Ok(size) => (size > 0).then_some(size),
        Err(error) => {
            reader.fall_back(NAME, &error);
            None
        }
    }
}

/// A value that is no boolean means no, whatever the ConfigMap says.
pub(super) fn service_upstream(reader: &mut Reader<'_>) -> bool {
    let is_set = reader.says("service-upstream");
    let fall_back = reader.policy().service_upstream;
    let own = reader.boolean("service-upstream");
    own.unwrap_or(fall_back && !is_set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotation::testing::{faults, settings};

    #[test]
    fn algorithms() {
        let read = |text| Some(settings(&[("load-balance", text)])?.backend.load_balance);
        assert_eq!(read("ewma"), Some(Some(LoadBalance::Ewma)));
        assert_eq!(read("round_robin"), Some(Some(LoadBalance::RoundRobin)));
        assert_eq!(read("chash"), Some(None));
        assert_eq!(faults(&[("load-balance", "chash")]).len(), 1);
        assert_eq!(
            faults(&[("load-balance", "chash"), ("upstream-hash-by", "$host")]).len(),
            0
        );
        assert_eq!(read("EWMA"), None);
        assert_eq!(read("fastest"), None);
    }

    #[test]
    fn hashing() {
        let read = |annotations: &[_]| settings(annotations)?.backend.hash_by;
        assert_eq!(
            read(&[("upstream-hash-by", "$host $request_uri")]),
            Some(HashBy {
                key: "$host$request_uri".into(),
                subset: false,
                subset_size: 3
            })
        );
        let subset = [
            ("upstream-hash-by", "${host}x"),
            ("upstream-hash-by-subset", "true"),
            ("upstream-hash-by-subset-size", "5"),
        ];
        assert_eq!(
            read(&subset),
            Some(HashBy {
                key: "${host}x".into(),
                subset: true,
                subset_size: 5
            })
        );
        assert_eq!(read(&[("upstream-hash-by-subset", "true")]), None);
        assert_eq!(settings(&[("upstream-hash-by", "$host;")]), None);
        assert_eq!(settings(&[("upstream-hash-by-subset-size", "few")]), None);
        for (size, want) in [("0", 3), ("-1", 3), ("99999999999", 3), ("7", 7)] {
            let annotations = [
                ("upstream-hash-by", "$host"),
                ("upstream-hash-by-subset-size", size),
            ];
            assert_eq!(read(&annotations).unwrap().subset_size, want, "{size}");
        }
    }
}
