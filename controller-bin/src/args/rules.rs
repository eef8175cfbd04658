//! Flags about which objects count, and how.

use ingress_model::{ConflictPolicy, ObjectName};

use super::value::{self, Given};

/// Which objects count, and how.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Rules")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches, each of its own"
)]
pub struct RuleArgs {
    /// IngressClasses with this spec.controller are ours
    #[arg(long, value_name = "NAME", default_value = "k8s.io/ingress-nginx")]
    pub controller_class: String,

    /// Ingresses whose annotation kubernetes.io/ingress.class has this value are ours
    #[arg(long, value_name = "NAME", default_value = "nginx")]
    pub ingress_class: String,

    /// The IngressClass named by --ingress-class is ours whatever its spec.controller
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub ingress_class_by_name: bool,

    /// Ingresses that name no class are ours
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub watch_ingress_without_class: bool,

    /// What holds when several Ingresses define the same thing: last-definition-wins or oldest-wins (as ingress-nginx)
    #[arg(long, value_name = "POLICY", default_value = "last-definition-wins", value_parser = value::conflict_policy)]
    pub conflict_policy: ConflictPolicy,

    /// ConfigMap with the settings of the controller
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "", value_parser = value::object_name)]
    pub configmap: Given<ObjectName>,

    /// ConfigMap with the TCP services
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "", value_parser = value::object_name)]
    pub tcp_services_configmap: Given<ObjectName>,

    /// ConfigMap with the UDP services
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "", value_parser = value::object_name)]
    pub udp_services_configmap: Given<ObjectName>,

    /// Service that answers requests for unknown hosts
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "", value_parser = value::object_name)]
    pub default_backend_service: Given<ObjectName>,

    /// Secret with the certificate for hosts without one of their own
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "", value_parser = value::object_name)]
    pub default_ssl_certificate: Given<ObjectName>,

    /// Prefix of the annotations, a DNS subdomain
    #[arg(
        long,
        value_name = "PREFIX",
        default_value = "nginx.ingress.kubernetes.io",
        value_parser = value::annotations_prefix
    )]
    pub annotations_prefix: String,

    /// Check the values of annotations
    #[arg(long, default_value = "true", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub enable_annotation_validation: bool,

    /// Refuse Ingresses whose hosts, paths or Secret names look like configuration
    #[arg(long, default_value = "true", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub deep_inspect: bool,

    /// Refuse Ingresses with spec.defaultBackend
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub disable_catch_all: bool,

    /// Services of type ExternalName have no endpoints
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub disable_svc_external_name: bool,

    /// Prefer endpoints in the zone of the controller where Services ask for it
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub enable_topology_aware_routing: bool,

    /// Fetch intermediate certificates that Secrets lack
    #[arg(long, default_value = "false", action = clap::ArgAction::Set, value_parser = value::switch)]
    pub enable_ssl_chain_completion: bool,
}
