//! The controller on an API server that misbehaves, with a real NGINX and real requests.

mod site;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
mod support;

use serde_json::{Value, json};
use site::{
    Site,
    backend::{Backend, ingress},
    open_directory,
};
use support::{ApiDouble, Fault, Target, Verb};

const CLASS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";

/// An API server, a back end, and a controller that follows and serves them.
struct Cluster {
    api: ApiDouble,
    site: Site,
    _backend: Backend,
}

impl Cluster {
    /// With `a.test` served.
    async fn start(flags: &[&str]) -> Self {
        let (api, backend) = Self::prepare().await;
        let site = Self::controller(&api, flags);
        site.ready().await;
        site.answers("a.test", "/", 200, "one").await;
        Self {
            api,
            site,
            _backend: backend,
        }
    }

    async fn prepare() -> (ApiDouble, Backend) {
        let api = ApiDouble::start().await;
        let backend = Backend::start("one").await;
        api.apply_yaml(CLASS);
        api.apply_yaml(&backend.service("one"));
        api.apply_yaml(&ingress("a", "a.test", "one", ""));
        (api, backend)
    }

    fn controller(api: &ApiDouble, flags: &[&str]) -> Site {
        let host = format!("--apiserver-host={}", api.url());
        let flags: Vec<_> = [host.as_str()]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        Site::start(open_directory(), &flags)
    }

    /// Adds an Ingress for a host, and waits until it is served.
    async fn add(&self, name: &str) {
        let host = format!("{name}.test");
        self.api.apply_yaml(&ingress(name, &host, "one", ""));
        self.site.answers(&host, "/", 200, "one").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_cluster_are_served() {
    let cluster = Cluster::start(&[]).await;
    cluster.add("b").await;
    cluster.api.delete("ingresses", "default", "a");
    cluster.site.answers("a.test", "/", 404, "").await;
    cluster.site.answers("b.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_leads_to_the_cluster() {
    let (api, _backend) = Cluster::prepare().await;
    let kubeconfig = api.kubeconfig();
    let flag = format!("--kubeconfig={}", kubeconfig.path().display());
    let site = Site::start(open_directory(), &[&flag]);
    site.ready().await;
    site.answers("a.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_end_or_expire_are_taken_up_again() {
    let cluster = Cluster::start(&[]).await;
    for resource in ["ingresses", "services", "endpointslices"] {
        cluster.api.end_watches(resource);
    }
    cluster.add("b").await;
    for resource in ["ingresses", "services", "endpointslices"] {
        cluster.api.expire_watches(resource);
    }
    cluster.add("c").await;
    cluster.api.cut_next_event("ingresses");
    cluster.add("d").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_new_list_lacks_is_taken_away() {
    let cluster = Cluster::start(&[]).await;
    cluster.add("b").await;
    cluster.api.vanish("ingresses", "default", "a");
    cluster.site.answers("a.test", "/", 404, "").await;
    cluster.site.answers("b.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_api_server_everything_goes_on() {
    let cluster = Cluster::start(&[]).await;
    cluster.api.go_away().await;
    cluster
        .site
        .until("the loss is noticed", async || {
            (cluster.site.logged("cannot follow objects") > 0).then_some(())
        })
        .await;
    cluster.site.answers("a.test", "/", 200, "one").await;
    cluster.site.ready().await;
    cluster.api.delete("ingresses", "default", "a");
    cluster.api.apply_yaml(&ingress("b", "b.test", "one", ""));
    cluster.api.come_back().await;
    cluster.site.answers("b.test", "/", 200, "one").await;
    cluster.site.answers("a.test", "/", 404, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_served_before_everything_is_listed() {
    let (api, _backend) = Cluster::prepare().await;
    let hold = api.hold(Target::any().verb(Verb::List).on("endpointslices"));
    let site = Cluster::controller(&api, &[]);
    let response = site
        .until("the health check says what it waits for", async || {
            let response = site.health().await?;
            (response.body.contains("first list of EndpointSlice\n")).then_some(response)
        })
        .await;
    assert_eq!(response.status, 500);
    assert!(
        site.get("a.test", "/").await.is_none(),
        "nginx is not started with half a configuration"
    );
    drop(hold);
    api.clear_faults();
    site.ready().await;
    site.answers("a.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn classes_that_may_not_be_listed_are_done_without() {
    let (api, _backend) = Cluster::prepare().await;
    api.inject(
        Target::any().on("ingressclasses"),
        Fault::forbidden(),
        usize::MAX,
    );
    let mut annotated = api.get("ingresses", "default", "a").unwrap();
    annotated["metadata"]["annotations"] = json!({"kubernetes.io/ingress.class": "nginx"});
    annotated["spec"]["ingressClassName"] = Value::Null;
    api.apply(&annotated);
    let site = Cluster::controller(&api, &[]);
    site.ready().await;
    site.answers("a.test", "/", 200, "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_understood_stops_nobody() {
    let cluster = Cluster::start(&[]).await;
    cluster.api.edit("ingresses", "default", "a", |ingress| {
        ingress["spec"]["rules"] = json!("none");
    });
    cluster.add("b").await;
    // What was known of it holds.
    cluster.site.answers("a.test", "/", 200, "one").await;
    assert!(cluster.site.logged("default/a") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_watched_namespace_counts() {
    let cluster = Cluster::start(&["--watch-namespace=default"]).await;
    let elsewhere =
        ingress("x", "x.test", "one", "").replace("namespace: default", "namespace: elsewhere");
    cluster.api.apply_yaml(&elsewhere);
    cluster.add("b").await;
    cluster.site.answers("x.test", "/", 404, "").await;
}
