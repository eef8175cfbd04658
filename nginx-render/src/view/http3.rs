//! HTTP/3: one more protocol at the port for HTTPS, over UDP (NGINX docs: `ngx_http_v3_module`).

use crate::{
    capabilities::Module,
    source_map::Note,
    value::{Printed, Unprintable, plain},
};

use super::{Context, note};

/// How long browsers remember that a host speaks HTTP/3, in seconds.
const REMEMBERED: u32 = 86_400;

/// Whether servers speak it. Where TLS is passed through, or connections begin with a PROXY header, clients could not be
/// told from who is in front.
pub(crate) fn is_spoken(context: &Context<'_>) -> bool {
    let config = context.config;
    let by_itself = !config.use_proxy_protocol && context.passthrough().is_none();
    config.use_http3 && by_itself && context.capabilities.has(Module::HttpV3)
}

/// Says that it is not spoken, where it should be.
pub(crate) fn note_lack(context: &Context<'_>, notes: &mut Vec<Note>) {
    if context.config.use_http3 && !is_spoken(context) {
        let text = "HTTP/3 is not spoken: it needs NGINX with http_v3, without PROXY headers and without TLS that is \
                    passed through";
        notes.push(note("use-http3", text.into()));
    }
}

/// The value of `Alt-Svc`, by which clients learn of it (RFC 7838).
pub(crate) fn alt_svc(context: &Context<'_>) -> Result<Option<Printed>, Unprintable> {
    let value = format!(
        "h3=\":{}\"; ma={REMEMBERED}",
        context.environment.ports.https
    );
    is_spoken(context).then(|| plain(&value)).transpose()
}
