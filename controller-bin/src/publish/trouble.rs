//! Something that fails again and again, logged once.

use std::error::Error;

use tracing::{debug, info, warn};

use crate::chain::chain;

/// Whether one activity fails at present.
#[derive(Debug)]
pub(super) struct Trouble {
    /// Completes "cannot …".
    what: &'static str,
    is_present: bool,
}

impl Trouble {
    /// Nothing yet; `what` completes "cannot …".
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            is_present: false,
        }
    }

    /// It failed. Logged as a warning unless it failed before.
    pub(super) fn met(&mut self, error: &dyn Error) {
        let error = chain(error);
        if self.is_present {
            debug!(error, "still cannot {}", self.what);
        } else {
            warn!(error, "cannot {}; trying again", self.what);
            self.is_present = true;
        }
    }

    /// It succeeded.
    pub(super) fn ended(&mut self) {
        if std::mem::take(&mut self.is_present) {
            info!("can {} again", self.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn trouble_is_remembered_until_it_ends() {
        let mut trouble = Trouble::new("x");
        assert!(!trouble.is_present);
        for error in ["a", "b"] {
            trouble.met(&io::Error::other(error));
            assert!(trouble.is_present);
        }
        trouble.ended();
        assert!(!trouble.is_present);
    }
}
