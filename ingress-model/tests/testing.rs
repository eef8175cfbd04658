//! The test kit: it reads manifests as the controller does, and its assertions show what differs.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "the tests' own files"
)]

use std::{fs, panic::catch_unwind, path::Path};

use ingress_model::{
    ConflictPolicy, Options,
    testing::{Fixture, FixtureError, Served},
};

fn ingress(name: &str, path: &str, service: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: shop}}
spec:
  ingressClassName: nginx
  rules:
  - host: shop.test
    http:
      paths:
      - {{path: {path}, pathType: Prefix, backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}
---
"
    )
}

fn panics(test: impl FnOnce(&Served) + std::panic::UnwindSafe, served: Served) -> String {
    let panic = catch_unwind(move || test(&served)).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn ingresses_without_date_count_as_created_in_order() {
    let two = ingress("z", "/", "first") + &ingress("a", "/", "second");
    let fixture = Fixture::from_yaml(&two).unwrap();
    fixture
        .merge()
        .assert_locations("shop.test", ["/ shop/a shop-second-80"]);
    let options = Options {
        conflict_policy: ConflictPolicy::OldestWins,
        ..Options::default()
    };
    fixture
        .clone()
        .with_options(options)
        .merge()
        .assert_locations("shop.test", ["/ shop/z shop-first-80"]);
    let third = fixture.and_yaml(&ingress("m", "/", "third")).unwrap();
    third
        .merge()
        .assert_locations("shop.test", ["/ shop/m shop-third-80"]);
}

#[test]
fn a_directory_is_read_as_the_controller_reads_it() {
    let quickstart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/quickstart/manifests");
    let served = Fixture::from_directory(quickstart).unwrap().merge();
    served.assert_hosts(["account.localhost", "shop.localhost"]);
    served.assert_request("shop.localhost/cart/7", "/cart/ demo/shop demo-cart-http");
    served.assert_request(
        "shop.localhost/status",
        "= /status demo/shop demo-cart-http",
    );
    served.assert_endpoints("shop.localhost/cart", ["127.0.0.1:9002"]);
}

#[test]
fn what_differs_is_shown() {
    let served = Fixture::from_yaml(&ingress("a", "/cart", "cart"))
        .unwrap()
        .merge();
    let expected = ["/cart/ shop/a shop-cart-80", "/ shop/a shop-front-80"];
    let panic = panics(
        move |served| served.assert_locations("shop.test", expected),
        served,
    );
    assert_eq!(
        panic,
        "locations of host \"shop.test\" differ (- expected, + found):
  /cart/ shop/a shop-cart-80
- / shop/a shop-front-80
+ = /cart shop/a shop-cart-80
+ / shop/a upstream-default-backend
what the merge says:
  Ingress shop/a: spec.rules[0].http.paths[0].backend: Service shop/cart: it does not exist; requests for shop.test/cart are answered 503 (MissingService)
"
    );
}

#[test]
fn a_request_that_goes_elsewhere_is_shown() {
    let served = Fixture::from_yaml(&ingress("a", "/cart", "cart"))
        .unwrap()
        .merge();
    let panic = panics(
        |served| served.assert_request("shop.test/x", "/cart/ shop/a shop-cart-80"),
        served,
    );
    let shown = "- /cart/ shop/a shop-cart-80\n+ / shop/a upstream-default-backend\n";
    assert!(panic.contains(shown), "{panic}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let error = Fixture::from_yaml("kind: Ingress").unwrap_err();
    assert_eq!(
        error.to_string(),
        "manifests.yaml:1: the object has no apiVersion or no kind"
    );
    let error = Fixture::from_directory("/nowhere/at/all").unwrap_err();
    assert_eq!(error.to_string(), "cannot read /nowhere/at/all");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-manifests");
    fs::create_dir_all(directory.join(".hidden")).unwrap();
    fs::write(directory.join(".hidden/a.yaml"), "kind: [").unwrap();
    assert!(Fixture::from_directory(&directory).is_ok());
    fs::write(directory.join("b.yaml"), "a: 1\nkind: [").unwrap();
    let error = Fixture::from_directory(&directory).unwrap_err();
    fs::remove_dir_all(&directory).unwrap();
    let FixtureError::Manifest(error) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (error.file, error.line),
        (directory.join("b.yaml"), Some(2))
    );
}
