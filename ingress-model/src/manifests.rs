//! Objects from the text of manifests, as if an API server held them: for tests, for tools, and for a controller that
//! follows a directory. Needs the feature `manifests`.
//!
//! [`parse()`] reads the text of a file, [`together()`] says what several files mean.
//!
//! Nothing here reads files: who does hands over their names and texts.

mod complete;
mod object;
mod parse;
mod together;

pub use self::{
    object::Object,
    parse::{Content, ManifestError, parse},
    together::{AssumedClass, Placed, Repeated, Together, together},
};
