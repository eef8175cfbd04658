//! From objects to the model: the rules in the order in which they apply.

use jiff::Timestamp;

use crate::{options::Options, outcome::Outcome, snapshot::Snapshot};

/// Turns the objects of a cluster into the configuration of NGINX.
///
/// Total and pure: any input gives an outcome, and the same input the same outcome. `now` serves to tell expired
/// certificates.
#[must_use]
pub fn merge(snapshot: &Snapshot, options: &Options, now: Timestamp) -> Outcome {
    let _ = (snapshot, options, now);
    Outcome::default()
}
