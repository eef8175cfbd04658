//! A cluster of any size: Ingresses of two paths, each with a Service of three endpoints.

use ingress_model::{ObjectName, Options, Snapshot};
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{Service, ServicePort, ServiceSpec},
        discovery::v1::{Endpoint, EndpointPort, EndpointSlice},
        networking::v1::{
            HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule,
            IngressServiceBackend, IngressSpec, ServiceBackendPort,
        },
    },
    apimachinery::pkg::{apis::meta::v1::Time, util::intstr::IntOrString},
};

/// Flags under which all its Ingresses are served.
pub(crate) fn options() -> Options {
    Options {
        watch_ingress_without_class: true,
        ..Options::default()
    }
}

/// A cluster of that many Ingresses.
pub(crate) fn snapshot(size: u32) -> Snapshot {
    let mut snapshot = Snapshot::default();
    (0..size).for_each(|i| add(&mut snapshot, i));
    snapshot
}

/// One Ingress with two paths, a Service and its three endpoints.
fn add(snapshot: &mut Snapshot, i: u32) {
    let name = ObjectName::new(&format!("team-{}", i % 100), &format!("app-{i:05}"));
    snapshot
        .ingresses
        .insert(name.clone(), ingress(&name, i, None));
    snapshot.services.insert(name.clone(), service());
    let slice = ObjectName::new(name.namespace(), &format!("{}-x7k2p", name.name()));
    snapshot
        .endpoint_slices
        .insert(slice, endpoint_slice(&name, i));
}

pub(crate) fn ingress(name: &ObjectName, i: u32, timeout: Option<u32>) -> Ingress {
    let path = |path: &str| HTTPIngressPath {
        path: Some(path.into()),
        path_type: "Prefix".into(),
        backend: IngressBackend {
            service: Some(IngressServiceBackend {
                name: name.name().into(),
                port: Some(ServiceBackendPort {
                    number: Some(80),
                    name: None,
                }),
            }),
            resource: None,
        },
    };
    let mut ingress = Ingress {
        spec: Some(IngressSpec {
            ingress_class_name: None,
            rules: Some(vec![IngressRule {
                host: Some(format!("app-{i:05}.example.test")),
                http: Some(HTTPIngressRuleValue {
                    paths: vec![path("/"), path("/api/v1")],
                }),
            }]),
            ..IngressSpec::default()
        }),
        ..Ingress::default()
    };
    ingress.metadata.namespace = Some(name.namespace().into());
    ingress.metadata.name = Some(name.name().into());
    let created = Timestamp::from_second(1_700_000_000 + i64::from(i % 977)).unwrap_or_default();
    ingress.metadata.creation_timestamp = Some(Time(created));
    let key = "nginx.ingress.kubernetes.io/proxy-read-timeout".to_owned();
    ingress.metadata.annotations = timeout.map(|timeout| [(key, timeout.to_string())].into());
    ingress
}

fn service() -> Service {
    Service {
        spec: Some(ServiceSpec {
            ports: Some(vec![ServicePort {
                name: Some("http".into()),
                port: 80,
                target_port: Some(IntOrString::Int(8080)),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

pub(crate) fn endpoint_slice(service: &ObjectName, i: u32) -> EndpointSlice {
    let endpoint = |j: u32| Endpoint {
        addresses: vec![format!("10.{}.{}.{j}", i / 250 % 250, i % 250)],
        ..Endpoint::default()
    };
    let mut slice = EndpointSlice {
        address_type: "IPv4".into(),
        endpoints: (1..=3).map(endpoint).collect(),
        ports: Some(vec![EndpointPort {
            name: Some("http".into()),
            port: Some(8080),
            protocol: Some("TCP".into()),
            ..EndpointPort::default()
        }]),
        ..EndpointSlice::default()
    };
    let label = "kubernetes.io/service-name".to_owned();
    slice.metadata.labels = Some([(label, service.name().to_owned())].into());
    slice
}
