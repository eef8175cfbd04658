//! Where the author of an Ingress names a variable.

use ingress_model::Snapshot;
use k8s_openapi::api::networking::v1::Ingress;
use nginx_render::syntax;

/// The annotation of an Ingress that names a variable (in lower case, without `$`).
pub(crate) fn annotation_with<'a>(ingress: &'a Ingress, variable: &str) -> Option<&'a str> {
    let mut annotations = ingress.metadata.annotations.iter().flatten();
    annotations
        .find(|(_, value)| syntax::mentions(value, variable))
        .map(|(key, _)| key.as_str())
}

/// Whether a snippet, a path or a host's alias of any Ingress may define a variable: those of one server are known to all
/// servers.
pub(crate) fn is_defined_by_any(snapshot: &Snapshot, variable: &str) -> bool {
    let mut ingresses = snapshot.ingresses.iter();
    ingresses.any(|(_, ingress)| may_define(ingress, variable))
}

/// The same for one Ingress.
pub(crate) fn may_define(ingress: &Ingress, variable: &str) -> bool {
    let snippets = ingress.metadata.annotations.iter().flatten();
    let mut snippets = snippets.filter(|(key, _)| key.ends_with("-snippet"));
    snippets.any(|(_, snippet)| syntax::defines(snippet, variable))
        || texts(ingress).any(|text| has_group(text, variable))
}

/// Texts that may be regular expressions.
fn texts(ingress: &Ingress) -> impl Iterator<Item = &str> {
    let rules = ingress.spec.iter().flat_map(|spec| &spec.rules).flatten();
    let paths = rules.flat_map(|rule| rule.http.iter().flat_map(|http| &http.paths));
    let paths = paths.filter_map(|path| path.path.as_deref());
    let annotations = ingress.metadata.annotations.iter().flatten();
    paths.chain(annotations.map(|(_, value)| value.as_str()))
}

/// Whether a regular expression has a group of that name.
fn has_group(text: &str, name: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("(?")
        && [('<', '>'), ('\'', '\'')]
            .iter()
            .any(|(begin, end)| text.contains(&format!("{begin}{name}{end}")))
}

#[cfg(test)]
mod tests {
    use ingress_model::ObjectName;
    use serde_json::json;

    use super::*;

    fn ingress(annotation: &str, value: &str, path: &str) -> Ingress {
        let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
        let path = json!({"path": path, "pathType": "ImplementationSpecific", "backend": backend});
        serde_json::from_value(json!({
            "metadata": {"annotations": {annotation: value}},
            "spec": {"rules": [{"http": {"paths": [path]}}]},
        }))
        .unwrap()
    }

    #[test]
    fn the_annotation_that_names_a_variable_is_found() {
        let one = ingress("x/upstream-vhost", "${No_Such}.test", "/");
        assert_eq!(annotation_with(&one, "no_such"), Some("x/upstream-vhost"));
        assert_eq!(annotation_with(&one, "no"), None);
    }

    #[test]
    fn definitions_of_any_ingress_count() {
        let defined = |annotation: &str, value: &str, path: &str| {
            let mut snapshot = Snapshot::default();
            let name = ObjectName::new("shop", "web");
            snapshot
                .ingresses
                .insert(name, ingress(annotation, value, path));
            is_defined_by_any(&snapshot, "tenant")
        };
        assert!(defined("x/server-snippet", "set $Tenant a;", "/"));
        assert!(defined("x/server-snippet", "include /etc/more.conf;", "/"));
        assert!(defined("x/server-alias", r"~^(?<tenant>.+)\.test$", "/"));
        assert!(defined("x/y", "z", "/(?P<tenant>[^/]+)"));
        assert!(!defined("x/server-snippet", "return 200 $tenant;", "/"));
        assert!(!defined("x/y", "set $tenant a;", "/tenant"));
    }
}
