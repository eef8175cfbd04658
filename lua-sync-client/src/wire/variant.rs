//! A variant of a backend: an addition to what ingress-nginx sends, which other readers of the list pass over.

use ingress_model::live;
use serde::{Deserialize, Serialize};

use super::backend::{Endpoint, HashBy, SessionAffinity, load_balance, names};

/// How the requests for some Ingresses' paths are balanced over a backend that they share with others. What it leaves
/// out is as in a backend that leaves it out, except for the peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Variant {
    /// `namespace/name` of the Ingresses.
    pub ingresses: Vec<String>,
    /// The peers; `None`: those of the backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
    /// Keeping clients on their peers.
    pub session_affinity_config: SessionAffinity,
    /// Picking peers by hash.
    pub upstream_hash_by_config: HashBy,
    /// How peers are picked: `round_robin` or `ewma`.
    #[serde(rename = "load-balance", skip_serializing_if = "String::is_empty")]
    pub load_balance: String,
    /// Names of the canary backends that take a part of the requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternative_backends: Vec<String>,
}

impl From<&live::Variant> for Variant {
    fn from(variant: &live::Variant) -> Self {
        let endpoints = variant.endpoints.as_ref();
        let affinity = variant.affinity.as_deref();
        let hash_by = variant.hash_by.as_ref();
        Self {
            ingresses: variant.ingresses.iter().map(ToString::to_string).collect(),
            endpoints: endpoints.map(|all| all.iter().map(Endpoint::from).collect()),
            session_affinity_config: affinity.map(SessionAffinity::from).unwrap_or_default(),
            upstream_hash_by_config: hash_by.map(HashBy::from).unwrap_or_default(),
            load_balance: load_balance(variant.load_balance),
            alternative_backends: names(&variant.alternatives),
        }
    }
}

#[cfg(test)]
mod tests {
    use ingress_model::{ObjectName, live::UpstreamName};

    use super::*;

    const FULL: &str = concat!(
        r#"{"ingresses":["shop/a","shop/b"],"endpoints":[{"address":"10.96.0.1","port":"80"}],"#,
        r#""sessionAffinityConfig":{"name":"cookie","mode":"balanced","cookieSessionAffinity":{"name":"lane"}},"#,
        r#""upstreamHashByConfig":{"upstream-hash-by":"$host"},"load-balance":"ewma","#,
        r#""alternativeBackends":["shop-next-80"]}"#,
    );

    const BARE: &str = concat!(
        r#"{"ingresses":["shop/a"],"#,
        r#""sessionAffinityConfig":{"name":"","mode":"","cookieSessionAffinity":{"name":""}},"#,
        r#""upstreamHashByConfig":{}}"#,
    );

    #[test]
    fn members_are_those_of_a_backend() {
        let full = live::Variant {
            ingresses: vec![ObjectName::new("shop", "a"), ObjectName::new("shop", "b")],
            endpoints: Some(vec![live::Endpoint {
                address: "10.96.0.1".to_owned(),
                port: 80,
            }]),
            load_balance: Some(live::LoadBalance::Ewma),
            hash_by: Some(live::HashBy {
                key: "$host".to_owned(),
                ..live::HashBy::default()
            }),
            affinity: Some(Box::new(live::CookieAffinity {
                name: "lane".to_owned(),
                ..live::CookieAffinity::default()
            })),
            alternatives: vec![UpstreamName::new("shop-next-80")],
        };
        let bare = live::Variant {
            ingresses: vec![ObjectName::new("shop", "a")],
            ..live::Variant::default()
        };
        for (variant, expected) in [(full, FULL), (bare, BARE)] {
            let variant = Variant::from(&variant);
            assert_eq!(serde_json::to_string(&variant).unwrap(), expected);
            assert_eq!(serde_json::from_str::<Variant>(expected).unwrap(), variant);
        }
    }
}
