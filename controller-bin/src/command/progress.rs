//! What long work is at, on a terminal only.

use std::time::Duration;

use indicatif::ProgressBar;

/// How often the line moves.
const TICK: Duration = Duration::from_millis(100);

/// A line on standard error that shows what is being done. It goes away when it is dropped; where standard error is no
/// terminal there is none.
#[derive(Debug)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Shows what is being done from now on.
    pub(super) fn start(what: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_message(what);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Shows what is being done next.
    pub(super) fn next(&self, what: &'static str) {
        self.0.set_message(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
