//! Against a controller that runs NGINX.

use super::{
    SHOP, manifests, run,
    site::{Site, free_ports, open_directory},
};

const TLS: &str = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: wild
  namespace: shop
  annotations: {nginx.ingress.kubernetes.io/upstream-hash-by: $request_uri}
spec:
  ingressClassName: nginx
  rules:
  - host: '*.wild.test'
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_running_nginx_is_looked_into() {
    let directory = manifests(&[("a.yaml", SHOP), ("b.yaml", TLS)]);
    let source = format!("--manifests={}", directory.path().display());
    let [status, default] = free_ports();
    let ports = [
        format!("--status-port={status}"),
        format!("--default-server-port={default}"),
    ];
    let site = Site::start(open_directory(), &[&source, &ports[0], &ports[1]]);
    site.ready().await;
    let conf = site.nginx_file("nginx.conf");
    let nginx = conf.parent().expect("it is in a directory");
    let others = [
        format!("--nginx-dir={}", nginx.display()),
        format!("--http-port={}", site.ports.http),
        format!("--https-port={}", site.ports.https),
        format!("--healthz-port={}", site.ports.healthz),
    ];
    let flags: Vec<_> = ports.iter().chain(&others).map(String::as_str).collect();
    let ask = |words: &[&str]| run(&[words, flags.as_slice()].concat());

    let said = ask(&["backends"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.has_line(&["shop-web-80", "80", "2", "round_robin"]);
    said.has_line(&["shop-cart-80", "80", "0", "hash of $request_uri"]);
    let said = ask(&["backends", "get", "shop-web-80"]);
    said.has_line(&["endpoints", "10.0.0.1:9001"]);
    let all = ask(&["backends", "all"]).json();
    assert!(all.as_array().is_some_and(|all| all.len() >= 3), "{all}");
    let said = ask(&["backends", "get", "none"]);
    assert_eq!(
        (said.code, said.errors.as_str()),
        (1, "there is no backend none\n")
    );
    assert_eq!(ask(&["backends", "get"]).code, 2);
    assert_eq!(ask(&["general"]).text, "{}\n");

    let said = ask(&["certs", "get", "a.test"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.has_line(&["host", "a.test"]);
    said.has_line(&["found as", "_"]);
    said.has_line(&["subject", "Kubernetes Ingress Controller Fake Certificate"]);
    said.has_line(&["names", "ingress.local"]);
    for more in [&["--pem"][..], &["-o=json"]] {
        let said = ask(&[&["certs", "get", "a.test"], more].concat());
        assert!(said.text.contains("BEGIN CERTIFICATE"), "{said:?}");
        assert!(!said.text.contains("PRIVATE KEY"), "{more:?}");
    }

    let whole = ask(&["conf"]);
    assert!(whole.text.starts_with("# Configuration checksum: "));
    let server = ask(&["conf", "--host=x.wild.test"]);
    assert!(
        server.text.trim_start().starts_with("server {"),
        "{server:?}"
    );
    server.has_line(&["server_name ", "wild", "test$"]);
    assert!(!server.text.contains("shop.test") && whole.text.contains(&server.text));
    let names = ask(&["conf", "--host=SHOP.test", "-o=json"]).json();
    assert_eq!(names["server_names"][0], "shop.test");

    let said = ask(&["diff", "--running", &source]);
    assert_eq!(
        (said.code, said.text.as_str()),
        (0, "no difference\n"),
        "{said:?}"
    );
    let said = ask(&["diff", "--running", "--brief", "--enable-metrics", &source]);
    assert_eq!(said.code, 1, "{said:?}");
    said.has_line(&["  file lua.json changed: enable_metrics"]);
    said.has_line(&["flags that differ:"]);
    said.has_line(&["  --enable-metrics: false runs, true is given here"]);
    let other = SHOP
        .replace("10.0.0.2", "10.0.0.3")
        .replace("path: /cart", "path: /basket");
    let other = manifests(&[("a.yaml", &other)]);
    let said = ask(&["diff", "--running", &other.path().display().to_string()]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.text.starts_with("reload, since:\n"), "{}", said.text);
    said.has_line(&["  host *.wild.test removed"]);
    said.has_line(&["  path /basket of host shop.test added"]);
    said.has_line(&["  path /cart of host shop.test removed"]);
    said.has_line(&["--- running/model.json"]);
    said.has_line(&["  backend shop-web-80 set"]);
    said.has_line(&["--- running/nginx.conf"]);
    said.has_line(&["+", "location \"/basket/\""]);
    assert!(!said.text.contains("settings outside"), "{}", said.text);
}

#[test]
fn an_nginx_that_does_not_run_is_said_not_to_answer() {
    let [port] = free_ports();
    let flag = format!("--status-port={port}");
    for words in [&["backends"][..], &["general"], &["certs", "get", "a.test"]] {
        let said = run(&[words, &[&flag]].concat());
        assert_eq!((said.code, said.text.as_str()), (2, ""), "{words:?}");
        let start = format!("cannot ask the running nginx at port {port} (--status-port): ");
        assert!(said.errors.starts_with(&start), "{said:?}");
    }
    let said = run(&["conf", "--nginx-dir=/nowhere/at/all"]);
    assert_eq!(said.code, 2);
    assert!(
        said.errors
            .starts_with("cannot read /nowhere/at/all/nginx.conf: "),
        "{said:?}"
    );
}
