//! What an API server would have added to an object, as far as the rules look at it.
//!
//! Namespace `default`; a UID, made from kind, namespace and name so that it is always the same; `stringData` of
//! Secrets in `data`; `pathType: ImplementationSpecific`; protocol TCP and the target port of Services' ports; the label
//! by which a Namespace can be selected (Kubernetes docs: API reference, the fields' defaults).

use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{Namespace, Secret, Service},
        discovery::v1::EndpointSlice,
        networking::v1::Ingress,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};

use crate::object::{ObjectKind, ObjectRef};

use super::object::Object;

/// Adds what an API server would have added.
pub(super) fn complete(object: &mut Object) {
    let cluster_wide = is_cluster_wide(object.kind());
    let namespace = &mut object.meta_mut().namespace;
    if cluster_wide {
        *namespace = None;
    } else if namespace.as_deref().is_none_or(str::is_empty) {
        *namespace = Some("default".into());
    }
    if object.meta().uid.as_deref().is_none_or(str::is_empty) {
        let uid = uid(&object.reference());
        object.meta_mut().uid = Some(uid);
    }
    match object {
        Object::Ingress(ingress) => ingress_paths(ingress),
        Object::Service(service) => service_ports(service),
        Object::EndpointSlice(slice) => slice_ports(slice),
        Object::Secret(secret) => secret_data(secret),
        Object::Namespace(namespace) => namespace_label(namespace),
        Object::IngressClass(_) | Object::ConfigMap(_) | Object::Node(_) => {}
    }
}

/// Whether objects of a kind are in no namespace.
pub(super) fn is_cluster_wide(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::IngressClass | ObjectKind::Namespace | ObjectKind::Node
    )
}

/// A UID that is the same for the same object on every machine: FNV-1a of its name, in the shape of a UUID of version 8.
fn uid(object: &ObjectRef) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    let hash = object.to_string().bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    let hash = hash & !(0xf << 76) & !(0x3 << 62) | (0x8 << 76) | (0x2 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        hash >> 96,
        hash >> 80 & 0xffff,
        hash >> 64 & 0xffff,
        hash >> 48 & 0xffff,
        hash & 0xffff_ffff_ffff,
    )
}

fn ingress_paths(ingress: &mut Ingress) {
    let rules = ingress
        .spec
        .iter_mut()
        .flat_map(|spec| spec.rules.iter_mut().flatten());
    let paths = rules.flat_map(|rule| rule.http.iter_mut().flat_map(|http| &mut http.paths));
    for path in paths.filter(|path| path.path_type.is_empty()) {
        path.path_type = "ImplementationSpecific".into();
    }
}

fn service_ports(service: &mut Service) {
    let Some(spec) = &mut service.spec else {
        return;
    };
    spec.type_.get_or_insert_with(|| "ClusterIP".into());
    for port in spec.ports.iter_mut().flatten() {
        port.protocol.get_or_insert_with(|| "TCP".into());
        port.target_port.get_or_insert(IntOrString::Int(port.port));
    }
}

fn slice_ports(slice: &mut EndpointSlice) {
    for port in slice.ports.iter_mut().flatten() {
        port.name.get_or_insert_default();
        port.protocol.get_or_insert_with(|| "TCP".into());
    }
}

fn secret_data(secret: &mut Secret) {
    secret.type_.get_or_insert_with(|| "Opaque".into());
    if let Some(texts) = secret.string_data.take() {
        let texts = texts
            .into_iter()
            .map(|(key, text)| (key, ByteString(text.into_bytes())));
        secret.data.get_or_insert_default().extend(texts);
    }
}

fn namespace_label(namespace: &mut Namespace) {
    let name = namespace.metadata.name.clone().unwrap_or_default();
    let labels = namespace.metadata.labels.get_or_insert_default();
    labels.insert("kubernetes.io/metadata.name".into(), name);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn completed(api_version: &str, kind: &str, value: Value) -> Object {
        let mut object = Object::read(api_version, kind, value).unwrap().unwrap();
        complete(&mut object);
        object
    }

    #[test]
    fn what_is_there_stays() {
        let value = json!({
            "metadata": {"namespace": "shop", "name": "cart", "uid": "u"},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "targetPort": "web", "protocol": "UDP"}]},
        });
        let before = Object::read("v1", "Service", value.clone())
            .unwrap()
            .unwrap();
        assert_eq!(completed("v1", "Service", value), before);
    }

    #[test]
    fn ports_of_services_and_slices_are_completed() {
        let service = completed(
            "v1",
            "Service",
            json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
        );
        let Object::Service(service) = service else {
            panic!("{service:?}")
        };
        assert_eq!(service.metadata.namespace.as_deref(), Some("default"));
        let spec = service.spec.unwrap();
        assert_eq!(spec.type_.as_deref(), Some("ClusterIP"));
        let port = spec.ports.unwrap().remove(0);
        assert_eq!(port.target_port, Some(IntOrString::Int(80)));
        assert_eq!(port.protocol.as_deref(), Some("TCP"));

        let slice = json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [], "ports": [{"port": 80}]});
        let slice = completed("discovery.k8s.io/v1", "EndpointSlice", slice);
        let Object::EndpointSlice(slice) = slice else {
            panic!("{slice:?}")
        };
        let port = slice.ports.unwrap().remove(0);
        assert_eq!(
            (port.name.as_deref(), port.protocol.as_deref()),
            (Some(""), Some("TCP"))
        );
    }

    #[test]
    fn a_path_without_type_is_left_to_the_controller() {
        let path =
            json!({"path": "/", "backend": {"service": {"name": "a", "port": {"number": 80}}}});
        let value =
            json!({"metadata": {"name": "a"}, "spec": {"rules": [{"http": {"paths": [path]}}]}});
        let Object::Ingress(ingress) = completed("networking.k8s.io/v1", "Ingress", value) else {
            panic!("no Ingress")
        };
        let rule = ingress.spec.unwrap().rules.unwrap().remove(0);
        assert_eq!(
            rule.http.unwrap().paths[0].path_type,
            "ImplementationSpecific"
        );
    }

    #[test]
    fn texts_of_a_secret_replace_its_data() {
        let value = json!({"metadata": {"name": "a"}, "data": {"x": "eA==", "y": "eQ=="}, "stringData": {"y": "z"}});
        let Object::Secret(secret) = completed("v1", "Secret", value) else {
            panic!("no Secret")
        };
        let data = secret.data.unwrap();
        assert_eq!((&*data["x"].0, &*data["y"].0), (&b"x"[..], &b"z"[..]));
        assert_eq!(secret.string_data, None);
    }

    #[test]
    fn a_uid_is_made_from_the_name_alone() {
        let made = |name: &str| {
            let class = completed(
                "networking.k8s.io/v1",
                "IngressClass",
                json!({"metadata": {"name": name}}),
            );
            class.meta().uid.clone().unwrap()
        };
        let uid = made("a");
        assert_eq!(uid, made("a"));
        assert_ne!(uid, made("b"));
        let parts: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!((&uid[14..15], &uid[19..20] >= "8"), ("8", true));
    }

    #[test]
    fn cluster_wide_objects_have_no_namespace() {
        let node = completed(
            "v1",
            "Node",
            json!({"metadata": {"name": "a", "namespace": "x"}}),
        );
        assert_eq!(node.reference().to_string(), "Node a");
    }
}
