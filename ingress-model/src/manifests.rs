//! Objects from the text of manifests, as if an API server held them: for tests, for tools, and for a controller that
//! follows a directory. Needs the feature `manifests`.
//!
//! [`parse()`] and [`salvage()`] read the text of a file, [`review()`] says what an API server would refuse of it, [`together()`] says what several files mean, and [`Gathering`] what changes when
//! one of them does.
//!
//! Nothing here reads files: who does hands over their names and texts.

mod complete;
mod format;
mod gathering;
mod ignored;
mod object;
mod order;
mod parse;
mod review;
mod together;

use std::path::Path;

pub use self::{
    gathering::{Changes, Gathering},
    ignored::{Advice, Ignored},
    object::Object,
    parse::{Content, ManifestError, Part, parse, salvage},
    review::{FieldPlaces, Slip, SlipKind, review},
    together::{AssumedClass, Placed, Repeated, Together, together},
};

/// Whether a path names a file of manifests: it ends in `.yaml`, `.yml` or `.json`, and does not begin with a dot.
///
/// ```
/// use std::path::Path;
///
/// use ingress_model::manifests::is_manifest;
///
/// assert!(is_manifest(Path::new("shop/cart.yaml")));
/// assert!(!is_manifest(Path::new("shop/.cart.yaml")));
/// assert!(!is_manifest(Path::new("shop/README.md")));
/// ```
#[must_use]
pub fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("yaml" | "yml" | "json")) && !is_hidden(path)
}

/// Whether a file or directory is left out since its name begins with a dot, as those do that are being written, and
/// those by which the kubelet replaces all files of a volume at once.
#[must_use]
pub fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}
