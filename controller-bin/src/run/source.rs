//! Where objects come from: an API server, or a directory of manifests.

use std::{fmt, sync::Arc};

use ingress_model::{Options, live::Certificate};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use tokio::{sync::watch::Receiver, task::JoinSet};
use tracing::warn;

use super::Error;
use crate::{
    args::Args,
    cluster,
    manifests::{self, AssumedClass, Manifests},
    publish::Publisher,
    store::Store,
    watch,
};

/// Keeps objects coming while it lives.
pub(super) enum Source {
    Manifests {
        _followed: Manifests,
    },
    Cluster {
        client: Client,
        _watches: JoinSet<()>,
    },
}

impl Source {
    /// A client of the API server that objects come from, if they come from one.
    pub(super) fn client(&self) -> Option<&Client> {
        match self {
            Self::Manifests { .. } => None,
            Self::Cluster { client, .. } => Some(client),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Manifests { .. } => "Manifests",
            Self::Cluster { .. } => "Cluster",
        })
    }
}

impl Args {
    /// Begins to bring objects into a store.
    pub(super) async fn follow_objects(&self) -> Result<(Arc<Store>, Source), Error> {
        if let Some(directory) = &self.kubernetes.manifests {
            let store = Arc::new(Store::awaiting([manifests::LIST.to_owned()]));
            let class = AssumedClass {
                name: self.rules.ingress_class.clone(),
                controller: self.rules.controller_class.clone(),
            };
            let followed = Manifests::start(directory, class, Arc::clone(&store))?;
            return Ok((
                store,
                Source::Manifests {
                    _followed: followed,
                },
            ));
        }
        let client = cluster::client(&self.kubernetes).await?;
        let lists = watch::lists(self);
        let store = Arc::new(Store::awaiting(lists.iter().map(ToString::to_string)));
        let watches = watch::start(&client, lists, &store);
        Ok((
            store,
            Source::Cluster {
                client,
                _watches: watches,
            },
        ))
    }

    /// What the rules have to know of the flags and of where we run.
    pub(super) async fn rules_for(&self, source: &Source, certificate: Certificate) -> Options {
        let mut options = self.options();
        options.generated_certificate = Some(certificate);
        if let Source::Cluster { client, .. } = source
            && self.rules.enable_topology_aware_routing
            && options.node.is_none()
        {
            options.node = self.node_of_pod(client).await;
        }
        options
    }

    /// The node that our pod runs on.
    async fn node_of_pod(&self, client: &Client) -> Option<String> {
        let namespace = self.kubernetes.pod_namespace.as_deref()?;
        let name = self.kubernetes.pod_name.as_deref()?;
        let pod = Api::<Pod>::namespaced(client.clone(), namespace)
            .get(name)
            .await;
        match pod {
            Ok(pod) => pod.spec?.node_name,
            Err(error) => {
                warn!(%error, "cannot tell which node the controller runs on; endpoints of all zones are used");
                None
            }
        }
    }

    /// Begins to tell the API server what the controller knows, if objects come from one.
    pub(super) fn publish(
        &self,
        source: &Source,
        store: &Arc<Store>,
        ended: &Receiver<bool>,
    ) -> Option<Publisher> {
        match source {
            Source::Manifests { .. } => None,
            Source::Cluster { client, .. } => Some(Publisher::start(self, client, store, ended)),
        }
    }
}
