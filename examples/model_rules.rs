//! A team's own rules for its manifests, tested in CI: what they say must hold of the merged model, whatever Ingress
//! brings it about.
//!
//! ```text
//! cargo test -p examples --example model_rules
//! ```
//!
//! The objects come from the crate's test kit (feature `testing`), which reads manifests as the controller does.

#![expect(clippy::print_stdout, reason = "what it finds is printed")]

use ingress_model::{Model, ObjectName, Outcome};

/// The rules that the team wants to hold; an empty list means that they do.
#[must_use]
pub fn violations(outcome: &Outcome) -> Vec<String> {
    let Model { layout, live } = &outcome.model;
    let mut violations = Vec::new();
    for (host, server) in &layout.servers {
        if !host.is_catch_all() && !server.tls {
            violations.push(format!("{host} is served without TLS"));
        }
        for location in &server.locations {
            let admin = location.ingress_path.starts_with("/admin");
            let owner = location.ingress.as_ref().map(ObjectName::namespace);
            if admin && owner != Some("platform") {
                violations.push(format!(
                    "{host}{} is not the platform team's",
                    location.ingress_path
                ));
            }
            let peers = live
                .backends
                .get(&location.upstream)
                .map_or(0, |backend| backend.endpoints.len());
            if location.ingress.is_some() && peers == 0 {
                violations.push(format!("{host}{} has no endpoints", location.ingress_path));
            }
        }
    }
    violations.sort();
    violations.dedup();
    violations
}

fn main() {
    println!("the rules are tests: cargo test -p examples --example model_rules");
}

#[cfg(test)]
mod tests {
    use ingress_model::testing::{Fixture, FixtureError};

    use super::*;

    /// What the rules say about one Ingress of a namespace, with a path and with or without TLS.
    fn violations_of(namespace: &str, path: &str, tls: bool) -> Result<Vec<String>, FixtureError> {
        let tls = if tls {
            "tls: [{hosts: [shop.test], secretName: shop}]"
        } else {
            ""
        };
        let manifest = format!(
            "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: front, namespace: {namespace}}}
spec:
  ingressClassName: nginx
  {tls}
  rules:
  - host: shop.test
    http:
      paths:
      - {{path: {path}, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}
"
        );
        let served = Fixture::from_yaml(&manifest)?.merge();
        Ok(violations(served.outcome()))
    }

    #[test]
    fn plain_http_is_a_violation() -> Result<(), FixtureError> {
        let plain = "shop.test is served without TLS".to_owned();
        assert!(violations_of("platform", "/", false)?.contains(&plain));
        assert!(!violations_of("platform", "/", true)?.contains(&plain));
        Ok(())
    }

    #[test]
    fn admin_paths_belong_to_the_platform() -> Result<(), FixtureError> {
        let taken = "shop.test/admin is not the platform team's".to_owned();
        assert!(violations_of("shop", "/admin", true)?.contains(&taken));
        assert!(!violations_of("platform", "/admin", true)?.contains(&taken));
        Ok(())
    }

    #[test]
    fn a_path_without_endpoints_is_a_violation() -> Result<(), FixtureError> {
        let idle = "shop.test/ has no endpoints".to_owned();
        assert!(violations_of("platform", "/", true)?.contains(&idle));
        Ok(())
    }

    /// The manifests that are deployed, as they stand in the repository.
    #[test]
    fn our_manifests_send_requests_where_they_should() -> Result<(), FixtureError> {
        let manifests = concat!(env!("CARGO_MANIFEST_DIR"), "/quickstart/manifests");
        let served = Fixture::from_directory(manifests)?.merge();
        served.assert_hosts(["account.localhost", "shop.localhost"]);
        served.assert_request("shop.localhost/cart/7", "/cart/ demo/shop demo-cart-http");
        served.assert_request("shop.localhost/carts", "/ demo/shop demo-storefront-80");
        served.assert_endpoints("shop.localhost/status", ["127.0.0.1:9002"]);
        assert_eq!(
            violations(served.outcome()),
            ["shop.localhost is served without TLS"]
        );
        Ok(())
    }
}
