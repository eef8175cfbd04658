//! The controller.

pub mod args;
mod selector;

pub use args::Args;
