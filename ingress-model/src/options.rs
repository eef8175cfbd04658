//! What the operator chose by flags, as far as the rules depend on it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{live::Certificate, object::ObjectName, selector::LabelSelector};

/// Who holds a host and path, a host's TLS section or a server-level setting that several Ingresses define.
///
/// Ingresses are taken by creation time, oldest first; among equal times the larger `namespace/name` wins under either
/// policy, as ingress-nginx resolves ties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum ConflictPolicy {
    /// The Ingress created last holds it.
    #[default]
    LastDefinitionWins,
    /// The Ingress created first holds it, as in ingress-nginx.
    OldestWins,
}

/// Flags that the rules depend on. [`Options::default`] has the defaults of the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `--conflict-policy`.
    pub conflict_policy: ConflictPolicy,
    /// `--controller-class`: the `spec.controller` of the IngressClasses that are ours.
    pub controller_class: String,
    /// `--ingress-class`: what the annotation `kubernetes.io/ingress.class` has to say.
    pub ingress_class: String,
    /// `--ingress-class-by-name`: an IngressClass named like [`Options::ingress_class`] is ours as well.
    pub ingress_class_by_name: bool,
    /// `--watch-ingress-without-class`: Ingresses that name no class are ours.
    pub watch_ingress_without_class: bool,
    /// `--watch-namespace`: other namespaces do not count. `None`: all count.
    pub watch_namespace: Option<String>,
    /// `--watch-namespace-selector`: namespaces whose labels do not match do not count. `None`: all count.
    pub namespace_selector: Option<LabelSelector>,
    /// Whether IngressClasses can be read. Where they cannot, `spec.ingressClassName` is not looked at and the class is
    /// what the annotation says.
    pub ingress_classes_readable: bool,
    /// The node that the controller runs on, with `--enable-topology-aware-routing`: Services that ask for it get the
    /// endpoints of the node's zone. `None`: all endpoints are used.
    pub node: Option<String>,
    /// `--disable-catch-all`: Ingresses with `spec.defaultBackend` are ignored.
    pub disable_catch_all: bool,
    /// `--deep-inspect`: Ingresses with suspicious hosts, paths or Secret names are ignored.
    pub deep_inspect: bool,
    /// `--annotations-prefix`.
    pub annotations_prefix: String,
    /// `--enable-annotation-validation`.
    pub annotation_validation: bool,
    /// `--disable-svc-external-name`: Services of type ExternalName have no endpoints.
    pub disable_external_name: bool,
    /// `--enable-ssl-passthrough`: TLS of hosts with `ssl-passthrough` goes to their Services as it is.
    pub ssl_passthrough: bool,
    /// `--configmap`.
    pub config_map: Option<ObjectName>,
    /// `--tcp-services-configmap`.
    pub tcp_services: Option<ObjectName>,
    /// `--udp-services-configmap`.
    pub udp_services: Option<ObjectName>,
    /// `--default-backend-service`.
    pub default_backend_service: Option<ObjectName>,
    /// `--default-ssl-certificate`.
    pub default_ssl_certificate: Option<ObjectName>,
    /// `--default-server-port`: where NGINX answers 404.
    pub default_server_port: u16,
    /// Ports that a TCP or UDP service cannot have since the controller listens there. None by default: which ones these are
    /// depends on flags about ports, of which the rules know nothing else.
    pub reserved_ports: Vec<u16>,
    /// Ports that a TCP service cannot have at present since another program listens there: NGINX could not load its
    /// configuration.
    pub taken_tcp_ports: BTreeSet<u16>,
    /// The same for UDP services.
    pub taken_udp_ports: BTreeSet<u16>,
    /// The certificate for hosts without one of their own, made by the controller at its start. `None`: such hosts are
    /// refused at the TLS handshake.
    pub generated_certificate: Option<Certificate>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            conflict_policy: ConflictPolicy::default(),
            controller_class: "k8s.io/ingress-nginx".into(),
            ingress_class: "nginx".into(),
            ingress_class_by_name: false,
            watch_ingress_without_class: false,
            watch_namespace: None,
            namespace_selector: None,
            ingress_classes_readable: true,
            node: None,
            disable_catch_all: false,
            deep_inspect: true,
            annotations_prefix: "nginx.ingress.kubernetes.io".into(),
            annotation_validation: true,
            disable_external_name: false,
            ssl_passthrough: false,
            config_map: None,
            tcp_services: None,
            udp_services: None,
            default_backend_service: None,
            default_ssl_certificate: None,
            default_server_port: 8181,
            reserved_ports: Vec::new(),
            taken_tcp_ports: BTreeSet::new(),
            taken_udp_ports: BTreeSet::new(),
            generated_certificate: None,
        }
    }
}
