//! A team's own rules for its manifests, tested in CI: what they say must hold of the merged model, whatever Ingress
//! brings it about.
//!
//! ```text
//! cargo test -p examples --example model_rules
//! ```

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
    use ingress_model::{ObjectName, Options, Snapshot, merge};
    use serde_json::{Value, json};

    use super::*;

    fn outcome(ingresses: &[Value]) -> Outcome {
        let mut snapshot = Snapshot::default();
        for ingress in ingresses {
            let ingress: k8s_openapi::api::networking::v1::Ingress =
                serde_json::from_value(ingress.clone()).unwrap();
            let metadata = &ingress.metadata;
            let name = ObjectName::new(
                metadata.namespace.as_deref().unwrap(),
                metadata.name.as_deref().unwrap(),
            );
            snapshot.ingresses.insert(name, ingress);
        }
        let options = Options {
            watch_ingress_without_class: true,
            ..Options::default()
        };
        merge(&snapshot, &options, jiff::Timestamp::UNIX_EPOCH)
    }

    fn ingress(namespace: &str, path: &str, tls: bool) -> Value {
        let tls = if tls {
            json!([{"hosts": ["shop.test"], "secretName": "shop"}])
        } else {
            json!([])
        };
        json!({
            "metadata": {"namespace": namespace, "name": "front"},
            "spec": {"tls": tls, "rules": [{"host": "shop.test", "http": {"paths": [
                {"path": path, "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}
            ]}}]}
        })
    }

    #[test]
    fn plain_http_is_a_violation() {
        let found = violations(&outcome(&[ingress("platform", "/", false)]));
        assert!(
            found.contains(&"shop.test is served without TLS".to_owned()),
            "{found:?}"
        );
        let found = violations(&outcome(&[ingress("platform", "/", true)]));
        assert!(
            !found.iter().any(|violation| violation.contains("TLS")),
            "{found:?}"
        );
    }

    #[test]
    fn admin_paths_belong_to_the_platform() {
        let found = violations(&outcome(&[ingress("shop", "/admin", true)]));
        assert!(
            found.contains(&"shop.test/admin is not the platform team's".to_owned()),
            "{found:?}"
        );
        let found = violations(&outcome(&[ingress("platform", "/admin", true)]));
        assert!(
            !found
                .iter()
                .any(|violation| violation.contains("platform team")),
            "{found:?}"
        );
    }

    #[test]
    fn a_path_without_endpoints_is_a_violation() {
        let found = violations(&outcome(&[ingress("platform", "/", true)]));
        assert!(
            found.contains(&"shop.test/ has no endpoints".to_owned()),
            "{found:?}"
        );
    }
}
