//! A controller of one's own in a page: the queue decides when to sync, the model what is to be served, the renderer
//! how NGINX says it. Objects come from this program here; a real one would put a watch in their place.
//!
//! ```text
//! cargo run -p examples --example custom_controller
//! ```

#![expect(clippy::print_stdout, reason = "what it finds is printed")]

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use ingress_model::{Layout, Live, Merger, ObjectName, Options, Snapshot, plan};
use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice, networking::v1::Ingress};
use nginx_render::{Capabilities, Environment, Renderer};
use serde_json::json;
use sync_queue::Task;

/// A change of the cluster.
type Step = fn(&mut Snapshot);

/// What the controller has put in force.
#[derive(Default)]
struct InForce {
    layout: Option<Layout>,
    live: Live,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Arc::new(Mutex::new(Snapshot::default()));
    let (queue, worker) = sync_queue::channel(sync_queue::Settings::default());

    let events = async {
        let steps: [(&str, Step); 3] = [
            ("service/web", |cluster| {
                cluster
                    .services
                    .insert(ObjectName::new("shop", "web"), service());
            }),
            ("ingress/front", |cluster| {
                cluster
                    .ingresses
                    .insert(ObjectName::new("shop", "front"), ingress());
            }),
            ("endpointslice/web-1", |cluster| {
                cluster
                    .endpoint_slices
                    .insert(ObjectName::new("shop", "web-1"), slice("10.0.0.7"));
            }),
        ];
        for (key, step) in steps {
            step(&mut cluster.lock().unwrap_or_else(PoisonError::into_inner));
            // A sync that starts later covers this change too, so it may be skipped.
            queue.enqueue_skippable(key);
            tokio::task::yield_now().await;
        }
        queue.close();
    };

    let nginx = Capabilities::parse(
        "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=/usr/lib/nginx/modules",
        ["ngx_http_lua_module.so", "ndk_http_module.so"],
    );
    let mut renderer = Renderer::new(nginx, Environment::below("/tmp/custom"));
    let mut merger = Merger::default();
    let mut in_force = InForce::default();
    let options = Options {
        watch_ingress_without_class: true,
        ..Options::default()
    };
    let syncs = worker.run(async |task: Task<&str>| {
        let snapshot = cluster
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let outcome = merger.merge(&snapshot, &options, Timestamp::now());
        let model = outcome.model;
        let reasons = plan(in_force.layout.as_ref(), &model.layout);
        let delta = in_force.live.diff(&model.live);
        println!("sync because of {}:", task.key);
        for reason in &reasons {
            println!("  reload: {reason}");
        }
        if !reasons.is_empty() {
            let rendered = renderer.render(&model.layout)?;
            println!(
                "  {} lines of configuration, checksum {}",
                rendered.main.lines().count(),
                rendered.checksum
            );
        }
        for backend in &delta.set_backends {
            println!(
                "  push: {} with {} endpoints",
                backend.name,
                backend.endpoints.len()
            );
        }
        for diagnostic in &outcome.diagnostics {
            println!("  note: {diagnostic}");
        }
        in_force = InForce {
            layout: Some(model.layout),
            live: model.live,
        };
        Ok::<(), nginx_render::RenderError>(())
    });
    let ((), drained) = tokio::join!(events, syncs);
    if in_force.layout.is_none() || !drained.is_complete() {
        return Err("nothing was put in force".into());
    }
    Ok(())
}

fn ingress() -> Ingress {
    object(json!({
        "metadata": {"namespace": "shop", "name": "front", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"rules": [{"host": "shop.test", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}
        ]}}]}
    }))
}

fn service() -> Service {
    object(json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}
    }))
}

fn slice(address: &str) -> EndpointSlice {
    object(json!({
        "metadata": {"namespace": "shop", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}]
    }))
}

fn object<K: serde::de::DeserializeOwned + Default>(value: serde_json::Value) -> K {
    serde_json::from_value(value).unwrap_or_default()
}
