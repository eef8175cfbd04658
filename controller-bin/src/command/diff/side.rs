//! One side of a comparison: objects, and what they make of NGINX.

use std::collections::BTreeMap;

use ingress_model::{Layout, Live, Model};
use nginx_render::{Rendered, syntax};

use crate::{
    args::Args,
    command::{CommandError, nginx::Target, output, refused::place, source::Objects},
    view::ModelView,
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
    /// What NGINX would refuse of its files.
    pub(super) refused: Vec<String>,
    pub(super) layout: Layout,
    pub(super) live: Live,
    /// Layout and live half as JSON.
    pub(super) model: String,
    pub(super) files: Files,
}

impl Side {
    /// What these objects make of NGINX.
    pub(super) fn new(
        name: &str,
        found: &Objects,
        args: &Args,
        target: &Target,
    ) -> Result<Self, CommandError> {
        Self::of_model(name, found, found.merge(args).outcome.model, target)
    }

    /// What these objects make of NGINX, given what the rules make of them.
    pub(super) fn of_model(
        name: &str,
        found: &Objects,
        model: Model,
        target: &Target,
    ) -> Result<Self, CommandError> {
        let rendered = target.render(&model)?;
        let faults = syntax::check(&rendered, &target.directives);
        let refused = faults.iter().map(|fault| {
            let source = &fault.source;
            let by = source.ingress.as_ref();
            let by = by.map_or_else(|| "ConfigMap".to_owned(), |name| format!("Ingress {name}"));
            format!("{by}, {}: {}{}", source.what, place(source), fault.reason)
        });
        Ok(Self {
            name: name.to_owned(),
            broken_manifests: found.broken_manifests(),
            refused: refused.collect(),
            model: output::json(&ModelView::new(&model.layout, &model.live))?,
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
