//! An API server, and a controller that follows it.

use crate::{
    site::{Site, backend::ingress, open_directory},
    support::ApiDouble,
};

pub(crate) const CLASS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";

/// An API server with a controller that serves what it has.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) api: ApiDouble,
    pub(crate) site: Site,
}

impl Cluster {
    /// With these objects, and a controller with these flags that is ready.
    pub(crate) async fn start(flags: &[&str], objects: &[&str]) -> Self {
        let api = ApiDouble::start().await;
        for object in objects {
            api.apply_yaml(object);
        }
        let host = format!("--apiserver-host={}", api.url());
        let flags: Vec<_> = [host.as_str()]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        let site = Site::start(open_directory(), &flags);
        site.ready().await;
        Self { api, site }
    }

    /// Adds an Ingress that sends a host of its name to a Service, and waits until it is served.
    pub(crate) async fn add(&self, name: &str, service: &str) {
        let host = format!("{name}.test");
        self.api.apply_yaml(&ingress(name, &host, service, ""));
        self.site.answers(&host, "/", 200, "").await;
    }
}
