//! Layouts to render, and the NGINX of this machine.

#![allow(dead_code, reason = "each test uses some of them")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is for tests only"
)]

use std::{path::Path, process::Command, sync::Arc};

use ingress_model::{
    Host, Layout, Location, ObjectName, Server,
    config::RenderConfig,
    layout::{LocationSettings, Modifier, PathType, ServicePort},
    live::{PortRef, UpstreamName},
    value::{Literal, Template},
};
use nginx_render::{Capabilities, Environment, Rendered, Renderer};

pub(crate) fn host(name: &str) -> Host {
    Host::parse(name).unwrap()
}

/// A layout with a catch-all server and these.
pub(crate) fn layout(servers: impl IntoIterator<Item = Server>) -> Layout {
    let mut layout = Layout::default();
    let catch_all = server("", [default_location()]);
    for server in std::iter::once(catch_all).chain(servers) {
        layout.servers.insert(server.host.clone(), Arc::new(server));
    }
    layout
}

pub(crate) fn server(name: &str, locations: impl IntoIterator<Item = Location>) -> Server {
    Server {
        host: host(name),
        aliases: Vec::new(),
        redirected: None,
        tls: false,
        client_auth: None,
        ssl_ciphers: None,
        ssl_prefer_server_ciphers: None,
        upstream_tls: None,
        snippet: None,
        locations: locations.into_iter().collect(),
    }
}

pub(crate) fn default_location() -> Location {
    Location {
        modifier: Modifier::Prefix,
        path: "/".into(),
        ingress_path: "/".into(),
        path_type: PathType::Prefix,
        ingress: None,
        service: None,
        upstream: UpstreamName::default_backend(),
        settings: Arc::default(),
    }
}

pub(crate) fn location(modifier: Modifier, path: &str, settings: &LocationSettings) -> Location {
    Location {
        modifier,
        path: path.into(),
        ingress_path: path.into(),
        path_type: PathType::Prefix,
        ingress: Some(ObjectName::new("shop", "web")),
        service: Some(Arc::new(ServicePort {
            name: "cart".into(),
            port: PortRef::Number(80),
        })),
        upstream: UpstreamName::new("shop-cart-80"),
        settings: Arc::new(settings.clone()),
    }
}

/// The two locations of a prefix path.
pub(crate) fn prefix(path: &str, settings: &LocationSettings) -> [Location; 2] {
    let below = location(Modifier::Prefix, &format!("{path}/"), settings);
    [
        Location {
            ingress_path: path.into(),
            ..below
        },
        location(Modifier::Exact, path, settings),
    ]
}

/// An environment below a directory, with ports that need no privileges.
pub(crate) fn environment(directory: &Path) -> Environment {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    Environment {
        nginx_dir: directory.to_str().unwrap().into(),
        lua_dir: concat!(env!("CARGO_MANIFEST_DIR"), "/../lua-sync-client/lua").into(),
        pid_path: path("nginx.pid"),
        access_log: path("access.log"),
        error_log: path("error.log"),
        ..Environment::default()
    }
}

/// What an NGINX such as Debian 12's says, with all of its modules.
pub(crate) fn debian() -> Capabilities {
    let text = "nginx version: nginx/1.22.1\nconfigure arguments: --prefix=/usr/share/nginx \
        --modules-path=/usr/lib/nginx/modules --with-threads --with-http_v2_module --with-http_realip_module \
        --with-http_auth_request_module --with-http_stub_status_module --with-stream=dynamic \
        --with-stream_ssl_preread_module --with-stream_realip_module";
    Capabilities::parse(
        text,
        [
            "ndk_http_module.so",
            "ngx_http_lua_module.so",
            "ngx_http_headers_more_filter_module.so",
            "ngx_stream_module.so",
            "ngx_stream_js_module.so",
        ],
    )
}

pub(crate) fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

pub(crate) fn literal(text: &str) -> Literal {
    Literal::parse(text).unwrap()
}

/// The same layout under another ConfigMap.
pub(crate) fn with_config(layout: Layout, config: RenderConfig) -> Layout {
    Layout {
        config: Arc::new(config),
        ..layout
    }
}

/// What this machine's NGINX can do; `None` when there is none with Lua.
pub(crate) fn installed() -> Option<Capabilities> {
    let output = Command::new("nginx").arg("-V").output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let directory = Capabilities::modules_path(&text)?;
    let files: Vec<String> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let capabilities = Capabilities::parse(&text, files.iter().map(String::as_str));
    capabilities
        .has(nginx_render::Module::Lua)
        .then_some(capabilities)
}

/// Renders for a fixed place.
pub(crate) fn render(layout: &Layout) -> Rendered {
    let environment = environment(Path::new("/etc/nginx"));
    Renderer::new(debian(), environment).render(layout).unwrap()
}

/// The servers of a main file, without the catch-all one.
pub(crate) fn servers(main: &str) -> String {
    let mut servers = String::new();
    let mut is_inside = false;
    for line in main.lines() {
        if let Some(host) = line.strip_prefix("## start server ") {
            is_inside = host != "_";
        }
        if is_inside {
            servers.push_str(line);
            servers.push('\n');
        }
        is_inside &= !line.starts_with("## end server ");
    }
    servers
}

/// The block of one server.
pub(crate) fn server_block<'a>(main: &'a str, host: &str) -> &'a str {
    let start = main.find(&format!("## start server {host}\n")).unwrap();
    let end = main.find(&format!("## end server {host}\n")).unwrap();
    main[start..end].split_once('\n').unwrap().1
}

/// A certificate that signs itself, PEM.
pub(crate) fn certificate() -> String {
    authority().0.pem()
}

/// A certificate and its key, PEM.
pub(crate) fn key_pair() -> String {
    let (certificate, key) = authority();
    certificate.pem() + &key.serialize_pem()
}

/// An empty revocation list, PEM.
pub(crate) fn revocation_list() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new([]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = rcgen::Issuer::new(parameters, key);
    let list = rcgen::CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2026, 1, 1),
        next_update: rcgen::date_time_ymd(2036, 1, 1),
        crl_number: 1_u64.into(),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    list.signed_by(&issuer).unwrap().pem().unwrap()
}

fn authority() -> (rcgen::Certificate, rcgen::KeyPair) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(["authority.test".to_owned()]).unwrap();
    (parameters.self_signed(&key).unwrap(), key)
}

/// Writes the files of a rendering below a directory, and returns the main file's path.
pub(crate) fn write(rendered: &Rendered, directory: &Path) -> std::path::PathBuf {
    std::fs::create_dir_all(directory.join("run")).unwrap();
    for (path, file) in &rendered.files {
        let path = directory.join(path.as_str());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &file.bytes).unwrap();
    }
    let main = directory.join("nginx.conf");
    std::fs::write(&main, &rendered.main).unwrap();
    main
}

/// What `nginx -t` says against a layout; `None` when it accepts it.
pub(crate) fn refusal(layout: &Layout, change: impl Fn(&mut Environment)) -> Option<String> {
    let capabilities = installed().expect("nginx with Lua is installed");
    let directory = tempfile::tempdir().unwrap();
    let mut environment = environment(directory.path());
    change(&mut environment);
    let rendered = Renderer::new(capabilities, environment)
        .render(layout)
        .unwrap();
    let main = write(&rendered, directory.path());
    let output = Command::new("nginx")
        .arg("-t")
        .arg("-c")
        .arg(main)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success() || text.contains("[warn]") || text.contains("[emerg]"))
        .then_some(text)
}
