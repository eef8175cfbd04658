//! Which build this is.

/// The release.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The commit of the source, where it was known when this was built.
pub(crate) const COMMIT: Option<&str> = option_env!("CONTROLLER_COMMIT");

/// What the compiler calls itself.
pub(crate) const COMPILER: Option<&str> = option_env!("CONTROLLER_COMPILER");

/// For whom it was built.
pub(crate) const KIND: &str = if cfg!(debug_assertions) {
    "debug"
} else {
    "release"
};
