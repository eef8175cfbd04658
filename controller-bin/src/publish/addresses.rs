//! The addresses at which Ingresses are reached: given by a flag, or those of a Service, or those of the nodes that the
//! controller's pods run on.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use ingress_model::{ObjectMap, ObjectName};
use k8s_openapi::api::{
    core::v1::{Node, Pod, Service, ServiceSpec},
    networking::v1::Ingress,
};
use kube::{Api, Client, api::ListParams};
use serde::Serialize;

use crate::args::StatusArgs;

/// Labels that tell the pods of one Deployment, StatefulSet or DaemonSet apart by their version.
const VERSION_LABELS: [&str; 3] = [
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
];

/// An address, as the status of an Ingress lists it. Ordered by IP address, then host name, both as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Address {
    /// The IP address, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// The host name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// Several addresses, sorted and without repetition.
pub type Addresses = BTreeSet<Address>;

/// Where the addresses come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `--publish-status-address`.
    Given(Addresses),
    /// `--publish-service`.
    Service(ObjectName),
    /// The nodes of the pods that are like this one.
    Nodes {
        /// This pod.
        pod: ObjectName,
        /// `--report-node-internal-ip-address`.
        internal: bool,
    },
}

impl Address {
    /// An IP address or a host name.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = text.to_owned();
        if text.parse::<IpAddr>().is_ok() {
            Self {
                ip: Some(text),
                hostname: None,
            }
        } else {
            Self {
                ip: None,
                hostname: Some(text),
            }
        }
    }
}

impl Source {
    /// What the flags say; `None` if they do not and the controller runs in no pod.
    #[must_use]
    pub fn from_flags(args: &StatusArgs, pod: Option<&ObjectName>) -> Option<Self> {
        if let Some(list) = &args.publish_status_address {
            return Some(Self::Given(given(list)));
        }
        if let Some(service) = &args.publish_service {
            return Some(Self::Service(service.clone()));
        }
        Some(Self::Nodes {
            pod: pod?.clone(),
            internal: args.report_node_internal_ip_address,
        })
    }

    /// The addresses as they are now.
    ///
    /// # Errors
    ///
    /// When the API server does not tell.
    pub async fn look_up(
        &self,
        client: &Client,
        nodes: &ObjectMap<Node>,
    ) -> Result<Addresses, kube::Error> {
        match self {
            Self::Given(addresses) => Ok(addresses.clone()),
            Self::Service(name) => {
                let services = Api::namespaced(client.clone(), name.namespace());
                Ok(of_service(&services.get(name.name()).await?))
            }
            Self::Nodes { pod, internal } => {
                let pods = like(client, pod, &[]).await?;
                let names: BTreeSet<_> = pods.iter().filter_map(serving_node).collect();
                let mut addresses = Addresses::new();
                for name in names {
                    let mut node = nodes.get(&ObjectName::cluster(name)).cloned();
                    if node.is_none() {
                        let nodes = Api::<Node>::all(client.clone());
                        node = nodes.get_opt(name).await?.map(Arc::new);
                    }
                    let address = node.and_then(|node| of_node(&node, *internal));
                    addresses.extend(address);
                }
                Ok(addresses)
            }
        }
    }
}

/// Whether this pod is the last one of its sort, and nobody takes over what it leaves. A pod that is ending itself does
/// not count: it was told so together with this one, or before.
///
/// # Errors
///
/// When the API server does not tell.
pub async fn is_last(client: &Client, pod: &ObjectName) -> Result<bool, kube::Error> {
    let pods = like(client, pod, &VERSION_LABELS).await?;
    Ok(!pods.iter().any(|other| {
        other.metadata.name.as_deref() != Some(pod.name())
            && other.metadata.deletion_timestamp.is_none()
            && !has_ended(other)
    }))
}

/// The addresses that an Ingress's status holds.
#[must_use]
pub fn of_status(ingress: &Ingress) -> Addresses {
    let balancer = ingress
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let entries = balancer.and_then(|balancer| balancer.ingress.as_deref());
    let addresses = entries.unwrap_or_default().iter().map(|entry| Address {
        ip: entry.ip.clone().filter(|ip| !ip.is_empty()),
        hostname: entry.hostname.clone().filter(|name| !name.is_empty()),
    });
    addresses.collect()
}

/// `--publish-status-address`: separated by commas.
fn given(list: &str) -> Addresses {
    let texts = list.split(',').map(str::trim);
    texts
        .filter(|text| !text.is_empty())
        .map(Address::new)
        .collect()
}

/// The addresses of a Service, by its type.
fn of_service(service: &Service) -> Addresses {
    let Some(spec) = &service.spec else {
        return Addresses::new();
    };
    match spec.type_.as_deref() {
        Some("ExternalName") => spec
            .external_name
            .iter()
            .map(|name| Address {
                ip: None,
                hostname: Some(name.clone()),
            })
            .collect(),
        Some("LoadBalancer") => of_load_balancer(service, spec),
        Some("NodePort") => {
            let external = external_ips(spec);
            if external.is_empty() {
                cluster_ip(spec)
            } else {
                external
            }
        }
        // The type is ClusterIP unless another one is given.
        _ => cluster_ip(spec),
    }
}

fn of_load_balancer(service: &Service, spec: &ServiceSpec) -> Addresses {
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let entries = balancer.and_then(|balancer| balancer.ingress.as_deref());
    let entries = entries.unwrap_or_default();
    let mut addresses: Addresses = entries
        .iter()
        .map(|entry| Address {
            ip: entry.ip.clone().filter(|ip| !ip.is_empty()),
            hostname: entry.hostname.clone().filter(|name| !name.is_empty()),
        })
        .filter(|address| *address != Address::default())
        .collect();
    let known: BTreeSet<_> = entries
        .iter()
        .filter_map(|entry| entry.ip.clone())
        .collect();
    let external = external_ips(spec).into_iter();
    addresses.extend(external.filter(|address| {
        !address
            .ip
            .as_ref()
            .is_some_and(|address| known.contains(address))
    }));
    addresses
}

fn external_ips(spec: &ServiceSpec) -> Addresses {
    let ips = spec.external_ips.as_deref().unwrap_or_default();
    ips.iter().map(|ip| Address::new(ip)).collect()
}

fn cluster_ip(spec: &ServiceSpec) -> Addresses {
    let ip = spec.cluster_ip.as_deref();
    // A headless Service has "None".
    ip.filter(|ip| ip.parse::<IpAddr>().is_ok())
        .map(Address::new)
        .into_iter()
        .collect()
}

/// The external address of a node, or the internal one if it is wanted or there is no other.
fn of_node(node: &Node, internal: bool) -> Option<Address> {
    let status = node.status.as_ref()?;
    let addresses = status.addresses.as_deref().unwrap_or_default();
    let of_type = |type_: &str| {
        let mut matching = addresses.iter().filter(|address| address.type_ == type_);
        matching.find_map(|address| (!address.address.is_empty()).then_some(&address.address))
    };
    let external = of_type("ExternalIP").filter(|_| !internal);
    let address = external.or_else(|| of_type("InternalIP"))?;
    Some(Address::new(address))
}

/// The node of a pod that is running and ready.
fn serving_node(pod: &Pod) -> Option<&str> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let ready = conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let running = status.phase.as_deref() == Some("Running");
    let node = pod.spec.as_ref()?.node_name.as_deref();
    node.filter(|_| running && ready)
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The pods that carry all labels of this one, but for some.
async fn like(client: &Client, pod: &ObjectName, but: &[&str]) -> Result<Vec<Pod>, kube::Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), pod.namespace());
    let this = pods.get(pod.name()).await?;
    let selector = selector(this.metadata.labels.as_ref(), but);
    if selector.is_empty() {
        // Without labels nothing tells which pods are like it.
        return Ok(vec![this]);
    }
    let list = pods.list(&ListParams::default().labels(&selector)).await?;
    Ok(list.items)
}

fn selector(labels: Option<&BTreeMap<String, String>>, but: &[&str]) -> String {
    let labels = labels.into_iter().flatten();
    let wanted = labels.filter(|(key, _)| !but.contains(&key.as_str()));
    let terms: Vec<_> = wanted
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    terms.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
        serde_json::from_value(value).unwrap()
    }

    fn shown(addresses: &Addresses) -> Value {
        serde_json::to_value(addresses).unwrap()
    }

    #[test]
    fn a_list_of_addresses_is_read_and_sorted() {
        let addresses = given("lb.test, 10.0.0.2,10.0.0.1 ,, 10.0.0.2,::1");
        let want = json!([
            {"hostname": "lb.test"},
            {"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}, {"ip": "::1"},
        ]);
        assert_eq!(shown(&addresses), want);
    }

    #[test]
    fn the_type_of_a_service_says_where_its_addresses_are() {
        let balancer = json!({"loadBalancer": {"ingress": [{"hostname": "b.test"}, {"ip": "1.1.1.1"}, {"ip": "9.9.9.9", "hostname": "a.test"}]}});
        for (spec, status, want) in [
            (
                json!({"type": "ExternalName", "externalName": "x.test"}),
                Value::Null,
                json!([{"hostname": "x.test"}]),
            ),
            (
                json!({"clusterIP": "10.0.0.1"}),
                Value::Null,
                json!([{"ip": "10.0.0.1"}]),
            ),
            (
                json!({"type": "ClusterIP", "clusterIP": "None"}),
                Value::Null,
                json!([]),
            ),
            (
                json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "externalIPs": ["1.1.1.1"]}),
                balancer.clone(),
                json!([{"ip": "10.0.0.1"}]),
            ),
            (
                json!({"type": "NodePort", "clusterIP": "10.0.0.1"}),
                Value::Null,
                json!([{"ip": "10.0.0.1"}]),
            ),
            (
                json!({"type": "NodePort", "clusterIP": "10.0.0.1", "externalIPs": ["2.2.2.2", "1.1.1.1"]}),
                Value::Null,
                json!([{"ip": "1.1.1.1"}, {"ip": "2.2.2.2"}]),
            ),
            (
                json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}),
                Value::Null,
                json!([]),
            ),
            (
                json!({"type": "LoadBalancer", "externalIPs": ["9.9.9.9", "2.2.2.2"]}),
                balancer,
                json!([
                    {"hostname": "b.test"}, {"ip": "1.1.1.1"}, {"ip": "2.2.2.2"},
                    {"ip": "9.9.9.9", "hostname": "a.test"},
                ]),
            ),
        ] {
            let service: Service = object(json!({"spec": spec, "status": status}));
            assert_eq!(shown(&of_service(&service)), want, "{service:?}");
        }
    }

    #[test]
    fn the_external_address_of_a_node_comes_first_unless_told_otherwise() {
        let node =
            |addresses: Value| -> Node { object(json!({"status": {"addresses": addresses}})) };
        let (internal, external) = (
            json!({"type": "InternalIP", "address": "10.0.0.1"}),
            json!({"type": "ExternalIP", "address": "1.1.1.1"}),
        );
        let name = json!({"type": "Hostname", "address": "n"});
        let both = node(json!([name, internal, external]));
        assert_eq!(of_node(&both, false), Some(Address::new("1.1.1.1")));
        assert_eq!(of_node(&both, true), Some(Address::new("10.0.0.1")));
        assert_eq!(
            of_node(&node(json!([internal])), false),
            Some(Address::new("10.0.0.1"))
        );
        assert_eq!(of_node(&node(json!([external])), true), None);
        assert_eq!(of_node(&node(json!([name])), false), None);
    }

    #[test]
    fn only_pods_that_run_and_are_ready_serve() {
        for (phase, ready, want) in [
            ("Running", "True", Some("n")),
            ("Running", "False", None),
            ("Succeeded", "True", None),
        ] {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            let pod: Pod = object(json!({
                "spec": {"nodeName": "n", "containers": []},
                "status": {"phase": phase, "conditions": conditions},
            }));
            assert_eq!(serving_node(&pod), want, "{phase} {ready}");
        }
    }

    #[test]
    fn a_selector_names_all_labels_but_those_of_a_version() {
        let labels: BTreeMap<_, _> = [("app", "x"), ("pod-template-hash", "1"), ("z", "")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        assert_eq!(selector(Some(&labels), &[]), "app=x,pod-template-hash=1,z=");
        assert_eq!(selector(Some(&labels), &VERSION_LABELS), "app=x,z=");
        assert_eq!(selector(None, &[]), "");
    }

    #[test]
    fn what_a_status_holds_is_compared_by_address_alone() {
        let ingress: Ingress = object(json!({"status": {"loadBalancer": {"ingress": [
            {"ip": "2.2.2.2", "ports": [{"port": 80, "protocol": "TCP"}]}, {"hostname": "a.test", "ip": ""},
        ]}}}));
        assert_eq!(of_status(&ingress), given("a.test,2.2.2.2"));
        assert!(of_status(&Ingress::default()).is_empty());
    }
}
