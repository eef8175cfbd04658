//! Something that fails again and again, logged once.

use std::error::Error;

use tracing::{info, warn};

use crate::chain::chain;

/// What is wrong with one activity at present.
#[derive(Debug)]
pub(super) struct Trouble {
    /// Completes "cannot …".
    what: &'static str,
    present: Option<String>,
}

impl Trouble {
    /// Nothing yet; `what` completes "cannot …".
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            present: None,
        }
    }

    /// It failed. Logged unless it failed in the same way before.
    pub(super) fn met(&mut self, error: &dyn Error) {
        let error = chain(error);
        if self.present.as_deref() != Some(&error) {
            warn!(error, "cannot {}; trying again", self.what);
            self.present = Some(error);
        }
    }

    /// It succeeded.
    pub(super) fn ended(&mut self) {
        if self.present.take().is_some() {
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
        trouble.met(&io::Error::other("a"));
        assert_eq!(trouble.present.as_deref(), Some("a"));
        trouble.met(&io::Error::other("b"));
        assert_eq!(trouble.present.as_deref(), Some("b"));
        trouble.ended();
        assert_eq!(trouble.present, None);
    }
}
