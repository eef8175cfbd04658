//! Compression of responses.

use crate::{
    capabilities::Module,
    source_map::Note,
    value::{Unprintable, arguments, plain, switch, word},
};

use super::{
    Context,
    directive::{Directive, directive},
    note,
};

pub(crate) fn directives(
    context: &Context<'_>,
    notes: &mut Vec<Note>,
) -> Result<Vec<Directive>, Unprintable> {
    let config = context.config;
    let mut directives = Vec::new();
    let has_brotli = context.capabilities.has(Module::BrotliFilter);
    if config.enable_brotli && !has_brotli {
        let text = "responses are not compressed with Brotli: NGINX has no module for it";
        notes.push(note("enable-brotli", text.into()));
    }
    if config.enable_brotli && has_brotli {
        directives.extend([
            directive("brotli", [switch(true)]),
            directive("brotli_comp_level", [word(config.brotli_level)]),
            directive("brotli_min_length", [word(config.brotli_min_length)]),
            directive("brotli_types", arguments(&config.brotli_types)?),
        ]);
    }
    if config.use_gzip {
        directives.extend([
            directive("gzip", [switch(true)]),
            directive("gzip_comp_level", [word(config.gzip_level)]),
            directive("gzip_http_version", [word("1.1")]),
            directive("gzip_min_length", [word(config.gzip_min_length)]),
            directive("gzip_types", arguments(&config.gzip_types)?),
            directive("gzip_proxied", [word("any")]),
            directive("gzip_vary", [switch(true)]),
        ]);
        if let Some(agents) = &config.gzip_disable {
            directives.push(directive("gzip_disable", [plain(agents.as_str())?]));
        }
    }
    Ok(directives)
}
