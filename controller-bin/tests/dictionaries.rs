//! Shared dictionaries of a real NGINX that have to hold more than they have room for.

mod site;

use std::{fs, path::Path, sync::Arc, time::Duration};

use clap::Parser as _;
use controller_bin::{
    Args, certificate,
    dataplane::DataPlane,
    load::{Loader, Memory},
    nginx::{configuration::Configuration, machine, process::Process, program},
    planner::Planner,
    quarantine::Quarantine,
    store::Store,
    stream_files::StreamFiles,
};
use ingress_model::value::Size;
use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice, networking::v1::Ingress};
use lua_sync_client::{Endpoint, LuaSyncClient, Retry, Settings, Synchronizer};
use nginx_render::Renderer;
use serde_json::json;

const DICTIONARY: &str = "configuration_data";

/// An EndpointSlice with so many endpoints.
fn slice(endpoints: usize) -> EndpointSlice {
    let endpoint = |number: usize| {
        let address = format!("10.0.{}.{}", number / 250, number % 250 + 1);
        json!({"addresses": [address], "conditions": {"ready": true}})
    };
    let endpoints: Vec<_> = (0..endpoints).map(endpoint).collect();
    serde_json::from_value(json!({
        "metadata": {"name": "app-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "app"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        "endpoints": endpoints,
    }))
    .unwrap_or_default()
}

fn fill(store: &Store) -> Result<(), serde_json::Error> {
    store.apply::<Service>(serde_json::from_value(json!({
        "metadata": {"name": "app", "namespace": "default"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    }))?);
    store.apply::<Ingress>(serde_json::from_value(json!({
        "metadata": {"name": "app", "namespace": "default", "annotations": {"kubernetes.io/ingress.class": "nginx"}},
        "spec": {"rules": [{"host": "app.test", "http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "app", "port": {"number": 80}}},
        }]}}]},
    }))?);
    store.apply(slice(1));
    Ok(())
}

/// The directive that declares the dictionary.
fn declaration(directory: &Path) -> String {
    let conf = fs::read_to_string(directory.join("nginx.conf")).unwrap_or_default();
    let mut lines = conf.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with(&format!("lua_shared_dict {DICTIONARY} ")));
    line.unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dictionary_that_is_too_small_grows_by_a_reload() {
    let directory = site::open_directory();
    let [http, https, status, default_server] = site::free_ports::<4>();
    let args = Args::parse_from([
        "nginx-ingress-controller".to_owned(),
        "--manifests=/".to_owned(),
        format!("--http-port={http}"),
        format!("--https-port={https}"),
        format!("--status-port={status}"),
        format!("--default-server-port={default_server}"),
    ]);
    let binary = program::find(None);
    let capabilities = program::probe(&binary).await.unwrap();
    let configuration =
        Configuration::prepare(directory.path(), &binary, machine::workers_group(), false).unwrap();
    let certificate = certificate::generate(Timestamp::now()).unwrap();
    let mut environment = machine::environment(&args, directory.path(), &certificate.pem);
    environment
        .shared_dicts
        .insert(DICTIONARY.to_owned(), Size::kib(64));
    let process = Arc::new(Process::new(&binary, &configuration.main()));
    let client = LuaSyncClient::new(
        Endpoint::Tcp(([127, 0, 0, 1], status).into()),
        Settings {
            retry: Retry::never(),
            ..Settings::default()
        },
    );
    let quarantine = Arc::new(Quarantine::default());
    let plane = Arc::new(DataPlane::new(
        Arc::clone(&process),
        Arc::clone(&quarantine),
        Synchronizer::new(client.clone()),
        StreamFiles::none(),
    ));
    let store = Arc::new(Store::awaiting([]));
    fill(&store).unwrap();
    let planner = Arc::new(Planner::new(
        Arc::clone(&store),
        Arc::clone(&plane),
        Arc::clone(&quarantine),
        Arc::new(()),
        args.options(),
    ));
    let mut loader = Loader {
        plane: Arc::clone(&plane),
        renderer: Renderer::new(capabilities, environment),
        configuration,
        client,
        planner: Arc::clone(&planner),
        quarantine,
        directives: program::directives(&binary).await.unwrap(),
        observer: Arc::new(()),
        annotations_prefix: "nginx.ingress.kubernetes.io".to_owned(),
        most_generations: None,
        memory: Memory::default(),
    };

    planner.plan().unwrap();
    loader.run().await.unwrap();
    plane.tell().await.unwrap();
    assert!(!plane.is_behind());
    let before = declaration(directory.path());

    // Only what NGINX is told changes, and it has no room for that.
    store.apply(slice(5_000));
    planner.plan().unwrap();
    assert!(!plane.is_behind());
    plane.tell().await.unwrap_err();
    assert!(plane.is_behind());
    // Workers of before may still be told instead of new ones, and have no more room than they had.
    site::until("it has room", async || {
        loader.run().await.ok()?;
        plane.tell().await.ok()
    })
    .await;
    assert!(!plane.is_behind());
    assert_ne!(declaration(directory.path()), before);

    // It stays as large when there is less to hold: its content would be lost.
    let large = declaration(directory.path());
    store.apply(slice(2));
    planner.plan().unwrap();
    loader.run().await.unwrap();
    plane.tell().await.unwrap();
    assert_eq!(declaration(directory.path()), large);
    process.quit(Duration::ZERO).await;
}
