//! Computations that should not panic, and what becomes of it if they do: one more failure that is tried again.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A computation has panicked; the panic itself has been printed where it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fault in the controller broke off {0}")]
pub struct Panicked(&'static str);

/// Runs a computation; `what` completes "a fault in the controller broke off …". What it has changed before it
/// panicked is not to be trusted any more.
pub(crate) fn guard<T>(what: &'static str, compute: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(compute)).map_err(|_printed| Panicked(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        assert_eq!(guard("sums", || 2), Ok(2));
        let error = guard("sums", || -> u8 { panic!("on purpose") }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a fault in the controller broke off sums"
        );
    }
}
