use std::{io::Read, process::Stdio};

use super::{FAULTY, SHOP, from, manifests, run, site::controller};

const REFUSED: &str = "\
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: all, namespace: other}
spec:
  ingressClassName: none
  defaultBackend: {service: {name: web, port: {number: 80}}}
status:
  loadBalancer: {ingress: [{ip: 192.0.2.1}, {hostname: lb.test}]}
";

#[test]
fn ingresses_are_listed() {
    let directory = manifests(&[("a.yaml", &format!("{SHOP}{REFUSED}")), ("b.yaml", FAULTY)]);
    let said = run(&["ingresses", &from(&directory)]);
    assert_eq!(said.code, 0, "{said:?}");
    said.has_line(&["NAMESPACE", "NAME", "CLASS", "HOSTS", "ADDRESSES", "SERVED"]);
    said.has_line(&["shop", "late", "nginx", "shop.test", "-", "yes"]);
    said.has_line(&[
        "other",
        "all",
        "none",
        "*",
        "192.0.2.1,lb.test",
        "no: MissingClass",
    ]);
    said.has_line(&["3 Ingresses: 2 served as written, 1 not served"]);
    let source = from(&directory);
    let gate = |more: &[&str]| {
        let flags = [&["ingresses", &source, "--exit-code"], more].concat();
        run(&flags).code
    };
    assert_eq!((gate(&[]), gate(&["-n=shop"])), (1, 0));
    let class = "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n\
        spec: {controller: example.test/other}\n";
    let theirs = manifests(&[("a.yaml", &format!("{SHOP}{class}"))]);
    let none = run(&["ingresses", &from(&theirs), "--exit-code"]);
    none.has_line(&["1 Ingress: 1 for other controllers"]);
    assert_eq!(none.code, 0);
    let json = run(&[
        "ingresses",
        &from(&directory),
        "-n=shop",
        "--host=SHOP.test",
        "-o=json",
    ]);
    let names: Vec<_> = json
        .json()
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|ingress| ingress["name"].clone())
        .collect();
    assert_eq!(names, ["late", "shop"]);
}

#[test]
fn an_ingress_whose_paths_others_hold_is_not_served() {
    let twin = |name: &str| {
        format!(
            "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: shop}}
spec:
  ingressClassName: nginx
  rules:
    - host: twins.test
      http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}
"
        )
    };
    let directory = manifests(&[("a.yaml", &format!("{SHOP}{}{}", twin("one"), twin("two")))]);
    let said = run(&["ingresses", &from(&directory)]);
    said.has_line(&[
        "shop",
        "one",
        "nginx",
        "twins.test",
        "-",
        "no: PathConflict",
    ]);
    said.has_line(&["shop", "two", "nginx", "twins.test", "-", "yes"]);
}

#[test]
fn endpoints_are_listed() {
    let directory = manifests(&[("a.yaml", SHOP)]);
    let said = run(&["endpoints", &from(&directory)]);
    assert_eq!(said.code, 0, "{said:?}");
    said.has_line(&[
        "shop",
        "web",
        "80",
        "shop-web-80",
        "10.0.0.1:9001 10.0.0.2:9001",
    ]);
    said.has_line(&["shop", "cart", "80", "shop-cart-80", "none"]);
    let json = run(&["endpoints", "web", &from(&directory), "-o=json"]).json();
    assert_eq!(json.as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json[0]["endpoints"][1], "10.0.0.2:9001");
}

#[test]
fn endpoints_of_all_backends_are_listed_with_their_services() {
    let more = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: next
  namespace: shop
  annotations: {nginx.ingress.kubernetes.io/canary: 'true', nginx.ingress.kubernetes.io/canary-weight: '10'}
spec:
  ingressClassName: nginx
  rules:
  - host: shop.test
    http:
      paths:
      - {path: /cart, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: tcp, namespace: shop}
data: {'9000': 'shop/web:80'}
";
    let directory = manifests(&[("a.yaml", &format!("{SHOP}{more}"))]);
    let flags = [
        &from(&directory),
        "--tcp-services-configmap=shop/tcp",
        "--default-backend-service=shop/web",
    ];
    let said = run(&[&["endpoints"], &flags[..]].concat());
    said.has_line(&[
        "NAMESPACE",
        "SERVICE",
        "PORT",
        "BACKEND",
        "FOR",
        "ENDPOINTS",
    ]);
    for role in ["paths", "canary", "TCP", "all else"] {
        said.has_line(&["shop", "web", role, "10.0.0.1:9001 10.0.0.2:9001"]);
    }
    assert!(!said.text.contains("-          -"), "{}", said.text);
    let said = run(&[&["endpoints", "cart"], &flags[..]].concat());
    assert_eq!(said.text.lines().count(), 2, "{}", said.text);
}

#[test]
fn ingresses_with_endpoints_of_their_own_are_told_apart() {
    let more = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: direct
  namespace: shop
  annotations: {nginx.ingress.kubernetes.io/service-upstream: 'true'}
spec:
  ingressClassName: nginx
  rules:
  - host: direct.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
";
    let shop = SHOP.replacen(
        "ports: [{port: 80}]",
        "{clusterIP: 10.9.9.9, ports: [{port: 80}]}",
        1,
    );
    let shop = shop.replacen("spec:\n  {", "spec: {", 1);
    let directory = manifests(&[("a.yaml", &format!("{shop}{more}"))]);
    let said = run(&["endpoints", "web", &from(&directory)]);
    said.has_line(&[
        "shop-web-80",
        "paths",
        " shop ",
        "10.0.0.1:9001 10.0.0.2:9001",
    ]);
    said.has_line(&["shop-web-80", "paths", " direct ", "10.9.9.9:80"]);
}

#[test]
fn who_stops_reading_is_not_complained_about() {
    let directory = manifests(&[("a.yaml", SHOP)]);
    let mut child = controller()
        .args(["render", &from(&directory), "--assume-nginx=full"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be run");
    drop(child.stdout.take());
    let status = child.wait().expect("it is our child");
    let mut errors = String::new();
    let mut stderr = child.stderr.take().expect("it is piped");
    stderr.read_to_string(&mut errors).expect("it is text");
    assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
}
