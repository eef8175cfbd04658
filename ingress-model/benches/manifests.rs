//! How long it takes to find out what files of manifests say together: all of them, and one that has changed. Each holds
//! an Ingress, a Service and its endpoints.

mod cluster;

use std::{path::Path, sync::Arc};

use divan::{Bencher, black_box};
use ingress_model::{
    ObjectName,
    manifests::{AssumedClass, Changes, Gathering, Object, parse, together},
};
use k8s_openapi::api::{core::v1::Service, networking::v1::Ingress};

const SIZES: [u32; 2] = [1_000, 5_000];

fn main() {
    divan::main();
}

/// A file for each Ingress, which has no date.
fn files(size: u32) -> Vec<Vec<Arc<Object>>> {
    let snapshot = cluster::snapshot(size);
    let files = snapshot.ingresses.iter().zip(0..);
    let files = files.map(|((name, ingress), i)| {
        let service = snapshot.services.get(name);
        let service = service.map(|service| Object::Service(Service::clone(service)));
        let ingress = Object::Ingress(Ingress::clone(ingress));
        let mut file = vec![named(ingress, name.name(), name), endpoints(name, i)];
        file.extend(service.map(|service| named(service, name.name(), name)));
        file
    });
    files.collect()
}

fn endpoints(service: &ObjectName, i: u32) -> Arc<Object> {
    let slice = Object::EndpointSlice(cluster::endpoint_slice(service, i));
    named(slice, &format!("{}-x7k2p", service.name()), service)
}

fn named(mut object: Object, name: &str, beside: &ObjectName) -> Arc<Object> {
    let meta = object.meta_mut();
    meta.namespace = Some(beside.namespace().to_owned());
    meta.name = Some(name.to_owned());
    meta.creation_timestamp = None;
    Arc::new(object)
}

fn class() -> Arc<Object> {
    Arc::new(AssumedClass::ours(&cluster::options()).object())
}

/// One file, as people write them.
const TEXT: &str = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: app
  namespace: shop
  annotations:
    nginx.ingress.kubernetes.io/proxy-read-timeout: \"30\"
    nginx.ingress.kubernetes.io/enable-cors: \"true\"
spec:
  ingressClassName: nginx
  tls:
  - {hosts: [app.example.com], secretName: app}
  rules:
  - host: app.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: app, port: {number: 80}}}
---
apiVersion: v1
kind: Service
metadata: {name: app, namespace: shop}
spec:
  ports:
  - {name: http, port: 80, targetPort: 8080}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: app-x7k2p
  namespace: shop
  labels: {kubernetes.io/service-name: app}
addressType: IPv4
ports:
- {name: http, port: 8080}
endpoints:
- {addresses: [10.0.0.1], conditions: {ready: true}}
- {addresses: [10.0.0.2], conditions: {ready: true}}
";

#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn texts(bencher: Bencher<'_, '_>, size: u32) {
    bencher.bench_local(|| {
        let contents = (0..size).map(|_| parse(Path::new("app.yaml"), black_box(TEXT)));
        contents
            .filter_map(Result::ok)
            .map(|content| content.objects.len())
            .sum::<usize>()
    });
}

#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn all_files(bencher: Bencher<'_, '_>, size: u32) {
    let files = files(size);
    let class = class();
    bencher.bench_local(|| {
        let files = files
            .iter()
            .map(|objects| (Path::new("app.yaml"), objects.as_slice()));
        together(black_box(files), &class)
    });
}

/// What is gathered of the files, and one of them.
fn gathered(size: u32) -> (Gathering<usize>, Vec<Arc<Object>>) {
    let mut gathering = Gathering::new(class());
    let mut files = files(size);
    for (number, objects) in files.iter().enumerate() {
        gathering.set(2 * number, objects);
    }
    let _all = gathering.changes();
    (gathering, files.swap_remove(7))
}

#[divan::bench(args = SIZES, sample_count = 100, sample_size = 1)]
fn endpoints_changed(bencher: Bencher<'_, '_>, size: u32) {
    let (mut gathering, file) = gathered(size);
    let mut changed = file.clone();
    if let [ingress, slice, _] = changed.as_mut_slice() {
        *slice = endpoints(&ingress.reference().name, size);
    }
    alternate(bencher, move |even| {
        gathering.set(14, black_box(if even { &changed } else { &file }));
        gathering.changes()
    });
}

#[divan::bench(args = SIZES, sample_count = 100, sample_size = 1)]
fn file_comes_or_goes(bencher: Bencher<'_, '_>, size: u32) {
    let (mut gathering, file) = gathered(size);
    gathering.set(14, &[]);
    let _gone = gathering.changes();
    alternate(bencher, move |even| {
        gathering.set(15, black_box(if even { &file } else { &[] }));
        gathering.changes()
    });
}

fn alternate(bencher: Bencher<'_, '_>, mut change: impl FnMut(bool) -> Changes) {
    let mut even = false;
    bencher.bench_local(move || {
        even = !even;
        change(even)
    });
}
