//! Objects that are not read, and whether one that is was meant.

use crate::spelling::nearest;

use super::object::KINDS;

/// An object of a kind that the rules do not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The line where it begins, from 1.
    pub line: u64,
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// API version and kind of objects that are read, and that this one was probably meant to be: the kind is written in
    /// another way, or the version is one that Kubernetes has removed or never had.
    pub meant: Option<(&'static str, &'static str)>,
}

impl Ignored {
    pub(super) fn new(line: u64, api_version: String, kind: String) -> Self {
        Self {
            line,
            meant: meant(&api_version, &kind),
            api_version,
            kind,
        }
    }
}

/// What was probably meant. Other APIs have kinds of these names too, such as Knative's Service, so that the group has to
/// be one of Kubernetes' own, or nearly the right one.
fn meant(api_version: &str, kind: &str) -> Option<(&'static str, &'static str)> {
    let kinds = || KINDS.iter().map(|(_, kind)| *kind);
    let same = kinds().find(|ours| ours.eq_ignore_ascii_case(kind));
    let right = KINDS
        .iter()
        .find(|(_, ours)| Some(*ours) == same.or_else(|| nearest(kind, kinds())))?;
    let group = group(api_version);
    let right_group = self::group(right.0);
    let near = group == right_group || nearest(group, [right_group]).is_some();
    let is_own = || {
        matches!(group, "" | "apps" | "extensions")
            || (group.ends_with(".k8s.io") && !group.ends_with(".x-k8s.io"))
    };
    (near || (same.is_some() && is_own())).then_some(*right)
}

/// The group of an API version; the core group has no name.
fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearly_right_was_meant() {
        let ingress = Some(("networking.k8s.io/v1", "Ingress"));
        let service = Some(("v1", "Service"));
        for (api_version, kind, want) in [
            ("extensions/v1beta1", "Ingress", ingress),
            ("networking.k8s.io/v1beta1", "Ingress", ingress),
            ("networking.k8s.io/v2", "Ingress", ingress),
            ("networking.k8s.io/v1", "ingress", ingress),
            ("networking.k8s.io/v1", "Ingres", ingress),
            ("network.k8s.io/v1", "Ingress", ingress),
            ("v1", "Ingress", ingress),
            ("v1", "service", service),
            ("v1", "Services", service),
            ("apps/v1", "Service", service),
            (
                "discovery.k8s.io/v1beta1",
                "EndpointSlice",
                Some(("discovery.k8s.io/v1", "EndpointSlice")),
            ),
            ("serving.knative.dev/v1", "Service", None),
            ("networking.internal.knative.dev/v1alpha1", "Ingress", None),
            ("networking.k8s.io/v1", "NetworkPolicy", None),
            ("gateway.networking.k8s.io/v1", "Gateway", None),
            ("multicluster.x-k8s.io/v1alpha1", "ServiceImport", None),
            ("v1", "ServiceAccount", None),
            ("v1", "Pod", None),
            ("v1", "Endpoints", None),
            ("apps/v1", "Deployment", None),
        ] {
            assert_eq!(meant(api_version, kind), want, "{api_version} {kind}");
        }
    }
}
