//! Locations that answer no client themselves: the questions, copies and error pages of other locations.

use crate::{
    source_map::Mark,
    value::{Printed, constant, plain},
};

use super::{SnippetView, cors::CorsView, directive::Directive};

/// A location of a server that only NGINX itself asks.
pub(crate) struct InternalView {
    pub(crate) begin: Mark,
    pub(crate) end: Mark,
    /// Modifier and path, or `@name`.
    pub(crate) matcher: Printed,
    pub(crate) settings: Vec<Directive>,
    pub(crate) snippet: Option<SnippetView>,
    pub(crate) cors: Option<CorsView>,
    /// Whether `$escaped_request_uri` is needed.
    pub(crate) escapes_uri: bool,
    pub(crate) handler: Vec<Directive>,
}

/// The matcher of a location for subrequests, whose name holds nothing but letters, digits, `_` and `-`. It begins with no
/// `/`, so that no path of an Ingress can take it.
pub(crate) fn exact(name: &str) -> Printed {
    match plain(name) {
        Ok(name) => crate::value::joined("= ", &name),
        Err(_) => constant("= \"_unnamed\"".into()),
    }
}

/// The matcher of a named location.
pub(crate) fn named(name: &str) -> Printed {
    constant(format!("@{name}"))
}
