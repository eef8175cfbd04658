//! What the tests need around the NGINX under test.

pub(crate) mod dns;
pub(crate) mod http;
pub(crate) mod nginx;
pub(crate) mod upstream;

use std::{
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until `probe` gives a value. Panics when it does not within a generous time.
pub(crate) fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
