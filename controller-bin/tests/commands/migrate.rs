use super::{FAULTY, SHOP, from, manifests, run};

/// What runs ingress-nginx, and its settings.
const INSTALLATION: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, namespace: ingress-nginx}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - name: controller
        image: registry.k8s.io/ingress-nginx/controller:v1.12.1
        args:
        - /nginx-ingress-controller
        - --configmap=$(POD_NAMESPACE)/settings
        - --profiling=false
        - --no-such-flag
        - --kubeconfig=/none
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ingress-nginx}
data: {proxy-bodi-size: 1m, proxy-read-timeout: '90'}
";

const SPECIAL: &str = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: special
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/from-to-www-redirect: 'true'
spec:
  ingressClassName: nginx
  rules:
  - host: Special.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: address, port: {number: 80}}}}
  - host: special.test
    http:
      paths:
      - {path: /x, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
      - {path: /y/, pathType: Prefix, backend: {service: {name: here, port: {number: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {name: address, namespace: shop}
spec: {type: ExternalName, externalName: 10.9.9.9, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: here, namespace: shop}
spec: {type: ExternalName, externalName: 127.0.0.1, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: canary
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/canary: 'true'
    nginx.ingress.kubernetes.io/canary-weight: '5'
    nginx.ingress.kubernetes.io/canary-weight-total: '10'
spec:
  ingressClassName: nginx
  rules:
  - host: shop.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: by-hand, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 9001}]
endpoints: [{addresses: [10.0.0.9]}]
";

#[test]
fn each_ingress_is_told_of() {
    let directory = manifests(&[
        ("a.yaml", SHOP),
        ("b.yaml", FAULTY),
        ("installation.yaml", INSTALLATION),
        ("special.yaml", SPECIAL),
    ]);
    let words = ["migrate", &from(&directory), "--assume-nginx=debian-12"];
    let said = run(&words);
    assert_eq!(said.code, 1, "{said:?}");
    for parts in [
        &["ingress-nginx", "Deployment ingress-nginx/controller"][..],
        &["ConfigMap", "ingress-nginx/settings, 2 keys"],
        &["--no-such-flag", "unexpected argument"],
        &["--profiling", "without effect"],
        &[
            "proxy-bodi-size",
            "unknown",
            "did you mean proxy-body-size?",
        ],
        &["shop/late", "differs on purpose, and to be checked"],
        &["shop/shop", "differs on purpose"],
        &[
            "shop/late",
            "it holds path /cart",
            "with ingress-nginx Ingress shop/shop does",
        ],
        &["shop/shop", "Ingress shop/late holds path /cart"],
        &["shop/late", "answers 503 until this is mended"],
        &["shop/late", "UnknownAnnotation", "proxy-body-sice"],
        &["shop/special", "names a port only if the client does"],
        &[
            "shop/special",
            "address is served although its external name is an IP address",
        ],
        &[
            "shop/special",
            "InvalidService",
            "shop/here: its external name is this machine",
        ],
        &[
            "shop/special",
            "hosts Special.test and special.test are one",
        ],
        &["shop/canary", "canary-weight is out of 10"],
        &[
            "shop/special",
            "path /y/ of host special.test answers requests for /y too",
        ],
        &["shop/shop", "EndpointSlice shop/by-hand are used"],
        &["--conflict-policy=oldest-wins decides conflicts as ingress-nginx does."],
        &["4 Ingresses: 0 the same, "],
    ] {
        said.has_line(parts);
    }
    assert!(!said.text.contains("shop/here is served"), "{}", said.text);
    let json = run(&[&words[..], &["-o=json", "--conflict-policy=oldest-wins"]].concat()).json();
    let ingresses = json["ingresses"].as_array().expect("it is a list");
    let topics: Vec<_> = ingresses
        .iter()
        .flat_map(|ingress| ingress["differences"].as_array().expect("it is a list"))
        .filter_map(|difference| difference["topic"].as_str())
        .collect();
    assert!(topics.contains(&"canary_total"), "{topics:?}");
    assert!(
        !topics.contains(&"conflict"),
        "the rule is the same then: {topics:?}"
    );
}

#[test]
fn what_stays_the_same_is_said_to() {
    let directory = manifests(&[("a.yaml", SHOP)]);
    let arguments = "--args=/nginx-ingress-controller --ingress-class='nginx' --controller-class=k8s.io/ingress-nginx";
    let said = run(&[
        "migrate",
        &from(&directory),
        arguments,
        "--assume-nginx=full",
    ]);
    said.has_line(&["shop/shop", "the same"]);
    said.has_line(&["1 Ingresses: 1 the same"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn ingresses_of_others_are_left_to_them() {
    let other = SHOP.replace("ingressClassName: nginx", "ingressClassName: other");
    let class = "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: other}\n\
        spec: {controller: example.test/other}\n";
    let directory = manifests(&[("a.yaml", &format!("{other}{class}"))]);
    let said = run(&["migrate", &from(&directory), "--assume-nginx=full"]);
    said.has_line(&["shop/shop", "for another controller"]);
}

#[test]
fn raw_configuration_is_to_be_checked() {
    let snippet = SHOP.replace(
        "  creationTimestamp",
        "  annotations: {nginx.ingress.kubernetes.io/configuration-snippet: 'set $x 1;'}\n  creationTimestamp",
    );
    let settings = INSTALLATION.replace(
        "proxy-bodi-size: 1m",
        "allow-snippet-annotations: 'true', annotations-risk-level: Critical",
    );
    let directory = manifests(&[("a.yaml", &snippet), ("b.yaml", &settings)]);
    let said = run(&["migrate", &from(&directory), "--assume-nginx=full"]);
    said.has_line(&["shop/shop", "RawConfiguration", "configuration-snippet"]);
}
