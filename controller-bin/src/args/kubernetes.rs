//! Flags about where objects come from.

use std::{path::PathBuf, time::Duration};

use ingress_model::selector::LabelSelector;

use super::{
    ArgsError,
    value::{self, Given},
};

/// Where objects come from.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Source of objects")]
pub struct KubernetesArgs {
    /// Read objects from the YAML and JSON files of this directory, and watch it, instead of asking an API server
    #[arg(long, value_name = "DIR", default_value = "", value_parser = value::path)]
    pub manifests: Given<PathBuf>,

    /// Address of the API server; without it the kubeconfig, or the service account of the pod, tells
    #[arg(long, value_name = "URL", default_value = "", value_parser = value::text)]
    pub apiserver_host: Given<String>,

    /// File with the authority of the API server's certificate, for --apiserver-host
    #[arg(long, value_name = "FILE", default_value = "", value_parser = value::path)]
    pub certificate_authority: Given<PathBuf>,

    /// File with the address and the credentials of the API server
    #[arg(long, value_name = "FILE", default_value = "", value_parser = value::path)]
    pub kubeconfig: Given<PathBuf>,

    /// Only look at this namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "", value_parser = value::text)]
    pub watch_namespace: Given<String>,

    /// Only look at Ingresses of namespaces with such labels
    #[arg(long, value_name = "SELECTOR", default_value = "", value_parser = value::label_selector)]
    pub watch_namespace_selector: Given<LabelSelector>,

    /// How often everything is gone through although nothing has changed; at least once a minute
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = value::duration)]
    pub sync_period: Duration,

    /// Name of the pod that the controller runs in
    #[arg(long, value_name = "NAME", env = "POD_NAME", default_value = "", value_parser = value::text)]
    pub pod_name: Given<String>,

    /// Namespace of the pod that the controller runs in
    #[arg(long, value_name = "NAMESPACE", env = "POD_NAMESPACE", default_value = "", value_parser = value::text)]
    pub pod_namespace: Given<String>,

    /// Name of the node that the controller runs on, for --enable-topology-aware-routing
    #[arg(long, value_name = "NAME", env = "NODE_NAME", default_value = "", value_parser = value::text)]
    pub node_name: Given<String>,
}

impl KubernetesArgs {
    pub(super) fn check(&self) -> Result<(), ArgsError> {
        if self.watch_namespace.is_some() && self.watch_namespace_selector.is_some() {
            return Err(ArgsError::Exclusive(
                "--watch-namespace",
                "--watch-namespace-selector",
            ));
        }
        if self.manifests.is_some() && self.kubeconfig.is_some() {
            return Err(ArgsError::Exclusive("--manifests", "--kubeconfig"));
        }
        if self.manifests.is_some() && self.apiserver_host.is_some() {
            return Err(ArgsError::Exclusive("--manifests", "--apiserver-host"));
        }
        Ok(())
    }
}
