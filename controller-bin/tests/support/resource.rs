//! The kinds the double serves, and the discovery documents that announce them.

use serde_json::{Value, json};

/// One served kind. All of them are in version `v1` of their group.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resource {
    /// API group, empty for the core group.
    pub(crate) group: &'static str,
    /// Name in URLs.
    pub(crate) plural: &'static str,
    /// Name in objects.
    pub(crate) kind: &'static str,
    pub(crate) namespaced: bool,
    /// Whether there is a `/status` subresource.
    pub(crate) has_status: bool,
    /// Whether the server maintains `metadata.generation`.
    pub(crate) has_generation: bool,
    /// What `fieldSelector` may name besides `metadata.name` and `metadata.namespace`.
    pub(crate) fields: &'static [&'static str],
}

/// Every kind of the double.
pub(crate) static RESOURCES: [Resource; 13] = [
    core("configmaps", "ConfigMap"),
    Resource {
        fields: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "type",
        ],
        ..core("events", "Event")
    },
    Resource {
        namespaced: false,
        has_status: true,
        fields: &["status.phase"],
        ..core("namespaces", "Namespace")
    },
    Resource {
        namespaced: false,
        has_status: true,
        fields: &["spec.unschedulable"],
        ..core("nodes", "Node")
    },
    Resource {
        has_status: true,
        has_generation: true,
        fields: &[
            "spec.nodeName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
        ..core("pods", "Pod")
    },
    Resource {
        fields: &["type"],
        ..core("secrets", "Secret")
    },
    Resource {
        has_status: true,
        fields: &["spec.clusterIP", "spec.type"],
        ..core("services", "Service")
    },
    Resource {
        namespaced: false,
        has_generation: true,
        ..grouped(
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
        )
    },
    grouped("coordination.k8s.io", "leases", "Lease"),
    Resource {
        has_generation: true,
        ..grouped("discovery.k8s.io", "endpointslices", "EndpointSlice")
    },
    Resource {
        fields: &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "reason",
            "reportingController",
            "type",
        ],
        ..grouped("events.k8s.io", "events", "Event")
    },
    Resource {
        has_status: true,
        has_generation: true,
        ..grouped("networking.k8s.io", "ingresses", "Ingress")
    },
    Resource {
        namespaced: false,
        has_generation: true,
        ..grouped("networking.k8s.io", "ingressclasses", "IngressClass")
    },
];

impl Resource {
    /// Finds a kind by its name in URLs, alone or with its group as `kubectl` writes it
    /// (`events.events.k8s.io`). Alone, `events` means those of the core group.
    ///
    /// # Panics
    /// When the double serves no such kind: the test is wrong then.
    pub(crate) fn named(name: &str) -> &'static Self {
        RESOURCES
            .iter()
            .find(|resource| resource.plural == name || resource.full_name() == name)
            .unwrap_or_else(|| panic!("the API double serves no {name:?}"))
    }

    /// Finds a kind as an object names it.
    pub(crate) fn of_kind(api_version: &str, kind: &str) -> Option<&'static Self> {
        RESOURCES
            .iter()
            .find(|resource| resource.kind == kind && resource.api_version() == api_version)
    }

    /// Finds a kind as a URL names it.
    pub(crate) fn at(group: &str, version: &str, plural: &str) -> Option<&'static Self> {
        RESOURCES.iter().find(|resource| {
            resource.group == group && version == "v1" && resource.plural == plural
        })
    }

    /// What objects of this kind carry as `apiVersion`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            "v1".to_owned()
        } else {
            format!("{}/v1", self.group)
        }
    }

    /// The name error messages use: `services`, `ingresses.networking.k8s.io`.
    pub(crate) fn full_name(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether PUT may leave out `metadata.resourceVersion`. Leases refuse it, because a holder
    /// that writes without having read would defeat leader election.
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        self.kind != "Lease"
    }
}

/// The answer to a GET outside the collections: version, health and discovery.
pub(crate) fn discovery(path: &str) -> Option<Value> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["version"] => Some(version()),
        ["healthz" | "readyz" | "livez"] => Some(json!("ok")),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"]})),
        ["api", "v1"] => Some(resource_list("")),
        ["apis"] => Some(json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups().into_iter().map(group).collect::<Vec<_>>(),
        })),
        ["apis", name] if groups().contains(name) => {
            let mut document = group(name);
            document["kind"] = json!("APIGroup");
            document["apiVersion"] = json!("v1");
            Some(document)
        }
        ["apis", name, "v1"] if groups().contains(name) => Some(resource_list(name)),
        _ => None,
    }
}

const fn core(plural: &'static str, kind: &'static str) -> Resource {
    grouped("", plural, kind)
}

const fn grouped(group: &'static str, plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group,
        plural,
        kind,
        namespaced: true,
        has_status: false,
        has_generation: false,
        fields: &[],
    }
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "33",
        "gitVersion": "v1.33.0",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2025-04-23T00:00:00Z",
        "goVersion": "go1.24",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}

fn groups() -> Vec<&'static str> {
    let mut names: Vec<&str> = RESOURCES
        .iter()
        .map(|resource| resource.group)
        .filter(|group| !group.is_empty())
        .collect();
    names.dedup();
    names
}

fn group(name: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn resource_list(group: &str) -> Value {
    let mut resources = Vec::new();
    for resource in RESOURCES.iter().filter(|resource| resource.group == group) {
        resources.push(json!({
            "name": resource.plural,
            "singularName": resource.kind.to_lowercase(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        }));
        if resource.has_status {
            resources.push(json!({
                "name": format!("{}/status", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
    }
    let group_version = if group.is_empty() {
        "v1".to_owned()
    } else {
        format!("{group}/v1")
    };
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    })
}
