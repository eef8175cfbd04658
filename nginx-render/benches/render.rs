//! Rendering 100, 1,000 and 10,000 servers, from nothing and after one of them changed.

use std::{hint::black_box, sync::Arc};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ingress_model::{
    Host, Layout, Location, ObjectName, Server,
    layout::{LocationSettings, Modifier, PathType, ServicePort},
    live::{PortRef, UpstreamName},
};
use nginx_render::{Capabilities, Environment, Renderer};

fn server(number: usize, settings: &Arc<LocationSettings>) -> Server {
    let location = |modifier, path: &str| Location {
        modifier,
        path: path.into(),
        ingress_path: path.into(),
        path_type: PathType::Prefix,
        ingress: Some(ObjectName::new("bench", &format!("h{number}"))),
        service: Some(Arc::new(ServicePort {
            name: format!("s{number}"),
            port: PortRef::Number(80),
        })),
        upstream: UpstreamName::new(&format!("bench-s{number}-80")),
        settings: Arc::clone(settings),
    };
    Server {
        host: Host::parse(&format!("h{number}.test")).unwrap_or_else(|_| Host::catch_all()),
        aliases: Vec::new(),
        redirected: None,
        tls: true,
        client_auth: None,
        ssl_ciphers: None,
        ssl_prefer_server_ciphers: None,
        upstream_tls: None,
        snippet: None,
        locations: vec![
            location(Modifier::Prefix, "/"),
            location(Modifier::Exact, "/status"),
        ],
    }
}

fn layout(count: usize) -> Layout {
    let settings = Arc::new(LocationSettings {
        ssl_redirect: true,
        ..LocationSettings::default()
    });
    let servers = (0..count).map(|number| server(number, &settings));
    Layout {
        servers: servers
            .map(|server| (server.host.clone(), Arc::new(server)))
            .collect(),
        ..Layout::default()
    }
}

fn renderer() -> Renderer {
    let nginx = Capabilities::parse(
        "nginx version: nginx/1.22.1\nconfigure arguments: --add-module=/src/lua-nginx-module",
        [],
    );
    Renderer::new(nginx, Environment::default())
}

fn render(criterion: &mut Criterion) {
    for count in [100, 1_000, 10_000] {
        let whole = layout(count);
        criterion.bench_function(&format!("render {count} servers"), |bencher| {
            bencher.iter_batched(
                renderer,
                |mut renderer| black_box(renderer.render(&whole)).is_ok(),
                BatchSize::LargeInput,
            );
        });
        let mut renderer = renderer();
        let mut turn = 0;
        criterion.bench_function(&format!("render {count} servers, one changed"), |bencher| {
            bencher.iter(|| {
                turn += 1;
                let settings = Arc::new(LocationSettings {
                    ssl_redirect: turn % 2 == 0,
                    ..LocationSettings::default()
                });
                let mut changed = whole.clone();
                let server = server(0, &settings);
                changed
                    .servers
                    .insert(server.host.clone(), Arc::new(server));
                black_box(renderer.render(&changed)).is_ok()
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = render
}
criterion_main!(benches);
