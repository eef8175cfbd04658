//! NGINX: its program, its files and its process.

pub(crate) mod census;
pub mod configuration;
pub mod files;
mod log;
pub mod machine;
pub mod process;
pub mod program;
pub mod reload;
pub mod test;

#[cfg(test)]
mod tests;
