//! The manifests of examples/deploy are what the controller needs, and no more: its flags are known, and its roles allow
//! every request that it makes, with no rule that no request needs.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a failure here fails the test; indexing a JSON value does not panic"
)]

mod site;
#[allow(unused_imports, reason = "each test binary uses a part of it")]
mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use controller_bin::Args;
use k8s_openapi::ByteString;
use rustix::process::Signal;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};
use site::{
    Site,
    backend::{Backend, ingress},
    http, open_directory,
};
use support::{ApiDouble, Request, State, Verb};

const POD: &str = "ingress-nginx-controller-1";
const NAMESPACE: &str = "ingress-nginx";

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/deploy")
}

fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n")
        .map(|document| serde_saphyr::from_str(document).expect("it is YAML"))
        .filter(|document: &Value| !document.is_null())
        .collect()
}

/// The objects of a kustomization, as `kubectl kustomize` puts them together.
fn objects(kustomization: &str) -> Vec<Value> {
    let output = Command::new("kubectl")
        .arg("kustomize")
        .arg(deploy().join(kustomization))
        .output()
        .expect("kubectl is there (`make kubectl` installs Debian's)");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    assert!(output.status.success(), "{}", text(output.stderr));
    documents(&text(output.stdout))
}

/// Those of the base.
fn base() -> &'static [Value] {
    static BASE: LazyLock<Vec<Value>> = LazyLock::new(|| objects("base"));
    &BASE
}

fn of_kind(kind: &str) -> Vec<Value> {
    let objects = base().iter();
    objects
        .filter(|object| object["kind"] == kind)
        .cloned()
        .collect()
}

fn one(kind: &str) -> Value {
    let mut objects = of_kind(kind);
    assert_eq!(objects.len(), 1, "{kind}");
    objects.remove(0)
}

fn container() -> Value {
    one("Deployment")["spec"]["template"]["spec"]["containers"][0].clone()
}

/// The Deployment's arguments as the kubelet passes them on.
fn flags() -> Vec<String> {
    let container = container();
    let args = container["args"].as_array().expect("it has arguments");
    args.iter()
        .map(|arg| arg.as_str().expect("it is a text"))
        .map(|arg| arg.replace("$(POD_NAMESPACE)", NAMESPACE))
        .collect()
}

#[test]
fn every_file_is_listed() {
    for kustomization in ["base", "monitoring"] {
        let directory = deploy().join(kustomization);
        let text = fs::read_to_string(directory.join("kustomization.yaml")).unwrap();
        for entry in fs::read_dir(&directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name != "kustomization.yaml" {
                assert!(text.contains(&name), "{kustomization}/{name} is not listed");
            }
        }
    }
}

#[test]
fn objects_are_labelled_and_where_they_belong() {
    let of_the_cluster = [
        "ClusterRole",
        "ClusterRoleBinding",
        "IngressClass",
        "Namespace",
        "ValidatingWebhookConfiguration",
    ];
    assert!(base().len() > of_the_cluster.len(), "{:?}", base());
    for object in base() {
        let (kind, metadata) = (object["kind"].as_str().unwrap(), &object["metadata"]);
        let namespace = (!of_the_cluster.contains(&kind)).then_some(NAMESPACE);
        assert_eq!(metadata["namespace"].as_str(), namespace, "{metadata}");
        let name = &metadata["labels"]["app.kubernetes.io/name"];
        assert_eq!(*name, "ingress-nginx", "{metadata}");
    }
    let image = &container()["image"];
    assert_eq!(
        *image,
        format!("nginx-ingress-controller:{}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn what_watches_the_controller_finds_it() {
    let monitoring = objects("monitoring");
    let monitor = monitoring
        .iter()
        .find(|object| object["kind"] == "ServiceMonitor");
    let monitor = monitor.expect("it is there");
    assert_eq!(monitor["metadata"]["namespace"], NAMESPACE);
    let (label, value) = monitor["spec"]["selector"]["matchLabels"]
        .as_object()
        .and_then(|labels| labels.iter().next())
        .expect("it selects");
    let services = of_kind("Service");
    let mut services = services.iter();
    let service = services.find(|service| service["metadata"]["labels"][label] == *value);
    let port = &service.expect("a Service is selected")["spec"]["ports"][0]["name"];
    assert_eq!(monitor["spec"]["endpoints"][0]["port"], *port);
    let dashboard = monitoring
        .iter()
        .find(|object| object["kind"] == "ConfigMap");
    let dashboard = dashboard.expect("it is there");
    assert_eq!(dashboard["metadata"]["name"], "ingress-nginx-dashboard");
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    let text = dashboard["data"]["dashboard.json"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(text).unwrap()["panels"].is_array());
}

#[test]
fn every_flag_is_known_and_acted_on() {
    let words = ["nginx-ingress-controller".to_owned()];
    let args = Args::try_parse_from(words.into_iter().chain(flags()));
    let args = args.unwrap_or_else(|error| panic!("{error}"));
    assert!(args.without_effect.is_empty(), "{:?}", args.without_effect);
    assert_eq!(
        args.kubernetes.pod_namespace, None,
        "it comes from the environment"
    );
}

#[test]
fn the_image_has_what_is_run() {
    let image = fs::read_to_string(deploy().join("Dockerfile")).unwrap();
    let words: BTreeSet<_> = image.split([' ', '\n', '"', '[', ']', ',']).collect();
    let command = &container()["command"][0];
    assert!(words.contains(command.as_str().unwrap()), "{command}");
    // NGINX's packages depend on more than one would think, and go with it.
    assert!(!words.contains("purge") && !words.contains("remove"));
    let readme = fs::read_to_string(deploy().join("../../README.md")).unwrap();
    let (_, packages) = readme.split_once("--no-install-recommends ").unwrap();
    let (packages, _) = packages.split_once("\n$ ").unwrap();
    let packages: Vec<_> = packages
        .split_whitespace()
        .filter(|word| *word != "\\")
        .collect();
    assert!(packages.contains(&"nginx-light"), "{packages:?}");
    for package in packages {
        assert!(words.contains(package), "{package}");
    }
}

#[test]
fn names_and_ports_fit_together() {
    let (deployment, container) = (one("Deployment"), container());
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let selects = |selector: &Value| {
        let pairs = selector.as_object().expect("it has labels");
        pairs.iter().all(|(key, value)| labels[key] == *value)
    };
    assert!(selects(&deployment["spec"]["selector"]["matchLabels"]));
    let ports = container["ports"].as_array().unwrap();
    let is_port = |name: &Value| ports.iter().any(|port| port["name"] == *name);
    for service in of_kind("Service") {
        assert!(selects(&service["spec"]["selector"]), "{service}");
        for port in service["spec"]["ports"].as_array().unwrap() {
            assert!(is_port(&port["targetPort"]), "{port}");
        }
    }
    for kind in ["PodDisruptionBudget", "NetworkPolicy"] {
        let spec = &one(kind)["spec"];
        let selector = if kind == "NetworkPolicy" {
            &spec["podSelector"]
        } else {
            &spec["selector"]
        };
        assert!(selects(&selector["matchLabels"]), "{kind}");
    }
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert!(is_port(&container[probe]["httpGet"]["port"]), "{probe}");
    }
    let account = &deployment["spec"]["template"]["spec"]["serviceAccountName"];
    assert_eq!(one("ServiceAccount")["metadata"]["name"], *account);
    for binding in ["RoleBinding", "ClusterRoleBinding"] {
        assert_eq!(one(binding)["subjects"][0]["name"], *account, "{binding}");
    }
    assert_eq!(
        one("IngressClass")["spec"]["controller"],
        "k8s.io/ingress-nginx"
    );
    // The webhook is found under the name that the controller makes its certificate for.
    let own = flag("--validating-webhook-self-signed");
    let webhook = one("ValidatingWebhookConfiguration");
    assert_eq!(webhook["metadata"]["name"], own);
    let service = &webhook["webhooks"][0]["clientConfig"]["service"];
    assert_eq!(
        (&service["name"], &service["namespace"]),
        (&json!(own), &json!(NAMESPACE))
    );
    let services = of_kind("Service");
    assert!(
        services
            .iter()
            .any(|service| service["metadata"]["name"] == own)
    );
}

/// Requests that are being answered when a pod ends have the time that the ConfigMap gives them.
#[test]
fn the_grace_period_is_long_enough() {
    let grace = &one("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
    let config = one("ConfigMap");
    let workers = config["data"]["worker-shutdown-timeout"].as_str().unwrap();
    let workers: u64 = workers.strip_suffix('s').unwrap().parse().unwrap();
    let before: u64 = flag("--shutdown-grace-period").parse().unwrap();
    assert!(grace.as_u64().unwrap() >= before + workers + 30);
}

fn flag(name: &str) -> String {
    let flags = flags();
    let mut values = flags
        .iter()
        .filter_map(|flag| flag.strip_prefix(name)?.strip_prefix('='));
    values.next().expect("the flag is given").to_owned()
}

/// A rule, taken apart: what may be done to what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    /// Only in the controller's namespace.
    own: bool,
    group: String,
    resource: String,
    verb: String,
    /// `None`: to all.
    name: Option<String>,
}

impl Right {
    fn allows(&self, asked: &Asked) -> bool {
        (
            self.group.as_str(),
            self.resource.as_str(),
            self.verb.as_str(),
        ) == (asked.group.as_str(), asked.resource.as_str(), asked.verb)
            && (!self.own || asked.namespace.as_deref() == Some(NAMESPACE))
            && self
                .name
                .as_ref()
                .is_none_or(|name| asked.name.as_ref() == Some(name))
    }
}

/// A request, as RBAC sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    group: String,
    resource: String,
    verb: &'static str,
    namespace: Option<String>,
    name: Option<String>,
}

impl Asked {
    fn of(request: &Request) -> Option<Self> {
        let call = &request.call;
        let resource = call.resource?;
        Some(Self {
            group: resource.group.to_owned(),
            resource: match &call.subresource {
                Some(subresource) => format!("{}/{subresource}", resource.plural),
                None => resource.plural.to_owned(),
            },
            verb: match call.verb {
                Verb::Get => "get",
                Verb::List => "list",
                Verb::Watch => "watch",
                Verb::Create => "create",
                Verb::Update => "update",
                Verb::Patch => "patch",
                Verb::Delete => "delete",
                Verb::Other => "other",
            },
            namespace: call.namespace.clone(),
            name: call.name.clone(),
        })
    }
}

fn rights() -> BTreeSet<Right> {
    let texts = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten();
        texts
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let mut rights = BTreeSet::new();
    for (kind, own) in [("ClusterRole", false), ("Role", true)] {
        for rule in one(kind)["rules"].as_array().unwrap() {
            let names: Vec<_> = texts(&rule["resourceNames"])
                .into_iter()
                .map(Some)
                .collect();
            let names = if names.is_empty() { vec![None] } else { names };
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        for name in &names {
                            rights.insert(Right {
                                own,
                                group: group.clone(),
                                resource: resource.clone(),
                                verb: verb.clone(),
                                name: name.clone(),
                            });
                        }
                    }
                }
            }
        }
    }
    rights
}

/// A cluster with everything of the base, and a pod of the Deployment.
async fn cluster() -> (ApiDouble, Backend) {
    let api = ApiDouble::start().await;
    for kind in [
        "ConfigMap",
        "IngressClass",
        "Service",
        "ValidatingWebhookConfiguration",
    ] {
        for mut object in of_kind(kind) {
            if object["metadata"]["name"] == "ingress-nginx-controller" && kind == "Service" {
                object["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}});
            }
            api.apply(&object);
        }
    }
    api.apply(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": POD, "namespace": NAMESPACE, "labels": {"app": "ingress"}},
        "spec": {"containers": []},
    }));
    let backend = Backend::start("one").await;
    api.apply_yaml(&backend.service("one"));
    api.apply_yaml(&ingress("a", "a.test", "one", ""));
    (api, backend)
}

fn controller(api: &ApiDouble, more: &[&str]) -> Site {
    let host = format!("--apiserver-host={}", api.url());
    let pod = format!("--pod-name={POD}");
    let namespace = format!("--pod-namespace={NAMESPACE}");
    // Those of the Deployment, but for what the test's own machine decides.
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    for flag in flags() {
        given.insert(flag.split('=').next().unwrap().to_owned(), flag);
    }
    given.remove("--nginx-dir");
    let webhook = "--validating-webhook=127.0.0.1:0";
    given.insert("--validating-webhook".into(), webhook.into());
    given.insert(
        "--shutdown-grace-period".into(),
        "--shutdown-grace-period=0".into(),
    );
    let own = [host.as_str(), &pod, &namespace];
    let all: Vec<_> = own
        .into_iter()
        .chain(given.values().map(String::as_str))
        .chain(more.iter().copied())
        .collect();
    Site::start(open_directory(), &all)
}

/// Waits until the webhook answers with a certificate that the API server trusts.
async fn is_trusted(api: &ApiDouble, site: &Site) {
    let name = "ingress-nginx-admission";
    let port = site
        .until("the webhook listens", async || {
            let log = site.log();
            let line = log
                .lines()
                .find(|line| line.contains("the webhook listens"))?;
            let (_, rest) = line.split_once("127.0.0.1:")?;
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        })
        .await;
    site.until("the webhook's certificate is trusted", async || {
        let hooks = api.get("validatingwebhookconfigurations", "", name)?;
        let client = &hooks["webhooks"][0]["clientConfig"];
        let ByteString(authority) = serde_json::from_value(client["caBundle"].clone()).ok()?;
        let authority = CertificateDer::from_pem_slice(&authority).ok()?;
        // As the API server calls it.
        let host = format!("{name}.{NAMESPACE}.svc");
        http::get_tls(port, &host, "/", &authority).await
    })
    .await;
}

fn told(state: &State, reason: &str) -> u64 {
    let events = state.list("events").into_iter();
    let told = events.filter(|event| event["reason"] == reason);
    told.filter_map(|event| event["count"].as_u64()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roles_allow_what_is_asked_and_nothing_else() {
    let (api, _backend) = cluster().await;
    let mut site = controller(&api, &[]);
    site.ready().await;
    site.answers("a.test", "/", 200, "one").await;
    api.wait_until("the status is written", |state| {
        let ingress = state.get("ingresses", "default", "a").unwrap();
        ingress["status"]["loadBalancer"]["ingress"][0]["ip"] == "192.0.2.7"
    })
    .await;
    // The API server can ask the webhook, and the certificate is there for the other replicas.
    api.wait_until("the webhook is trusted", |state| {
        let name = "ingress-nginx-admission";
        let secret = state.get("secrets", NAMESPACE, name);
        let hooks = state
            .get("validatingwebhookconfigurations", "", name)
            .unwrap();
        let trusted = &hooks["webhooks"][0]["clientConfig"]["caBundle"];
        secret.is_some_and(|secret| secret["data"]["ca.crt"] == *trusted)
    })
    .await;
    is_trusted(&api, &site).await;
    // The same once more: the Event is counted up, and the Lease renewed.
    let loads = api.read(|state| told(state, "RELOAD"));
    assert!(loads > 0 || api.read(|state| !state.list("events").is_empty()));
    api.apply_yaml(&ingress("b", "b.test", "one", ""));
    site.answers("b.test", "/", 200, "one").await;
    api.wait_until("an Event repeats", |state| {
        state.count(Verb::Patch, "events") > 0
    })
    .await;
    api.wait_until("the Lease is renewed", |state| {
        state.count(Verb::Update, "leases") > 0
    })
    .await;
    site.signal(Signal::TERM);
    assert!(site.ended().await.success());

    // A replica that finds the Secret, about to end; and with the flags that need further rights.
    api.edit("secrets", NAMESPACE, "ingress-nginx-admission", |secret| {
        secret["data"]["tls.crt"] = json!("bm9uZQ==");
    });
    let site = controller(&api, &["--watch-namespace-selector=team=a"]);
    site.ready().await;
    api.wait_until("the certificate is renewed", |state| {
        state.count(Verb::Update, "secrets") > 0
    })
    .await;
    is_trusted(&api, &site).await;
    api.wait_until("everything is watched", |state| {
        state.open_watches("namespaces") > 0 && state.open_watches("ingresses") > 0
    })
    .await;

    let rights = rights();
    let asked: BTreeSet<_> = api.requests().iter().filter_map(Asked::of).collect();
    assert!(asked.len() > 20, "{asked:#?}");
    for asked in &asked {
        let allowed = rights.iter().any(|right| right.allows(asked));
        assert!(allowed, "no rule allows {asked:?}");
    }
    for right in &rights {
        let needed = asked.iter().any(|asked| right.allows(asked));
        assert!(needed, "no request needs {right:?}");
    }
}
