//! Compression of responses.

use ingress_model::config::RenderConfig;

use crate::{
    capabilities::{Capabilities, Module},
    value::{Unprintable, arguments, plain, switch, word},
};

use super::directive::{Directive, directive};

pub(crate) fn directives(
    config: &RenderConfig,
    capabilities: &Capabilities,
) -> Result<Vec<Directive>, Unprintable> {
    let mut directives = Vec::new();
    if config.enable_brotli && capabilities.has(Module::BrotliFilter) {
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
