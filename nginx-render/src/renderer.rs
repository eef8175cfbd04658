//! From a layout to files.

use std::{collections::BTreeMap, sync::Arc};

use ingress_model::{Host, Layout, Server, config::RenderConfig};
use thiserror::Error;

use crate::{
    capabilities::{Capabilities, Module},
    environment::Environment,
    rendered::{Checksum, FileContent, RelativePath, Rendered},
    settings,
    source_map::{Range, Source, SourceMap, Text},
    value::Unprintable,
    view::{
        Context, DEFAULT_CERTIFICATE, dictionaries,
        extras::Shared,
        frame::{self, FrameError},
        modsecurity,
        server::{self, Fragment},
        stream, telemetry, tls,
    },
};

/// Why there are no files. Faults of single Ingresses are no reason: they become [notes](Rendered::notes).
#[derive(Debug, Error)]
pub enum RenderError {
    /// The configuration cannot work without the module.
    #[error("NGINX lacks the module {0:?}")]
    MissingModule(Module),
    /// A setting of the ConfigMap or of the environment.
    #[error("a setting cannot stand in the configuration")]
    Setting(#[source] Unprintable),
    /// A template refused a value, or does not fit its types.
    #[error("rendering a template")]
    Template(#[source] askama::Error),
}

impl From<FrameError> for RenderError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Text(error) => Self::Setting(error),
            FrameError::Template(error) => Self::Template(error),
        }
    }
}

/// Renders layouts. Keeps the text of each server, so that a server that has not changed is not rendered again.
#[derive(Debug)]
pub struct Renderer {
    capabilities: Capabilities,
    environment: Environment,
    /// What the fragments below were rendered with.
    config: Arc<RenderConfig>,
    splits_http: bool,
    fragments: BTreeMap<Host, (Arc<Server>, Arc<Fragment>)>,
}

impl Renderer {
    /// A renderer for one NGINX at one place.
    #[must_use]
    pub fn new(capabilities: Capabilities, environment: Environment) -> Self {
        Self {
            capabilities,
            environment,
            config: Arc::default(),
            splits_http: false,
            fragments: BTreeMap::new(),
        }
    }

    /// Has the shared dictionary hold so many bytes from now on; see [`Environment::reserve_dict`].
    pub fn reserve_dict(&mut self, name: &str, bytes: u64) {
        self.environment.reserve_dict(name, bytes);
    }

    /// Renders all files. The same layout gives the same files, byte for byte.
    ///
    /// # Errors
    /// When NGINX cannot do what is needed, or a setting that concerns all servers cannot be written down.
    pub fn render(&mut self, layout: &Layout) -> Result<Rendered, RenderError> {
        if !self.capabilities.has(Module::Lua) {
            return Err(RenderError::MissingModule(Module::Lua));
        }
        let context = Context::new(&self.capabilities, &self.environment, layout)
            .map_err(RenderError::Setting)?;
        if self.config != layout.config || self.splits_http != context.split.is_some() {
            self.config = Arc::clone(&layout.config);
            self.splits_http = context.split.is_some();
            self.fragments.clear();
        }
        let mut rendered = Rendered::default();
        let fragments = fragments(layout, &context, &mut self.fragments)?;
        let mut shared = Shared::default();
        for fragment in &fragments {
            shared.extend(&fragment.shared);
        }
        let frame = frame::render(layout, &shared, &context, &mut rendered.notes)?;
        assemble(&frame, &fragments, &mut rendered);
        add_files(layout, &context, &fragments, &mut rendered);

        let mut checksum = Checksum::new();
        checksum.add(&rendered.main);
        for (path, file) in &rendered.files {
            checksum.add(path.as_str());
            checksum.add(&file.bytes);
        }
        rendered.checksum = checksum.get();
        let number = rendered.checksum.to_string();
        rendered
            .main
            .insert_str(0, &format!("# Configuration checksum: {number}\n"));
        add_file(
            &mut rendered,
            "lua.json",
            FileContent::public(dictionaries::settings_file(&context, &number)),
        );
        Ok(rendered)
    }
}

/// The text of every server, taken from the last time where the server is the same.
fn fragments(
    layout: &Layout,
    context: &Context<'_>,
    known: &mut BTreeMap<Host, (Arc<Server>, Arc<Fragment>)>,
) -> Result<Vec<Arc<Fragment>>, RenderError> {
    let mut fragments = Vec::with_capacity(layout.servers.len());
    let mut next = BTreeMap::new();
    for (host, server) in &layout.servers {
        let same = known
            .remove(host)
            .filter(|(old, _)| Arc::ptr_eq(old, server) || old == server);
        let fragment = match same {
            Some((_, fragment)) => fragment,
            None => Arc::new(server::render(server, context).map_err(RenderError::Template)?),
        };
        fragments.push(Arc::clone(&fragment));
        next.insert(host.clone(), (Arc::clone(server), fragment));
    }
    *known = next;
    Ok(fragments)
}

/// Puts the servers into their place. Line 1 is left for the checksum.
fn assemble(frame: &Text, fragments: &[Arc<Fragment>], rendered: &mut Rendered) {
    const CHECKSUM_LINES: usize = 1;
    let (bytes_before, lines_before) = frame
        .servers_at
        .unwrap_or((frame.content.len(), frame.lines));
    let size: usize = fragments
        .iter()
        .map(|fragment| fragment.text.content.len())
        .sum();
    let (before, after) = frame
        .content
        .split_at_checked(bytes_before)
        .unwrap_or((&frame.content, ""));
    let mut main = String::with_capacity(frame.content.len() + size + 64);
    main.push_str(before);
    let mut map = SourceMap::default();
    let mut lines = CHECKSUM_LINES + lines_before;
    for fragment in fragments {
        main.push_str(&fragment.text.content);
        map.extend(lines, &fragment.text.ranges);
        lines += fragment.text.lines;
    }
    main.push_str(after);
    let inserted = lines - CHECKSUM_LINES - lines_before;
    map.extend_around(&frame.ranges, CHECKSUM_LINES, lines_before, inserted);
    map.extend_around(
        &settings(&frame.content),
        CHECKSUM_LINES,
        lines_before,
        inserted,
    );
    rendered.main = main;
    rendered.source_map = map;
}

/// The lines that say what the ConfigMap says.
fn settings(frame: &str) -> Vec<Range> {
    let mut in_stream = false;
    let of_key = |(index, line): (usize, &str)| {
        in_stream |= line == "stream {";
        let source = Source {
            host: None,
            path: None,
            ingress: None,
            what: settings::key_of(line, in_stream)?,
        };
        Some(Range::line(index + 1, Arc::new(source)))
    };
    frame.lines().enumerate().filter_map(of_key).collect()
}

fn add_files(
    layout: &Layout,
    context: &Context<'_>,
    fragments: &[Arc<Fragment>],
    rendered: &mut Rendered,
) {
    for fragment in fragments {
        rendered.notes.extend(fragment.notes.iter().cloned());
        for (path, file, source) in &fragment.files {
            rendered
                .source_map
                .add_file(path.as_str(), Arc::clone(source));
            rendered.files.insert(path.clone(), file.clone());
        }
    }
    for (path, file) in tls::files(context.config) {
        add_file(rendered, &path, file);
    }
    for (path, file) in modsecurity::files(context) {
        add_named_file(rendered, path, file);
    }
    if telemetry::is_possible(context) {
        let file = FileContent::public(telemetry::settings(&context.config.opentelemetry));
        add_named_file(rendered, telemetry::SETTINGS, file);
    }
    if let Some(pem) = &context.environment.default_certificate_pem {
        add_file(
            rendered,
            DEFAULT_CERTIFICATE,
            FileContent::private(pem.as_ref()),
        );
    }
    for (path, script) in stream::scripts(layout, context) {
        add_file(rendered, path, FileContent::public(script));
    }
}

/// Adds a file if the main file names it.
fn add_named_file(rendered: &mut Rendered, path: &str, file: FileContent) {
    if rendered.main.contains(path) {
        add_file(rendered, path, file);
    }
}

fn add_file(rendered: &mut Rendered, path: &str, file: FileContent) {
    let path = RelativePath::new(path);
    rendered.files.extend(path.map(|path| (path, file)));
}
