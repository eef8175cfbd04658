//! Objects that are not read, and whether their author may think that they are.

use std::fmt;

use crate::spelling::nearest;

use super::object::KINDS;

/// An object of a kind that the rules do not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The line where it begins, from 1.
    pub line: u64,
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// What to write instead, if its author may think that it is read.
    pub advice: Option<Advice>,
}

/// What to write instead of an object that is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Its kind is written in another way, or the version is one that Kubernetes has removed or never had.
    Meant {
        /// The API version of objects that are read.
        api_version: &'static str,
        /// Their kind.
        kind: &'static str,
    },
    /// Endpoints, which clusters keep in EndpointSlices.
    EndpointSlice,
    /// A route of the Gateway API for HTTP, gRPC or TLS.
    Ingress,
    /// A route of the Gateway API for TCP.
    TcpServices,
    /// A route of the Gateway API for UDP.
    UdpServices,
    /// An object of the Gateway API that is no route, or none that there is anything like.
    NoGateway,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Meant { api_version, kind } => {
                return write!(f, "did you mean apiVersion {api_version}, kind {kind}?");
            }
            Self::EndpointSlice => {
                "endpoints are read from EndpointSlices (apiVersion discovery.k8s.io/v1) with the label \
                 kubernetes.io/service-name, which only a cluster makes of Endpoints"
            }
            Self::Ingress => {
                "the Gateway API is not served; an Ingress (apiVersion networking.k8s.io/v1) says the same"
            }
            Self::TcpServices => {
                "the Gateway API is not served; TCP services are named in the ConfigMap of --tcp-services-configmap"
            }
            Self::UdpServices => {
                "the Gateway API is not served; UDP services are named in the ConfigMap of --udp-services-configmap"
            }
            Self::NoGateway => {
                "the Gateway API is not served; what there is of it is said by Ingresses, their annotations and the controller's flags"
            }
        })
    }
}

impl Ignored {
    pub(super) fn new(line: u64, api_version: String, kind: String) -> Self {
        Self {
            line,
            advice: advice(&api_version, &kind),
            api_version,
            kind,
        }
    }
}

/// What to write instead. Kinds that nobody takes for ours get none.
fn advice(api_version: &str, kind: &str) -> Option<Advice> {
    match (group(api_version), kind) {
        ("", "Endpoints") => Some(Advice::EndpointSlice),
        // The second one is the group of its first versions.
        ("gateway.networking.k8s.io" | "networking.x-k8s.io", kind) => Some(match kind {
            "HTTPRoute" | "GRPCRoute" | "TLSRoute" => Advice::Ingress,
            "TCPRoute" => Advice::TcpServices,
            "UDPRoute" => Advice::UdpServices,
            _ => Advice::NoGateway,
        }),
        _ => {
            meant(api_version, kind).map(|(api_version, kind)| Advice::Meant { api_version, kind })
        }
    }
}

/// What was probably meant. Other APIs have kinds of these names too, such as Knative's Service, so that the group has to
/// be one of Kubernetes' own, or nearly the right one.
fn meant(api_version: &str, kind: &str) -> Option<(&'static str, &'static str)> {
    let kinds = || KINDS.iter().map(|(_, kind)| *kind);
    let same = kinds().find(|ours| ours.eq_ignore_ascii_case(kind));
    let right = KINDS
        .iter()
        .find(|(_, ours)| Some(*ours) == same.or_else(|| nearest(kind, kinds())))?;
    let group = group(api_version);
    let right_group = self::group(right.0);
    let near = group == right_group || nearest(group, [right_group]).is_some();
    let is_own = || {
        matches!(group, "" | "apps" | "extensions")
            || (group.ends_with(".k8s.io") && !group.ends_with(".x-k8s.io"))
    };
    (near || (same.is_some() && is_own())).then_some(*right)
}

/// The group of an API version; the core group has no name.
fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearly_right_was_meant() {
        let ingress = Some(("networking.k8s.io/v1", "Ingress"));
        let service = Some(("v1", "Service"));
        for (api_version, kind, want) in [
            ("extensions/v1beta1", "Ingress", ingress),
            ("networking.k8s.io/v1beta1", "Ingress", ingress),
            ("networking.k8s.io/v2", "Ingress", ingress),
            ("networking.k8s.io/v1", "ingress", ingress),
            ("networking.k8s.io/v1", "Ingres", ingress),
            ("network.k8s.io/v1", "Ingress", ingress),
            ("v1", "Ingress", ingress),
            ("v1", "service", service),
            ("v1", "Services", service),
            ("apps/v1", "Service", service),
            (
                "discovery.k8s.io/v1beta1",
                "EndpointSlice",
                Some(("discovery.k8s.io/v1", "EndpointSlice")),
            ),
            ("serving.knative.dev/v1", "Service", None),
            ("networking.internal.knative.dev/v1alpha1", "Ingress", None),
            ("networking.k8s.io/v1", "NetworkPolicy", None),
            ("multicluster.x-k8s.io/v1alpha1", "ServiceImport", None),
            ("v1", "ServiceAccount", None),
            ("v1", "Pod", None),
            ("apps/v1", "Deployment", None),
        ] {
            assert_eq!(meant(api_version, kind), want, "{api_version} {kind}");
        }
    }

    #[test]
    fn what_others_read_is_told_of() {
        for (api_version, kind, want) in [
            ("v1", "Endpoints", Some(Advice::EndpointSlice)),
            ("example.test/v1", "Endpoints", None),
            (
                "gateway.networking.k8s.io/v1",
                "HTTPRoute",
                Some(Advice::Ingress),
            ),
            (
                "gateway.networking.k8s.io/v1alpha2",
                "TLSRoute",
                Some(Advice::Ingress),
            ),
            (
                "gateway.networking.k8s.io/v1alpha2",
                "TCPRoute",
                Some(Advice::TcpServices),
            ),
            (
                "gateway.networking.k8s.io/v1alpha2",
                "UDPRoute",
                Some(Advice::UdpServices),
            ),
            (
                "gateway.networking.k8s.io/v1",
                "Gateway",
                Some(Advice::NoGateway),
            ),
            (
                "networking.x-k8s.io/v1alpha1",
                "GatewayClass",
                Some(Advice::NoGateway),
            ),
            (
                "extensions/v1beta1",
                "Ingress",
                Some(Advice::Meant {
                    api_version: "networking.k8s.io/v1",
                    kind: "Ingress",
                }),
            ),
            ("apps/v1", "Deployment", None),
            ("traefik.io/v1alpha1", "IngressRoute", None),
            ("batch/v1", "Job", None),
            ("rbac.authorization.k8s.io/v1", "Role", None),
            ("autoscaling/v2", "HorizontalPodAutoscaler", None),
            ("cert-manager.io/v1", "Certificate", None),
        ] {
            assert_eq!(advice(api_version, kind), want, "{api_version} {kind}");
        }
    }
}
