//! Renders a directory of manifests to files, without NGINX and without a cluster: to read what would be served, or to
//! compare two revisions of manifests in review.
//!
//! ```text
//! cargo run -p examples --example render_manifests -- examples/quickstart/manifests target/rendered
//! ```

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what it finds is printed"
)]

use std::{error::Error, fs, path::PathBuf, sync::Arc};

use controller_bin::{
    manifests::{self, AssumedClass, Manifests},
    store::Store,
};
use ingress_model::{Options, merge};
use jiff::Timestamp;
use nginx_render::{Capabilities, Environment, Renderer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(directory), Some(target)) = (arguments.next(), arguments.next()) else {
        return Err("usage: render_manifests MANIFESTS TARGET".into());
    };
    let options = Options::default();
    let class = AssumedClass {
        name: options.ingress_class.clone(),
        controller: options.controller_class.clone(),
    };
    let store = Arc::new(Store::awaiting([manifests::LIST.to_owned()]));
    let _watching = Manifests::start(&directory, class, Arc::clone(&store))?;

    let outcome = merge(&store.snapshot(), &options, Timestamp::now());
    for diagnostic in &outcome.diagnostics {
        eprintln!("{diagnostic}");
    }

    // As if for Debian's NGINX; a controller would probe its binary.
    let modules = [
        "ndk_http_module.so",
        "ngx_http_lua_module.so",
        "ngx_http_headers_more_filter_module.so",
    ];
    let nginx = Capabilities::parse(
        "nginx version: nginx/1.22.1\nconfigure arguments: --modules-path=/usr/lib/nginx/modules",
        modules,
    );
    let rendered = Renderer::new(nginx, Environment::default()).render(&outcome.model.layout)?;
    fs::create_dir_all(&target)?;
    fs::write(target.join("nginx.conf"), &rendered.main)?;
    for (path, file) in &rendered.files {
        // Keys and passwords have no place in a review.
        if file.private {
            continue;
        }
        let path = target.join(path.as_str());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, &file.bytes)?;
    }
    for (host, server) in &outcome.model.layout.servers {
        println!("{host}: {} locations", server.locations.len());
    }
    println!("written to {}", target.display());
    Ok(())
}
