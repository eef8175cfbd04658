//! An element of `/configuration/backends`.

use std::collections::BTreeMap;

use ingress_model::live;
use serde::{Deserialize, Serialize};

use super::Variant;

/// A group of peers and how requests are balanced over them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Backend {
    /// The name by which locations find it.
    pub name: String,
    /// The Service, sent for those of type ExternalName only: nothing but the type is ever read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// The Service's port; the number 0 when there is none.
    pub port: PortRef,
    /// Whether TLS is passed through to the peers.
    pub ssl_passthrough: bool,
    /// The peers; without one, requests are answered 503.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
    /// Keeping clients on their peers.
    pub session_affinity_config: SessionAffinity,
    /// Picking peers by hash.
    pub upstream_hash_by_config: HashBy,
    /// How peers are picked: `round_robin` or `ewma`.
    #[serde(rename = "load-balance", skip_serializing_if = "String::is_empty")]
    pub load_balance: String,
    /// Whether this is a canary's backend.
    pub no_server: bool,
    /// Which requests a canary's backend gets.
    pub traffic_shaping_policy: TrafficShaping,
    /// Names of the canary backends that take a part of this one's requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternative_backends: Vec<String>,
    /// What is different for requests of some Ingresses; not known to ingress-nginx.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
}

/// What is said of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Its specification.
    pub spec: ServiceSpec,
}

/// What is said of a Service's specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// `ExternalName`, or another type.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

/// A Service's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PortRef {
    /// By number.
    Number(i32),
    /// By name.
    Name(String),
}

/// Where a peer listens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// An IP address without brackets, or the name of an ExternalName Service.
    pub address: String,
    /// The port's number, as a string.
    pub port: String,
}

/// Keeping clients on their peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionAffinity {
    /// `cookie`, or empty: none.
    pub name: String,
    /// `balanced` or `persistent`; empty without affinity.
    pub mode: String,
    /// The cookie.
    pub cookie_session_affinity: CookieAffinity,
}

/// The cookie that keeps a client on its peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CookieAffinity {
    /// Its name.
    pub name: String,
    /// `Expires`, in seconds from now.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expires: String,
    /// `Max-Age`, in seconds.
    #[serde(rename = "maxage", skip_serializing_if = "String::is_empty")]
    pub max_age: String,
    /// Host → paths at which it may be set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub locations: BTreeMap<String, Vec<String>>,
    /// `Secure` always; otherwise when the request came by TLS. There is no "never", as in ingress-nginx.
    #[serde(skip_serializing_if = "is_false")]
    pub secure: bool,
    /// `Path`; empty: the location's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// `Domain`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// `SameSite`.
    #[serde(rename = "samesite", skip_serializing_if = "String::is_empty")]
    pub same_site: String,
    /// Whether `SameSite=None` is left out for agents that misread it.
    #[serde(rename = "conditional_samesite_none", skip_serializing_if = "is_false")]
    pub conditional_same_site_none: bool,
    /// Whether a failing peer is given up.
    #[serde(skip_serializing_if = "is_false")]
    pub change_on_failure: bool,
}

/// Picking peers by the hash of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HashBy {
    /// What is hashed; empty: nothing.
    #[serde(rename = "upstream-hash-by", skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Whether the hash picks a set of peers.
    #[serde(rename = "upstream-hash-by-subset", skip_serializing_if = "is_false")]
    pub subset: bool,
    /// How many peers a set has.
    #[serde(
        rename = "upstream-hash-by-subset-size",
        skip_serializing_if = "is_zero"
    )]
    pub subset_size: u32,
}

/// Which requests a canary gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficShaping {
    /// Share of the requests, out of `weight_total`.
    pub weight: u32,
    /// What the weight is a share of; 0 counts as 100.
    pub weight_total: u32,
    /// Requests with this header.
    pub header: String,
    /// The value that the header has to have.
    pub header_value: String,
    /// The regular expression that the header has to match.
    pub header_pattern: String,
    /// Requests with this cookie.
    pub cookie: String,
}

impl Default for PortRef {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl From<&live::Backend> for Backend {
    fn from(backend: &live::Backend) -> Self {
        Self {
            name: backend.name.to_string(),
            service: backend.external_name.then(|| Service {
                spec: ServiceSpec {
                    kind: "ExternalName".to_owned(),
                },
            }),
            port: backend
                .port
                .as_ref()
                .map_or_else(PortRef::default, PortRef::from),
            ssl_passthrough: backend.ssl_passthrough,
            endpoints: backend.endpoints.iter().map(Endpoint::from).collect(),
            session_affinity_config: backend
                .affinity
                .as_deref()
                .map_or_else(SessionAffinity::default, SessionAffinity::from),
            upstream_hash_by_config: backend
                .hash_by
                .as_ref()
                .map_or_else(HashBy::default, HashBy::from),
            load_balance: load_balance(backend.load_balance),
            no_server: backend.canary,
            traffic_shaping_policy: backend
                .traffic_shaping
                .as_deref()
                .map_or_else(TrafficShaping::default, TrafficShaping::from),
            alternative_backends: names(&backend.alternatives),
            variants: backend.variants.iter().map(Variant::from).collect(),
        }
    }
}

impl From<&live::PortRef> for PortRef {
    fn from(port: &live::PortRef) -> Self {
        match port {
            live::PortRef::Number(number) => Self::Number(*number),
            live::PortRef::Name(name) => Self::Name(name.clone()),
        }
    }
}

impl From<&live::Endpoint> for Endpoint {
    fn from(endpoint: &live::Endpoint) -> Self {
        Self {
            address: endpoint.address.clone(),
            port: endpoint.port.to_string(),
        }
    }
}

impl From<&live::CookieAffinity> for SessionAffinity {
    fn from(cookie: &live::CookieAffinity) -> Self {
        Self {
            name: "cookie".to_owned(),
            mode: if cookie.persistent {
                "persistent"
            } else {
                "balanced"
            }
            .to_owned(),
            cookie_session_affinity: CookieAffinity {
                name: cookie.name.clone(),
                expires: cookie.expires.clone().unwrap_or_default(),
                max_age: cookie.max_age.clone().unwrap_or_default(),
                locations: cookie
                    .locations
                    .iter()
                    .map(|(host, paths)| (host.to_string(), paths.clone()))
                    .collect(),
                // The format cannot say "never", only "always" and "as the request came".
                secure: cookie.secure.unwrap_or(false),
                path: cookie.path.clone().unwrap_or_default(),
                domain: cookie.domain.clone().unwrap_or_default(),
                same_site: cookie.same_site.clone().unwrap_or_default(),
                conditional_same_site_none: cookie.conditional_same_site_none,
                change_on_failure: cookie.change_on_failure,
            },
        }
    }
}

impl From<&live::HashBy> for HashBy {
    fn from(hash_by: &live::HashBy) -> Self {
        Self {
            key: hash_by.key.clone(),
            subset: hash_by.subset,
            subset_size: hash_by.subset_size,
        }
    }
}

impl From<&live::TrafficShaping> for TrafficShaping {
    fn from(shaping: &live::TrafficShaping) -> Self {
        Self {
            weight: shaping.weight,
            weight_total: shaping.weight_total,
            header: shaping.header.clone(),
            header_value: shaping.header_value.clone(),
            header_pattern: shaping.header_pattern.clone(),
            cookie: shaping.cookie.clone(),
        }
    }
}

pub(super) fn load_balance(how: Option<live::LoadBalance>) -> String {
    let name = match how {
        None => "",
        Some(live::LoadBalance::RoundRobin) => "round_robin",
        Some(live::LoadBalance::Ewma) => "ewma",
    };
    name.to_owned()
}

pub(super) fn names(backends: &[live::UpstreamName]) -> Vec<String> {
    backends.iter().map(ToString::to_string).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use ingress_model::Host;
    use live::UpstreamName;

    use super::*;

    fn text(backend: &live::Backend) -> String {
        serde_json::to_string(&Backend::from(backend)).unwrap()
    }

    fn plain() -> live::Backend {
        let mut backend = live::Backend::new(UpstreamName::new("default-shop-80"));
        backend.port = Some(live::PortRef::Number(80));
        backend.endpoints = vec![
            live::Endpoint {
                address: "10.0.0.7".to_owned(),
                port: 8080,
            },
            live::Endpoint {
                address: "fd00::7".to_owned(),
                port: 8080,
            },
        ];
        backend.load_balance = Some(live::LoadBalance::Ewma);
        backend
    }

    fn full() -> live::Backend {
        let mut backend = plain();
        backend.port = Some(live::PortRef::Name("http".to_owned()));
        backend.external_name = true;
        backend.ssl_passthrough = true;
        backend.load_balance = Some(live::LoadBalance::RoundRobin);
        backend.endpoints = vec![live::Endpoint {
            address: "shop.example".to_owned(),
            port: 443,
        }];
        backend.hash_by = Some(live::HashBy {
            key: "$request_uri".to_owned(),
            subset: true,
            subset_size: 3,
        });
        backend.affinity = Some(Box::new(live::CookieAffinity {
            persistent: true,
            name: "SHOP".to_owned(),
            expires: Some("172800".to_owned()),
            max_age: Some("172801".to_owned()),
            locations: [
                (
                    Host::parse("shop.test").unwrap(),
                    vec!["/".to_owned(), "/a".to_owned()],
                ),
                (Host::catch_all(), vec!["/".to_owned()]),
            ]
            .into(),
            secure: Some(true),
            path: Some("/a".to_owned()),
            domain: Some("shop.test".to_owned()),
            same_site: Some("Lax".to_owned()),
            conditional_same_site_none: true,
            change_on_failure: true,
        }));
        backend.canary = true;
        backend.traffic_shaping = Some(Box::new(live::TrafficShaping {
            weight: 20,
            weight_total: 100,
            header: "X-Canary".to_owned(),
            header_value: "yes".to_owned(),
            header_pattern: "y.*".to_owned(),
            cookie: "canary".to_owned(),
        }));
        backend.alternatives = vec![UpstreamName::new("default-next-80")];
        backend
    }

    const PLAIN: &str = concat!(
        r#"{"name":"default-shop-80","port":80,"sslPassthrough":false,"#,
        r#""endpoints":[{"address":"10.0.0.7","port":"8080"},{"address":"fd00::7","port":"8080"}],"#,
        r#""sessionAffinityConfig":{"name":"","mode":"","cookieSessionAffinity":{"name":""}},"#,
        r#""upstreamHashByConfig":{},"load-balance":"ewma","noServer":false,"#,
        r#""trafficShapingPolicy":{"weight":0,"weightTotal":0,"header":"","headerValue":"","headerPattern":"","#,
        r#""cookie":""}}"#,
    );

    const FULL: &str = concat!(
        r#"{"name":"default-shop-80","service":{"spec":{"type":"ExternalName"}},"port":"http","#,
        r#""sslPassthrough":true,"endpoints":[{"address":"shop.example","port":"443"}],"#,
        r#""sessionAffinityConfig":{"name":"cookie","mode":"persistent","cookieSessionAffinity":{"name":"SHOP","#,
        r#""expires":"172800","maxage":"172801","locations":{"_":["/"],"shop.test":["/","/a"]},"secure":true,"#,
        r#""path":"/a","domain":"shop.test","samesite":"Lax","conditional_samesite_none":true,"#,
        r#""change_on_failure":true}},"upstreamHashByConfig":{"upstream-hash-by":"$request_uri","#,
        r#""upstream-hash-by-subset":true,"upstream-hash-by-subset-size":3},"load-balance":"round_robin","#,
        r#""noServer":true,"trafficShapingPolicy":{"weight":20,"weightTotal":100,"header":"X-Canary","#,
        r#""headerValue":"yes","headerPattern":"y.*","cookie":"canary"},"alternativeBackends":["default-next-80"]}"#,
    );

    const BARE: &str = concat!(
        r#"{"name":"upstream-default-backend","port":0,"sslPassthrough":false,"#,
        r#""sessionAffinityConfig":{"name":"","mode":"","cookieSessionAffinity":{"name":""}},"#,
        r#""upstreamHashByConfig":{},"noServer":false,"#,
        r#""trafficShapingPolicy":{"weight":0,"weightTotal":0,"header":"","headerValue":"","headerPattern":"","#,
        r#""cookie":""}}"#,
    );

    #[test]
    fn members_are_named_and_left_out_as_documented() {
        let bare = live::Backend::new(UpstreamName::default_backend());
        for (backend, want) in [(bare, BARE), (plain(), PLAIN), (full(), FULL)] {
            assert_eq!(text(&backend), want);
        }
    }

    #[test]
    fn affinity_without_attributes_sends_none() {
        let mut backend = plain();
        backend.affinity = Some(Box::new(live::CookieAffinity {
            name: "INGRESSCOOKIE".to_owned(),
            secure: Some(false),
            expires: Some(String::new()),
            ..live::CookieAffinity::default()
        }));
        assert!(
            text(&backend).contains(concat!(
                r#""sessionAffinityConfig":{"name":"cookie","mode":"balanced","#,
                r#""cookieSessionAffinity":{"name":"INGRESSCOOKIE"}}"#
            )),
            "{}",
            text(&backend)
        );
    }

    #[test]
    fn decoding_and_encoding_is_the_identity() {
        for json in [BARE, PLAIN, FULL] {
            let backend: Backend = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&backend).unwrap(), json);
        }
    }

    #[test]
    fn the_whole_service_that_other_controllers_send_is_read() {
        let json = concat!(
            r#"{"name":"a","service":{"metadata":{"creationTimestamp":null},"spec":{"ports":[{"port":80}],"#,
            r#""type":"ExternalName"},"status":{"loadBalancer":{}}},"port":80,"unknown":[1]}"#
        );
        let backend: Backend = serde_json::from_str(json).unwrap();
        assert_eq!(backend.service.unwrap().spec.kind, "ExternalName");
        assert_eq!(backend.port, PortRef::Number(80));
        assert_eq!(backend.endpoints, []);
    }
}
