//! One side of a comparison: objects, and what they make of NGINX.

use std::{collections::BTreeMap, sync::Arc};

use ingress_model::{
    Backend, Host, Layout, Live,
    live::{CertificateId, UpstreamName},
};
use lua_sync_client::wire;
use nginx_render::Rendered;
use serde::Serialize;

use crate::{
    args::Args,
    command::{CommandError, nginx::Target, output, source::Objects},
};

/// Configuration files by their path below NGINX's directory.
pub(super) type Files = BTreeMap<String, File>;

/// A configuration file, without what differs from one writing to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum File {
    Shown(String),
    /// Only NGINX may read it.
    Hidden(Vec<u8>),
}

impl File {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Shown(text) => Some(text),
            Self::Hidden(_) => None,
        }
    }
}

/// One side of a comparison.
#[derive(Debug)]
pub(super) struct Side {
    /// What it is called.
    pub(super) name: String,
    pub(super) broken_manifests: Vec<String>,
    pub(super) layout: Layout,
    pub(super) live: Live,
    /// Layout and live half as JSON.
    pub(super) model: String,
    /// The backends as NGINX is told of them.
    pub(super) backends: String,
    pub(super) files: Files,
}

/// The model as it is compared: always in the same order, without what Secrets hold.
#[derive(Serialize)]
struct ModelView<'a> {
    layout: &'a Layout,
    live: LiveView<'a>,
}

#[derive(Serialize)]
struct LiveView<'a> {
    backends: &'a BTreeMap<UpstreamName, Arc<Backend>>,
    certificates: Vec<&'a CertificateId>,
    servers: &'a BTreeMap<Host, CertificateId>,
    tcp: &'a BTreeMap<u16, Arc<Backend>>,
    udp: &'a BTreeMap<u16, Arc<Backend>>,
    passthrough: &'a BTreeMap<Host, Option<Arc<Backend>>>,
}

impl Side {
    /// What these objects make of NGINX.
    pub(super) fn new(
        name: &str,
        found: &Objects,
        args: &Args,
        target: &Target,
    ) -> Result<Self, CommandError> {
        let model = found.merge(args).outcome.model;
        let rendered = target.render(&model)?;
        let live = &model.live;
        let view = ModelView {
            layout: &model.layout,
            live: LiveView {
                backends: &live.backends,
                certificates: live.certificates.keys().collect(),
                servers: &live.servers,
                tcp: &live.tcp,
                udp: &live.udp,
                passthrough: &live.passthrough,
            },
        };
        Ok(Self {
            name: name.to_owned(),
            broken_manifests: found.broken_manifests(),
            model: output::json(&view)?,
            backends: output::json(&wire::backends(live))?,
            files: files(&rendered),
            layout: model.layout,
            live: model.live,
        })
    }
}

/// Files that differ and are not shown.
pub(super) fn hidden(old: &Files, new: &Files) -> Vec<String> {
    let is_hidden = |file: Option<&File>| matches!(file, Some(File::Hidden(_)));
    let mut paths: Vec<_> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| {
        let (before, after) = (old.get(*path), new.get(*path));
        before != after && (is_hidden(before) || is_hidden(after))
    });
    paths.into_iter().cloned().collect()
}

fn files(rendered: &Rendered) -> Files {
    let main = (
        "nginx.conf".to_owned(),
        File::Shown(without_checksum(&rendered.main)),
    );
    let others = rendered.files.iter().map(|(path, file)| {
        let content = if file.private {
            File::Hidden(file.bytes.clone())
        } else {
            File::Shown(without_checksum(&String::from_utf8_lossy(&file.bytes)))
        };
        (path.to_string(), content)
    });
    others.chain([main]).collect()
}

/// A file without the checksum of all files, which differs wherever anything does.
pub(super) fn without_checksum(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("# Configuration checksum:") {
        let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
        return rest.get(line..).unwrap_or_default().to_owned();
    }
    let json = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
    match json {
        Ok(mut settings) => match settings.remove("checksum") {
            Some(_) => output::json(&settings).unwrap_or_else(|_| text.to_owned()),
            None => text.to_owned(),
        },
        Err(_) => text.to_owned(),
    }
}
